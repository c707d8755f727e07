# SPDX-License-Identifier: Apache-2.0
"""Arrays that nobody else can change.

A function or a generator may fill one buffer again and again and give it out each time. Elements wait in blocks, so what was
given must be copied before the next call, unless its reference counts show that nobody else holds it. And what many elements
or later passes look at (the user's own arrays, what a cache keeps) is handed out as read-only views.
"""

from sys import getrefcount
from typing import Any

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Arrays, Column, Dense, Objects, Ragged, Strings
from distinput.core.nest import map_leaves
from distinput.core.references import calibrated

__all__ = ["frozen", "is_plain", "owned"]

Array = np.ndarray[Any, np.dtype[Any]]

_PLAIN = (np.generic, bool, int, float, complex, str, bytes, type(None))
_SIMPLE = frozenset((*np.sctypeDict.values(), bool, int, float, complex, str, bytes, type(None)))
_ndarray = np.ndarray


def owned(value: Any) -> Any:
    """What a function returned, with copies of the arrays that somebody else may hold; to be called through `map`.

    Only there do the reference counts match those measured at import: `map(owned, map(function, elements))`.
    """
    kind = type(value)
    if kind in _SIMPLE:
        return value
    if kind is _ndarray:
        if getrefcount(value) <= _ALONE and (value.base is None or _is_base_alone(value)):
            return value
        return value.copy()
    if kind is not tuple and kind is not list and kind is not dict:
        return map_leaves(_copied, value)
    held = getrefcount(value) > _ALONE
    for item in value.values() if kind is dict else value:
        inner = type(item)
        if inner is _ndarray:
            if held or getrefcount(item) > _AMONG_ITEMS or (item.base is not None and not _is_base_alone(item)):
                break
        elif inner not in _SIMPLE:
            return map_leaves(_copied, value)
    else:
        return value
    if kind is dict:
        return {key: _copy_of(item) for key, item in value.items()}
    return kind(map(_copy_of, value))


def is_plain(value: Any) -> bool:
    """True for numbers and text, which nobody can change."""
    return isinstance(value, _PLAIN) or (type(value) is tuple and all(isinstance(item, _PLAIN) for item in value))


def _is_base_alone(array: Array) -> bool:
    """Whether the memory of an array that nobody else holds is held by nobody else either."""
    base: Any = array.base
    if base is None:
        return True
    if type(base) is np.ndarray:
        return base.base is None and getrefcount(base) <= _OF_VIEW
    return type(base) is bytes


def _copy_of(item: Any) -> Any:
    kind = type(item)
    return item if kind in _SIMPLE else item.copy() if kind is _ndarray else map_leaves(_copied, item)


def _copied(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf.copy()
    if isinstance(leaf, _PLAIN) or getattr(leaf, "nest_leaf", False):
        return leaf
    if hasattr(leaf, "__array__") or hasattr(leaf, "__dlpack__"):
        return np.asarray(leaf).copy()  # an array of another library, which may own the memory
    return leaf


def frozen(block: Block) -> ColumnBlock:
    """The same rows in memory; arrays that are handed out cannot be written to."""
    columns = [_frozen_column(column) for column in block.materialize().columns]
    return ColumnBlock(block.structure, columns, block.size)


def _frozen_column(column: Column) -> Column:
    if isinstance(column, Dense):
        return Dense(_frozen_array(column.array))
    if isinstance(column, Strings) and column.made is not None:
        return Strings(column.data, column.starts, column.sizes, _frozen_array(column.made))
    if isinstance(column, Ragged):
        return Ragged(_frozen_column(column.flat), column.starts, column.sizes)  # type: ignore[arg-type]  # of its kind
    if isinstance(column, Objects | Arrays):
        items = [_frozen_array(item) if isinstance(item, np.ndarray) else item for item in column.items]
        return type(column)(items, column.dtype)
    return column


def _frozen_array(array: Array) -> Array:
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def _of_item(value: Any) -> int:
    for item in value:
        return getrefcount(item)
    return 0


def _of_base(array: Array) -> int:
    base: Any = array.base
    return getrefcount(base)


# All are -1 where counts are not exact, and then everything is copied.
_ALONE = calibrated(lambda value: getrefcount(value), lambda _: np.empty(2))
_AMONG_ITEMS = calibrated(_of_item, lambda _: (np.empty(2),))
_OF_VIEW = calibrated(lambda view: _of_base(view), lambda _: np.empty(2)[1:])
