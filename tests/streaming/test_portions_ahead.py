# SPDX-License-Identifier: Apache-2.0
import threading
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.columns.block import Block
from distinput.errors import DataLossError, NotFoundError
from distinput.formats import parquet
from distinput.formats.format import Portion
from distinput.run.run import ReadAheadBudget, Run
from distinput.streaming import ahead
from distinput.testing import check_nothing_left
from distinput.values.nest import LEAF
from tests.ops.iterating import plain, until_error
from tests.patience import threads_since

WORTH_A_THREAD = ahead._WORTH_A_THREAD


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    monkeypatch.setattr(ahead, "_WORTH_A_THREAD", 1)


class Portions:
    """Portions of `blocks` blocks with one row each: the number of the portion. Tells what was decoded, and on which thread.

    All but the first wait for `arrived`.
    """

    def __init__(
        self,
        count: int,
        blocks: int = 2,
        nbytes: int = 1,
        follows: bool = False,
        waits: bool = False,
        arrived: threading.Event | None = None,
        of_a_file: int = 1,
    ) -> None:
        self.arrived, self.of_a_file = arrived, of_a_file
        self.count, self.blocks, self.nbytes, self.follows, self.waits = count, blocks, nbytes, follows, waits
        self.decoded: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[Any]:
        place: dict[str, Any] = {}
        for number in range(self.count):
            place = place if number % self.of_a_file else {}
            yield {"input": number}, place, self.portion(number)

    def portion(self, number: int) -> Portion:
        def decode() -> int:
            self.decoded.append((number, threading.get_ident()))
            if self.arrived is not None and number:
                assert self.arrived.wait(60)
            return number

        def blocks(found: int) -> Iterator[tuple[Block, dict[str, Any]]]:
            for row in range(self.blocks):
                yield Block.of_elements(LEAF, [np.int64(found)]), {"row": row + 1}

        return Portion(self.blocks, self.nbytes, self.follows, decode, blocks, waits=self.waits)

    @property
    def numbers(self) -> list[int]:
        return sorted(number for number, _ in self.decoded)


def drained(stream: Iterator[tuple[Block, Any]]) -> list[tuple[int, Any]]:
    return [(int(next(block.elements())), state) for block, state in stream]


def test_rows_and_states_keep_their_order() -> None:
    portions = Portions(5)
    with Run() as run:
        found = drained(ahead.portions_ahead(iter(portions), run, ahead.Pace()))
    assert found == [(number, {"input": number, "position": {"row": row}}) for number in range(5) for row in (1, 2)]
    assert portions.numbers == list(range(5))
    assert {thread for _, thread in portions.decoded} > {threading.get_ident()}


@pytest.mark.parametrize("less, waits, alone", [(1, False, True), (1, True, False), (0, False, False)])
def test_small_portions_are_decoded_by_who_asks_for_them(
    monkeypatch: pytest.MonkeyPatch, less: int, waits: bool, alone: bool
) -> None:
    monkeypatch.setattr(ahead, "_WORTH_A_THREAD", WORTH_A_THREAD)
    portions = Portions(5, nbytes=WORTH_A_THREAD - less, waits=waits)
    with Run() as run:
        found = drained(ahead.portions_ahead(iter(portions), run, ahead.Pace()))
    assert [number for number, _ in found] == sorted([*range(5)] * 2)
    assert ({thread for _, thread in portions.decoded} == {threading.get_ident()}) == alone


def test_the_first_block_alone_takes_one_portion() -> None:
    portions = Portions(5)
    with Run() as run:
        stream = ahead.portions_ahead(iter(portions), run, ahead.Pace())
        next(stream)
        assert portions.numbers == [0]


@pytest.mark.parametrize("of_a_file, begun", [(9, [0, 1, 2, 3]), (3, [0, 1, 2]), (1, [0, 1])])
def test_a_pass_begins_ahead_in_its_first_file_behind_one_that_went_on(of_a_file: int, begun: list[int]) -> None:
    pace = ahead.Pace()
    for asks_for_more, expected in ((True, [0]), (False, begun), (True, [0]), (True, begun)):
        portions = Portions(9, of_a_file=of_a_file)
        with Run() as run:
            stream = ahead.portions_ahead(iter(portions), run, pace)
            first = [next(stream)]
            assert settled(run, portions, expected)
            if asks_for_more:
                assert [number for number, _ in drained(chain(first, stream))] == sorted([*range(9)] * 2)


