# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import distinput as di
from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Dense
from distinput.errors import InvalidArgumentError
from distinput.ops.range import Range
from distinput.plan import families
from distinput.plan.families import Rows, datasets_spec, leaf_spec
from distinput.run.run import Run
from distinput.values.nest import LEAF
from distinput.values.spec import Spec


def rows(*elements: object) -> Rows:
    return Rows(Block.of_elements(LEAF, list(elements)))


def test_rows_are_streamed_and_fetched_by_their_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "MOST_ROWS", 2)
    node = rows(*[np.int64(n) for n in (5, 6, 7, 8)])
    with Run() as run:
        found = [([int(x) for x in block.elements()], after) for block, after in node.stream(node.start_at(1, 0), run)]
    assert found == [([6, 7], {"row": 3}), ([8], {"row": 4})]
    assert [int(x) for x in node.fetch(np.array([3, 0]), 0).elements()] == [8, 5]
    assert node.cardinality == 4


def test_a_node_freezes_its_rows() -> None:
    array = np.arange(6).reshape(3, 2)
    row = Rows(ColumnBlock(LEAF, [Dense(array)], 3)).block.row(0)
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 7
    array[0] = 7  # the user's own array stays as it was


def test_leaves_that_were_given_are_the_spec() -> None:
    block = Block.of_elements(LEAF, [np.zeros(2)])
    assert Rows(block).spec.nest == di.TensorSpec([2], "float64")
    wider = Spec.of(di.TensorSpec([None], "float64")).leaves
    assert Rows(block, leaves=wider).spec.nest == di.TensorSpec([None], "float64")


def test_rows_of_numbers_are_found_and_there_are_none_of_anything_else() -> None:
    assert list(rows(*[np.int64(n) for n in (7, 9, 7)]).rows_of([7, 8])) == [0, 2]
    assert list(rows(b"7").rows_of([7])) == []
    assert list(rows(np.arange(2)).rows_of([1])) == []
    assert Range(10, 20, 5).rows_of([10, 12, 15, 20, 5]) == [0, 1]
    assert Range(3, -3, -1).rows_of([3, -2, -3]) == [0, 5]


@pytest.mark.parametrize(
    "elements, shape",
    [
        ([np.zeros(2), np.zeros(2)], [2]),
        ([np.zeros(2), np.zeros(3)], [None]),
        ([np.zeros((2, 3)), np.zeros((1, 3))], [None, 3]),
    ],
)
def test_the_spec_of_a_leaf_knows_what_all_rows_share(elements: list[np.ndarray], shape: list[int | None]) -> None:  # type: ignore[type-arg]
    (column,) = Block.of_elements(LEAF, elements).columns
    assert leaf_spec(column) == di.TensorSpec(shape, "float64")


def test_datasets_that_are_rows_must_be_of_one_kind() -> None:
    numbers, texts = di.data.Dataset.range(3).node, di.data.Dataset.from_tensors("text").node
    assert datasets_spec([numbers, numbers]) == di.data.DatasetSpec(di.TensorSpec([], "int64"))
    with pytest.raises(InvalidArgumentError, match="a list of datasets"):
        datasets_spec([numbers, texts])
