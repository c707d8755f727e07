# SPDX-License-Identifier: Apache-2.0
"""Laws of what is saved and left: states go on, positions are true, other processes agree, and nothing stays behind."""

import json
import pickle
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from typing import Any

import numpy as np

from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.plan.node import Node, walk
from distinput.testing.elements import check_same, difference, exact
from distinput.testing.laws.trace import MOST, PassTrace, elements_from, until_error
from distinput.testing.left_behind import check_uses

# ----------------------------------------------------------------------------
# Law 2: from every state, exactly the rest follows.
# ----------------------------------------------------------------------------


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
    for position in range(len(first.states)):
        _check_rest(dataset, first, position, most, state_bytes, "restart")
    second = PassTrace.of(iter(dataset), most)
    for position in {0, last // 2, last}:
        if position < len(second.states):
            _check_rest(dataset, second, position, most, state_bytes, "restart of the second pass")
    if first.ended:
        borders = {0, 1, last - 1, last, last + 1, 2 * last}
        again = dataset.repeat(2)
        both = PassTrace.of(iter(again), 2 * most + 1, lambda index: index in borders)
        for position in sorted(borders & set(range(len(both.states)))):
            _check_rest(again, both, position, 2 * most + 1, state_bytes, "restart within repeat(2)")
    if fresh is not None:
        _check_fresh(fresh, most, state_bytes)


def _check_fresh(fresh: Callable[[], Dataset], most: int, state_bytes: int) -> None:
    trace = PassTrace.of(iter(fresh()), most)
    for position in range(len(trace.states)):
        _check_rest(fresh(), trace, position, most, state_bytes, "restart in an equal pipeline")
    if trace.ended:
        last = len(trace.elements)
        borders = {0, 1, last // 2, last - 1, last, last + 1, last + last // 2, 2 * last}
        both = PassTrace.of(iter(fresh().repeat(2)), 2 * most + 1, lambda index: index in borders)
        for position in sorted(borders & set(range(len(both.states)))):
            what = "restart in an equal pipeline, within repeat(2)"
            _check_rest(fresh().repeat(2), both, position, 2 * most + 1, state_bytes, what)


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


def _check_rest(dataset: Dataset, trace: PassTrace, position: int, most: int, state_bytes: int, what: str) -> None:
    state = _through_json(trace.states[position], position, state_bytes)
    expected = trace.rest(position)
    # Where in the rest the second restart happens: anywhere, but the same in every run.
    again = (7 * position + 3) % (len(expected) + 1)
    count = len(expected) + 1 if trace.ended or trace.failure else len(expected)
    restored = PassTrace.of(dataset.restore(state), count, {again}.__contains__)
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


# ----------------------------------------------------------------------------
# Reaching a row directly is the same as passing over all rows before it.
# ----------------------------------------------------------------------------


def check_positions(dataset: Dataset, *, most: int = 60) -> None:
    """Reaching a row directly is the same as passing over all before it, for every step of the pipeline.

    `start_at(row)`, where it gives a state, is followed by what `skip(row)` gives, and `fetch(rows)`, where there is random
    access, gives the elements at those rows, in two different passes. `dataset[rows]` gives those of the first pass, or an
    error that names a step of the pipeline.

    Args:
      dataset: any pipeline.
      most: elements looked at of each step.

    Raises:
      AssertionError: a row is another one.

    >>> import distinput as di
    >>> check_positions(di.data.Dataset.range(9).repeat(2).batch(4))
    """
    failing = {id(step.inputs[0]) for step in walk(dataset.node) if step.skips_failures}
    for step in walk(dataset.node):
        if id(step) in failing:  # which has no elements that can be listed
            continue
        for epoch in (0, 1):
            elements = elements_from(step, step.start(epoch), most)
            _check_start_at(step, epoch, elements, most)
            if step.fetches:
                _check_fetch(step, epoch, elements)
    _check_keys(dataset, elements_from(dataset.node, dataset.node.start(0), most))


def _check_keys(dataset: Dataset, elements: list[Any]) -> None:
    count = len(elements)
    keys = [list(range(count)), list(range(0, count, 3))[::-1], [row * 7 % count for row in range(count)]]
    try:
        for rows in keys:
            check_same(
                f"dataset[{rows}]", [exact(element) for element in dataset[rows]], [elements[row] for row in rows]
            )
        if count:
            check_same(f"dataset[{count - 1}]", [exact(dataset[count - 1])], elements[-1:])
    except TypeError as error:
        named = _UNREACHED.match(str(error))
        if named is None or named[1] not in {step.op for step in walk(dataset.node)}:
            raise


_UNREACHED = re.compile(r"elements cannot be reached by position: (\w+) can only be iterated")


def _check_start_at(step: Node, epoch: int, elements: list[Any], most: int) -> None:
    # Behind the last row seen there may be more of an endless step.
    last = len(elements) if len(elements) < most else most // 2
    for row in range(last + 1):
        state = step.start_at(row, epoch)
        if state is None:
            continue
        wrong = difference(elements_from(step, json.loads(json.dumps(state)), len(elements) - row), elements[row:])
        if wrong is not None:
            raise AssertionError(f"start_at({row}, {epoch}) of {step}: {wrong}")
        if len(elements) < most:
            extra = elements_from(step, state, most)
            if len(extra) != len(elements) - row:
                raise AssertionError(
                    f"start_at({row}, {epoch}) of {step}: {len(extra)} follow, expected {len(elements) - row}"
                )


def _check_fetch(step: Node, epoch: int, elements: list[Any]) -> None:
    count = len(elements)
    whole = np.arange(count)
    for rows in (whole, whole[::-1], whole[::3], np.arange(3 * count) * 7 % max(1, count)):
        if not len(rows):
            continue
        block = step.fetch(np.ascontiguousarray(rows, np.int64), epoch)
        wrong = difference([exact(element) for element in block.elements()], [elements[row] for row in rows])
        if wrong is not None:
            raise AssertionError(f"fetch({rows.tolist()}, {epoch}) of {step}: {wrong}")


# ----------------------------------------------------------------------------
# An equal pipeline in another process gives the same elements, and goes on from a state of this one.
# ----------------------------------------------------------------------------


def check_processes(fresh: Callable[[], Dataset], *, most: int = MOST) -> bool:
    """Another process, started again, gives the same elements and continues from a state saved in this one.

    Args:
      fresh: makes the pipeline; where it cannot be pickled, as a function inside a function cannot, the law is not checked.
      most: elements looked at when the pipeline is endless.

    Returns:
      Whether it was checked.

    Raises:
      AssertionError: the other process gives other elements.

    >>> check_processes(lambda: None)
    False
    """
    try:
        pickle.dumps(fresh)
    except Exception:  # noqa: BLE001 - whatever keeps it here
        return False
    dataset = fresh()
    with iter(dataset) as elements:
        here = [repr(exact(element)) for element in islice(elements, most)]
    middle = len(here) // 2
    with iter(fresh()) as elements:
        for _ in islice(elements, middle):
            pass
        state = json.loads(json.dumps(elements.state()))
        rest = [repr(exact(element)) for element in islice(elements, most - middle)]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there, resumed = pool.submit(_elsewhere, fresh, state, most, middle).result()
    check_same(f"another process: from the state at {middle}", resumed, rest)
    if here[middle:] == rest:  # without a seed, each pass over a pipeline made anew has an order of its own
        check_same("another process", there, here)
    return True


def _elsewhere(fresh: Callable[[], Dataset], state: State, most: int, middle: int) -> tuple[list[str], list[str]]:
    with iter(fresh()) as elements:
        whole = [repr(exact(element)) for element in islice(elements, most)]
    with fresh().restore(state) as elements:
        rest = [repr(exact(element)) for element in islice(elements, most - middle)]
    return whole, rest


# ----------------------------------------------------------------------------
# Law 8: nothing is left behind, however an iteration ends.
# ----------------------------------------------------------------------------


def check_nothing_left(factory: Callable[[], Dataset], *, seconds: float = 30.0) -> None:
    """Law 8: no thread, process or open file is left behind, however an iteration ends.

    A pass is run to its end (or its error), closed after one element, closed before the first, abandoned after one element,
    and abandoned before the first.

    Args:
      factory: makes the pipeline.
      seconds: how long what ends on its own may take.

    Raises:
      AssertionError: something is left.

    >>> import distinput as di
    >>> check_nothing_left(lambda: di.data.Dataset.range(100).map(lambda x: x, num_parallel_calls=2).prefetch(2))
    """
    uses: dict[str, Callable[[Dataset], None]] = {
        "the end": lambda ds: _close_after(ds, MOST),
        "close after one element": lambda ds: _close_after(ds, 1),
        "close before the first element": lambda ds: _close_after(ds, 0),
        "an iterator abandoned after one element": lambda ds: _abandon_after(ds, 1),
        "an iterator abandoned before the first element": lambda ds: _abandon_after(ds, 0),
    }
    check_uses(uses, factory, seconds)


def _close_after(dataset: Dataset, count: int) -> None:
    with iter(dataset) as elements:
        for _ in until_error(elements, count):
            pass


def _abandon_after(dataset: Dataset, count: int) -> None:
    elements = iter(dataset)
    for _ in until_error(elements, count):
        pass
    del elements
