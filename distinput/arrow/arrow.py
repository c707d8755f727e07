# SPDX-License-Identifier: Apache-2.0
"""Arrow arrays as columns, without a copy where both keep their values alike; checked where they come from strangers."""

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from distinput.columns.block import ColumnBlock
from distinput.columns.column import Array, Column, Dense, Ints, Strings
from distinput.columns.ragged import Ragged, RaggedBatches
from distinput.errors import UnimplementedError
from distinput.names.lazy import library
from distinput.values.buffers import empty
from distinput.values.nest import Structure
from distinput.values.nullable import Nullable
from distinput.values.ragged_tensor import lists_of_size
from distinput.values.spec import RaggedTensorSpec, Spec, TensorSpec

pa = library("pyarrow")
pc = library("pyarrow.compute")
types = library("pyarrow.types")

# ----------------------------------------------------------------------------
# Whether the numbers of an Arrow array lead outside of its memory, as those of a damaged file may.
#
# pyarrow takes offsets, views, spans and the indices of dictionaries as they come; nobody may follow one that was not
# looked at. Only these numbers are looked at here, a few bytes a value, and no text, number or time that they lead to: what
# a mapped file holds is not read from the disk for this.
#
# Source: the format's own description, "Arrow Columnar Format", section "Physical Memory Layout".
# ----------------------------------------------------------------------------


SignedInts = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]


class ArrowDamageError(ValueError):
    """An Arrow array whose numbers lead outside of its memory."""


def check_batch(batch: Any) -> None:
    """Refuse a record batch, or a table, of which a column leads outside of its memory.

    Raises:
      ArrowDamageError: one does.
      UnsupportedTypeError: pyarrow has no arrays of the type of one.
    """
    valid = False
    try:
        with suppress(pa.ArrowException):  # told of its column below
            valid = batch.validate() is None
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            check_array(array, name, valid=valid)
    except KeyError:  # a type without a class of arrays
        without_rows(batch.schema)
        raise


def check_array(array: Any, name: str, *, valid: bool = False) -> None:
    """Refuse a pyarrow Array or ChunkedArray that leads outside of its memory; it is called `name` in the error.

    Args:
      array: the values.
      name: of the column.
      valid: whether `validate` was called for it.

    Raises:
      ArrowDamageError: it does.
    """
    try:
        for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
            _ = valid or chunk.validate()  # sizes of buffers and of children, which are looked at no more below
            _check(chunk)
    except (pa.ArrowException, ArrowDamageError) as error:
        raise ArrowDamageError(f"column {name!r}: {error}") from error


def _check(array: Any) -> None:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        _check(array.storage)
        return
    if types.is_dictionary(kind):  # a null is one among the indices, or one in the dictionary: each counts its own
        _check(array.indices)
        _check_indices(array.indices, len(array.dictionary))
        _check(array.dictionary)
        return
    if types.is_run_end_encoded(kind):  # the nulls are those of its values
        _check_runs(array)
        _check(array.values)
        return
    if array.null_count and array.null_count != len(array) - array.is_valid().true_count:
        raise ArrowDamageError(f"{array.null_count} nulls are said to be there, but there are others")
    if types.is_struct(kind):
        parts = array.flatten()  # what is below a null is not looked at, and may be anything
        for place, part in enumerate(parts):
            _check(array.field(place) if types.is_run_end_encoded(part.type) else part)
    elif types.is_fixed_size_list(kind):
        _check(array.values)
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        _check_offsets(array, np.int64 if types.is_large_list(kind) else np.int32, len(array.values))
        _check(array.values)
    elif types.is_list_view(kind) or types.is_large_list_view(kind):
        _check_spans(array, np.int64 if types.is_large_list_view(kind) else np.int32)
        _check(array.values)
    elif types.is_string_view(kind) or types.is_binary_view(kind):
        # All of it: views of texts have no part that can be left out, but for whether the texts are UTF-8.
        array.view(pa.binary_view()).validate(full=True)
    elif types.is_string(kind) or types.is_binary(kind):
        _check_offsets(array, np.int32, _size(array.buffers()[2]))
    elif types.is_large_string(kind) or types.is_large_binary(kind):
        _check_offsets(array, np.int64, _size(array.buffers()[2]))


def _size(buffer: Any) -> int:
    return 0 if buffer is None else buffer.size


def _as_numbers(buffer: Any, dtype: type[np.signedinteger[Any]], first: int, count: int) -> SignedInts:
    """The numbers [count] in a buffer from number `first` on."""
    width = np.dtype(dtype).itemsize
    if (first + count) * width > _size(buffer):
        raise ArrowDamageError(f"{first + count} numbers of {width} bytes do not fit into {_size(buffer)} bytes")
    return np.frombuffer(buffer, dtype, count, first * width)


def _check_offsets(array: Any, dtype: type[np.signedinteger[Any]], end: int) -> None:
    """N + 1 offsets from 0 to `end` that do not decrease."""
    if not len(array):
        return
    offsets = _as_numbers(array.buffers()[1], dtype, array.offset, len(array) + 1)
    if offsets[0] < 0 or offsets[-1] > end or (offsets[1:] < offsets[:-1]).any():
        raise ArrowDamageError(
            f"offsets must not decrease, and must stay within the {end} values or bytes that are there"
        )


