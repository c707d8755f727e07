# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from typing import Any

import pytest

from distinput.columns.block import Block, Failure
from distinput.columns.rows import RowQueue
from distinput.errors import DataLossError
from distinput.formats.format import Portion
from distinput.run.run import Run
from distinput.streaming.ahead import ReadingPlace, blocks_in, places, portions_in
from distinput.values.nest import LEAF

FILES: dict[str, list[int]] = {"a": [1, 2, 3], "b": [], "c": [4, 5]}


def queue(names: list[str]) -> RowQueue:
    block = Block.of_elements(LEAF, [name.encode() for name in names])
    return RowQueue(iter([(block, {"row": block.size})]), {"input": {"row": 0}, "skip": 0})


def opened(name: bytes, position: Any) -> ReadingPlace:
    if name.decode() not in FILES:
        raise FileNotFoundError(name.decode())
    return {"path": name.decode(), "position": position}


def records(place: ReadingPlace) -> Iterator[tuple[Block, int]]:
    for row in range(place["position"] or 0, len(FILES[place["path"]])):
        number = FILES[place["path"]][row]
        if number == 2:
            raise DataLossError(f"damage in {place['path']}")
        yield Block.of_elements(LEAF, [number]), row + 1


def read(names: list[str], run: Run, position: Any = None) -> Iterator[tuple[Any, Any]]:
    found = places(queue(names), {"input": {"row": 0}, "skip": 0, "position": position}, run, opened)
    for block, after in blocks_in(found, records, run):
        yield (str(block.error) if isinstance(block, Failure) else int(block.row(0))), after


def test_files_follow_one_another_and_states_hold_the_position() -> None:
    with Run() as run:
        assert list(read(["c", "b", "c"], run)) == [
            (4, {"input": {"row": 0}, "skip": 0, "position": 1}),
            (5, {"input": {"row": 0}, "skip": 0, "position": 2}),
            (4, {"input": {"row": 0}, "skip": 2, "position": 1}),
            (5, {"input": {"row": 0}, "skip": 2, "position": 2}),
        ]


def test_only_the_first_file_begins_at_a_position() -> None:
    with Run() as run:
        assert [number for number, _ in read(["c", "c"], run, position=1)] == [5, 4, 5]


@pytest.mark.parametrize("names, error", [(["c", "nowhere"], FileNotFoundError), (["c", "a"], DataLossError)])
def test_an_error_comes_after_the_records_before_it(names: list[str], error: type[Exception]) -> None:
    with Run() as run:
        stream = read(names, run)
        assert [next(stream)[0] for _ in range(2)] == [4, 5]
        with pytest.raises(error):
            list(stream)


def test_a_tolerant_run_goes_on_with_the_next_file() -> None:
    with Run() as run:
        found = list(read(["nowhere", "a", "c"], run.tolerating(True)))
    assert [number for number, _ in found] == ["nowhere", 1, "damage in a", 4, 5]
    assert found[0][1] == {"input": {"row": 0}, "skip": 1, "position": None}
    assert found[2][1] == {"input": {"row": 0}, "skip": 2, "position": None}


@pytest.mark.parametrize("error", [IndexError, KeyError, TypeError, AttributeError, ValueError, AssertionError])
def test_an_error_of_python_itself_is_no_damage(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(place: ReadingPlace) -> Iterator[tuple[Block, int]]:
        raise error("our defect")
        yield

    monkeypatch.setitem(globals(), "records", broken)
    with Run() as run, pytest.raises(error, match="our defect"):
        list(read(["a", "c"], run.tolerating(True)))


def test_a_file_that_is_lost_has_no_further_portions() -> None:
    def portions(place: ReadingPlace) -> Iterator[Portion]:
        for number in FILES[place["path"]]:
            yield Portion(1, 8, False, lambda number=number: number, lambda found: iter([]))

    with Run() as run:
        tolerant = run.tolerating(True)
        state = {"input": {"row": 0}, "skip": 0, "position": None}
        stream = portions_in(places(queue(["a", "c"]), state, tolerant, opened), portions, tolerant)
        mark, place, _ = next(stream)
        place["lost"] = True
        assert [(place["path"], portion.decode()) for _, place, portion in stream if isinstance(portion, Portion)] == [
            ("c", 4),
            ("c", 5),
        ]
        assert mark["skip"] == 0
