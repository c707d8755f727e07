# SPDX-License-Identifier: Apache-2.0
"""States of steps that collect by key: those that came are accepted, damaged ones are refused."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.ops.group_by_window import Keyed
from distinput.plan.node import INFINITE, UNKNOWN, Node
from distinput.run.run import Run

RANGE = di.data.Dataset.range


def grouped(dataset: di.data.Dataset) -> Node:
    node = dataset.group_by_window(key_func=lambda x: x % 3, reduce_func=lambda k, d: d.batch(4), window_size=2).node
    assert isinstance(node, Keyed)
    return node


def test_every_state_that_comes_is_accepted() -> None:
    node = grouped(RANGE(11))
    assert node.state_misfit(node.start(3)) is None
    with Run() as run:
        states = [state for _, state in node.open(node.start(0), run)]
    assert states
    assert [node.state_misfit(state) for state in states] == [None] * len(states)
    assert any(state["sent"] or state["flushed"] is not None for state in states)


@pytest.mark.parametrize(
    "change",
    [
        {"sent": [[1]]},
        {"sent": [[1, 2, 3]]},
        {"sent": [["a", 2]]},
        {"sent": [[1, 2.5]]},
        {"sent": [7]},
        {"flushed": "a"},
        {"flushed": True},
        {"flushed": 1.0},
        {"inner": 3},
        {"inner": []},
        {"failures": [1]},
        {"failures": [1, -1]},
        {"failures": 3},
        {"failures": [1, "a"]},
        {"inner": {}},
        {"inner": {"key": "a", "state": None, "flush": False}},
    ],
)
def test_damaged_states_are_refused(change: dict[str, Any]) -> None:
    node = grouped(RANGE(11))
    misfit = node.state_misfit({**node.start(0), **change})
    assert misfit == "group_by_window: 'sent', 'flushed', 'failures' or 'inner' is damaged"


@pytest.mark.parametrize(
    "change",
    [
        {"sent": [[-5, 2], (3, 4)]},
        {"flushed": -3},
        {"inner": {"key": -3, "state": None, "flush": False}},
        {"failures": (0, 2)},
    ],
)
def test_keys_may_be_negative_and_pairs_tuples(change: dict[str, Any]) -> None:
    node = grouped(RANGE(11))
    assert node.state_misfit({**node.start(0), **change}) is None


def test_the_number_of_groups_is_known_only_where_there_is_no_end() -> None:
    assert grouped(RANGE(9)).cardinality == UNKNOWN
    assert grouped(RANGE(9).repeat()).cardinality == INFINITE
    assert grouped(RANGE(9).filter(lambda x: x > np.int64(1))).cardinality == UNKNOWN
