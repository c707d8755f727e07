# SPDX-License-Identifier: Apache-2.0
"""The position of a view in the state of a `StatefulDataLoader`."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from distinput.errors import StateError
from distinput.interop.rank_steps import RankPosition
from distinput.interop.torch.iterable_view import position_in


def of_worker(step: int, stride: int) -> dict[str, Any]:
    return {"fetcher_state": {"dataset_iter_state": RankPosition(1, step, stride, step - 1).to_json()}}


def test_a_view_says_its_position_itself() -> None:
    position = RankPosition(3, 4)
    assert position_in(position.to_json(), "test") == position


def test_the_earliest_worker_has_the_first_step_that_is_missing() -> None:
    workers = {f"worker_{k}": of_worker(step, 3) for k, step in enumerate((6, 4, 5))}
    state = {"_snapshot": {"_worker_snapshots": workers}, "_steps_since_snapshot": 0}
    assert position_in(state, "test") == RankPosition(1, 4, 1, 3)
    assert position_in({**state, "_steps_since_snapshot": 2}, "test") == RankPosition(1, 6, 1, 3)


def test_a_loader_without_workers_holds_one() -> None:
    inner = RankPosition(1, 4, 1, 4).to_json()
    assert position_in({"fetcher_state": {"dataset_iter_state": inner}, "dataset_state": None}, "test").step == 4
    assert position_in({"fetcher_state": None, "dataset_state": inner}, "test").step == 4


@pytest.mark.parametrize(
    "state, says",
    [
        ({"_snapshot": {"_worker_snapshots": {}}}, "lacks those of its workers"),
        ({"dataset_state": None}, "holds no state of a view"),
        ({"fetcher_state": {}, "dataset_state": {"version": 3}}, "not a state of a view"),
    ],
)
def test_other_states_are_refused(state: Any, says: str) -> None:
    with pytest.raises(StateError, match=says):
        position_in(state, "test")
