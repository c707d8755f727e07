# SPDX-License-Identifier: Apache-2.0
"""User functions for random pipelines: they take elements of any structure, and their results depend on the element alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from distinput.core.nest import flatten, map_leaves
from distinput.core.ragged_tensor import RaggedTensor
from distinput.core.spec import RaggedTensorSpec, TensorSpec

__all__ = ["MAPS", "ROW_MAPS", "SIGNATURES", "NamedRecord", "Point", "applied", "digest", "length", "predicate"]


class Point(NamedTuple):
    """A namedtuple element."""

    x: Any
    y: Any


@dataclass
class NamedRecord:
    """A dataclass element."""

    id: Any
    name: Any


def applied(function: Callable[..., Any], element: Any) -> Any:
    """`function` called with an element as TensorFlow does."""
    result = function(*element) if type(element) is tuple else function(element)
    return tuple(result) if type(result) is list else result


def whole(args: tuple[Any, ...]) -> Any:
    """The element again, from the arguments that a function was called with."""
    return args[0] if len(args) == 1 else args


def length(*args: Any) -> int:
    """A small number that an element decides."""
    return digest(*args) % 4


def digest(*args: Any) -> int:
    """A number that an element decides, by its values and shapes."""
    total = 0
    for place, leaf in enumerate(flatten(whole(args))):
        total += (place + 1) * _digest(leaf)
    return total % 1_000_003


def _digest(leaf: Any) -> int:
    if isinstance(leaf, bytes):
        return sum(leaf) + len(leaf)
    if isinstance(leaf, np.ndarray | np.generic):
        if leaf.dtype == object:
            return sum(map(_digest, leaf.reshape(-1).tolist())) + leaf.size
        return int(np.asarray(leaf).astype(np.int64).sum()) + 3 * leaf.size
    if isinstance(leaf, RaggedTensor):
        return _digest(leaf.flat_values) + sum(map(_digest, leaf.nested_row_splits))
    return sum(1 for _ in leaf)


def predicate(modulus: int, rest: int) -> Callable[..., Any]:
    """A predicate: true for elements whose digest modulo `modulus` is not `rest`."""
    return lambda *args: np.bool_(digest(*args) % modulus != rest)


def _change_leaf(leaf: Any) -> Any:
    if isinstance(leaf, bytes):
        return b"<" + leaf
    if isinstance(leaf, RaggedTensor):
        return leaf.with_flat_values(_change_leaf(leaf.flat_values))
    if not isinstance(leaf, np.ndarray | np.generic):
        return leaf  # a dataset stays
    if leaf.dtype == object:
        made = np.empty(leaf.shape, object)
        made.reshape(-1)[:] = [b"<" + item for item in leaf.reshape(-1).tolist()]
        return made
    return np.logical_not(leaf) if leaf.dtype == np.bool_ else np.add(leaf, leaf.dtype.type(1))


def change(*args: Any) -> Any:
    """Another value in every leaf, of the same dtype and shape."""
    return map_leaves(_change_leaf, whole(args), lists=False)


def wrap(*args: Any) -> Any:
    """The element in a dict."""
    return {"k": whole(args)}


def twice(*args: Any) -> Any:
    """The element and itself."""
    return whole(args), whole(args)


def first(*args: Any) -> Any:
    """The first leaf."""
    return flatten(whole(args))[0]


def several(*args: Any) -> Any:
    """A list, which becomes a tuple."""
    return [np.int64(digest(*args)), str(digest(*args)).encode()]


def number(*args: Any) -> Any:
    """An int64 scalar."""
    return np.int64(digest(*args))


def few(*args: Any) -> Any:
    """One of a few int32 scalars."""
    return np.int32(digest(*args) % 5)


def ragged(*args: Any) -> Any:
    """A vector whose length differs."""
    return np.arange(length(*args), dtype=np.int64) + digest(*args)


def raggeds(*args: Any) -> Any:
    """Two vectors of one differing length, and text."""
    size = length(*args)
    words = np.empty(size, object)
    words[:] = [b"w%d" % i for i in range(size)]
    return {"n": np.full(size, digest(*args), np.int32), "w": words}


def rows(*args: Any) -> Any:
    """A ragged tensor."""
    lengths = np.arange(length(*args)) % 3
    return RaggedTensor.from_row_lengths(np.arange(lengths.sum()) + digest(*args), lengths)


def matrix(*args: Any) -> Any:
    """Rows that differ in number."""
    return np.full((length(*args), 2), digest(*args), np.float32)


def uneven(*args: Any) -> Any:
    """An array that differs in both dimensions."""
    return np.full((length(*args), digest(*args) % 3), 7, np.int64)


def point(*args: Any) -> Any:
    """A namedtuple."""
    return Point(np.int64(digest(*args)), (b"p", np.arange(3, dtype=np.int32)))


def record(*args: Any) -> Any:
    """A dataclass."""
    return NamedRecord(np.int64(digest(*args)), b"r%d" % length(*args))


def vector(*args: Any) -> Any:
    """Three numbers."""
    return np.arange(3, dtype=np.int64) + digest(*args)


def pairs(*args: Any) -> Any:
    """Two leaves with a first axis of four."""
    return (np.arange(4, dtype=np.float32) + length(*args), np.full((4, 2), digest(*args), np.int64))


MAPS: dict[str, Callable[..., Any]] = {
    made.__name__: made
    for made in (
        change, few, first, matrix, number, pairs, point, ragged, raggeds, record, rows, several, twice, uneven, vector,
        wrap,
    )
}  # fmt: skip
"""Functions for `map`, by name."""

SIGNATURES: dict[str, Any] = {
    "matrix": TensorSpec((None, 2), np.float32),
    "ragged": TensorSpec((None,), np.int64),
    "raggeds": {"n": TensorSpec((None,), np.int32), "w": TensorSpec((None,), object)},
    "rows": RaggedTensorSpec((None, None), np.int64),
    "uneven": TensorSpec((None, None), np.int64),
}
"""Signatures of the functions whose results differ in shape from element to element."""


def row_change(*args: Any) -> Any:
    """`change` on many rows at once."""
    return change(*args)


def row_pair(*args: Any) -> Any:
    """The rows of the first leaf, twice."""
    rows = flatten(whole(args))[0]
    return {"rows": rows, "same": rows}


ROW_MAPS: dict[str, Callable[..., Any]] = {"change": row_change, "pair": row_pair}
"""Functions for `map_rows`, by name."""
