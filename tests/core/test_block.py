# SPDX-License-Identifier: Apache-2.0
"""Blocks: what holds of every class of them, and of the elements of one that has columns."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.columns.block import Block, ColumnBlock, Failure, concat_blocks, stack_prefix
from distinput.columns.column import Dense, LazyColumn
from distinput.columns.picked import Picked, picked
from distinput.columns.rows import ChunkedBlock
from distinput.ops.copied import CopyingBlock
from distinput.ops.pieces import BlockBehind
from distinput.values.nest import LEAF, structure_of

FINAL = {BlockBehind, ChunkedBlock, ColumnBlock, CopyingBlock, Failure}

NESTS: list[Any] = [0, (0, 0), {"b": 0, "a": (0, 0)}, ()]


def test_every_block_that_can_be_made_is_final_and_only_one_kind_has_columns() -> None:
    assert set(Block.__subclasses__()) == FINAL
    assert all(kind.__final__ and not kind.__abstractmethods__ and not kind.__subclasses__() for kind in FINAL)  # type: ignore[attr-defined]
    assert Block.__abstractmethods__
    assert {kind for kind in FINAL if hasattr(kind, "columns")} == {ColumnBlock}


def numbered(nest: Any, count: int) -> list[Any]:
    structure = structure_of(nest)
    return [
        structure.build([np.int64(10 * row + leaf) for leaf in range(structure.num_leaves)]) for row in range(count)
    ]


@given(st.data())
def test_a_block_is_a_list_of_elements(data: st.DataObject) -> None:
    nest = data.draw(st.sampled_from(NESTS))
    structure = structure_of(nest)
    rows = numbered(nest, data.draw(st.integers(1, 9)))
    block: Block = Block.of_elements(structure, rows) if structure.num_leaves else ColumnBlock(structure, (), len(rows))
    for _ in range(data.draw(st.integers(0, 3))):
        match data.draw(st.sampled_from(["rows", "take", "concat", "copied", "pickle", "copying"])):
            case "rows":
                start, stop = sorted(data.draw(st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows) + 2))))
                step = data.draw(st.integers(1, 3))
                block, rows = block.rows(start, stop, step), rows[start:stop:step]
            case "take" if rows:
                places = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5))
                block, rows = block.take(np.array(places, np.int64)), [rows[place] for place in places]
            case "concat":
                block, rows = concat_blocks([block, block.rows(0, 0), block]), rows + rows
            case "copied":
                block = block.copied()
            case "pickle":
                block = pickle.loads(pickle.dumps(block.columnar()))
            case "copying":
                block = CopyingBlock(block, lambda _: None)
    assert len(block) == block.size == len(rows)
    assert list(block.elements()) == list(block.copies()) == rows
    assert [block.row(index) for index in range(len(rows))] == rows
    assert list(block.columnar().elements()) == list(block.materialize().elements()) == rows


def test_a_slice_of_all_rows_is_the_block_itself() -> None:
    block = Block.of_elements(LEAF, [1, 2, 3])
    assert block.rows(0, 3) is block
    assert block.rows(0, 9) is block
    assert block.rows(2, 1).size == 0


def test_columns_stay_lazy_until_they_are_materialized() -> None:
    block = picked(ColumnBlock(LEAF, [Dense(np.arange(400).reshape(4, 100))], 4), np.array([3, 0]))
    assert isinstance(block.columnar().columns[0], Picked)
    made = block.materialize()
    assert not any(isinstance(column, LazyColumn) for column in made.columns)
    assert made.materialize() is made
    assert made.columns[0].values is not None
    assert [row[0] for row in made.elements()] == [300, 0]


def test_copies_share_no_memory() -> None:
    array = np.arange(6).reshape(3, 2)
    block = ColumnBlock(structure_of((0, 0)), [Dense(array), Dense(array)], 3)
    for copy in block.copies():
        assert not any(np.shares_memory(leaf, array) for leaf in copy)
    chunk = ChunkedBlock([block, block], 0, 2)  # of which all rows stand in one block
    assert not any(np.shares_memory(column.array, array) for column in chunk.copied().columns)  # type: ignore[attr-defined]


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.integers(1, 3))
def test_batches_before_the_first_that_cannot_be_stacked(lengths: list[int], size: int) -> None:
    lengths = lengths[: len(lengths) // size * size]
    if not lengths:
        return
    both = [(np.zeros(n, np.int64), np.zeros(2 - n // 2, np.int64)) for n in lengths]
    block = Block.of_elements(structure_of((0, 0)), both)
    groups = [lengths[first : first + size] for first in range(0, len(lengths), size)]
    good = next((n for n, group in enumerate(groups) if len(set(group)) > 1), len(groups))
    made, error = stack_prefix(block, size)
    assert made.size == good
    assert (error is None) == (good == len(groups))


def test_the_earliest_error_of_all_columns_is_told() -> None:
    rows = [
        (np.zeros(1), np.zeros(1)),
        (np.zeros(1), np.zeros(2)),
        (np.zeros(1), np.zeros(1)),
        (np.zeros(2), np.zeros(1)),
    ]
    made, error = stack_prefix(Block.of_elements(structure_of((0, 0)), rows), 2)
    assert made.size == 0
    assert error is not None
    assert (error.group, error.first, error.other) == (0, (1,), (2,))


def test_elements_of_another_structure_are_refused() -> None:
    with pytest.raises(TypeError, match="the structures differ"):
        Block.of_elements(structure_of({"a": 0}), [{"b": 1}])


def test_a_failure_is_a_block_without_rows() -> None:
    failure = Failure(ValueError("x"))
    assert (failure.size, failure.nbytes, list(failure.elements()), failure.rows(0, 5)) == (0, 0, [], failure)
    for lost in (failure.materialize, failure.columnar, failure.copied):
        with pytest.raises(TypeError, match="would be lost"):
            lost()
    with pytest.raises(IndexError):
        failure.row(0)


@pytest.mark.parametrize("nest", [(0, 0), {"a": 0, "b": 0}])
def test_columns_of_unequal_length_are_an_error(nest: Any) -> None:
    block = ColumnBlock(structure_of(nest), [Dense(np.arange(4)), Dense(np.arange(3))], 4)
    with pytest.raises(ValueError, match=r"length|shorter"):
        list(block.elements())
