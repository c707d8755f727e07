# SPDX-License-Identifier: Apache-2.0
"""Values of Arrow, pandas and polars become NumPy's where they come in: `adopt`, for whatever a user hands in.

The border is here. `structure_of` knows nests of Python, and a table has columns, so it must be made a nest before. Results of
functions pass `owned`, which adopts what it finds. A single array of Arrow, with its nulls, texts and lists, is read by
`array_of_others`, also for `as_leaf`, which knows the name of that function and no more.

pyarrow is imported when the first such value comes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from itertools import chain
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.arrow.tabular import array_of_one, arrow_array_of, is_arrow_array, is_table, library_of, table_of
from distinput.columns.ragged import ragged_tensor
from distinput.names.lazy import later
from distinput.values.nest import map_leaves, structure_of

if TYPE_CHECKING:
    from distinput.arrow import arrow
else:
    arrow = later("distinput.arrow.arrow")  # few values are tables, and the types of Arrow are much to load

__all__ = ["adopt", "all_known", "array_of_others", "arrays_of_table"]

_OWN = frozenset((*np.sctypeDict.values(), np.ndarray, bool, int, float, complex, str, bytes, type(None)))
"""Classes of NumPy and Python, nearly all that there are."""
_NESTS = frozenset((dict, list, tuple))
_KNOWN = _OWN | _NESTS
_LOOKED_INTO = 4
"""Levels of nests in which values are looked at together; deeper ones one by one."""


def adopt(value: Any) -> Any:
    """A nest in which tables are dicts of their columns, and arrays and scalars of Arrow those of NumPy.

    A list is one array: a table in it is the array that NumPy sees.

    Returns:
      The value itself where there are none.

    Raises:
      TypeError: a column or an array has nulls, or a type that no array has.

    >>> import pyarrow as pa
    >>> adopt({"ids": pa.array([1, 2]), "n": 3})
    {'ids': array([1, 2]), 'n': 3}
    """
    kind = type(value)
    if kind in _OWN or (kind is tuple and _OWN.issuperset(map(type, value))):  # nearly always
        return value
    try:
        return _adopted(value)
    except TypeError as error:
        structure = structure_of(value)
        for leaf, path in zip(structure.flatten(value), structure.paths, strict=True):
            try:
                _adopted(leaf)
            except TypeError as found:
                raise TypeError(f"component {path}: {found}" if path else str(found)) from None
        raise error from None


def all_known(values: Sequence[Any]) -> bool:
    """Whether `adopt` would change none of these, as far as a quick look at all of them together can tell.

    >>> all_known([(1, {"a": np.arange(2)}), (2, {"a": np.arange(2)})])
    True
    """
    level = values
    for _ in range(_LOOKED_INTO):
        kinds = set(map(type, level))
        if kinds <= _OWN:
            return True
        if not kinds <= _KNOWN:
            return False
        nests = level if kinds.isdisjoint(_OWN) else [value for value in level if type(value) in _NESTS]
        inner = map(dict.values, nests) if kinds == {dict} else map(_items, nests) if dict in kinds else nests
        level = list(chain.from_iterable(inner))
    return False


def _items(nest: Any) -> Any:
    return nest.values() if type(nest) is dict else nest


def _adopted(value: Any) -> Any:
    kind = type(value)
    if kind in _OWN:
        return value
    if kind is tuple or kind is list:
        if _OWN.issuperset(map(type, value)):
            return value
        items = list(map(_adopted if kind is tuple else _member, value))
        return value if all(map(is_, items, value)) else kind(items)
    if kind is dict:
        if _OWN.issuperset(map(type, value.values())):
            return value
        adopted = {key: _adopted(item) for key, item in value.items()}
        return value if all(map(is_, adopted.values(), value.values())) else adopted
    if isinstance(value, Mapping | tuple) or (is_dataclass(kind) and not getattr(kind, "nest_leaf", False)):
        changed: list[bool] = []

        def adopted_leaf(leaf: Any) -> Any:
            adopted = _adopted(leaf)
            changed.append(adopted is not leaf)
            return adopted

        built = map_leaves(adopted_leaf, value, lists=False)
        return built if any(changed) else value
    if is_table(value):
        return arrays_of_table(value)
    read = array_of_others(value)
    return value if read is None else read


def _member(value: Any) -> Any:
    return np.asarray(value) if is_table(value) else _adopted(value)


def array_of_others(value: Any) -> Any:
    """An array of Arrow, pandas or polars, or a scalar of Arrow, as NumPy's; None of anything else, a table among it.

    Raises:
      TypeError: it has nulls, or a type that no array has.
    """
    if is_arrow_array(value):
        return _of_array(value)
    return _of_scalar(value) if library_of(type(value)) == "pyarrow" and hasattr(value, "as_py") else None


def arrays_of_table(table: Any) -> dict[str, Any]:
    """The columns of a table as arrays by name; a struct is a dict of them.

    Raises:
      TypeError: a column cannot be an array.
    """
    read = table_of(table).combine_chunks()
    columns: dict[str, Any] = {}
    try:
        for batch in read.to_batches() or [arrow.without_rows(read.schema)]:
            columns = arrow.columns_of(batch, {})
    except (arrow.NullsError, arrow.UnsupportedTypeError) as error:
        raise TypeError(f"a table whose columns are not all arrays: {error}") from None
    return {name: _columns_as_arrays(column, name) for name, column in columns.items()}


def _columns_as_arrays(column: Any, name: str) -> Any:
    if isinstance(column, Mapping):
        return {key: _columns_as_arrays(inner, f"{name}.{key}") for key, inner in column.items()}
    return _whole(column)


def _of_array(value: Any) -> Any:
    try:
        column = arrow.to_column(arrow_array_of(value), "of the array")
    except (arrow.NullsError, arrow.UnsupportedTypeError) as error:
        raise TypeError(str(error)) from None
    return _whole(column)


def _of_scalar(value: Any) -> Any:
    if not value.is_valid:
        raise TypeError(f"cannot make an array of a null ({type(value).__name__}); fill it first")
    return _of_array(array_of_one(value))[0]


def _whole(column: Any) -> Any:
    """All rows as an array; as a ragged tensor where they are lists of several lengths."""
    if hasattr(column, "whole"):
        return column.whole()
    return ragged_tensor(column)
