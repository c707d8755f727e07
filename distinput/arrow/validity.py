# SPDX-License-Identifier: Apache-2.0
"""Where Arrow arrays hold nulls, told by truth values: marks.

A mark is told by the path of what it is about: "x" is a column, "s.a" a field of a struct, also of structs in lists, and
"x[]" the items of lists. One with a name stands beside the column or the field that the path begins with; that of "x[]" holds
lists. One without a name stands in place: it makes a struct of what is at the path, of which elements have a `Nullable`.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from distinput.arrow.arrow import (
    all_missing,
    fields_of_map,
    fill_nulls,
    has_missing,
    in_place,
    is_held,
    is_list,
    names_of,
    replacement,
    take,
    with_offsets,
    without_rows,
)
from distinput.arrow.record_batches import nulls_of
from distinput.names.lazy import library
from distinput.values.ragged_tensor import lists_of_size

pa = library("pyarrow")
types = library("pyarrow.types")


def null_paths(batch: Any, *, structs: bool = False, every: bool = False) -> list[str]:
    """The paths of a record batch at which there are nulls that NumPy has no value for.

    Args:
      batch: a pyarrow RecordBatch.
      structs: true: a null struct is one; false: each of its fields is.
      every: all nulls, also those for which it has a value.

    >>> import pyarrow as pa
    >>> null_paths(pa.RecordBatch.from_pydict({"x": [1, None], "f": [0.5, None], "l": [[1, None], None]}))
    ['x', 'l', 'l[]']
    """
    found: dict[str, None] = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        # Some functions of Arrow lack some types: there a null is met as it is read.
        with suppress(pa.ArrowNotImplementedError):
            if is_held(array.type):
                _find(array, name, 0, found, structs, every)
    return list(found)


def unfilled(paths: Iterable[str], schema: Any, fill: Mapping[str, Any]) -> list[str]:
    """The paths of nulls in whose place `fill`, by column or field, puts nothing.

    A null struct has something in its place where each of its fields has.

    >>> import pyarrow as pa
    >>> schema = pa.schema({"x": pa.int64(), "s": pa.struct({"a": pa.int64(), "b": pa.string()})})
    >>> paths = ["x", "s", "s.a", "s.b"]
    >>> unfilled(paths, schema, {"x": 0, "s.a": 0}), unfilled(paths, schema, {"s": {"a": 0, "b": ""}})
    (['s', 's.b'], ['x'])
    """
    filled: set[str] = set()
    for field in schema if fill else ():
        _add_filled(field.type, field.name, 0, fill.get(field.name), fill, filled)
    return [path for path in paths if path not in filled]


def _add_filled(kind: Any, name: str, depth: int, value: Any, fill: Mapping[str, Any], filled: set[str]) -> bool:
    """Add the paths, from this place on, at which something is put in the place of nulls; whether a null here is nowhere left.

    Args:
      kind: the type there.
      name: of a column or a field.
      depth: of the lists of it whose items are meant.
      value: what stands for a null here; None: nothing.
      fill: the same by column or field, for those below.
      filled: the paths found.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return _add_filled(kind.storage_type, name, depth, value, fill, filled)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _add_filled(kind.value_type, name, depth, value, fill, filled)
    path = name + "[]" * depth
    if types.is_struct(kind):
        left, before = 0, len(filled)
        for field in kind:
            place = f"{name}.{field.name}"
            inner = value.get(field.name) if isinstance(value, Mapping) else value
            left += not _add_filled(field.type, place, 0, fill.get(place, inner), fill, filled)
        if len(filled) > before and not left:
            filled.add(path)
        return not left and (not depth or path in filled)  # NaN in all fields tells no null struct in lists
    left = False
    if _is_of_lists(kind):
        # An empty list stands in the place of a null one, and not of what is in it.
        items = pa.struct(fields_of_map(kind)) if types.is_map(kind) else kind.value_type
        of_lists = types.is_fixed_size_list(kind) and _is_of_lists(items)
        inner = None if isinstance(value, list | tuple) and not of_lists else value
        left = _add_filled(items, name, depth + 1, inner, fill, filled)
    if types.is_fixed_size_list(kind):  # in the place of a null one stand items
        filled.update([path] if left and value is not None else ())
        return left
    if value is not None:
        filled.add(path)
    return value is not None or has_missing(kind)


