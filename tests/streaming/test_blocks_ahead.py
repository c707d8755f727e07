# SPDX-License-Identifier: Apache-2.0
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.columns.block import Block
from distinput.formats import span_format
from distinput.run.run import Run
from distinput.streaming import ahead
from distinput.streaming.ahead import Pace
from distinput.values.nest import LEAF
from tests.ops.iterating import plain, until_error


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    monkeypatch.setattr(ahead, "_WORTH_SECONDS", -1.0)
    monkeypatch.setattr(ahead, "_WORTH_PART", -1.0)
    monkeypatch.setattr(ahead, "_HAND_OVER_SECONDS", 0.0)


class Counted:
    """A stream of blocks with one number each; tells what was made, on which thread, and where it was reading."""

    def __init__(self, count: int, fails_at: int = -1) -> None:
        self.count, self.fails_at = count, fails_at
        self.made: list[int] = []
        self.threads: set[int] = set()

    def __call__(self, run: Run) -> Iterator[tuple[Block, Any]]:
        for number in range(self.count):
            run.reading = lambda number=number: f"block {number}"
            self.threads.add(threading.get_ident())
            if number == self.fails_at:
                raise ValueError(f"no block {number}")
            self.made.append(number)
            yield Block.of_elements(LEAF, [np.int64(number)]), number + 1


@pytest.mark.parametrize("cores", [1, 2])
def test_blocks_made_ahead_keep_their_order_and_what_was_read(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "cores", lambda: cores)
    source = Counted(9)
    with Run() as run:
        for number, (block, after) in enumerate(ahead.blocks_ahead(source, run, Pace())):
            assert (int(next(block.elements())), after) == (number, number + 1)
            assert run.reading is not None
            assert run.reading() == f"block {number}"  # however far ahead the thread is
    assert len(source.threads) == cores


def test_the_first_block_alone_is_all_that_is_made() -> None:
    source = Counted(9)
    with Run() as run:
        next(ahead.blocks_ahead(source, run, Pace()))
    assert source.made == [0]


def test_a_short_stream_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_WORTH_SECONDS", 1e9)
    source = Counted(9)
    with Run() as run:
        assert len(list(ahead.blocks_ahead(source, run, Pace()))) == 9
    assert len(source.threads) == 1


@pytest.mark.parametrize(
    "made, used, threads", [(1.0, 1.0, 2), (1.0, 0.5, 2), (1.0, 0.05, 1), (0.05, 1.0, 1), (0.002, 0.002, 1)]
)
def test_a_pass_begins_with_a_thread_where_one_paid_before(
    made: float, used: float, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "_WORTH_SECONDS", 0.003)
    monkeypatch.setattr(ahead, "_WORTH_PART", 0.125)
    monkeypatch.setattr(Run, "clock", staticmethod(lambda: 0.0))  # this pass itself says nothing
    pace, source = Pace(), Counted(9)
    pace.took(made, used)
    with Run() as run:
        assert len(list(ahead.blocks_ahead(source, run, pace))) == 9
    assert len(source.threads) == threads


@pytest.mark.parametrize("made, pays", [(0.0002, False), (0.0006, True)])
def test_every_hand_over_has_its_price(made: float, pays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    pace = Pace()
    pace.took(1.0, 0.0)  # a kernel was loaded
    for _ in range(100):
        pace.took(made, 2 * made)
    assert pace.pays == pays


def test_passes_long_ago_count_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_WORTH_PART", 0.125)
    pace = Pace()
    for _ in range(20):
        pace.begin()
        pace.took(1.0, 0.0)
    assert not pace.pays  # nothing is done with the blocks
    for _ in range(2):
        pace.begin()
        pace.took(1.0, 1.0)
    assert pace.pays


def test_few_blocks_are_made_ahead_and_none_without_room() -> None:
    source, other = Counted(9), Counted(9)
    with Run() as run:
        streams: Any = ahead.blocks_ahead(source, run, Pace()), ahead.blocks_ahead(other, run, Pace())
        for stream in streams:
            next(stream), next(stream)
        run.read_ahead.enter(0)
        third: Any = ahead.blocks_ahead(Counted(9), run, Pace())
        next(third), next(third)
        streams[0].close()
        streams[1].close()
        third.close()
    assert len(source.made) <= 4
    assert len(other.made) <= 4


def test_an_error_comes_after_the_blocks_before_it() -> None:
    source = Counted(9, fails_at=4)
    with Run() as run:
        stream = ahead.blocks_ahead(source, run, Pace())
        assert [int(next(next(stream)[0].elements())) for _ in range(4)] == [0, 1, 2, 3]
        with pytest.raises(ValueError, match="no block 4"):
            next(stream)
        assert run.reading is not None
        assert run.reading() == "block 4"


@pytest.mark.parametrize("ends", ["closed", "run over", "error"])
def test_nothing_is_left(ends: str) -> None:
    before = set(threading.enumerate())
    run = Run()
    stream: Any = ahead.blocks_ahead(Counted(9), run, Pace())
    next(stream), next(stream)
    assert not set(threading.enumerate()) <= before
    if ends == "closed":
        stream.close()
    elif ends == "run over":
        run.close()
        stream.close()
    else:
        with pytest.raises(ZeroDivisionError):
            stream.throw(ZeroDivisionError())
    assert [run.read_ahead.enter(run.read_ahead.nbytes - 1), run.read_ahead.enter(1)] == [True, True]
    run.close()
    assert set(threading.enumerate()) <= before


def check_restarts(dataset: di.data.Dataset) -> list[Any]:
    want = [plain(element) for element in dataset]
    with iter(dataset) as elements:
        for done, _ in enumerate(elements, 1):
            assert [plain(element) for element in dataset.restore(elements.state())] == want[done:]
    return want


@settings(deadline=None, max_examples=25)
@given(
    sizes=st.lists(st.lists(st.integers(0, 30), max_size=8), min_size=1, max_size=3),
    chunk=st.integers(1, 64),
    skip=st.integers(0, 9),
)
def test_lines_are_the_same_ahead_or_not(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[list[int]], chunk: int, skip: int
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    want = []
    paths = [str(folder / f"{number}.txt") for number in range(len(sizes))]
    for path, lengths in zip(paths, sizes, strict=True):
        lines = [b"%d" % len(want) + b"x" * length for length in lengths]
        Path(path).write_bytes(b"".join(line + b"\n" for line in lines))
        want += lines
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(span_format, "FIRST_BYTES", chunk)
        patch.setattr(span_format, "CHUNK_BYTES", chunk)
        for count in (1, 2):
            patch.setattr(ahead, "cores", lambda count=count: count)
            assert check_restarts(di.data.TextLineDataset(paths).skip(skip)) == want[skip:]
            turns = di.data.TextLineDataset(paths, num_parallel_reads=2)
            assert sorted(turns) == sorted(want)


def test_a_bad_function_names_the_place_of_its_own_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_format, "FIRST_BYTES", 20)
    monkeypatch.setattr(span_format, "CHUNK_BYTES", 20)
    path = tmp_path / "lines.txt"
    path.write_bytes(b"".join(b"%03d\n" % number for number in range(100)))
    lines = di.data.TextLineDataset(str(path)).map(
        lambda line: 1 / (int(line) - 23), output_signature=di.data.TensorSpec((), "float32")
    )
    before, error = until_error(lines)
    assert len(before) == 23
    assert isinstance(error, ZeroDivisionError)
    assert error.__notes__[-1] == f"record 23 of {path}"
