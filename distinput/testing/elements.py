# SPDX-License-Identifier: Apache-2.0
"""Elements as values that can be compared and counted: structure, dtype, shape and bits."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from distinput.core.nest import structure_of
from distinput.core.ragged_tensor import RaggedTensor

__all__ = ["difference", "exact", "matches", "rows_of"]


def exact(element: Any) -> Any:
    """A hashable value that is equal for two elements only if structure, dtypes, shapes and bits are.

    A dataset inside an element is equal to a list of its elements.

    >>> exact(np.int64(1)) == exact(np.int32(1))
    False
    """
    structure = structure_of(element)
    if structure.is_leaf:
        return _exact_leaf(element)
    return (structure, tuple([_exact_leaf(leaf) for leaf in structure.flatten(element)]))


def _exact_leaf(leaf: Any) -> Any:
    if isinstance(leaf, bytes):
        return leaf
    if isinstance(leaf, RaggedTensor):
        splits = tuple([tuple(each.tolist()) for each in leaf.nested_row_splits])
        return ("ragged", splits, _exact_leaf(leaf.flat_values))
    if isinstance(leaf, np.ndarray | np.generic):
        kind = "array" if isinstance(leaf, np.ndarray) else "scalar"
        bits = tuple(leaf.reshape(-1).tolist()) if leaf.dtype == object else leaf.tobytes()
        return (kind, leaf.dtype.str, leaf.shape, bits)
    if getattr(leaf, "is_optional", False):
        return ("optional", exact(leaf.get_value()) if leaf.has_value() else None)
    if isinstance(leaf, Iterable) and not isinstance(leaf, str):
        return ("dataset", tuple([exact(inner) for inner in leaf]))
    return ("other", leaf)


def matches(given: Any, expected: Any) -> bool:
    """True when an element is as expected; plain Python numbers, text and lists of them are compared by value alone."""
    if exact(given) == exact(expected):
        return True
    shape, wanted = structure_of(given), structure_of(expected)
    if shape != wanted:
        return False
    return all(map(_leaf_matches, shape.flatten(given), wanted.flatten(expected)))


def _leaf_matches(given: Any, expected: Any) -> bool:
    if getattr(given, "is_optional", False):
        there = given.has_value()
        return there == expected.has_value() and (not there or matches(given.get_value(), expected.get_value()))
    if getattr(given, "nest_leaf", False):
        inner, wanted = list(given), list(expected)
        return len(inner) == len(wanted) and all(map(matches, inner, wanted))
    if isinstance(expected, str):
        return bool(given == expected.encode())
    if isinstance(expected, bool | int | float | list):
        return bool(np.array_equal(np.asarray(given), np.asarray(expected)))
    return bool(exact(given) == exact(expected))


def difference(given: Sequence[Any], expected: Sequence[Any]) -> str | None:
    """Where two sequences of exact elements differ, None when they do not."""
    for index, (a, b) in enumerate(zip(given, expected, strict=False)):
        if a != b:
            return f"element {index} is {_short(a)}, expected {_short(b)}"
    if len(given) != len(expected):
        return f"there are {len(given)} elements, expected {len(expected)}"
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "..."


def rows_of(batch: Any) -> list[Any]:
    """The rows of a batch, as exact values."""
    structure = structure_of(batch)
    leaves = structure.flatten(batch)
    return [exact(structure.build([leaf[i] for leaf in leaves])) for i in range(len(leaves[0]))]
