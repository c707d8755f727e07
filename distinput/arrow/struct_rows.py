# SPDX-License-Identifier: Apache-2.0
"""Lists of structs in the place of structs of lists, as `as_rows` makes lists of dicts of dicts of lists.

A form says what is made of a part: it is that of `columns.python_values.RowDicts`. Both types have the same lists in the same
order, around the leaves in the one and around the structs in the other.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.names.lazy import library

pa = library("pyarrow")
types = library("pyarrow.types")

# ----------------------------------------------------------------------------
# Types.
# ----------------------------------------------------------------------------


class NoRowsError(Exception):
    """A type is none of which rows can be made."""


def form_in(kind: Any, rank: int, form: Any) -> Any:
    """The form of a column of elements or batches of them, where `rank` lists are around the first leaf of an element."""
    for _ in range(_depth(kind) - rank):
        form = (*form[:2], form[2] + 1) if form[0] == "told" else ("lists", form)
    return form


def rows_type(kind: Any, form: Any) -> Any:
    """The type with lists of structs.

    Raises:
      NoRowsError: the lists of a struct cannot be equally long, or a struct holds values and marks that are no rows.

    >>> lists = pa.struct({"role": pa.large_list(pa.string()), "n": pa.large_list(pa.int64())})
    >>> rows_type(lists, ("rows", (("role", ("leaf",)), ("n", ("leaf",)))))
    LargeListType(large_list<item: struct<role: string, n: int64>>)
    """
    match form:
        case ("told", inner, more) if more:
            return list_like(_list(kind), rows_type(kind.value_type, ("told", inner, more - 1)))
        case ("told", inner, _):
            made = rows_type(kind, inner)
            if types.is_fixed_size_list(made) or (inner == ("leaf",) and types.is_struct(kind)):
                raise NoRowsError
            return made
        case ("lists", inner):
            return list_like(_outer(kind), rows_type(_peeled_type(kind), inner))
        case ("rows", parts):
            return list_like(_outer(kind), rows_type(_peeled_type(kind), ("dict", parts)))
        case ("dict", parts):
            return pa.struct([(field.name, rows_type(field.type, part)) for field, part in _fields(kind, parts)])
    return kind


def columns_type(kind: Any, form: Any, around: Sequence[Any] = ()) -> Any:
    """The type with structs of lists of which `rows_type` has made a type.

    Args:
      kind: the type with lists of structs.
      form: what was made.
      around: the lists that are to be around the leaves, the outermost first.

    Raises:
      NoRowsError: it is no such type.

    >>> lists = pa.struct({"role": pa.large_list(pa.string()), "n": pa.large_list(pa.int64())})
    >>> form = ("rows", (("role", ("leaf",)), ("n", ("leaf",))))
    >>> columns_type(rows_type(lists, form), form) == lists
    True
    """
    match form:
        case ("told", inner, more) if more:
            kind = list_like(_list(kind), columns_type(kind.value_type, ("told", inner, more - 1)))
        case ("told", inner, _):
            kind = columns_type(kind, inner)
        case ("lists", inner):
            return columns_type(_list(kind).value_type, inner, (*around, kind))
        case ("rows", parts):
            return columns_type(_list(kind).value_type, ("dict", parts), (*around, kind))
        case ("dict", parts):
            return pa.struct(
                [(field.name, columns_type(field.type, part, around)) for field, part in _fields(kind, parts)]
            )
    for outer in reversed(around):
        kind = list_like(outer, kind)
    return kind


def is_list(kind: Any) -> bool:
    """Whether a type is one of the lists that columns become."""
    return kind is not None and bool(types.is_large_list(kind) or types.is_fixed_size_list(kind))


def list_like(kind: Any, items: Any) -> Any:
    """The type of lists as another one, of other items."""
    return pa.list_(items, kind.list_size) if types.is_fixed_size_list(kind) else pa.large_list(items)


def _list(kind: Any) -> Any:
    if not is_list(kind):
        raise NoRowsError
    return kind


def _fields(kind: Any, parts: Any) -> Iterator[tuple[Any, Any]]:
    """The fields of a struct, and what is made of each."""
    forms = {str(name): part for name, part in parts}
    if not types.is_struct(kind) or not forms or {field.name for field in kind} != {*forms}:
        raise NoRowsError
    return ((field, forms[field.name]) for field in kind)


def _outer(kind: Any) -> Any:
    """The outermost list around all leaves, of nothing."""
    if not types.is_struct(kind):
        return list_like(_list(kind), pa.null())
    around = {_outer(field.type) for field in kind}
    if len(around) != 1:
        raise NoRowsError
    return around.pop()


def _peeled_type(kind: Any) -> Any:
    """The type without the outermost list around each leaf."""
    if types.is_struct(kind):
        return pa.struct([(field.name, _peeled_type(field.type)) for field in kind])
    return kind.value_type


def _depth(kind: Any) -> int:
    """The number of lists around the first leaf."""
    if is_list(kind):
        return 1 + _depth(kind.value_type)
    return _depth(kind.field(0).type) if types.is_struct(kind) and kind.num_fields else 0


# ----------------------------------------------------------------------------
# Arrays, and the paths at which there may be nulls.
# ----------------------------------------------------------------------------


def rows_array(array: Any, form: Any, name: str) -> Any:
    """An array with lists of structs, of one of the type for which `rows_type` made the type.

    Raises:
      InvalidArgumentError: the lists of a struct differ in length.
    """
    match form:
        case ("told", inner, more) if more:
            return _relisted(array, ("told", inner, more - 1), name)
        case ("told", inner, _):
            return rows_array(array, inner, name)
        case ("lists", inner):
            return _relisted(array, inner, name)
        case ("rows", parts):
            return _relisted(array, ("dict", parts), name)
        case ("dict", parts):
            forms = {str(key): part for key, part in parts}
            fields = [
                rows_array(part, forms[field.name], f"{name}.{field.name}")
                for field, part in zip(array.type, array.flatten(), strict=True)
            ]
            names = [field.name for field in array.type]
            return pa.StructArray.from_arrays(fields, names, mask=array.is_null() if array.null_count else None)
    return array


def rows_paths(paths: Sequence[str], name: str, form: Any) -> list[str]:
    """The paths of nulls in the type of `rows_type`: lists that are around structs are left out of them."""
    levels: dict[str, int] = {}

    def walk(form: Any, at: str, level: int) -> None:
        levels.setdefault(at, level)
        match form:
            case ("told", inner, _):
                walk(
                    inner, at, level if inner == ("leaf",) else 0
                )  # a mark has made rows of what is around its structs
            case ("lists", inner):
                walk(inner, at, level + 1)
            case (word, parts):
                for key, part in parts:
                    walk(part, f"{at}.{key}", level + (word == "rows"))

    walk(form, name, 0)
    made = []
    for path in paths:
        place = path.rstrip("[]")
        count = (len(path) - len(place)) // 2
        made.append(place + "[]" * max(0, count - levels.get(place, 0)))
    return made


def _leaves(array: Any) -> Iterator[Any]:
    """The lists around all leaves; null where a struct above is."""
    if not types.is_struct(array.type):
        yield array
        return
    for part in array.flatten():
        yield from _leaves(part)


def _peeled(array: Any) -> Any:
    if not types.is_struct(array.type):
        return array.flatten()
    return pa.StructArray.from_arrays([_peeled(part) for part in array.flatten()], [field.name for field in array.type])


def _relisted(array: Any, form: Any, name: str) -> Any:
    """Lists of what is made of the items, as long as those around all leaves of an array, and null where this is."""
    first, *others = [lists.value_lengths().cast("int64").fill_null(0) for lists in _leaves(array)]
    if any(not lengths.equals(first) for lengths in others):
        raise InvalidArgumentError(
            f"to_arrow: column {name!r}: its lists differ in length, so they are not rows of one structure"
        )
    items = rows_array(_peeled(array), form, name)
    outer = next(_leaves(array)).type
    if types.is_fixed_size_list(outer):
        return pa.FixedSizeListArray.from_arrays(items, outer.list_size)
    offsets = np.append(0, np.cumsum(first.to_numpy(zero_copy_only=False)))
    mask = array.is_null() if array.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), items, mask=mask)