def _check_spans(array: Any, dtype: type[np.signedinteger[Any]]) -> None:
    """A start and a size for each list, within the values."""
    end = len(array.values)
    if not len(array):
        return
    starts, sizes = [
        _as_numbers(buffer, dtype, array.offset, len(array)).astype(np.int64) for buffer in array.buffers()[1:3]
    ]
    # Without a sum of two numbers that nobody has looked at.
    if min(starts.min(), sizes.min()) < 0 or sizes.max() > end or (starts > end - sizes).any():
        raise ArrowDamageError(f"each list must lie within the {end} values that are there")


def _check_runs(array: Any) -> None:
    """Ends of runs that increase, from more than 0 up to at least the last value, and a value for each run."""
    ends = array.run_ends.to_numpy()
    end = array.offset + len(array)
    if len(ends) > len(array.values) or (end and not len(ends)):
        raise ArrowDamageError(f"{len(ends)} runs cannot hold {end} values, of which {len(array.values)} are there")
    if len(ends) and (ends[0] <= 0 or ends[-1] < end or (ends[1:] <= ends[:-1]).any()):
        raise ArrowDamageError(f"the ends of runs must increase from more than 0, up to at least {end}")


def _check_indices(indices: Any, end: int) -> None:
    """Numbers of entries of a dictionary, where there are no nulls."""
    if indices.null_count == len(indices):
        return
    bounds = pc.min_max(indices)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low < 0 or high >= end:
        raise ArrowDamageError(f"indices must be those of the {end} entries of the dictionary, got {low} to {high}")


# ----------------------------------------------------------------------------
# Arrow arrays as columns; without a copy wherever both keep their values the same way. The way back is in `to_arrow`.
#
# The rule for nulls, which Parquet files, Arrow files and tables in memory share: a null becomes the replacement given for
# its column. Without one it becomes the value that NumPy has for this purpose: NaN among floats, NaT among dates, times and
# durations. NumPy has no such value for integers, truth values, text and lists: there a null is an error that names the
# column and the row. A null struct is a struct of nulls, each of which follows the rule of its own type; "s.a" names field
# a of column s, and so does a dict by field as the replacement of s. A null inside a list follows the rule of the values of
# the list.
#
# pyarrow is imported when the first function is called.
# ----------------------------------------------------------------------------


Mask = np.ndarray[Any, np.dtype[np.bool]]
_Holding = Callable[[Mask], Mask]

_INT64 = np.dtype(np.int64)


class UnsupportedTypeError(Exception):
    """An Arrow type that no column can hold."""


class FillError(TypeError):
    """What is to replace the nulls of a column is of another type than the column."""


class NullsError(Exception):
    """Rows of a column hold nulls that have no replacement; `row` is the first such row, `kind` the type of the nulls."""

    column: str = ""
    count: int = 0
    row: int = 0
    kind: str = ""
    path: str = ""

    @staticmethod
    def of(column: str, count: int, row: int, kind: str, path: str = "") -> "NullsError":
        """The error about a column, or about what is at a path of `arrow.validity`."""
        error = NullsError(f"column {column!r} has {count} nulls, the first in row {row}")
        error.column, error.count, error.row, error.kind, error.path = column, count, row, kind, path or column
        return error

    @property
    def cure(self) -> str:
        """The options that tell or replace these nulls.

        >>> print(NullsError.of("m", 1, 0, "list<item: struct<a: int64>>").cure)
        have them told where they are with valid=['m'], or say what to put in their place with nulls={'m': ()}
        """
        told = f"have them told where they are with valid=[{self.path!r}]"
        return told if self.kind == "struct<>" else f"{told}, or {self.filling}"

    @property
    def filling(self) -> str:
        """The option that replaces these nulls. Fields of objects in lists differ in type: an empty list fits them all."""
        of_fields = not self.kind.startswith("fixed_size") and ("struct<" in self.kind or "map<" in self.kind)
        value = "{field: value}" if self.kind.startswith("struct<") else "()" if of_fields else "value"
        return f"say what to put in their place with nulls={{{self.column!r}: {value}}}"


def schema_spec(schema: Any) -> Spec:
    """The spec of a row of an Arrow schema: a dict of its columns.

    Raises:
      ArrowDamageError: a list has a negative size.
      UnsupportedTypeError: a column cannot be held.
    """
    fields = list(schema)
    spec = Spec.of({field.name: _nest_of(field.type, field.name) for field in fields})
    return replace(spec, structure=_telling(spec.structure, {field.name: field.type for field in fields}))


def _telling(at: Structure, kinds: Mapping[str, Any], in_lists: int = 0) -> Structure:
    """The dict of these columns or fields, in which stands what only the types tell: lists of structs, and decimals.

    Args:
      at: the dict.
      kinds: the types by column or field.
      in_lists: how many lists the structs are in.
    """
    children = [as_told(child, kinds[key], in_lists) for key, child in zip(at.keys, at.children, strict=True)]
    return at if all(map(operator.is_, children, at.children)) else replace(at, children=tuple(children))


def as_told(at: Structure, kind: Any, in_lists: int = 0) -> Structure:
    """The structure of columns, or of one, in which stands what only its type tells, also of what is in it."""
    while True:
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif types.is_map(kind):
            kind, in_lists = pa.struct(fields_of_map(kind)), in_lists + 1
        elif is_list(kind) or types.is_fixed_size_list(kind):
            kind, in_lists = kind.value_type, in_lists + 1
        elif types.is_dictionary(kind) or types.is_run_end_encoded(kind):
            kind = kind.value_type
        else:
            break
    if types.is_decimal(kind):
        return replace(at, told="decimal")
    if not types.is_struct(kind):
        return at
    if is_in_place(kind):  # the value is what may be a struct, and the lists are around it
        return _telling(at, {field.name: field.type for field in kind}, in_lists)
    made = _telling(at, {field.name: field.type for field in kind})
    return replace(made, told=" ".join(["rows"] * in_lists)) if in_lists else made


