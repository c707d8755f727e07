# SPDX-License-Identifier: Apache-2.0
"""Functions that make a dataset of each element, as `flat_map`, `interleave` and `group_by_window` call them."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import islice
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from distinput.columns.block import Failure, failed, trouble_of
from distinput.columns.rows import RowQueue
from distinput.functions.chain import calling
from distinput.functions.inference import infer, parts_of
from distinput.plan.families import Seeded, key_of, placed, unseeded, with_drawn_seeds
from distinput.plan.node import UNKNOWN, Node, walk
from distinput.run.run import Run, called_once, note_element
from distinput.values.nest import structure_of
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import DatasetSpec, Spec

T = TypeVar("T")


class CachedIterable(Generic[T]):
    """The items of an iterable, which may be iterated again; who stops early causes no further items to be made.

    Args:
      items: iterated once, as far as anybody goes.

    >>> squares = CachedIterable(print(n) or n * n for n in range(100))
    >>> any(square > 3 for square in squares), any(square == 1 for square in squares)
    0
    1
    2
    (True, True)
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._rest = iter(items)
        self._made: list[T] = []

    def __iter__(self) -> Iterator[T]:
        index = 0
        while True:
            if index == len(self._made):
                try:
                    self._made.append(next(self._rest))
                except StopIteration:
                    return
            yield self._made[index]
            index += 1


_DEPTH = 5
_MOST_PARTS = 100
"""How deep, and among how many things at a time, datasets that a function holds are looked for."""

_MOST_NAMES = 10_000
"""The most elements for which the function is called just to count its datasets."""


class Through(Protocol):
    """What a rewrite has each dataset go through that the function made."""

    @property
    def spec(self) -> Spec:
        """What elements are like behind it."""

    def __call__(self, made: Node) -> Node:
        """The dataset in the place of the one that was made."""


def node_of(op: str, result: Any) -> Node:
    """The node of the dataset that a user function returned.

    Raises:
      TypeError: it returned something else.
    """
    node = getattr(result, "node", result)
    if not isinstance(node, Node):
        given = type(result).__name__
        raise TypeError(f"{op}: the function must return a dataset, got {given}; Dataset.from_tensor_slices makes one")
    return node


def check_first(op: str, function: Callable[..., Any], source: Node) -> None:
    """Refuse a function that returns no dataset for the first element, if that element is in memory.

    Raises:
      TypeError: it returns something else. Errors that the function itself raises are left to the iteration.
    """
    first = source.first_in_memory
    if first is None:
        return
    try:
        made = calling(function)(*first)
    except Exception:  # noqa: BLE001 - an error of the function belongs to the iteration
        return
    node_of(op, made)


class Making:
    """A function that makes a dataset of each element, with the seeds of its steps.

    A step that was made before, since the function only hands it on, has another order in each of the datasets, as it has in
    each of its passes; one that does not reshuffle has the same in all. What the function draws anew follows from the element,
    so that a file has one order on every worker.

    Args:
      op: whose function it is.
      function: the user's.
      seed: of the op.
      through: what each dataset goes through.
    """

    def __init__(
        self, op: str, function: Callable[..., Any], seed: int, through: Callable[[Node], Node] | None = None
    ) -> None:
        self._op, self._function, self._seed, self._through = op, function, seed, through
        self._call = calling(function)

    @cached_property
    def _shared(self) -> frozenset[int]:
        """The marks of the random steps of datasets that the function holds."""
        held = held_datasets(self._function)
        return frozenset([step.mark for node in held for step in walk(node) if isinstance(step, Seeded)])

    def __call__(self, element: Any, number: int | None = None) -> Node:
        """The dataset of an element.

        Args:
          element: what the function gets.
          number: how many datasets were made before it in this pass; None: not known, or of no account (`counts`).
        """
        with unseeded():
            node = node_of(self._op, called_once(self._call, element))
        if node.lasting or any(step.differs_by_place for step in walk(node)):
            node = self._seeded(node, hash_of(element), number)
        return node if self._through is None else self._through(node)

    @property
    def counts(self) -> bool:
        """Whether the datasets depend on their numbers."""
        return bool(self._shared)

    def _seeded(self, node: Node, word: int, number: int | None) -> Node:
        if number is not None:
            node = placed(node, number, self._shared)
        steps = [step for step in node.lasting if step.draws]
        if not steps:
            return node
        keys = [key_of(self._seed, word)] * len(steps)
        if number is not None:
            held = [isinstance(step, Seeded) and step.mark in self._shared for step in steps]
            again = [key_of(self._seed, number) if step.differs_by_place else self._seed for step in steps]
            keys = [own if is_held else key for own, is_held, key in zip(again, held, keys, strict=True)]
        return with_drawn_seeds(node, [key_of(key, index) >> 1 for index, key in enumerate(keys)])


