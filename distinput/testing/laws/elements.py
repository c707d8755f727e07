# SPDX-License-Identifier: Apache-2.0
"""Laws of what a pipeline gives: its elements, its spec, its facts; blocks and rules change nothing of them."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator
from distinput.ops.shard import Shard
from distinput.ops.take import Skip, Take
from distinput.plan.node import INFINITE, UNKNOWN, Needs, Node, cardinality_bounds, walk
from distinput.rewrite import RULES, Running, rewrite
from distinput.testing.block_sizes import small_blocks
from distinput.testing.elements import check_same, difference, matches
from distinput.testing.laws.trace import MOST, PassTrace, begun, elements_from, most_of, states_from
from distinput.values.nest import structure_of
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import DatasetSpec, OptionalSpec, Spec, TensorSpec

# ----------------------------------------------------------------------------
# Law 1: a pass gives exactly the elements that plain lists would.
# ----------------------------------------------------------------------------


def check_same_as(dataset: Dataset, expected: Sequence[Any]) -> None:
    """Law 1: a pass gives exactly these elements.

    Args:
      dataset: any finite pipeline.
      expected: elements as NumPy values, compared in structure, dtype, shape and bits; plain Python numbers and lists of
        them are compared by value alone. A dataset inside an element is compared with the elements it gives.

    Raises:
      AssertionError: the elements differ.

    >>> import distinput as di
    >>> check_same_as(di.data.Dataset.range(4).batch(3), [[0, 1, 2], [3]])
    """
    count = 0
    with iter(dataset) as elements:
        for element in elements:
            if count == len(expected):
                raise AssertionError(f"same as a list: there is an element {count}, expected only {count}: {element!r}")
            if not matches(element, expected[count]):
                raise AssertionError(f"same as a list: element {count} is {element!r}, expected {expected[count]!r}")
            count += 1
    if count != len(expected):
        raise AssertionError(f"same as a list: there are {count} elements, expected {len(expected)}")


# ----------------------------------------------------------------------------
# Law 4: every element fits the spec, and the cardinality is true.
# ----------------------------------------------------------------------------


def check_spec(dataset: Dataset, *, most: int | None = None) -> None:
    """Law 4: every element fits `element_spec`, with its keys in that order, and the cardinality is true.

    Args:
      dataset: any pipeline.
      most: elements looked at; None: 200 of a pipeline that does not end, else 10,000.

    Raises:
      AssertionError: an element does not fit, or there are more or fewer of them than stated.

    >>> import distinput as di
    >>> check_spec(di.data.Dataset.range(5).batch(2))
    """
    most = most_of(dataset) if most is None else most
    spec = Spec.of(dataset.element_spec)
    cardinality = dataset.cardinality()
    count = 0
    ended = False
    with iter(dataset) as elements:
        while count < most:
            try:
                element = next(elements)
            except StopIteration:
                ended = True
                break
            if not dataset.node.spec.structure.makes_anew:  # by `as_text` or `as_rows`; specs are those of the columns
                _check_fits(element, spec, f"element {count}")
            count += 1
    if cardinality == INFINITE and ended:
        raise AssertionError(f"spec: the cardinality is infinite, but there are {count} elements")
    if cardinality >= 0 and (count > cardinality or (ended and count != cardinality)):
        raise AssertionError(
            f"spec: the cardinality is {cardinality}, but there are {count} elements{'' if ended else ' or more'}"
        )
    if cardinality < UNKNOWN:
        raise AssertionError(f"spec: {cardinality} is no cardinality")
    if cardinality >= 0 and len(dataset) != cardinality:
        raise AssertionError(f"spec: the cardinality is {cardinality}, but len() is {len(dataset)}")


def _check_fits(element: Any, spec: Spec, what: str) -> None:
    structure = structure_of(element)
    if structure != spec.structure:
        raise AssertionError(f"spec: {what} has the structure {structure}, the spec has {spec.structure}")
    if structure.form != spec.structure.form:
        raise AssertionError(
            f"spec: {what} is {structure}, with keys or mappings in another order than {spec.structure}"
        )
    for leaf, leaf_spec, path in zip(structure.flatten(element), spec.leaves, structure.paths, strict=True):
        where = f"{what}{path}"
        if isinstance(leaf_spec, OptionalSpec):
            if not leaf_spec.holds(leaf):
                raise AssertionError(f"spec: {where} must fit {leaf_spec}, got {leaf!r}")
        elif isinstance(leaf_spec, DatasetSpec):
            if not isinstance(leaf, Dataset):
                raise AssertionError(f"spec: {where} must be a dataset, got {leaf!r}")  # noqa: TRY004 - a law is broken
            inner = Spec.of(leaf_spec.element_spec)
            for index, member in enumerate(leaf):
                _check_fits(member, inner, f"{where}, its element {index},")
        elif not (
            isinstance(leaf, np.ndarray | np.generic | bytes | RaggedTensor)
            and isinstance(leaf_spec, TensorSpec)
            and leaf_spec.fits_value(leaf)
        ):
            raise AssertionError(f"spec: {where} must fit {leaf_spec}, got {leaf!r}")
        elif isinstance(leaf, np.ndarray) and not leaf.ndim:
            raise AssertionError(f"spec: {where} must be a NumPy scalar, got an array of no dimension: {leaf!r}")


# ----------------------------------------------------------------------------
# What a step declares about itself is true: rewrites and sharding rely on it.
# ----------------------------------------------------------------------------


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
        check_same(f"{step} says that its elements are those of its input", elements, given)
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


# ----------------------------------------------------------------------------
# Results do not depend on how many elements travel together.
# ----------------------------------------------------------------------------


def check_blocks(fresh: Callable[[], Dataset], *, rows: Sequence[int] = (1, 2, 3), most: int = MOST) -> None:
    """Results do not depend on how many elements travel together: neither elements nor what follows a state.

    Of a long pass each state is tried with one of the sizes, of a short one with all.

    Args:
      fresh: makes the pipeline.
      rows: sizes of blocks to try besides the usual one; states taken with one size are restored with the others.
      most: elements looked at when the pipeline is endless.

    Raises:
      AssertionError: a size changes something.

    >>> import distinput as di
    >>> check_blocks(lambda: di.data.Dataset.range(7).filter(lambda x: x % 3 > 0).batch(2))
    """
    dataset = fresh()
    usual = PassTrace.of(begun(dataset.node, dataset.node), most)
    for turn, size in enumerate(rows):
        turns = turn, len(rows)
        with small_blocks(size):
            small = PassTrace.of(begun(dataset.node, dataset.node), most)
            wrong = difference(small.elements, usual.elements)
            if wrong is not None or small.failure != usual.failure:
                raise AssertionError(f"blocks of {size}: {wrong or f'ends with {small.failure}'}")
            _check_resumed(dataset, usual, most, turns, f"a state of usual blocks with blocks of {size}")
        _check_resumed(dataset, small, most, turns, f"a state of blocks of {size} with usual blocks")
        with small_blocks(size + 1):
            _check_resumed(dataset, small, most, turns, f"a state of blocks of {size} with blocks of {size + 1}")


_SHORT = 16
"""States of a pass, each of which is tried with all sizes of blocks."""


def _check_resumed(dataset: Dataset, trace: PassTrace, most: int, turns: tuple[int, int], what: str) -> None:
    first, step = (0, 1) if len(trace.states) <= _SHORT else turns
    for position, state in islice(enumerate(trace.states), first, None, step):
        coded = json.loads(json.dumps(state))
        rest = PassTrace.of(DatasetIterator(dataset.node, Running(dataset.node), coded), max(1, most - position))
        wrong = difference(rest.elements, trace.rest(position))
        if wrong is not None or rest.failure != trace.failure:
            raise AssertionError(
                f"{what}, at {position}: {wrong or 'all elements'}, then {rest.failure or 'the end'}; state {json.dumps(coded)}"
            )


# ----------------------------------------------------------------------------
# Law 3: rewrites change neither the elements nor what follows a state.
# ----------------------------------------------------------------------------


def check_rewrites(dataset: Dataset, *, most: int = MOST) -> None:
    """Law 3: rewrites change neither the elements nor what follows a state.

    The pipeline runs as it was described, with all rules, those that were registered as well, and with each rule alone.

    Args:
      dataset: any pipeline.
      most: elements looked at when the pipeline is endless.

    Raises:
      AssertionError: a rule changes something.

    >>> import distinput as di
    >>> check_rewrites(di.data.Dataset.range(9).take(5).take(3).batch(2).unbatch())
    """
    described = PassTrace.of(begun(dataset.node, dataset.node), most)
    tried: set[tuple[str, ...]] = {()}
    for rules in (None, *[(rule,) for rule in RULES]):
        running, fired = rewrite(dataset.node, rules)
        if tuple(fired) in tried:
            continue
        tried.add(tuple(fired))
        what = f"rewrites ({', '.join(fired)})"
        if exact_spec(running) != exact_spec(dataset.node):
            raise AssertionError(f"{what}: the spec was {dataset.node.spec.nest} and is {running.spec.nest}")
        if dataset.node.cardinality not in (UNKNOWN, running.cardinality):
            raise AssertionError(f"{what}: the cardinality was {dataset.node.cardinality} and is {running.cardinality}")
        trace = PassTrace.of(begun(dataset.node, running), most)
        wrong = difference(trace.elements, described.elements)
        if wrong is not None or trace.failure != described.failure:
            raise AssertionError(f"{what}: {wrong or f'ends with {trace.failure}, expected {described.failure}'}")
        for position, state in enumerate(trace.states):
            coded = json.loads(json.dumps(state))
            rest = PassTrace.of(DatasetIterator(dataset.node, Running(running), coded), most)
            check_same(f"{what}, restart at {position}", rest.elements[: most - position], trace.rest(position))


def exact_spec(node: Node) -> Any:
    """The spec of a node as a value that can be compared."""
    return node.spec.structure, node.spec.leaves