@lru_cache(maxsize=1024)
def is_held(kind: Any) -> bool:
    """Whether columns can hold values of a type; functions of Arrow may end the process at others."""
    try:
        return _nest_of(kind, "") is not None
    except (ArrowDamageError, UnsupportedTypeError):
        return False


def names_of(schema: Any) -> list[str]:
    """The names of columns, and of the fields of structs, which have dots in them.

    >>> import pyarrow as pa
    >>> names_of(pa.schema({"s": pa.struct({"a": pa.int64()}), "x": pa.int64()}))
    ['s', 's.a', 'x']
    """
    return [name for field in schema for name in _names_in(field.type, field.name)]


def _names_in(kind: Any, name: str) -> list[str]:
    while is_list(kind) or types.is_fixed_size_list(kind) or (types.is_struct(kind) and is_in_place(kind)):
        kind = kind.field(0).type  # of items, or of what a mark is about
    below = kind if types.is_struct(kind) else fields_of_map(kind) if types.is_map(kind) else ()
    return [name, *(inner for field in below for inner in _names_in(field.type, f"{name}.{field.name}"))]


def changed_times(schema: Any) -> Iterator[str]:
    """What becomes of the times of a schema for which NumPy has others, in words.

    >>> import pyarrow as pa
    >>> list(changed_times(pa.schema({"x": pa.time32("s"), "y": pa.timestamp("s")})))
    ["column 'x' has times of day, which become durations since midnight"]
    """
    for field in schema:
        for kind in _types_in(field.type):
            if types.is_time(kind):
                yield f"column {field.name!r} has times of day, which become durations since midnight"
            if types.is_timestamp(kind) and kind.tz:
                yield f"column {field.name!r} has times of the zone {kind.tz}, which become those of UTC, without a zone"


def _types_in(kind: Any) -> Iterator[Any]:
    """The types of values in which there are no others."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    inner = list(kind) if types.is_struct(kind) else fields_of_map(kind) if types.is_map(kind) else None
    if inner is not None:
        for field in inner:
            yield from _types_in(field.type)
    elif hasattr(kind, "value_type"):  # lists, dictionaries and runs
        yield from _types_in(kind.value_type)
    else:
        yield kind


def block_of(batch: Any, structure: Structure, fill: Mapping[str, Any]) -> ColumnBlock:
    """The rows of a record batch.

    Args:
      batch: a pyarrow RecordBatch.
      structure: that of `schema_spec(batch.schema)`.
      fill: what to put in the place of nulls, by column.

    Raises:
      FillError: a replacement does not fit its column.
      NullsError: a column without a fill value holds nulls.
    """
    return ColumnBlock(structure, structure.flatten(columns_of(batch, fill)), batch.num_rows)


def columns_of(batch: Any, fill: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a record batch by name; a struct is a dict of columns."""
    return {
        field.name: _to_columns(without_runs(array), _Place(field.name, fill.get(field.name), fill))
        for field, array in zip(batch.schema, batch.columns, strict=True)
    }


def to_column(array: Any, name: str, fill: Any = None) -> Column:
    """A pyarrow Array or ChunkedArray as a column, called `name` in errors, with `fill` in the place of nulls.

    Raises:
      ArrowDamageError: its offsets, or other such numbers, lead outside of its memory.
      FillError: `fill` is of another type.
      NullsError: it holds nulls that have no replacement.
      UnsupportedTypeError: no column can hold it.
    """
    column = to_columns(array, name, fill)
    if not isinstance(column, Column):
        raise UnsupportedTypeError(f"column {name!r} is of type {array.type}")
    return column


def to_columns(array: Any, name: str, fill: Any = None) -> Any:
    """Like `to_column`; a struct is a dict of columns."""
    check_array(array, name)
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else one_batch(pa.table([array], [name])).column(0)
    return _to_columns(without_runs(array), _Place(name, fill))


def has_structs(kind: Any) -> bool:
    """Whether values of a type of Arrow have fields with names.

    >>> import pyarrow as pa
    >>> has_structs(pa.list_(pa.struct({"x": pa.int64()}))), has_structs(pa.list_(pa.int64()))
    (True, False)
    """
    return types.is_struct(kind) or any(has_structs(kind.field(i).type) for i in range(kind.num_fields))


def one_batch(table: Any) -> Any:
    """All rows of a table as one record batch.

    Arrow leaves text in several chunks where its offsets of 32 bits cannot reach all of it: these become wider.

    >>> import pyarrow as pa
    >>> one_batch(pa.table({"x": pa.chunked_array([[1], [2, 3]])})).num_rows
    3
    """
    if len(table.to_batches()) > 1:
        table = table.combine_chunks()
        for place, column in enumerate(table.columns):
            if column.num_chunks > 1:
                wide = pa.large_string() if types.is_string(column.type) else pa.large_binary()
                table = table.set_column(place, table.schema.field(place).with_type(wide), column.cast(wide))
        table = table.combine_chunks()
    (batch,) = table.to_batches() or [without_rows(table.schema)]
    return batch