def held_datasets(function: Any) -> list[Node]:
    """The datasets that a function holds: in variables around it, in arguments that are bound to it, and in what these hold."""
    found: dict[int, Node] = {}
    _look(function, found, set(), _DEPTH)
    return list(found.values())


def _look(value: Any, found: dict[int, Node], seen: set[int], depth: int) -> None:
    if depth < 0 or id(value) in seen or isinstance(value, ModuleType | type):
        return
    seen.add(id(value))
    node = getattr(value, "node", value) if hasattr(type(value), "nest_leaf") else None
    if isinstance(node, Node):
        found[id(node)] = node
        return
    if isinstance(value, Mapping):
        parts: Iterable[Any] = value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        parts = value
    else:
        parts = [*parts_of(value), getattr(value, "__self__", None), *getattr(value, "__dict__", {}).values()]
    for part in list(islice(parts, _MOST_PARTS)):
        _look(part, found, seen, depth - 1)


def hash_of(element: Any) -> int:
    """A hash of an element, the same in every process."""
    found = hashlib.blake2s(digest_size=8)
    for array in _arrays_of(element):
        text = repr(array.tolist()).encode() if array.dtype.kind in "OSU" else array.tobytes()
        found.update(repr((array.dtype.str, array.shape)).encode() + text)
    return int.from_bytes(found.digest(), "little")


def _arrays_of(element: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The leaves as arrays; of a ragged tensor its splits and values."""
    for leaf in structure_of(element).flatten(element):
        if isinstance(leaf, RaggedTensor):
            yield from leaf.nested_row_splits
            yield leaf.flat_values
        else:
            yield np.asarray(leaf)


def next_made(queue: RowQueue, call: Callable[[Any], Node], run: Run) -> tuple[Node | Failure, Any]:
    """The dataset made of the next element of a queue that is not empty, or the failure in its place; and the element."""
    if not queue.size:
        return queue.passed(), None
    mark = queue.mark()
    one, element = queue.take(1), None
    try:
        element = one.row(0)
        return call(element), element
    except Exception as error:  # noqa: BLE001 - `failed` raises it, unless the run is tolerant
        note_element(error, one.shown(0))
        trouble_of(error).mark = mark
        return failed(error, tolerant=run.tolerant), element


def spec_of_elements(op: str, call: Callable[[Any], Any], source: Node, function: Callable[..., Any]) -> Spec:
    """The spec of the elements of the datasets that a function makes of the elements of `source`."""
    results: list[Any] = []

    def kept(element: Any) -> Any:
        results.append(call(element))
        return results[-1]

    leaf = infer(op, kept, source, function).leaves[0]
    if not isinstance(leaf, DatasetSpec):
        raise TypeError(f"{op}: reduce_func must return a dataset")  # `call` has refused that of another op
    spec = Spec.of(leaf.element_spec)
    same = [node_of(op, result).spec.structure for result in results]
    # The nest of a spec does not tell what `as_text` and `as_rows` make.
    return Spec(next((structure for structure in same if structure == spec.structure), spec.structure), spec.leaves)


def count_of_made(source: Node, call: Callable[[Any], Node], otherwise: int) -> int:
    """The number of elements of all datasets that a function makes, if these are made from listed names and can be counted.

    Args:
      source: the elements for which it makes datasets.
      call: the function.
      otherwise: the answer if they are not listed, or too many, or if a function fails for one of them.
    """
    n = source.count_elements()
    listed = all(not inner.reads_files and (inner.inputs or inner.random_access) for inner in walk(source))
    if not 0 <= n <= _MOST_NAMES or not listed:
        return otherwise
    total = 0
    with Run() as run, suppress(Exception):  # raised, or left out, where the elements are asked for
        for block, _ in source.open(source.start(0), run):
            for element in block.elements():
                count = call(element).count_elements()
                if count < 0:
                    return UNKNOWN
                total += count
        return total
    return otherwise
