# SPDX-License-Identifier: Apache-2.0
"""Law 2: from every state, exactly the rest follows."""

import json
from collections.abc import Callable
from typing import Any

from distinput.core.state import State
from distinput.data.dataset import Dataset
from distinput.testing.elements import difference, exact
from distinput.testing.laws.trace import MOST, PassTrace, until_error

__all__ = ["check_restart"]


def check_restart(
    dataset: Dataset,
    *,
    fresh: Callable[[], Dataset] | None = None,
    most: int = MOST,
    state_bytes: int = 4096,
) -> None:
    """Law 2: from every state, through JSON, exactly the rest follows.

    Every position of a pass is tried, the first, the one after the last element and the one after the end included, also
    from an iterator that was itself restored; then a second pass, and both passes of a `repeat(2)`.

    Args:
      dataset: any pipeline.
      fresh: makes an equal pipeline anew, as another process would; states are restored into that as well.
      most: elements looked at when the pipeline is endless.
      state_bytes: the most that a state may take as JSON.

    Raises:
      AssertionError: something else follows, or a state is too large or holds data.

    >>> import distinput as di
    >>> check_restart(di.data.Dataset.range(7).shuffle(3).batch(2))
    """
    first = PassTrace.of(iter(dataset), most)
    last = len(first.elements)
    for position, state in enumerate(first.states):
        coded = _through_json(state, position, state_bytes)
        _check_rest(dataset, coded, first, position, most, "restart")
    second = PassTrace.of(iter(dataset), most)
    for position in {0, last // 2, last}:
        if position < len(second.states):
            coded = _through_json(second.states[position], position, state_bytes)
            _check_rest(dataset, coded, second, position, most, "restart of the second pass")
    if first.ended:
        borders = {0, 1, last - 1, last, last + 1, 2 * last}
        again = dataset.repeat(2)
        both = PassTrace.of(iter(again), 2 * most + 1, lambda index: index in borders)
        for position in sorted(borders & set(range(len(both.states)))):
            coded = _through_json(both.states[position], position, state_bytes)
            _check_rest(again, coded, both, position, 2 * most + 1, "restart within repeat(2)")
    if fresh is not None:
        _check_fresh(fresh, most, state_bytes)


def _check_fresh(fresh: Callable[[], Dataset], most: int, state_bytes: int) -> None:
    trace = PassTrace.of(iter(fresh()), most)
    for position, state in enumerate(trace.states):
        _check_rest(
            fresh(), _through_json(state, position, state_bytes), trace, position, most, "restart in an equal pipeline"
        )
    if trace.ended:
        last = len(trace.elements)
        borders = {0, 1, last // 2, last - 1, last, last + 1, last + last // 2, 2 * last}
        both = PassTrace.of(iter(fresh().repeat(2)), 2 * most + 1, lambda index: index in borders)
        for position in sorted(borders & set(range(len(both.states)))):
            coded = _through_json(both.states[position], position, state_bytes)
            what = "restart in an equal pipeline, within repeat(2)"
            _check_rest(fresh().repeat(2), coded, both, position, 2 * most + 1, what)


def _through_json(state: State, position: int, state_bytes: int) -> State:
    text = json.dumps(state)
    if len(text) > state_bytes:
        raise AssertionError(
            f"restart: the state at {position} takes {len(text)} bytes, more than {state_bytes}: {text[:300]}..."
        )
    _check_no_data(state, position)
    coded: State = json.loads(text)
    return coded


def _check_no_data(state: Any, position: int) -> None:
    """A state is positions: no long text in it, the carried value of `scan` aside."""
    if isinstance(state, dict):
        for key, value in state.items():
            if key != "carry":
                _check_no_data(value, position)
    elif isinstance(state, list):
        for value in state:
            _check_no_data(value, position)
    elif isinstance(state, str) and len(state) > 100:
        raise AssertionError(f"restart: the state at {position} holds data: {state[:100]}...")


def _check_rest(dataset: Dataset, state: State, trace: PassTrace, position: int, most: int, what: str) -> None:
    expected = trace.rest(position)
    # Where in the rest the second restart happens: anywhere, but the same in every run.
    again = (7 * position + 3) % (len(expected) + 1)
    restored = PassTrace.of(
        dataset.restore(state),
        len(expected) + 1 if trace.ended or trace.failure else len(expected),
        {again}.__contains__,
    )
    wrong = difference(restored.elements, expected)
    if wrong is None and restored.failure != trace.failure:
        wrong = f"it ends with {restored.failure}, expected {trace.failure}"
    if wrong is not None:
        raise AssertionError(f"{what} at {position}: {wrong}; state {json.dumps(state)}")
    if again >= len(restored.states):
        return
    state = json.loads(json.dumps(restored.states[again]))
    with dataset.restore(state) as iterator:
        second = [exact(element) for element in until_error(iterator, most)][: len(expected) - again]
    wrong = difference(second, expected[again:])
    if wrong is not None:
        raise AssertionError(f"{what} at {position} and again {again} later: {wrong}; state {json.dumps(state)}")