def without_views(array: Any) -> Any:
    """An array of views of text, which few functions of Arrow take, with offsets instead; any other array as it is."""
    if not (types.is_string_view(array.type) or types.is_binary_view(array.type)):
        return array
    try:
        return array.cast(pa.large_string() if types.is_string_view(array.type) else pa.large_binary())
    except pa.ArrowNotImplementedError as error:
        raise UnimplementedError(
            f"arrays of {array.type} need a newer pyarrow than {pa.cpp_version}, which cannot read them; cast them to string"
        ) from error


def without_rows(schema: Any) -> Any:
    """A record batch of a schema that has no rows, whatever the types: `pa.array([], type)` refuses some. It has no runs.

    Raises:
      UnsupportedTypeError: pyarrow has no arrays of a type, such as intervals of months, or of one inside of it.

    >>> import pyarrow as pa
    >>> without_rows(pa.schema({"t": pa.dictionary(pa.int8(), pa.date32())})).num_rows
    0
    """
    # Without runs, of which pyarrow makes invalid arrays inside of other types.
    arrays = [without_runs(_no_rows(field.type, field.name)) for field in schema]
    fields = [field.with_type(array.type) for field, array in zip(schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, schema.metadata))


def _no_rows(kind: Any, name: str) -> Any:
    for place in range(kind.num_fields):
        part = kind.field(place)
        _no_rows(part.type, f"{name}.{part.name}" if types.is_struct(kind) else name)
    try:
        return pa.nulls(0, kind)
    except KeyError:  # pyarrow knows the type, and has no class of arrays for it
        raise UnsupportedTypeError(f"column {name!r} is of type {kind}") from None


def taken(table: Any, rows: Ints) -> Any:
    """The rows of a table with these numbers, in this order."""
    return gathered(_takeable(table), rows)


def gathered(table: Any, rows: Ints) -> Any:
    """Like `taken`, also of a record batch, and without types that pyarrow does not take, such as views.

    Raises:
      ArrowNotImplementedError: of pyarrow; there is such a type.
    """
    # Given an array of NumPy, pyarrow loads pandas where it is installed, which takes 50 MB.
    numbers = np.ascontiguousarray(rows, np.int64)
    kinds = enumerate(table.schema.types)  # columns of numbers or texts, of which there may be many, are not looked at
    deep = [place for place, kind in kinds if kind.num_fields or isinstance(kind, pa.BaseExtensionType)]
    if len(numbers) and any(_is_misread(chunk) for place in deep for chunk in _chunks(table.column(place))):
        first = int(numbers.min())
        table, numbers = _copied(table.slice(first, int(numbers.max()) + 1 - first)), numbers - first
    return table.take(pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)]))


def take(array: Any, places: Any) -> Any:
    """`array.take(places)`, also of lists of one size in such lists, of which pyarrow takes others.

    Where any of them begins behind the first value in its memory, it counts what lies before it once for each list around it,
    and reads other values, or other memory: seen with pyarrow 26.
    """
    return (pa.concat_arrays([array, array.slice(0, 0)]) if _is_misread(array) else array).take(places)


def _chunks(column: Any) -> list[Any]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _copied(table: Any) -> Any:
    """A table, or a record batch, whose misread columns begin at the first value in their memory."""
    for place, column in enumerate(table.columns):
        chunks = _chunks(column)
        if any(map(_is_misread, chunks)):
            table = table.set_column(
                place, table.schema.field(place), pa.concat_arrays([*chunks, chunks[0].slice(0, 0)])
            )
    return table