def as_marks(valid: Any) -> tuple[tuple[str, str], ...] | None:
    """(path, name) of the marks that users ask for: a dict of names by path, or a list of paths, in place; None: neither.

    >>> as_marks({"x": "known"}), as_marks(["x", "s.a"]), as_marks(None), as_marks("x")
    ((('x', 'known'),), (('x', ''), ('s.a', '')), (), None)
    """
    if isinstance(valid, list | tuple):
        valid = dict.fromkeys(valid, "")
    marks = tuple((valid or {}).items()) if valid is None or isinstance(valid, Mapping) else None
    return marks if marks is None or all(isinstance(word, str) for mark in marks for word in mark) else None


def default_marks(paths: Iterable[str], schema: Any) -> tuple[tuple[str, str], ...]:
    """(path, name) of the marks that tell nulls at these paths; none where a column has the name already.

    >>> import pyarrow as pa
    >>> default_marks(["x", "s.a[]"], pa.schema({"x": pa.int64(), "s": pa.struct({"a": pa.list_(pa.int8())})}))
    (('x', 'x_valid'), ('s.a[]', 'a_items_valid'))
    """
    marks: list[tuple[str, str]] = []
    names = names_of(schema)
    for path in paths:
        name, depth = path, 0
        while name.endswith("[]") and name not in names:
            name, depth = name[:-2], depth + 1
        mark = (name if name in schema.names else name.rpartition(".")[2]) + "_items" * depth + "_valid"
        try:
            marked_schema(schema, ((path, mark),))
        except ValueError:
            continue
        marks.append((path, mark))
    return tuple(marks)