def settled(run: Run, portions: Portions, expected: list[int]) -> bool:
    """Whether just these portions are decoded once the threads have nothing left to do."""
    deadline = threading.Event()
    for _ in range(6000):  # only what fails takes so long
        if portions.numbers == expected:
            break
        deadline.wait(0.01)
    deadline.wait(0.05)
    return portions.numbers == expected


def test_no_more_than_there_is_room_for_is_decoded_ahead() -> None:
    portions = Portions(9)
    with Run() as run:
        stream = ahead.portions_ahead(iter(portions), run, ahead.Pace())
        next(stream), next(stream)
        assert settled(run, portions, [0, 1, 2, 3])


def test_more_are_made_ahead_if_they_wait_for_a_network() -> None:
    portions = Portions(40, waits=True)
    with Run() as run:
        stream = ahead.portions_ahead(iter(portions), run, ahead.Pace())
        next(stream), next(stream)
        assert settled(run, portions, list(range(25)))
        assert [number for number, _ in drained(stream)] == [each for each in range(1, 40) for _ in range(2)]


def test_some_of_them_wait_until_others_have_come() -> None:
    arrived = threading.Event()
    portions = Portions(40, waits=True, arrived=arrived)
    with Run() as run:
        stream = ahead.portions_ahead(iter(portions), run, ahead.Pace())
        next(stream), next(stream)
        assert settled(run, portions, list(range(16)))
        arrived.set()
        assert settled(run, portions, list(range(25)))


def test_a_large_portion_waits_until_the_one_before_it_is_in_use() -> None:
    portions = Portions(9, nbytes=100)
    with Run() as run:
        run.read_ahead = ReadAheadBudget(2, 10)
        stream = ahead.portions_ahead(iter(portions), run, ahead.Pace())
        next(stream), next(stream)
        assert settled(run, portions, [0, 1])
        next(stream)
        assert settled(run, portions, [0, 1])  # the rows of portion 0 may still be in use
        next(stream)
        assert settled(run, portions, [0, 1, 2])


def test_all_readers_of_a_run_share_its_room() -> None:
    first, second = Portions(9), Portions(9)
    with Run() as run:
        streams = [ahead.portions_ahead(iter(portions), run, ahead.Pace()) for portions in (first, second)]
        for stream in streams:
            next(stream), next(stream)
        assert settled(run, first, [0, 1, 2, 3])
        assert settled(run, second, [0])
        assert drained(streams[1])[-1][0] == 8


def test_what_follows_is_decoded_after_what_it_follows() -> None:
    portions = Portions(20, follows=True)
    with Run() as run:
        assert len(drained(ahead.portions_ahead(iter(portions), run, ahead.Pace()))) == 40
    assert [number for number, _ in portions.decoded] == list(range(20))


def test_nothing_is_decoded_ahead_on_a_single_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "cores", lambda: 1)
    portions = Portions(5)
    with Run() as run:
        assert len(drained(ahead.portions_ahead(iter(portions), run, ahead.Pace()))) == 10
    assert {thread for _, thread in portions.decoded} == {threading.get_ident()}


def test_what_waits_for_a_network_is_made_ahead_on_a_single_core_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "cores", lambda: 1)
    portions = Portions(5, waits=True)
    with Run() as run:
        assert len(drained(ahead.portions_ahead(iter(portions), run, ahead.Pace()))) == 10
    assert threading.get_ident() not in {thread for number, thread in portions.decoded if number}


@pytest.mark.parametrize("ends", ["closed", "run over", "error"])
def test_nothing_is_left(ends: str) -> None:
    before = threading.enumerate()
    run = Run()
    stream: Any = ahead.portions_ahead(iter(Portions(9)), run, ahead.Pace())
    next(stream), next(stream)
    assert threads_since(before)
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
    assert threads_since(before) == []


def test_errors_keep_their_place() -> None:
    class Failing(Portions):
        def portion(self, number: int) -> Portion:
            if number == 3:
                raise ValueError("opening 3")
            return super().portion(number)

    with Run() as run:
        stream = ahead.portions_ahead(iter(Failing(9)), run, ahead.Pace())
        assert [int(next(next(stream)[0].elements())) for _ in range(6)] == [0, 0, 1, 1, 2, 2]
        with pytest.raises(ValueError, match="opening 3"):
            next(stream)


# ---- with real files


