# SPDX-License-Identifier: Apache-2.0
"""Functions that make a dataset of each element, as `flat_map`, `interleave` and `group_by_window` call them."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from distinput.core.calls import note_element
from distinput.core.failure import Failure
from distinput.core.nest import structure_of
from distinput.core.ragged_tensor import RaggedTensor
from distinput.core.random import key_of
from distinput.core.rows import RowQueue
from distinput.core.run import Run
from distinput.core.spec import DatasetSpec, Spec
from distinput.functions.convention import calling
from distinput.functions.inference import infer
from distinput.plan.node import UNKNOWN, Node, walk
from distinput.plan.seeds import drawn_seeds, with_seed

__all__ = ["Through", "check_first", "count_of_made", "hash_of", "making", "next_made", "node_of", "spec_of_elements"]

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
        raise TypeError(f"{op}: the function must return a dataset, got {type(result).__name__}")
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


def making(op: str, function: Callable[..., Any], seed: int) -> Callable[[Any], Node]:
    """A function from an element to a node; seeds that the user's function draws are derived from `seed` and the element."""
    call = calling(function)

    def make(element: Any) -> Node:
        node = node_of(op, call(element))
        return with_seed(node, key_of(seed, hash_of(element))) if drawn_seeds(node) else node

    return make


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
    element = queue.take(1).row(0)
    try:
        return call(element), element
    except Exception as error:
        note_element(error, element)
        error._distinput_mark = mark  # type: ignore[attr-defined]
        if not run.tolerant:
            raise
        return Failure(error), element


def spec_of_elements(op: str, call: Callable[[Any], Node], source: Node, function: Callable[..., Any]) -> Spec:
    """The spec of the elements of the datasets that a function makes of the elements of `source`."""
    leaf = infer(op, call, source, function).leaves[0]
    assert isinstance(leaf, DatasetSpec)
    return Spec.of(leaf.element_spec)


def count_of_made(source: Node, call: Callable[[Any], Node], otherwise: int) -> int:
    """The number of elements of all datasets that a function makes, if these are made from listed names and can be counted.

    Args:
      source: the elements for which it makes datasets.
      call: the function.
      otherwise: the answer if they are not listed, or too many.
    """
    n = source.count_elements()
    listed = all(not inner.reads_files and (inner.inputs or inner.random_access) for inner in walk(source))
    if not 0 <= n <= _MOST_NAMES or not listed:
        return otherwise
    total = 0
    with Run() as run:
        for block, _ in source.open(source.start(0), run):
            for element in block.elements():
                count = call(element).count_elements()
                if count < 0:
                    return UNKNOWN
                total += count
    return total
