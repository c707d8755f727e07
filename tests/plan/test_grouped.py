# SPDX-License-Identifier: Apache-2.0
"""Groups that begin at equal distances are counted and found as plain slices would be."""

from dataclasses import dataclass
from functools import cached_property

import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.plan.families import Grouped
from distinput.plan.node import INFINITE, UNKNOWN
from distinput.run.run import Run
from distinput.values.spec import Spec

RANGE = di.data.Dataset.range


@dataclass(frozen=True, eq=False)
class Windows(Grouped):
    shift: int
    width: int

    @property
    def step(self) -> int:
        return self.shift

    @property
    def needed(self) -> int:
        return self.width

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    def stream(self, state: State, run: Run) -> Stream:
        raise NotImplementedError


@given(st.integers(0, 20), st.integers(1, 6), st.integers(1, 6))
def test_groups_are_counted_as_slices_are(n: int, shift: int, width: int) -> None:
    groups = [list(range(n))[first : first + width] for first in range(0, n, shift)]
    node = Windows(RANGE(n).node, shift, width)
    assert node.groups(full=False) == len(groups)
    assert node.groups(full=True) == sum(len(group) == width for group in groups)


@pytest.mark.parametrize("full", [True, False])
def test_what_has_no_count_has_no_count_of_groups(full: bool) -> None:
    assert Windows(RANGE(3).repeat().node, 2, 2).groups(full=full) == INFINITE
    assert Windows(RANGE(3).filter(lambda x: x > 0).node, 2, 2).groups(full=full) == UNKNOWN


@given(st.integers(0, 20), st.integers(1, 6), st.integers(0, 5))
def test_a_group_begins_where_its_first_element_does(n: int, shift: int, row: int) -> None:
    source = RANGE(n).node
    node = Windows(source, shift, 3)
    assert node.start_at(row, 0) == {"input": source.start_at(min(n, row * shift), 0), "skip": 0}
    assert node.start_at(0, 0) == node.start(0)


def test_an_input_without_an_end_has_no_last_place() -> None:
    source = RANGE(3).repeat().node
    assert Windows(source, 4, 2).start_at(5, 0) == {"input": source.start_at(20, 0), "skip": 0}


def test_places_that_the_input_does_not_know_are_not_known() -> None:
    assert Windows(RANGE(3).filter(lambda x: x > 0).node, 2, 2).start_at(1, 0) is None
