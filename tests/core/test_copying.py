# SPDX-License-Identifier: Apache-2.0
"""A copying block hands out elements that share no memory with the block, and counts the time of each copy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.block import Block
from distinput.ops.copied import CopyingBlock
from distinput.values.nest import LEAF, structure_of


def copying(rows: int, late: list[float] | None = None) -> tuple[np.ndarray, CopyingBlock]:
    array = np.arange(2 * rows).reshape(rows, 2)
    block = Block.of_elements(LEAF, [array]).unstack()
    memory = block.columnar().columns[0].array
    return memory, CopyingBlock(block, ([] if late is None else late).append)


@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 6), st.integers(1, 3))
def test_rows_are_those_of_the_block_and_share_no_memory(rows: int, start: int, stop: int, step: int) -> None:
    memory, block = copying(rows)
    part = block.rows(start, min(stop, rows), step)
    found = list(part.elements())
    assert [each.tolist() for each in found] == memory[start : min(stop, rows) : step].tolist()
    assert len(part) == len(found)
    assert not any(np.shares_memory(each, memory) for each in found)


def test_every_copy_is_counted_once() -> None:
    late: list[float] = []
    _, block = copying(3, late)
    elements = block.elements()
    next(elements)
    assert len(late) == 1
    list(elements)
    assert len(late) == 3
    assert all(seconds >= 0 for seconds in late)


def test_a_single_row_and_whole_blocks_are_copies_too() -> None:
    memory, block = copying(3)
    assert block.row(2).tolist() == [4, 5]
    assert not np.shares_memory(block.row(2), memory)
    for whole in (block.columnar(), block.copied(), block.materialize()):
        array = whole.columns[0].array
        assert array.tolist() == memory.tolist()
        assert not np.shares_memory(array, memory)
    assert block.nbytes == memory.nbytes


def test_all_leaves_of_a_nest_are_copied() -> None:
    element = {"a": np.arange(3), "b": b"text"}
    inner = Block.of_elements(structure_of(element), [element, element])
    (first, second) = CopyingBlock(inner, [].append).elements()
    first["a"][:] = -1
    assert second["a"].tolist() == [0, 1, 2]
    assert inner.row(0)["a"].tolist() == [0, 1, 2]
    assert first["b"] == b"text"