def written(folder: Path, files: int = 3, rows: int = 10, group: int = 4) -> list[str]:
    paths = [str(folder / f"{number}.parquet") for number in range(files)]
    for number, path in enumerate(paths):
        first = number * rows
        columns = {"x": np.arange(first, first + rows), "s": [b"%d" % row for row in range(first, first + rows)]}
        di.io.write_parquet(path, columns, row_group_size=group)
    return paths


def check_restarts(dataset: di.data.Dataset) -> list[Any]:
    want = [plain(element) for element in dataset]
    with iter(dataset) as elements:
        for done, _ in enumerate(elements, 1):
            assert [plain(element) for element in dataset.restore(elements.state())] == want[done:]
    return want


@settings(deadline=None, max_examples=25)
@given(
    rows=st.integers(1, 12),
    group=st.integers(1, 12),
    batch=st.integers(1, 9),
    slice_bytes=st.sampled_from([None, 1, 60]),
    skip=st.integers(0, 12),
)
def test_ahead_or_not_and_whole_or_in_slices_all_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: int, group: int, batch: int, slice_bytes: int | None, skip: int
) -> None:
    paths = written(tmp_path_factory.mktemp("ahead"), 2, rows, group)
    want = [{"x": row, "s": b"%d" % row} for row in range(2 * rows)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "MOST_ROWS", 3)
        if slice_bytes is not None:
            patch.setattr(parquet, "_WHOLE_BYTES", 0)
            patch.setattr(parquet, "_SLICE_BYTES", slice_bytes)
        for count in (1, 2):
            patch.setattr(ahead, "cores", lambda count=count: count)
            assert check_restarts(di.data.ParquetDataset(paths).skip(skip)) == want[skip:]
            batches = di.data.ParquetDataset(paths).batch(batch)
            assert [int(x) for element in batches for x in element["x"]] == list(range(2 * rows))
            turns = di.data.ParquetDataset(paths, num_parallel_reads=2)
            assert sorted(element["x"] for element in turns) == list(range(2 * rows))


def test_a_file_that_is_missing_is_told_after_the_rows_before_it(tmp_path: Path) -> None:
    paths = written(tmp_path)
    before, error = until_error(di.data.ParquetDataset([*paths, str(tmp_path / "gone.parquet")]))
    assert [element["x"] for element in before] == list(range(30))
    assert isinstance(error, NotFoundError)
    assert any("gone.parquet at its beginning" in note for note in error.__notes__)


def test_damage_is_told_after_the_rows_before_it(tmp_path: Path) -> None:
    paths = written(tmp_path)
    content = bytearray(Path(paths[1]).read_bytes())
    place = content.index((18).to_bytes(8, "little"))  # the first value of the third row group
    content[place] ^= 1
    Path(paths[1]).write_bytes(bytes(content))
    dataset = di.data.ParquetDataset(paths)
    for _ in range(2):
        before, error = until_error(dataset)
        assert [element["x"] for element in before] == list(range(18))
        assert isinstance(error, DataLossError)
        assert f"{paths[1]}: row group 2" in str(error)
        assert any(f"last read: {paths[1]} at {{'row': 8}}" in note for note in error.__notes__)


@pytest.mark.parametrize(
    "made",
    [
        lambda paths: di.data.ParquetDataset(paths),
        lambda paths: di.data.ParquetDataset(paths).prefetch(2).batch(3),
        lambda paths: di.data.ParquetDataset([*paths, "gone.parquet"], num_parallel_reads=2),
        lambda paths: di.data.Dataset.from_tensor_slices(paths).flat_map(di.data.ParquetDataset),
    ],
)
def test_files_leave_nothing(made: Callable[[list[str]], di.data.Dataset], tmp_path: Path) -> None:
    paths = written(tmp_path)
    check_nothing_left(lambda: made(paths))


def test_parts_of_files_are_read_ahead_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    original: Callable[..., Any] = parquet.batches_of
    monkeypatch.setattr(parquet, "batches_of", lambda *a: counted.append(a[1]) or original(*a))
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.BALANCED
    dataset = di.data.ParquetDataset(written(tmp_path)).with_options(options)
    shares = [di.data.experimental.auto_shard_dataset(dataset, 2, index, 2) for index in range(2)]
    found = [[int(element["x"]) for element in share] for share in shares]
    assert sorted(found[0] + found[1]) == list(range(30))
    assert len(counted) == 9  # each row group once: nothing behind a part is looked at
