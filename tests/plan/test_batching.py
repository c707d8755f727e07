# SPDX-License-Identifier: Apache-2.0
"""Counts and places of batches are those of the batches that come."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.dataset import Dataset

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
    with di.core.run.Run() as run:
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