def _is_misread(array: Any) -> bool:
    """Whether pyarrow takes other values than those of an array; see `take`."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _is_misread(array.storage)
    if types.is_struct(kind):
        return any(_is_misread(array.field(place)) for place in range(kind.num_fields))
    if types.is_fixed_size_list(kind):
        inner = array.values
        while isinstance(inner.type, pa.BaseExtensionType):
            inner = inner.storage
        begins = array.offset or inner.offset or (types.is_fixed_size_list(inner.type) and inner.values.offset)
        return bool(types.is_fixed_size_list(inner.type) and begins) or _is_misread(inner)
    return (is_list(kind) or types.is_map(kind)) and _is_misread(array.values)


def _takeable(table: Any) -> Any:
    """A table with offsets in the place of views, at any depth, so that rows of it can be taken; others as they are."""
    if not any(_has(kind, _VIEWS) for kind in table.schema.types):
        return table
    columns = [
        column
        if not _has(column.type, _VIEWS)
        else pa.chunked_array([with_offsets(chunk) for chunk in column.chunks or [pa.nulls(0, column.type)]])
        for column in table.columns
    ]
    return pa.table(columns, table.column_names)


_RUNS = ("run_end_encoded",)
_VIEWS = ("string_view", "binary_view", "list_view", "large_list_view", *_RUNS)


@lru_cache(maxsize=1024)
def _has(kind: Any, names: tuple[str, ...]) -> bool:
    """Whether there is a type of these names, at any depth."""
    if any(getattr(types, f"is_{name}")(kind) for name in names):
        return True
    if types.is_dictionary(kind):
        return _has(kind.value_type, names)
    return types.is_nested(kind) and any(_has(kind.field(place).type, names) for place in range(kind.num_fields))


def without_runs(array: Any) -> Any:
    """An array in which each value of a run stands for itself, at any depth; one without runs as it is.

    >>> import pyarrow as pa
    >>> without_runs(pa.RunEndEncodedArray.from_arrays([2, 3], ["a", None])).to_pylist()
    ['a', 'a', None]
    """
    return with_offsets(array) if _has(array.type, _RUNS) else array


def _each_of_runs(array: Any) -> Any:
    """The values of runs, each as often as it stands there."""
    first, count = array.find_physical_offset(), array.find_physical_length()
    ends = array.run_ends.to_numpy()[first : first + count].astype(np.int64) - array.offset
    sizes = np.diff(np.minimum(ends, len(array)), prepend=0)
    places = np.repeat(np.arange(count), sizes)
    return take(with_offsets(array.values.slice(first, count)), pa.array(places, pa.int64()))


def with_offsets(array: Any) -> Any:
    """An array with offsets in the place of views and runs, at any depth: Arrow's own cast does not know lists of views.

    >>> import pyarrow as pa
    >>> str(with_offsets(pa.array([["a"], None], pa.list_view(pa.string_view()))).type)
    'large_list<item: large_string>'
    """
    kind = array.type
    if not _has(kind, _VIEWS):
        return array
    if types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(array.indices, with_offsets(array.dictionary))
    if types.is_run_end_encoded(kind):
        return _each_of_runs(array)
    if types.is_struct(kind):
        parts = [with_offsets(array.field(place)) for place in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, [field.name for field in kind], mask=_mask(array))
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        values = with_offsets(array.values.slice(array.offset * size, len(array) * size))
        return lists_of_size(values, size, len(array), _mask(array))
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        sizes = array.value_lengths().fill_null(0).to_numpy()
        offsets = np.append(0, np.cumsum(sizes, dtype=np.int64))
        starts = array.offsets.to_numpy().astype(np.int64)
        places = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
        first, last = (int(places.min()), int(places.max()) + 1) if len(places) else (0, 0)
        values = with_offsets(array.values.slice(first, last - first))
        # Not `flatten`, which puts slices together: of no slices it cannot make all types.
        values = take(values, pa.array(places - first)) if len(places) else values
        return pa.LargeListArray.from_arrays(pa.array(offsets), values, mask=_mask(array))
    if types.is_map(kind):
        offsets = np.append(array.offsets.to_numpy(), []).astype(np.int32)
        pairs = with_offsets(array.keys), with_offsets(array.items)
        return pa.MapArray.from_arrays(pa.array(offsets), *pairs, mask=_mask(array))
    if is_list(kind):
        offsets = array.offsets.to_numpy().astype(np.int64)
        return pa.LargeListArray.from_arrays(pa.array(offsets), with_offsets(array.values), mask=_mask(array))
    return without_views(array)


def _mask(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _nest_of(kind: Any, name: str) -> Any:
    """The spec nest of an Arrow type."""
    if isinstance(kind, pa.BaseExtensionType):
        shape, stored = _tensor_shape(kind), kind.storage_type
        if shape is None:
            return _nest_of(stored, name)
        while is_list(stored) or types.is_fixed_size_list(stored):
            stored = stored.value_type
        inner = _nest_of(stored, name)
        if isinstance(inner, TensorSpec) and inner.shape == ():
            return TensorSpec(shape, inner.dtype)
        raise UnsupportedTypeError(f"column {name!r} is of type {kind}")
    runs = types.is_run_end_encoded(kind)
    if runs and types.is_nested(kind.value_type):  # of which pyarrow repeats not all
        raise UnsupportedTypeError(f"column {name!r} is of type {kind}")
    if runs or types.is_dictionary(kind):
        return _nest_of(kind.value_type, name)
    if types.is_interval(kind):
        return {part: TensorSpec((), _INTERVAL[part]) for part in _INTERVAL.names or ()}
    if types.is_struct(kind):
        nest = {field.name: _nest_of(field.type, f"{name}.{field.name}") for field in _fields_of(kind, name)}
        return Nullable(nest) if is_in_place(kind) else nest
    if is_text(kind) or types.is_decimal(kind) or types.is_null(kind):
        return TensorSpec((), object)
    if types.is_map(kind):
        return _lists_of(_nest_of(pa.struct(fields_of_map(kind)), name), None, kind, name)
    if is_list(kind) or types.is_fixed_size_list(kind):
        size = kind.list_size if types.is_fixed_size_list(kind) else None
        if size is not None and size < 0:
            raise ArrowDamageError(f"column {name!r} holds lists of {size} values")
        return _lists_of(_nest_of(kind.value_type, name), size, kind, name)
    if (dtype := _dtype_of(kind)) is not None:
        return TensorSpec((), dtype)
    raise UnsupportedTypeError(f"column {name!r} is of type {kind}")


_MARK = {b"distinput": b"valid"}
"""What a field of an Arrow struct is known by that says where the other one holds nulls."""


def in_place(array: Any, valid: Any) -> Any:
    """An array as a struct of its values and of what says which of them are valid; elements hold a `Nullable` for it."""
    fields = [pa.field("value", array.type), pa.field("valid", pa.bool_(), metadata=_MARK)]
    return pa.StructArray.from_arrays([array, valid], fields=fields)


def is_in_place(kind: Any) -> bool:
    """Whether a type is that of an array that `in_place` made."""
    return bool(kind.num_fields == 2 and kind.field(1).metadata == _MARK)


def _fields_of(kind: Any, name: str) -> list[Any]:
    """The fields of a struct, each of which needs a name of its own: one would be lost."""
    if len({field.name for field in kind}) != kind.num_fields:
        raise UnsupportedTypeError(f"column {name!r} has several fields of one name, in its type {kind}")
    return list(kind)


def fields_of_map(kind: Any) -> list[Any]:
    """The two fields of a map, which is a list of pairs.

    >>> import pyarrow as pa
    >>> [field.name for field in fields_of_map(pa.map_(pa.string(), pa.int64()))]
    ['key', 'value']
    """
    return [kind.key_field, kind.item_field]


def _lists_of(inner: Any, size: int | None, kind: Any, name: str) -> Any:
    """The spec nest of lists of `inner`; of lists of structs it is the struct of the lists of each field."""
    if isinstance(inner, dict):
        return type(inner)({field: _lists_of(part, size, kind, name) for field, part in inner.items()})
    if isinstance(inner, RaggedTensorSpec):
        return inner.with_shape((size, *inner.shape))
    if isinstance(inner, TensorSpec) and (inner.shape is None or None not in inner.shape):
        return TensorSpec((size, *(inner.shape or ())), inner.dtype)
    if isinstance(inner, TensorSpec):  # lists of lists: each row is a ragged tensor
        return RaggedTensorSpec((size, *(inner.shape or ())), inner.dtype, 1)
    raise UnsupportedTypeError(f"column {name!r} is of type {kind}")


def _tensor_shape(kind: Any) -> tuple[int, ...] | None:
    """The shape of the arrays that an extension type keeps as lists of their values; None: it keeps something else."""
    shape = getattr(kind, "shape", None)
    if not isinstance(shape, tuple | list) or not all(isinstance(size, int) for size in shape):
        return None
    order = getattr(kind, "permutation", None)
    return tuple(shape) if order is None or list(order) == sorted(order) else None


@lru_cache(maxsize=1024)
def _dtype_of(kind: Any) -> np.dtype[Any] | None:
    """The dtype of a number, a truth value or a time."""
    if types.is_timestamp(kind):
        return np.dtype(f"datetime64[{kind.unit}]")
    if types.is_date(kind):
        return np.dtype("datetime64[D]" if types.is_date32(kind) else "datetime64[ms]")
    if types.is_duration(kind) or types.is_time(kind):
        return np.dtype(f"timedelta64[{kind.unit}]")
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        found: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
        return found
    return None


_TEXTS = ("string", "binary", "large_string", "large_binary", "fixed_size_binary", "string_view", "binary_view")


@lru_cache(maxsize=1024)
def is_text(kind: Any) -> bool:
    """Whether values are text or bytes, however they are stored."""
    return any(getattr(types, f"is_{name}")(kind) for name in _TEXTS)


def is_list(kind: Any) -> bool:
    """Whether values are lists of any length.

    >>> import pyarrow as pa
    >>> is_list(pa.large_list(pa.int8())), is_list(pa.list_(pa.int8(), 2))
    (True, False)
    """
    return bool(
        types.is_list(kind) or types.is_large_list(kind) or types.is_list_view(kind) or types.is_large_list_view(kind)
    )


class _Place:
    """Where a value stands.

    Attributes:
      column: its name; that of a field of a struct has a dot in it.
      fill: what replaces nulls in it.
      fills: the same by name, for the fields below.
      above: which lists hold one of some items, from the innermost lists to those of the rows.
      path: of `arrow.validity`: its name, and brackets for each list that it is in.
    """

    __slots__ = ("above", "column", "fill", "fills", "path")

    def __init__(
        self,
        column: str,
        fill: Any,
        fills: Mapping[str, Any] | None = None,
        above: tuple[_Holding, ...] = (),
        path: str = "",
    ) -> None:
        self.column, self.fill, self.fills, self.above, self.path = column, fill, fills or {}, above, path or column

    def field(self, name: str) -> "_Place":
        """A field of a struct."""
        column = f"{self.column}.{name}"
        whole = self.fill.get(name) if isinstance(self.fill, Mapping) else self.fill
        # Inside of lists, an empty list stands in the place of a null one, and not of what is in it.
        whole = None if self.above and isinstance(whole, tuple | list) else whole
        return _Place(column, self.fills.get(column, whole), self.fills, self.above)

    def items(self, holding: _Holding) -> "_Place":
        """The items of lists."""
        return _Place(self.column, self.fill, self.fills, (holding, *self.above), f"{self.path}[]")

    def without_fill(self) -> "_Place":
        """The same place of what an empty list cannot replace: that stands for a null list, and not for what is in it."""
        return _Place(self.column, None, self.fills, self.above, self.path)

    def rows(self, items: Mask) -> Ints:
        """The rows of the column that hold one of these items: none if they are in no list, or in one that is null."""
        for holding in self.above:
            items = holding(items)
        return np.flatnonzero(items)

    def refuse(self, array: Any) -> None:
        """Refuse nulls for which there is no replacement.

        Raises:
          NullsError: a row holds one.
        """
        where = self.rows(_is_null(array))
        if len(where):
            raise NullsError.of(self.column, len(where), int(where[0]), str(array.type), self.path)


def _is_null(array: Any) -> Mask:
    found: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return found


def _to_columns(array: Any, place: _Place) -> Any:
    """A column, or a dict of them for a struct."""
    kind = array.type
    if place.above and isinstance(place.fill, tuple | list) and not nested(kind):
        place = place.without_fill()
    if _dtype_of(kind) is not None or is_text(kind):
        array = without_views(array)
        if array.null_count and place.fill is None and (missing := _missing(kind)) is not None:
            values = _numbers(array).copy()
            values[_is_null(array)] = missing
            return Dense(values)
        filled = _filled(array, place) if array.null_count else array
        return _strings(filled) if is_text(kind) else Dense(_numbers(filled))
    if isinstance(kind, pa.BaseExtensionType):
        shape = _tensor_shape(kind)
        return _to_columns(array.storage, place) if shape is None else _tensors(array, shape, place)
    if types.is_dictionary(kind):
        return _to_columns(take(with_offsets(array.dictionary), array.indices), place)
    if types.is_run_end_encoded(kind):  # what an extension type is stored as
        return _to_columns(with_offsets(array), place)
    if types.is_decimal(kind):  # NumPy has no type for them, and each float would be another number
        return _strings((_filled(array, place) if array.null_count else array).cast(pa.string()))
    if types.is_null(kind):
        return _to_columns(pa.nulls(len(array), pa.binary()), place)
    if types.is_interval(kind):
        return {part: _to_columns(values, place.field(part)) for part, values in _parts_of_intervals(array).items()}
    if types.is_struct(kind):
        if is_in_place(kind):
            value, valid = array.field(0), array.field(1).fill_null(False)  # a null in the place of a list that is one
            return Nullable(value=_to_columns(value, place), valid=_to_columns(valid, place))
        # In lists a null struct is no row, and NaN in each field would be one; elsewhere a struct without fields has none.
        if array.null_count and (place.above or not kind.num_fields) and not _fills(kind, place):
            place.refuse(array)
        # `flatten` makes each field of a null struct a null.
        return {
            field.name: _to_columns(part, place.field(field.name))
            for field, part in zip(_fields_of(kind, place.column), array.flatten(), strict=True)
        }
    if types.is_fixed_size_list(kind):
        return _fixed_lists(array, place)
    if is_list(kind) or types.is_map(kind):
        return _lists(array, place)
    raise UnsupportedTypeError(f"column {place.column!r} is of type {kind}")


_INTERVAL = np.dtype([("months", np.int32), ("days", np.int32), ("nanoseconds", np.int64)])
"""Arrow's interval of months, days and nanoseconds, as it is stored; none of them is a number of the others."""


