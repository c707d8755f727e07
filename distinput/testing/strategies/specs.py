# SPDX-License-Identifier: Apache-2.0
"""Specs of elements, and elements that fit them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from distinput.core.nest import structure_of
from distinput.core.spec import TensorSpec

__all__ = ["DTYPES", "elements", "shapes", "specs", "values"]

DTYPES: tuple[str, ...] = (
    "int64",
    "float32",
    "bool",
    "uint8",
    "int32",
    "float64",
    "int8",
    "int16",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "complex64",
    "complex128",
    "object",
)
"""Dtypes of leaves; `object` is text."""

_KEYS = ("x", "y", "id", "label")


def shapes(
    most_rank: int = 2, most_size: int = 3, *, unknown: bool = True
) -> st.SearchStrategy[tuple[int | None, ...]]:
    """Shapes of leaves, sizes of 0 among them.

    Args:
      most_rank: the most dimensions.
      most_size: the largest size.
      unknown: some sizes are None.
    """
    size: st.SearchStrategy[int | None] = st.integers(0, most_size)
    return st.lists(size | st.none() if unknown else size, max_size=most_rank).map(tuple)


def specs(
    most_leaves: int = 4, dtypes: Sequence[str] = DTYPES, *, most_rank: int = 2, unknown: bool = True
) -> st.SearchStrategy[Any]:
    """Nests of `TensorSpec`: alone, or in tuples and dicts, also in one another.

    Args:
      most_leaves: the most leaves, about.
      dtypes: of the leaves.
      most_rank: the most dimensions of a leaf.
      unknown: some sizes are None.

    >>> from hypothesis import find
    >>> find(specs(dtypes=["float32"]), lambda spec: isinstance(spec, dict))
    {'x': TensorSpec(shape=(), dtype=float32)}
    """
    leaf = st.builds(TensorSpec, shapes(most_rank, unknown=unknown), st.sampled_from(list(dtypes)).map(np.dtype))
    return st.recursive(leaf, _nests, max_leaves=most_leaves)


def _nests(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    tuples = st.tuples(inner) | st.tuples(inner, inner)
    return tuples | st.dictionaries(st.sampled_from(_KEYS), inner, min_size=1, max_size=3)


def elements(spec: Any, most_size: int = 3) -> st.SearchStrategy[Any]:
    """Elements of a spec: arrays of NumPy in its nest.

    Args:
      spec: a nest of `TensorSpec` with known ranks.
      most_size: the largest size where the spec has None.

    >>> from distinput import TensorSpec
    >>> from hypothesis import find
    >>> find(elements({"x": TensorSpec((None,), np.int32)}), lambda element: len(element["x"]) == 2)
    {'x': array([0, 0], dtype=int32)}
    """
    structure = structure_of(spec)
    leaves = [_array(leaf, most_size) for leaf in structure.flatten(spec)]
    return st.tuples(*leaves).map(lambda made: structure.build(list(made)))


def _array(leaf: TensorSpec, most_size: int) -> st.SearchStrategy[Any]:
    if leaf.shape is None:
        raise ValueError(f"elements: a leaf must have a known rank, got {leaf}")
    sizes = [st.integers(0, most_size) if size is None else st.just(size) for size in leaf.shape]
    return st.tuples(*sizes).flatmap(lambda shape: values(leaf.dtype, shape))


def values(dtype: Any, shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Arrays of a dtype and a shape, without NaN, so that they can be compared."""
    if np.dtype(dtype) == object:
        count = int(np.prod(shape))
        texts = st.lists(st.binary(max_size=4), min_size=count, max_size=count)
        return texts.map(lambda made: _texts(made, shape))
    each = arrays.from_dtype(np.dtype(dtype), allow_nan=False)
    return arrays.arrays(np.dtype(dtype), shape, elements=each)


def _texts(made: list[bytes], shape: tuple[int, ...]) -> Any:
    array = np.empty(len(made), object)
    array[:] = made
    return array.reshape(shape)
