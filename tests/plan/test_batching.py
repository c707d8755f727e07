# SPDX-License-Identifier: Apache-2.0
"""Counts and places of batches are those of the batches that come."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.dataset import Dataset
from distinput.plan.families import Stacking
from distinput.run.run import Run

RANGE = di.data.Dataset.range
SIZES = st.integers(0, 12), st.integers(1, 5), st.booleans()


@given(*SIZES)
def test_counts_are_those_of_the_batches(n: int, size: int, drop: bool) -> None:
    node = RANGE(n).batch(size, drop_remainder=drop).node
    lengths = [len(batch) for batch in Dataset(node)]
    sizes = node.batch_sizes()
    assert sizes is not None
    assert sizes.flat().tolist() == lengths
    assert node.cardinality == len(lengths)
    assert (node.rows_per_batch, node.drops_rows) == (size, drop)


@given(*SIZES, st.data())
def test_the_state_at_a_batch_leads_to_it_and_the_rest(n: int, size: int, drop: bool, data: st.DataObject) -> None:
    node = RANGE(n).batch(size, drop_remainder=drop).node
    row = data.draw(st.integers(0, node.cardinality))
    state = node.start_at(row, 0)
    assert state is not None
    with Run() as run:
        found = [batch.tolist() for block, _ in node.open(state, run) for batch in block.elements()]
    assert found == [batch.tolist() for batch in Dataset(node)][row:]


def test_full_batches_drop_the_rest_and_nothing_else() -> None:
    node = RANGE(7).batch(3).node
    full = node.with_full_batches()
    assert (full.cardinality, full.drops_rows, full.rows_per_batch) == (2, True, 3)
    assert [batch.tolist() for batch in Dataset(full)] == [[0, 1, 2], [3, 4, 5]]


def test_sizes_of_batches_without_an_end_or_a_count_are_not_known() -> None:
    assert RANGE(7).repeat().batch(3).node.batch_sizes() is None
    assert RANGE(7).filter(lambda x: x > np.int64(2)).batch(3).node.batch_sizes() is None


def test_batches_of_rows_in_memory_are_fetched_by_their_number() -> None:
    rows = di.RaggedTensor.from_list([[1], [2, 3], [], [4]])
    node = di.data.Dataset.from_tensor_slices(rows).ragged_batch(2).node
    assert isinstance(node, Stacking)
    assert node.random_access
    assert [x.to_list() for x in node.fetch(np.array([1, 0]), 0).elements()] == [[[], [4]], [[1], [2, 3]]]


def test_the_spec_of_rows_is_not_asked_of_functions() -> None:
    calls = []
    ds = di.data.Dataset.range(4).map(lambda x: calls.append(x) or x).batch(2)
    assert len(ds.take(1).to_list()) == 1
    assert len(calls) == 4  # of a block, and none more to find out what the function returns