def _parts_of_intervals(array: Any) -> dict[str, Any]:
    values = np.empty(0, _INTERVAL)
    if len(array):
        values = np.frombuffer(array.buffers()[1], _INTERVAL, len(array), array.offset * _INTERVAL.itemsize)
    mask = _is_null(array)
    return {part: pa.array(values[part], mask=mask) for part in _INTERVAL.names or ()}


def nested(kind: Any) -> bool:
    """Whether there are values inside of values."""
    return bool(types.is_nested(getattr(kind, "storage_type", kind)))


def has_missing(kind: Any) -> bool:
    """Whether NumPy has a value for nulls of this type: NaN, or NaT."""
    return _missing(kind) is not None


def all_missing(kind: Any) -> bool:
    """Whether NumPy has values for a null of this type: in the place of a null struct, one for each of its fields."""
    if types.is_struct(kind):
        return bool(kind.num_fields) and all(all_missing(field.type) for field in kind)
    return has_missing(kind)


def _fills(kind: Any, place: _Place) -> bool:
    """Whether something is put in the place of nulls of this type, or of a field of it."""
    if types.is_struct(kind):
        return any(_fills(field.type, place.field(field.name)) for field in kind)
    return place.fill is not None


def _missing(kind: Any) -> Any:
    """What NumPy has for a null of this type; None: nothing."""
    dtype = _dtype_of(kind)
    if dtype is None or dtype.kind not in "fmM":
        return None
    return np.nan if dtype.kind == "f" else np.array("NaT", dtype)


