# SPDX-License-Identifier: Apache-2.0
"""What a step declares about itself is true: rewrites and sharding rely on it."""

from collections import Counter
from typing import Any

from distinput.data.dataset import Dataset
from distinput.ops.shard import Shard
from distinput.ops.take import Skip, Take
from distinput.plan.bounds import cardinality_bounds
from distinput.plan.needs import Needs
from distinput.plan.node import UNKNOWN, Node, walk
from distinput.rewrite import rewrite
from distinput.testing.elements import difference
from distinput.testing.laws.trace import elements_from, states_from

__all__ = ["check_facts"]


_MOST = 1000

_STATES = 3
"""At how many states of a step it is asked which records its elements come from."""


def check_facts(dataset: Dataset, *, most: int = _MOST) -> bool:
    """The facts that the steps of a pipeline declare are true; checked for every step whose elements are few enough.

    `needs`: with `Needs.ONE` the step over a part of its input gives that part of its elements, with `Needs.EACH` the parts one
    after the other are the whole. `by_position` and `shuffles`: the elements are those of the input. `transparent`: so are the
    states. `count_elements` and `batch_sizes`: as many there are, and `cardinality_bounds` lie below and above.
    `records_at` and `place_of`, of the steps that run too: they take the states of the step.

    Args:
      dataset: any pipeline.
      most: steps with more elements are left out.

    Returns:
      False if every step has more elements.

    Raises:
      AssertionError: a fact is false.

    >>> import distinput as di
    >>> check_facts(di.data.Dataset.range(9).map(lambda x: x * 2).filter(lambda x: x % 3 > 0).batch(2))
    True
    """
    looked = False
    for step in walk(dataset.node):
        elements = _all(step, most)
        if elements is None:
            continue
        looked = True
        _check_counts(step, elements)
        if len(step.inputs) != 1:
            continue
        given = _all(step.inputs[0], most)
        if given is not None:
            _check_needs(step, elements, given)
            _check_order(step, elements, given)
    for step in {id(step): step for step in (*walk(dataset.node), *walk(rewrite(dataset.node)[0]))}.values():
        _check_places(step)
    return looked


def _all(step: Node, most: int) -> list[Any] | None:
    """The elements of a step; None where there are too many, or an error."""
    try:
        found = elements_from(step, step.start(0), most + 1)
    except Exception:  # noqa: BLE001 - facts are about elements
        return None
    return found if len(found) <= most else None


def _check_counts(step: Node, elements: list[Any]) -> None:
    counted = step.count_elements()
    if counted not in (UNKNOWN, len(elements)):
        raise AssertionError(f"count_elements of {step} is {counted}, but there are {len(elements)}")
    low, high = cardinality_bounds(step)
    if len(elements) < low or (high is not None and len(elements) > high):
        raise AssertionError(f"cardinality_bounds of {step} are {(low, high)}, but there are {len(elements)}")


def _check_needs(step: Node, elements: list[Any], given: list[Any]) -> None:
    what = f"{step} says that it needs of its input {step.needs.name}"
    (source,) = step.inputs
    middle = len(given) // 2

    def over(part: Node) -> list[Any]:
        made = step.with_inputs((part,))
        return elements_from(made, made.start(0), len(elements) + len(given) + 1)

    if step.needs == Needs.ONE:
        if len(elements) != len(given):
            raise AssertionError(f"{what}: of {len(given)} elements it makes {len(elements)}")
        for index in range(2):
            wrong = difference(over(Shard(source, 2, index)), elements[index::2])
            if wrong is not None:
                raise AssertionError(f"{what}: over shard {index} of 2 of its input {wrong}")
    if step.needs <= Needs.EACH:
        wrong = difference([*over(Take(source, middle)), *over(Skip(source, middle))], elements)
        if wrong is not None:
            raise AssertionError(f"{what}: over the first {middle} elements, and then over the others, {wrong}")


def _check_order(step: Node, elements: list[Any], given: list[Any]) -> None:
    # Of a further pass over its input, as `repeat` takes, the elements may be others.
    if step.by_position and len(elements) <= len(given) and not set(elements) <= set(given):
        raise AssertionError(
            f"{step} says that it goes by position alone, but makes elements that its input does not have"
        )
    if step.shuffles and Counter(elements) != Counter(given):
        raise AssertionError(f"{step} says that it shuffles, but its elements are not those of its input")
    if step.transparent:
        wrong = difference(elements, given)
        if wrong is not None:
            raise AssertionError(f"{step} says that its elements are those of its input: {wrong}")
        if step.start(0) != step.inputs[0].start(0):
            raise AssertionError(f"{step} says that its states are those of its input, but begins with {step.start(0)}")


def _check_places(step: Node) -> None:
    """A step can be asked for the records of its elements at any of its states, as notes on errors do."""
    try:
        states = [step.start(0), *states_from(step, step.start(0), _STATES)]
    except Exception:  # noqa: BLE001 - facts are about elements
        return
    for state in states:
        for ahead in (-1, 0, 1):
            try:
                step.place_of(state, ahead)
                step.records_at(state, ahead)
            except Exception as error:
                raise AssertionError(
                    f"{step} cannot say which record its element {ahead} comes from at its state {state}: {error!r}"
                ) from error