def marks_in_place(paths: Iterable[str], schema: Any, fill: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The marks of nulls at these paths, and at those that a table of our own has them at, which its schema keeps.

    There are none where `fill` puts something in the place of nulls.
    """
    marks = [(path, "") for path in unfilled(paths, schema, fill)]
    for path in unfilled(nulls_of(schema), schema, fill):
        if (path, "") not in marks:
            try:
                marked_schema(schema, [*marks, (path, "")])
            except ValueError:  # others have changed the table
                continue
            marks.append((path, ""))
    return tuple(marks)


def marked_schema(schema: Any, marks: Sequence[tuple[str, str]]) -> Any:
    """The schema of `marked` batches.

    Raises:
      ValueError: a path leads nowhere, or a name is in use.
    """
    return marked(without_rows(schema), marks, {}).schema


def marked(batch: Any, marks: Sequence[tuple[str, str]], fill: Mapping[str, Any]) -> Any:
    """A record batch with its marks; in the place of a null that is marked stands what `fill` says, or `zero_of` its type.

    Args:
      batch: a pyarrow RecordBatch.
      marks: (path, name) pairs; an empty name: in place.
      fill: what to put in the place of nulls, by column or field.

    Raises:
      ValueError: a path leads nowhere, or a name is in use.

    >>> import pyarrow as pa
    >>> made = marked(pa.RecordBatch.from_pydict({"x": [1, None], "l": [["a", None], None]}), [("x", "v"), ("l[]", "w")], {})
    >>> made["x"].to_pylist(), made["v"].to_pylist(), made["l"].to_pylist(), made["w"].to_pylist()
    ([1, 0], [True, False], [['a', ''], None], [[True, False], []])
    """
    names_of_marks, fill = dict(marks), by_place(batch.schema, fill)
    names: list[str] = []
    arrays: list[Any] = []
    beside: list[tuple[str, Any]] = []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if name in names_of_marks or _any_inside(name, names_of_marks):
            array, found = _marked(array, name, 0, names_of_marks, fill)
            beside += found
        names.append(name)
        arrays.append(array)
    if names_of_marks:
        raise ValueError(
            f"there is no column {next(iter(names_of_marks))!r}; the columns are {', '.join(batch.schema.names)}"
        )
    names, arrays = _joined(names, arrays, beside)
    return pa.RecordBatch.from_arrays(arrays, names)


def by_place(schema: Any, fill: Mapping[str, Any]) -> dict[str, Any]:
    """What stands in the place of nulls by column and field, also where a dict by field, or one value for all, says it.

    >>> import pyarrow as pa
    >>> by_place(pa.schema({"s": pa.struct({"a": pa.int64(), "b": pa.int64()})}), {"s": {"a": 7}})["s.a"]
    7
    """
    values = dict(fill)

    def walk(kind: Any, place: str, value: Any) -> None:
        while not types.is_struct(kind):
            if isinstance(kind, pa.BaseExtensionType):
                kind = kind.storage_type
            elif types.is_map(kind):
                kind = pa.struct(fields_of_map(kind))
            elif hasattr(kind, "value_type"):
                kind = kind.value_type
            else:
                return
            value = None if isinstance(value, list | tuple) else value  # of a null list, and not of what is in one
        for field in kind:
            name = f"{place}.{field.name}"
            inner = fill.get(name, value.get(field.name) if isinstance(value, Mapping) else value)
            if inner is not None:
                values[name] = inner
            walk(field.type, name, inner)

    for field in schema if fill else ():
        walk(field.type, field.name, fill.get(field.name))
    return values


def _any_inside(name: str, names_of_marks: Iterable[str]) -> bool:
    """Whether there are marks of what is in a column or field."""
    return any(path.startswith((f"{name}.", f"{name}[]")) for path in names_of_marks)


def _joined(names: list[str], arrays: list[Any], beside: Sequence[tuple[str, Any]]) -> tuple[list[str], list[Any]]:
    for name, array in beside:
        if name in names:
            raise ValueError(f"the mark {name!r} has the name of a column; the columns are {', '.join(names)}")
        names, arrays = [*names, name], [*arrays, array]
    return names, arrays


def stored(array: Any) -> Any:
    """Values as they are stored, with offsets and without dictionaries at the top."""
    array = with_offsets(array)
    while isinstance(array, pa.ExtensionArray) or pa.types.is_dictionary(array.type):  # also among the values of others
        stored = array.storage if isinstance(array, pa.ExtensionArray) else take(array.dictionary, array.indices)
        array = with_offsets(stored)
    return array


def _find(
    array: Any, name: str, depth: int, found: dict[str, None], structs: bool, every: bool, in_lists: bool = False
) -> None:
    """Add the paths of nulls among the items in `depth` lists of a column or a field, whose name may end in brackets.

    A null struct in lists is one whatever is in it, as it is no row. Elsewhere NaN in each of its fields tells it.
    """
    array = stored(array)
    kind, path = array.type, name + "[]" * depth
    if types.is_struct(kind):
        parts = array.flatten()
        if array.null_count and _tells_structs(kind, structs, every, in_lists):
            found[path] = None
            places = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
            parts = [take(stored(part), places) for part in parts]
        for field, part in zip(kind, parts, strict=True):
            _find(part, f"{name}.{field.name}", 0, found, structs, every, in_lists)
        return
    if array.null_count and (every or not has_missing(kind)):
        found[path] = None
    if _is_of_lists(kind):
        _find(items_of(array)[0], name, depth + 1, found, structs, every, in_lists=True)


def _is_of_lists(kind: Any) -> bool:
    return is_list(kind) or types.is_map(kind) or types.is_fixed_size_list(kind)


def _tells_structs(kind: Any, structs: bool, every: bool, in_lists: bool) -> bool:
    """Whether the paths of null structs are told, by the arguments of `null_paths`, because nothing in them tells it."""
    if structs:
        return every or in_lists or not all_missing(kind)
    return not kind.num_fields or (in_lists and all_missing(kind))


def items_of(array: Any) -> tuple[Any, Any]:
    """The items of lists one after the other without those of nulls, and the offsets [n + 1], which fixed ones lack."""
    kind, valid = array.type, array.is_valid().to_numpy(zero_copy_only=False)
    if types.is_fixed_size_list(kind):
        items = array.values.slice(array.offset * kind.list_size, len(array) * kind.list_size)
        if array.null_count:
            items = take(items, pa.array(np.flatnonzero(np.repeat(valid, kind.list_size))))
        return items, None
    starts = array.offsets.to_numpy().astype(np.int64) if len(array) else np.zeros(1, np.int64)
    sizes = np.where(valid, np.diff(starts), 0)
    offsets = np.append(0, np.cumsum(sizes))
    values = array.values
    if types.is_map(kind):
        names = [field.name for field in fields_of_map(kind)]
        values = pa.StructArray.from_arrays([values.field(0), values.field(1)], names)
    if int(offsets[-1]) == int(starts[-1] - starts[0]):
        return values.slice(int(starts[0]), int(offsets[-1])), pa.array(offsets)
    places = np.arange(offsets[-1]) + np.repeat(starts[:-1] - offsets[:-1], sizes)
    return take(values, pa.array(places)), pa.array(offsets)


def _marked(
    array: Any, name: str, depth: int, names_of_marks: dict[str, str], fill: Mapping[str, Any], *, told: bool = False
) -> tuple[Any, list[tuple[str, Any]]]:
    """An array without its marked nulls, and the marks beside it; `names_of_marks` loses those that are made.

    Args:
      array: a pyarrow Array.
      name: of the column or the field.
      depth: of the lists of it whose items the array has.
      names_of_marks: the name of each mark that is still to be made, by path.
      fill: what to put in the place of nulls, by column or field.
      told: whether the array is a field of a struct whose mark tells where the struct is null; the field is null there too.
    """
    mark = names_of_marks.pop(name + "[]" * depth, None)
    whole, beside = _without_nulls(array, name, depth, mark, names_of_marks, fill, told)
    if mark is None:
        return whole, beside
    valid = stored(array).is_valid()
    return (whole, [(mark, valid), *beside]) if mark else (in_place(whole, valid), beside)


def _without_nulls(
    array: Any,
    name: str,
    depth: int,
    mark: str | None,
    names_of_marks: dict[str, str],
    fill: Mapping[str, Any],
    told: bool,
) -> tuple[Any, list[tuple[str, Any]]]:
    source, array = array, stored(array)
    kind = array.type
    if types.is_struct(kind):
        if mark is None and not _any_inside(name, names_of_marks):
            return array, []  # its nulls are met where columns are made of it
        names: list[str] = []
        arrays: list[Any] = []
        inside: list[tuple[str, Any]] = []
        told = told or mark is not None
        for field, part in zip(kind, array.flatten(), strict=True):
            place = f"{name}.{field.name}"
            # A struct in it whose fields are marked stays null, and these get zeros.
            if (
                told
                and place not in names_of_marks
                and not (types.is_struct(stored(part).type) and _any_inside(place, names_of_marks))
            ):
                part = _zeros_at_nulls(part, array)
            whole, marks = _marked(part, place, 0, names_of_marks, fill, told=told)
            names, arrays, inside = [*names, field.name], [*arrays, whole], [*inside, *marks]
        names, arrays = _joined(names, arrays, inside)
        if arrays or mark is None:
            return (pa.StructArray.from_arrays(arrays, names) if arrays else array), []
        return pa.array([{}] * len(array), kind), []
    nulls = array.is_null() if array.null_count else None
    if is_list(kind) or types.is_map(kind):
        items, offsets = items_of(array)
        items, below = _marked(items, name, depth + 1, names_of_marks, fill)
        whole = pa.LargeListArray.from_arrays(offsets, items, mask=nulls if mark is None else None)
        return whole, [(name, pa.LargeListArray.from_arrays(offsets, each)) for name, each in below]
    if types.is_fixed_size_list(kind):
        items, _ = items_of(array)
        items, below = _marked(items, name, depth + 1, names_of_marks, fill)
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        whole = _fixed(items, kind.list_size, valid, None if mark is not None else nulls)
        if isinstance(source, pa.ExtensionArray) and whole.type == source.type.storage_type:
            whole = pa.ExtensionArray.from_storage(source.type, whole)
        return whole, [(name, _fixed(each, kind.list_size, valid, None)) for name, each in below]
    if mark is not None and nulls is not None:
        value = fill.get(name, zero_of(kind))
        if depth and isinstance(value, list | tuple):  # of a null list, and not of what is in one
            value = zero_of(kind)
        if types.is_null(kind):
            array = pa.repeat(pa.scalar(b""), len(array))
        elif types.is_interval(kind):
            array = _zeros_at_nulls(array, array)
        elif value is not None:
            array = fill_nulls(array, replacement(name, value, kind))
    return array, []


def _zeros_at_nulls(part: Any, whole: Any) -> Any:
    """What a struct holds, with zeros where the struct is null."""
    if isinstance(part, pa.ExtensionArray):
        storage = _zeros_at_nulls(part.storage, whole)
        return pa.ExtensionArray.from_storage(part.type, storage) if storage.type == part.type.storage_type else storage
    part = stored(part)
    if pa.types.is_null(part.type):
        return pa.repeat(pa.scalar(b""), len(part))
    part = _plain(part)
    if not whole.null_count:
        return part
    valid = whole.is_valid().to_numpy(zero_copy_only=False)
    places = np.where(valid, np.arange(len(part)), len(part))
    return take(pa.concat_arrays([part, _zeros(part.type)]), pa.array(places))


def _plain(array: Any) -> Any:
    """Values without dictionaries, and as they are stored, also inside structs and lists of one size.

    Arrow puts arrays of other types together only where their dictionaries hold no nulls, and makes none of some types.
    """
    if isinstance(array, pa.ExtensionArray) and not isinstance(array.type, pa.FixedShapeTensorType):
        return _plain(array.storage)
    if types.is_dictionary(array.type):
        return _plain(take(array.dictionary, array.indices))
    if types.is_null(array.type):  # which has no zero
        return array.cast(pa.binary())
    nulls = array.is_null() if array.null_count else None
    if types.is_struct(array.type) and array.type.num_fields:
        parts = [_plain(part) for part in array.flatten()]
        fields = [field.with_type(part.type) for field, part in zip(array.type, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=nulls)
    if types.is_fixed_size_list(array.type) and array.type.list_size:
        size = array.type.list_size
        items = _plain(array.values.slice(array.offset * size, len(array) * size))
        return pa.FixedSizeListArray.from_arrays(items, size, mask=nulls)
    return array


def _fixed(items: Any, size: int, valid: np.ndarray[Any, Any], nulls: Any) -> Any:
    """Lists of one size of the items of those that are valid; the others hold zeros."""
    if not valid.all():
        places = np.full((len(valid), size), len(items), np.int64)
        places[valid] = np.arange(len(items)).reshape(np.count_nonzero(valid), size)
        items = _plain(items)
        items = take(pa.concat_arrays([items, _zeros(items.type)]), pa.array(places.reshape(-1)))
    return lists_of_size(items, size, len(valid), nulls)


def _zeros(kind: Any) -> Any:
    """One value of a type: zero, empty, false, or what stands for a null where NumPy has something."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _zeros(kind.storage_type))
    if types.is_struct(kind):
        fields = list(kind)
        if not fields:
            return pa.array([{}], kind)
        return pa.StructArray.from_arrays([_zeros(field.type) for field in fields], fields=fields)
    if types.is_fixed_size_list(kind):
        items = pa.concat_arrays([pa.nulls(0, kind.value_type), *[_zeros(kind.value_type)] * kind.list_size])
        return pa.Array.from_buffers(kind, 1, [None], children=[items])
    if is_list(kind) or types.is_map(kind):
        inner = pa.struct(fields_of_map(kind)) if types.is_map(kind) else kind.value_type
        return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(16))], children=[pa.nulls(0, inner)])
    if types.is_interval(kind):
        return pa.array([pa.MonthDayNano([0, 0, 0])], kind)
    return pa.array([zero_of(kind)], kind)


def zero_of(kind: Any) -> Any:
    """The value in the place of nulls that a mark tells; None where NumPy has a value for them."""
    if types.is_dictionary(kind):
        return zero_of(kind.value_type)
    if types.is_nested(kind) and hasattr(kind, "value_type"):
        return np.nan if types.is_floating(kind.value_type) else zero_of(kind.value_type)  # null lists need some value
    if types.is_fixed_size_binary(kind):
        return bytes(kind.byte_width)
    if types.is_boolean(kind):
        return False
    if types.is_integer(kind) or types.is_decimal(kind):
        return 0
    return None if has_missing(kind) or types.is_struct(kind) or types.is_interval(kind) else b""
