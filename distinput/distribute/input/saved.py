# SPDX-License-Identifier: Apache-2.0
"""Saved states of distributed iterators."""

from collections.abc import Mapping, Sequence
from typing import Any

from distinput.core.seal import opened, sealed
from distinput.core.state import State
from distinput.errors import StateError
from distinput.plan.state_form import is_count

__all__ = ["opened_state", "sealed_state"]

_ALONE: Mapping[str, Any] = {"replicas": 1, "workers": 1, "cut": "per_worker"}
"""What states say of a lone replica whose policy was not DATA, if an older release saved them; it has global batches."""


def sealed_state(layout: Mapping[str, Any], step: int, ended: bool, seen: Any, inputs: Sequence[State]) -> State:
    """The state of an iteration.

    Args:
      layout: the facts that must be equal for the state to fit.
      step: how many steps were delivered.
      ended: True if there are no more.
      seen: the shapes of the last element, if placeholders need them.
      inputs: the states of the input pipelines.
    """
    return sealed({"kind": "distributed", **layout, "step": step, "ended": ended, "seen": seen, "inputs": list(inputs)})


def opened_state(state: Any, layout: Mapping[str, Any], inputs: int) -> State:
    """Check a state from `sealed_state` and return its contents.

    Args:
      state: the state that the user passed.
      layout: the layout that the state must have been taken with.
      inputs: how many input pipelines there are.

    Raises:
      StateError: it belongs to another dataset or distribution, or was modified.
    """
    if isinstance(state, dict) and "version" in state and state.get("kind") != "distributed":
        raise StateError(
            "DistributedDataset.restore: this is no state of a distributed iterator; take it with iterator.state()"
        )
    body = opened(state, "DistributedDataset.restore", {"step", "ended", "seen", "inputs"})
    if all(body.get(key) == value for key, value in _ALONE.items()) and layout.get("cut") == "batches":
        layout = _ALONE
    for key, want in sorted(layout.items()):  # the cut first, which decides whether there are others
        if body.get(key) != want:
            raise StateError(
                f"DistributedDataset.restore: the state was taken with {key}={body.get(key)!r}, this dataset has "
                f"{key}={want!r}; distribute with the same strategy and options as the job that saved it, or have jobs use "
                "policy DATA or balanced_split from their beginning, whose states go on on any number of workers and replicas"
            )
    seen = body["seen"]
    shapes = seen is None or (isinstance(seen, list) and all(_is_shape(shape) for shape in seen))
    several = isinstance(body["inputs"], list) and len(body["inputs"]) == inputs
    if not (is_count(body["step"]) and type(body["ended"]) is bool and shapes and several):
        raise StateError(
            "DistributedDataset.restore: the state is damaged: 'step', 'ended', 'seen' or 'inputs' is not as it was saved; it "
            "must be what iterator.state() gave"
        )
    return body


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_count, value))
