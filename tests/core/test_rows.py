# SPDX-License-Identifier: Apache-2.0
"""A row queue gives the rows of its stream in order, and its mark leads back to the oldest row that is left."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.block import Block, Failure
from distinput.columns.rows import RowQueue, passing_over
from distinput.columns.state import Mark
from distinput.values.nest import LEAF

SIZES = st.lists(st.one_of(st.integers(0, 5), st.just(-1)), max_size=6)
"""Rows of each block; -1: a failure."""


def stream(sizes: list[int], first: int = 0) -> Iterator[tuple[Block, dict[str, Any]]]:
    """Blocks from number `first` on; rows tell their own number, states that of the next block."""
    for number in range(first, len(sizes)):
        rows = sum(max(0, size) for size in sizes[:number])
        size = sizes[number]
        values = [np.int64(row) for row in range(rows, rows + max(0, size))]
        block: Block = Failure(ValueError(str(number))) if size < 0 else Block.of_elements(LEAF, values)
        yield block, {"next": number + 1}


def opened(sizes: list[int], mark: Mark) -> RowQueue:
    return RowQueue(stream(sizes, mark["input"]["next"]), mark)


def everything(queue: RowQueue) -> list[Any]:
    """All that is left: rows, and a word for each failure."""
    found: list[Any] = []
    while True:
        if queue.size:
            found += list(queue.take(queue.size).elements())
        elif queue.failure is not None:
            found.append(str(queue.passed().error))
        elif not queue.pull() and queue.failure is None:
            return found


@given(SIZES, st.data())
def test_whatever_is_taken_the_mark_leads_to_what_is_left(sizes: list[int], data: st.DataObject) -> None:
    start: Mark = {"input": {"next": 0}, "skip": 0}
    whole = everything(opened(sizes, start))
    assert [item for item in whole if not isinstance(item, str)] == list(range(sum(max(0, size) for size in sizes)))
    queue, seen = opened(sizes, start), list[Any]()
    for _ in range(data.draw(st.integers(0, 6))):
        size = data.draw(st.integers(1, 4))
        match data.draw(st.sampled_from(["fill", "take", "skip", "parts", "peek", "groups", "whole", "pass"])):
            case "fill":
                assert queue.fill(size) == (queue.size >= size)
            case "take" if queue.size:
                seen += list(queue.take(min(size, queue.size)).elements())
            case "skip" if queue.size:
                size = min(size, queue.size)
                seen += list(queue.peek(size).elements())
                queue.skip(size)
            case "parts" if queue.size:
                for part in queue.take_parts(min(size, queue.size)):
                    seen += list(part.elements())
            case "peek" if queue.size:
                before = queue.size
                assert list(queue.peek(1).elements()) == [whole[len(seen)]]
                assert queue.size == before
            case "groups" if queue.size >= size:
                groups = queue.take_groups(size, lazily=data.draw(st.booleans()))
                assert groups.size
                assert not groups.size % size
                seen += list(groups.elements())
            case "whole":
                block = queue.whole(size)
                if block is not None:
                    assert not block.size % size
                    seen += list(block.elements())
            case "pass" if queue.failure is not None and not queue.size:
                seen.append(str(queue.passed().error))
        assert seen == whole[: len(seen)]
        assert everything(opened(sizes, queue.mark())) == whole[len(seen) :]
    assert everything(queue) == whole[len(seen) :]


def test_rows_of_one_block_are_a_view() -> None:
    array = np.arange(10)
    block = Block.of_elements(LEAF, list(array))
    queue = RowQueue(iter([(block, {})]), {"input": {}, "skip": 0})
    assert queue.pull()
    column = queue.take(4).columnar().columns[0]
    assert np.shares_memory(column.array, block.columns[0].array)  # type: ignore[attr-defined]
    assert queue.front == 6


@given(SIZES, st.integers(0, 6))
def test_rows_before_a_mark_are_passed_over(sizes: list[int], over: int) -> None:
    if -1 in sizes:
        over = min(over, sum(sizes[: sizes.index(-1)]))
    rows, marks = list[Any](), list[tuple[int, Mark]]()
    for block, at in passing_over(stream(sizes), {"input": {"next": 0}, "skip": over}):
        if isinstance(block, Failure):
            rows.append(str(block.error))
            assert at(0) == at(1)
        else:
            assert block.size
            marks += [(len(rows) + done, at(done)) for done in range(block.size + 1)]
            rows += list(block.elements())
    assert rows == everything(opened(sizes, {"input": {"next": 0}, "skip": over}))
    for done, mark in marks:
        assert everything(opened(sizes, mark)) == rows[done:]
