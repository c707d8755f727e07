# SPDX-License-Identifier: Apache-2.0
"""The form of states: what must hold of every state of a tree, whatever its data is, so that a damaged one is refused.

A check word finds what changed a state by accident; this finds what a program made up, as far as keys, types and signs tell it.
"""

from typing import Any

from distinput.core.state import State
from distinput.errors import StateError
from distinput.plan.node import Node

__all__ = ["is_count", "is_mark", "is_position", "misfit", "taken_up"]

_BOUND = 1 << 62
"""Bound of positions and counts, which go into 64 bits."""

_WIDE_BOUND = 1 << 1024
"""Bound of seeds and epochs, which are Python's integers of any size: each `repeat` makes an epoch 32 bits longer."""

_EPOCHS = ("epoch", "pass")
"""Numbers of passes."""

_WITH_MINUS_ONE = ("batch", "left", "total")
"""Counts that are -1 where there is no bound, or where they are not known."""


def is_count(value: Any, least: int = 0, most: int = _BOUND) -> bool:
    """Whether something in a state is a whole number of these bounds."""
    return type(value) is int and least <= value <= most


def is_mark(value: Any) -> bool:
    """Whether something in a state is a mark: the state of an input, and rows to pass over from there."""
    return isinstance(value, dict) and isinstance(value.get("input"), dict) and is_count(value.get("skip"))


def is_position(value: Any) -> bool:
    """Whether something in a state is a position in a file, or None for the beginning of the next one."""
    return value is None or (isinstance(value, dict) and "row" in value and all(map(is_count, value.values())))


def misfit(node: Node, state: Any, begin: Any = None) -> str | None:
    """The step that a state does not fit, and why; None: no step.

    Args:
      node: the tree.
      state: what may be one of its states.
      begin: its first state; None: found here.

    >>> import distinput as di
    >>> node = di.data.Dataset.range(4).take(3).node
    >>> misfit(node, {"input": {"row": 1}, "left": 2})
    >>> misfit(node, {"input": {"row": "1"}, "left": 2})
    "range: 'row' must be a whole number from 0 on, got '1'"
    """
    step = node.state_of
    while step.passes_states:
        step = step.inputs[0].state_of
    if begin is None:
        begin = step.start(0)
    if not isinstance(state, dict):
        return f"{step.op}: a state must be a JSON object, got {_short(state)}"
    for key, first in begin.items():
        if key not in state:
            return f"{step.op}: the state lacks {key!r}"
        wanted = _wanted(key, state[key], first)
        if wanted is not None:
            return f"{step.op}: {key!r} must be {wanted}, got {_short(state[key])}"
    return step.state_misfit(state) or _below(step, state, begin)


def _below(step: Node, state: State, begin: State) -> str | None:
    """The same for the states of its inputs."""
    if isinstance(state.get("input"), dict) and step.inputs:
        same = "input" in begin and state.get("part") == begin.get("part")
        said = misfit(step.input_at(state), state["input"], begin["input"] if same else None)
        if said is not None:
            return said
    if "inputs" in begin:
        if len(state["inputs"]) != len(begin["inputs"]) or not all(map(is_mark, state["inputs"])):
            return f"{step.op}: 'inputs' must be a mark for each input, got {_short(state['inputs'])}"
        for source, mark, first in zip(step.inputs, state["inputs"], begin["inputs"], strict=True):
            said = misfit(source, mark["input"], first["input"])
            if said is not None:
                return said
    return None


def _wanted(key: str, value: Any, first: Any) -> str | None:
    """What a value must be, in words, where it is not; `first` is the value in the first state."""
    match first:
        case bool():
            return None if type(value) is bool else "true or false"
        case int() if key == "seed":
            return None if is_count(value, -_WIDE_BOUND, _WIDE_BOUND) else "a whole number"
        case int():
            least, most = -1 if key in _WITH_MINUS_ONE else 0, _WIDE_BOUND if key in _EPOCHS else _BOUND
            return None if is_count(value, least, most) else f"a whole number from {least} on"
        case list():
            return None if isinstance(value, list) else "a list"
        case dict():
            return None if isinstance(value, dict) else "a JSON object"
    return None


def taken_up(op: str, node: Node, epoch: int, saved: State | None) -> State:
    """Where to go on in a dataset that a function has made again.

    Args:
      op: whose function it is, for the message.
      node: the dataset.
      epoch: the pass.
      saved: where it was; None: at its beginning.

    Raises:
      StateError: it is of other steps than the one that was made before.
    """
    begin = node.start(epoch)
    if saved is None:
        return begin
    said = misfit(node, saved, begin)
    if said is not None:
        raise StateError(
            f"{op}: the function made a dataset of other steps when the state was saved ({said}); restore with the function "
            "that was there then, which must make the same dataset of the same element each time"
        )
    return saved


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = "a very long number"
    return text if len(text) <= 60 else text[:57] + "..."