def replacement(column: str, fill: Any, kind: Any) -> Any:
    """What users put in the place of nulls as a pyarrow Scalar of the type of the column.

    Raises:
      FillError: it is of another type, or would be another number.
    """
    what = f"column {column!r} is of type {kind}, and {fill!r} is not"
    try:
        made = pa.scalar(fill, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:  # pyarrow's, of a value of users
        raise FillError(f"{what}: {error}") from None
    floats = types.is_floating(kind)
    became = made.as_py() if floats or isinstance(fill, float | np.floating) else fill
    if math.isinf(became) > math.isinf(fill) if floats else became != fill:
        raise FillError(f"{what}: it would become {became}")
    return made


def _filled(array: Any, place: _Place) -> Any:
    if place.fill is None:
        place.refuse(array)  # what is in no list may hold anything
        return array.fill_null(False) if types.is_boolean(array.type) else array
    return fill_nulls(array, replacement(place.column, place.fill, array.type))


def fill_nulls(array: Any, value: Any) -> Any:
    """An array with a Scalar in the place of its nulls. Arrow brings decimals that end before their point to another type."""
    return array.fill_null(value).cast(array.type)


def _numbers(array: Any) -> Array:
    """The values of an array; anything in the place of nulls."""
    kind = array.type
    dtype = _dtype_of(kind)
    assert dtype is not None
    if types.is_boolean(kind):
        return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    stored = np.dtype(f"i{kind.bit_width // 8}") if dtype.kind in "mM" else dtype
    buffer = array.buffers()[1]
    if not len(array) or buffer is None:
        return np.empty(0, dtype)
    raw = np.frombuffer(buffer, stored, len(array), array.offset * stored.itemsize)
    return raw.view(dtype) if stored.itemsize == dtype.itemsize else raw.astype(dtype)


def _offsets(array: Any, wide: bool) -> Ints:
    """The n + 1 offsets of an array of strings or lists."""
    stored = np.dtype(np.int64 if wide else np.int32)
    if not len(array):
        return np.zeros(1, np.int64)
    raw = np.frombuffer(array.buffers()[1], stored, len(array) + 1, array.offset * stored.itemsize)
    if wide:
        return raw
    out = empty(raw.shape, _INT64)
    np.copyto(out, raw)
    return out


def _sizes(offsets: Ints) -> Ints:
    """What lies between each of n + 1 offsets and the next, [n]."""
    return np.subtract(offsets[1:], offsets[:-1], out=empty((len(offsets) - 1,), _INT64))


def _strings(array: Any) -> Strings:
    kind = array.type
    buffer = array.buffers()[-1]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.empty(0, np.uint8)
    if types.is_fixed_size_binary(kind):
        starts = (array.offset + np.arange(len(array), dtype=np.int64)) * kind.byte_width
        return Strings(data, starts, np.full(len(array), kind.byte_width, np.int64))
    offsets = _offsets(array, types.is_large_string(kind) or types.is_large_binary(kind))
    return Strings(data, offsets[:-1], _sizes(offsets))


_Flat = Dense | Strings | Ragged | RaggedBatches


def _of_each(values: Any, place: _Place, kind: Any, lists: Callable[[_Flat], Column]) -> Any:
    """Lists of the values of an array: of one shape, lists themselves, or structs, of which each field becomes lists."""
    # No function within this one: one that calls itself holds the memory of the array until garbage is collected.
    if isinstance(values, dict):
        return type(values)({name: _of_each(part, place, kind, lists) for name, part in values.items()})
    if not isinstance(values, Dense | Strings | Ragged | RaggedBatches):
        raise UnsupportedTypeError(f"column {place.column!r} holds lists of {kind}")
    return lists(values)


def _lists(array: Any, place: _Place) -> Any:
    kind = array.type
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        starts, sizes = _view_spans(array)
        values = array.values
    else:
        offsets = _offsets(array, types.is_large_list(kind))
        first, last = int(offsets[0]), int(offsets[-1])
        sizes = _sizes(offsets)
        starts = offsets[:-1] - first if first else offsets[:-1]
        values = array.values.slice(first, last - first)
    if types.is_map(kind):
        names = [field.name for field in fields_of_map(kind)]
        values = pa.StructArray.from_arrays([values.field(0), values.field(1)], names)
    if array.null_count:
        if place.fill is None:
            place.refuse(array)
        sizes[_is_null(array)] = 0  # a null list is an empty one, whatever its offsets say

    def holding(items: Mask) -> Mask:
        before = np.append(0, np.cumsum(items))
        return before[starts + sizes] > before[starts]  # type: ignore[no-any-return]

    items = _to_columns(values, place.items(holding))
    return _of_each(items, place, values.type, lambda flat: _spans(flat, starts, sizes))


def _spans(flat: _Flat, starts: Ints, sizes: Ints) -> Ragged | RaggedBatches:
    """Lists as spans of their values; as ragged tensors where these are lists."""
    if isinstance(flat, Ragged | RaggedBatches):
        return RaggedBatches(flat, starts, sizes)
    return Ragged(flat, starts, sizes)


def _view_spans(array: Any) -> tuple[Ints, Ints]:
    """Where each list of an array of list views begins in its values, and how long it is."""
    starts, sizes = [each.to_numpy().astype(np.int64) for each in (array.offsets, array.sizes)]
    if array.null_count:
        starts[_is_null(array)] = 0
    return starts, sizes


def _tensors(array: Any, shape: tuple[int, ...], place: _Place) -> Dense | Strings:
    """Arrays of one shape, kept as lists of their values or as lists of lists."""
    values, n = array.storage, len(array)

    def holding(items: Mask) -> Mask:
        return np.asarray(items.reshape(n, -1).any(axis=1), np.bool_)

    odd = UnsupportedTypeError(f"column {place.column!r} of type {array.type} holds arrays of other shapes")
    while is_list(values.type) or types.is_fixed_size_list(values.type):
        if n and len(values) % n:
            raise odd
        if values.null_count:
            place.items(holding).refuse(values)
        values = values.flatten()
    full = (n, *shape)
    if len(values) != math.prod(full):
        raise odd
    flat = _to_columns(values, place.items(holding))
    if not isinstance(flat, Dense | Strings) or len(flat) != math.prod(full):
        raise odd
    return flat.reshape(full)


def _fixed_lists(array: Any, place: _Place) -> Any:
    size, n = array.type.list_size, len(array)
    inner = array.values.slice(array.offset * size, n * size)
    if array.null_count:
        if place.fill is None:
            place.refuse(array)
        # The places below a null list hold anything; they become nulls, and those are filled, or refused.
        there = np.repeat(~_is_null(array), size)
        inner = take(with_offsets(inner), pa.array(np.arange(len(inner)), mask=~there))

    def holding(items: Mask) -> Mask:
        return np.asarray(items.reshape(n, size).any(axis=1), np.bool_)

    def lists(flat: _Flat) -> Column:
        if isinstance(flat, Dense | Strings):
            return flat.reshape((n, size, *flat.inner))
        return _spans(flat, np.arange(n, dtype=np.int64) * size, np.full(n, size, np.int64))

    return _of_each(_to_columns(inner, place.items(holding)), place, inner.type, lists)
