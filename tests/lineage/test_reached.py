# SPDX-License-Identifier: Apache-2.0
"""Elements at any positions, computed or counted from the start."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.lineage.numbered import reached

SIZES = {
    "computed": lambda: di.data.Dataset.range(40).batch(3),
    "walked": lambda: di.data.Dataset.sample_from_datasets(
        [di.data.Dataset.range(30), di.data.Dataset.range(30, 40)], [0.7, 0.3], seed=1
    ).batch(3),
}


@given(st.sampled_from(sorted(SIZES)), st.lists(st.integers(0, 12), min_size=1, max_size=5))
def test_the_elements_are_those_of_the_pass(name: str, rows: list[int]) -> None:
    ds = SIZES[name]()
    elements = [batch.tolist() for batch in ds.as_numpy_iterator()]
    found = reached(ds.node).fetch(np.array(rows, np.int64), 0)
    assert [batch.tolist() for batch in found.elements()] == [elements[row] for row in rows]


@pytest.mark.parametrize("name", sorted(SIZES))
def test_there_is_nothing_behind_the_end(name: str) -> None:
    with pytest.raises(IndexError, match="no element 14"):
        reached(SIZES[name]().node).fetch(np.array([2, 14]), 0)
