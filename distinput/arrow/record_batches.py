# SPDX-License-Identifier: Apache-2.0
"""Columns as Arrow arrays, and elements as rows of Arrow tables."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from distinput.columns.block import Block
from distinput.columns.column import Column, Dense, Strings, array_column
from distinput.columns.python_values import as_decimals, as_str, in_lists
from distinput.columns.ragged import Ragged, RaggedBatches
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import library
from distinput.values.leaves import STRING, counts_several, is_ragged, shape_of
from distinput.values.nest import Structure
from distinput.values.nullable import is_nullable
from distinput.values.ragged_rows import splits_of
from distinput.values.ragged_tensor import arrow_rows, fixed_size_lists
from distinput.values.spec import LeafSpec, RaggedTensorSpec, Spec, TensorSpec

decimal = library("decimal")  # few tables have decimals
pa = library("pyarrow")
compute = library("pyarrow.compute")
types = library("pyarrow.types")

# ----------------------------------------------------------------------------
# Columns as Arrow arrays; without a copy wherever both keep their values the same way. The way back is in `arrow`.
#
# pyarrow is imported when the first function is called.
# ----------------------------------------------------------------------------


def to_arrow(block: Block) -> Any:
    """A pyarrow RecordBatch with a column for each leaf, named by its key, or by its path where it lies deeper.

    >>> from distinput.values.nest import structure_of
    >>> elements = [{"x": 1, "y": b"a"}, {"x": 2, "y": b""}]
    >>> to_arrow(Block.of_elements(structure_of(elements[0]), elements)).to_pydict()
    {'x': [1, 2], 'y': [b'a', b'']}
    """
    structure = block.structure
    names = [str(key) for key in structure.keys]
    if structure.is_leaf:
        names = ["value"]
    elif len(names) != structure.num_leaves:
        names = list(structure.paths)
    return pa.RecordBatch.from_arrays([column_to_arrow(column) for column in block.columnar().columns], names)


def column_to_arrow(column: Column) -> Any:
    """A column as an Arrow array; rows of more than one dimension become fixed-size lists."""
    column = column.materialize()
    if isinstance(column, Dense):
        return arrow_rows(column.array)
    if isinstance(column, Strings):
        return fixed_size_lists(_binary(column), column.starts.shape)
    if isinstance(column, Ragged | RaggedBatches):
        return pa.LargeListArray.from_arrays(pa.array(splits_of(column.sizes)), column_to_arrow(column.unstack()))
    return pa.array([item.tolist() if isinstance(item, np.ndarray) else item for item in column.values()])


def _binary(column: Strings) -> Any:
    starts, sizes = column.starts.reshape(-1), column.sizes.reshape(-1)
    if len(starts) and (starts[1:] == (starts + sizes)[:-1]).all():
        offsets = np.append(starts, starts[-1] + sizes[-1])
        data = np.ascontiguousarray(column.data[offsets[0] : offsets[-1]])
        if offsets[0]:
            offsets -= offsets[0]  # from 0 on: with others `if_else` of pyarrow 17 makes invalid arrays
    else:
        data, offsets = column.side_by_side()
    return pa.Array.from_buffers(pa.large_binary(), len(starts), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


# ----------------------------------------------------------------------------
# Elements as rows of Arrow tables: the schema that a spec stands for, and blocks as record batches of this schema.
#
# The schema depends on the spec alone, so all batches of a dataset have the same. A dict, a namedtuple or a dataclass
# becomes columns with the names of its items, a tuple columns "0", "1", ..., a bare leaf the column "value"; what is nested
# below becomes a struct. Dimensions of known size become fixed-size lists, other dimensions lists. Byte strings are binary
# unless the caller says that they are text. NaN stays NaN, and NaT becomes null, for which Arrow has no other value. A
# `Nullable` becomes its value with nulls where the mark says so; the schema keeps the paths of those. What `as_rows` makes a
# list of dicts of becomes a list of structs.
# `arrow.arrow` is the way back.
#
# pyarrow is imported when the first function is called.
# ----------------------------------------------------------------------------


_NULLS = b"distinput.nulls"
"""What a schema keeps under this name: the paths of `arrow.validity` at which there may be nulls, on lines."""


def nulls_of(schema: Any) -> list[str]:
    """The paths at which there may be nulls, as a schema of our own keeps them."""
    return ((schema.metadata or {}).get(_NULLS) or b"").decode().splitlines()


Text = bool | Collection[str]
"""Columns whose byte strings are UTF-8: all of them, none, or those with these names."""


def arrow_schema(spec: Spec, text: Text = False, as_made: bool = False) -> Any:
    """The pyarrow Schema of a table with an element in each row.

    Args:
      spec: of the elements.
      text: columns that become strings instead of binary.
      as_made: whether text is a string, too, where `as_text` has made it one, and `DIGITS` where `as_decimal` has made numbers.

    Raises:
      InvalidArgumentError: a leaf has no Arrow type, two columns would have the same name, or `text` names no column.

    >>> from distinput.values.spec import Spec
    >>> print(arrow_schema(Spec.of({"x": TensorSpec([None], "int64"), "t": TensorSpec([], object)}), text=["t"]))
    x: large_list<item: int64>
      child 0, item: int64
    t: large_string
    """
    names, children = _columns(spec.structure)
    wanted = _text(text, names)
    leaves = iter(spec.leaves)
    paths: list[str] = []
    by_name = {}
    for name, child in zip(names, children, strict=True):  # in the order of the leaves
        by_name[name] = _type_of(child, leaves, name, name in wanted or (None if as_made else False), paths)
    schema = pa.schema([(name, by_name[name]) for name in _in_order(spec.structure, names)])
    return schema.with_metadata({_NULLS: "\n".join(paths)}) if paths else schema


DIGITS = "string"
"""The type of the digits of `as_decimal`, which nothing else has: other text is `large_string`."""


def with_decimals(table: Any, who: str) -> Any:
    """The table with decimals in the place of digits, at the least precision and scale that hold all of a column.

    Raises:
      InvalidArgumentError: a value is no number, or none that Arrow's decimals hold.
    """
    for place, field in enumerate(table.schema):
        try:
            kind = _decimal_type(field.type, table[field.name].chunks)
        except (pa.ArrowException, decimal.InvalidOperation) as error:
            raise InvalidArgumentError(
                f"{who}: column {field.name!r} cannot become decimals: {error}; leave it as text, without as_decimal"
            ) from error
        if kind != field.type:
            table = table.set_column(place, field.with_type(kind), table[field.name].cast(kind))
    return table


def _decimal_type(kind: Any, arrays: Sequence[Any]) -> Any:
    """A type with decimals in the place of digits, which holds these arrays."""
    if types.is_string(kind):
        numbers = [decimal.Decimal(text) for array in arrays for text in array.to_pylist() if text is not None]
        if (endless := next((each for each in numbers if not each.is_finite()), None)) is not None:
            raise decimal.InvalidOperation(f"{endless} has no digits")
        return pa.array(numbers or [decimal.Decimal(0)]).type
    if types.is_struct(kind):
        return pa.struct(
            [each.with_type(_decimal_type(each.type, [a.field(i) for a in arrays])) for i, each in enumerate(kind)]
        )
    if types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = kind.value_field.with_type(_decimal_type(kind.value_type, [array.flatten() for array in arrays]))
        return pa.large_list(inner) if types.is_large_list(kind) else pa.list_(inner, kind.list_size)
    return kind


def record_batch(block: Block, schema: Any) -> Any:
    """A block as a pyarrow RecordBatch of the schema of its spec.

    Raises:
      InvalidArgumentError: byte strings of a column of text are not UTF-8, or values do not fit the spec.
    """
    names, children = _columns(block.structure)
    leaves = iter(block.materialize().columns)
    by_name = {
        name: _array_of(child, leaves, schema.field(name).type, name, block.size)
        for name, child in zip(names, children, strict=True)
    }
    return pa.RecordBatch.from_arrays([by_name[name] for name in schema.names], schema=schema)


def _columns(structure: Structure) -> tuple[list[str], Sequence[Structure]]:
    """The names of the columns of an element, and what each of them holds, in the order of the leaves."""
    if structure.is_leaf or is_nullable(structure):
        return ["value"], [structure]
    names, children = _fields(structure, "the element")
    if not names:
        raise InvalidArgumentError("to_arrow: elements without a component have no columns")
    return names, children


def _fields(structure: Structure, where: str) -> tuple[list[str], list[Structure]]:
    kept = [(str(key), child) for key, child in structure.members if child.kind != "none"]
    names = [name for name, _ in kept]
    if len(set(names)) != len(names):
        raise InvalidArgumentError(f"to_arrow: several items of {where} would have the same name: {', '.join(names)}")
    return names, [child for _, child in kept]


def _in_order(structure: Structure, names: Collection[str]) -> list[str]:
    """Names of columns as the items of a dict are ordered, which are flattened in another order."""
    order = [str(key) for key in structure.order]
    return [name for name in order if name in names] if order else list(names)


def _text(text: Text, names: Sequence[str]) -> Collection[str]:
    if isinstance(text, bool):
        return names if text else ()
    if isinstance(text, str):
        raise InvalidArgumentError(f"to_arrow: text must be True, False or a list of names, got {text!r}")
    for name in text:
        if name not in names:
            raise InvalidArgumentError(
                f"to_arrow: text: there is no column {name!r}; the columns are {', '.join(names)}"
            )
    return text


def _type_of(structure: Structure, leaves: Any, name: str, text: bool | None, paths: list[str]) -> Any:
    """The type of a column or a field, with rows where `as_rows` makes them; the paths of its nulls are added to `paths`."""
    inside: list[str] = []
    kind = _kept_type(structure, leaves, name, text, inside)
    if structure.is_rows:
        rows: Any = structure.mapping
        form = in_lists(rows.form, _depth(kind) - rows.rank)
        with suppress(_NoRowsError):
            kind, inside = _rows_type(kind, form), _rows_paths(inside, name, form)
    paths += inside
    return kind


def _kept_type(structure: Structure, leaves: Any, name: str, text: bool | None, paths: list[str]) -> Any:
    """The type of a column or a field; the paths at which it may hold nulls are added to `paths`.

    Byte strings are text if `text` is True, and if it is None where elements have `str` or decimals in their place.
    """
    if structure.is_leaf:
        if text is None and structure.mapping is as_decimals:
            return _leaf_type(next(leaves), name, True, DIGITS)
        return _leaf_type(next(leaves), name, structure.mapping is as_str if text is None else text)
    names, children = _fields(structure, f"column {name!r}")
    told = is_nullable(structure)
    inside: list[str] = []
    by_name = {
        key: _type_of(child, leaves, name if told else f"{name}.{key}", text, inside)
        for key, child in zip(names, children, strict=True)
    }
    if told:
        _check_told(by_name, name)
    if told and (made := _told_type(by_name["value"], by_name["valid"], name, inside)) is not None:
        kind, paths[len(paths) :] = made
        return kind
    paths += inside
    return pa.struct([(key, by_name[key]) for key in _in_order(structure, names)])


def _leaf_type(leaf: LeafSpec, name: str, text: bool, digits: str = "") -> Any:
    if not isinstance(leaf, TensorSpec):
        raise InvalidArgumentError(f"to_arrow: column {name!r} is a dataset; flat_map or zip it first")
    if leaf.shape is None:
        raise InvalidArgumentError(
            f"to_arrow: the number of dimensions of column {name!r} is unknown; give map an output_signature, or ensure it"
        )
    kind = pa.type_for_alias(digits) if digits else _value_type(leaf.dtype, name, text)
    ragged = leaf.ragged_rank + 1 if isinstance(leaf, RaggedTensorSpec) and leaf.ragged_rank else 0
    for axis, size in reversed(list(enumerate(leaf.shape))):
        # Arrow cannot tell how many lists without values there are, if their size is fixed.
        kind = pa.large_list(kind) if not size or axis < ragged else pa.list_(kind, size)
    return kind


def _check_told(by_name: dict[str, Any], name: str) -> None:
    """Refuse a `Nullable` that says nothing: whose value is None, or whose mark is no truth value."""
    kind: Any = by_name.get("valid")
    while _is_list(kind):
        kind = kind.value_type
    if "value" not in by_name:
        raise InvalidArgumentError(
            f"to_arrow: column {name!r} is a Nullable whose value is None; give a value of the type of the others, such as 0"
        )
    if kind is None or not types.is_boolean(kind):
        raise InvalidArgumentError(
            f"to_arrow: column {name!r} is a Nullable whose mark is {kind}; `valid` must be truth values, such as bool(x)"
        )


def _told_type(value: Any, valid: Any, name: str, paths: list[str]) -> tuple[Any, list[str]] | None:
    """The type of values that a mark of this type is about, and the paths of nulls with it; None: a struct keeps both.

    A mark of items makes rows of a struct of lists, which alone may be null one by one.
    """
    if types.is_boolean(valid):
        return value, [*paths, name]
    if types.is_struct(value):
        form = ("lists", _plain_form(value))
        try:
            value, paths = _rows_type(value, form), _rows_paths(paths, name, form)
        except _NoRowsError:
            return None
    if not (_is_list(value) and _is_list(valid)):
        return None
    made = _told_type(value.value_type, valid.value_type, name, paths)
    if made is None:
        return None
    kind, paths = made
    return _list_like(value, kind), [*paths[:-1], paths[-1] + "[]"]


def _lists_type(kind: Any, structure: Structure) -> Any:
    """The struct of lists of which `_told_type` has made this type, where the structure is no leaf."""
    if not _is_list(kind):
        return kind
    inner = _lists_type(kind.value_type, structure)
    children = dict(zip(*_fields(structure, ""), strict=True))
    fields = []
    for field in inner:
        child, lists = children[field.name], _list_like(kind, field.type)
        told = is_nullable(child) and (not _is_both(field.type) or {"value", "valid"} == {*child.children[1].keys})
        # A struct keeps what no mark is about, and may itself have fields of these names.
        whole = child.is_leaf or told or _rows_in(child, lists) is not None
        fields.append((field.name, lists if whole else _lists_type(lists, child)))
    return pa.struct(fields)


def _is_both(kind: Any) -> bool:
    return bool(types.is_struct(kind)) and {field.name for field in kind} == {"value", "valid"}


def _value_type(dtype: np.dtype[Any], name: str, text: bool) -> Any:
    if dtype == STRING:
        return pa.large_string() if text else pa.large_binary()
    try:
        if counts_several(dtype):
            raise TypeError
        return pa.from_numpy_dtype(dtype.newbyteorder("="))
    except (pa.ArrowException, TypeError) as error:
        raise InvalidArgumentError(
            f"to_arrow: column {name!r} is of dtype {dtype}, for which Arrow has no type; cast it with map, or leave it out"
        ) from error


def _array_of(structure: Structure, leaves: Any, kind: Any, name: str, size: int) -> Any:
    if (made := _rows_in(structure, kind)) is None:
        return _kept_array(structure, leaves, kind, name, size)
    columns, form = made
    return _rows_array(_kept_array(structure, leaves, columns, name, size), form, name)


def _rows_in(structure: Structure, kind: Any) -> tuple[Any, Any] | None:
    """The type without the lists of structs that `as_rows` makes, and the form of these; None: it makes none of this type."""
    if structure.is_rows:
        rows: Any = structure.mapping
        form = in_lists(rows.form, _depth(kind) - rows.rank)
        with suppress(_NoRowsError):
            columns = _columns_type(kind, form)
            return (columns, form) if _rows_type(columns, form) == kind else None
    return None


def _kept_array(structure: Structure, leaves: Any, kind: Any, name: str, size: int) -> Any:
    if structure.is_leaf:
        return _leaf_array(next(leaves), kind, name)
    arrays: dict[str, Any] = {}
    names, children = _fields(structure, f"column {name!r}")
    if is_nullable(structure):
        mark, child = structure.children
        assert mark.is_leaf  # of a type that says of each value whether it is there
        marked = next(leaves)
        valid = column_to_arrow(marked)
        if types.is_boolean(valid.type) or not types.is_struct(kind):  # else a struct keeps both
            rows = not child.is_leaf and not is_nullable(child)
            inner = _lists_type(kind, child) if rows else kind
            return _with_nulls(_array_of(child, leaves, inner, name, size), valid, name)
        arrays["valid"] = _leaf_array(marked, kind.field("valid").type, name)
        names, children = ["value"], [child]
    for key, child in zip(names, children, strict=True):
        arrays[key] = _array_of(child, leaves, kind.field(key).type, f"{name}.{key}", size)
    if not arrays:
        return pa.array([{}] * size, kind)
    return pa.StructArray.from_arrays([arrays[field.name] for field in kind], fields=list(kind))


def _with_nulls(array: Any, valid: Any, name: str) -> Any:
    """The array with nulls where a mark of its values, or of the items of its lists, is false."""
    if types.is_boolean(valid.type):
        if valid.true_count == len(valid):
            return array
        return compute.if_else(valid, array, pa.scalar(None, array.type))
    if types.is_struct(array.type):
        array = _relisted(array, _plain_form(array.type), name)
    items = array.flatten()
    if len(array) and not array.value_lengths().cast("int64").equals(valid.value_lengths().cast("int64")):
        raise InvalidArgumentError(
            f"to_arrow: column {name!r}: the lists of its values and of its marks differ in length"
        )
    items = _with_nulls(items, valid.flatten(), name)
    if types.is_fixed_size_list(array.type):
        return pa.FixedSizeListArray.from_arrays(items, array.type.list_size)
    return pa.LargeListArray.from_arrays(compute.subtract(array.offsets, array.offsets[0]), items)


def _leaf_array(column: Column, kind: Any, name: str) -> Any:
    try:
        if isinstance(column, Dense | Strings | Ragged | RaggedBatches):
            array = column_to_arrow(column)
            if array.type == kind:
                return array
            # Of lists of no items, which have no values below them, Arrow casts none.
            return pa.array(array.to_pylist(), kind) if "[0]" in str(array.type) else array.cast(kind)
        parts = [_of_value(value, kind) for value in column.values()]
        return pa.concat_arrays(parts) if parts else pa.nulls(0, kind)
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(
            f"to_arrow: column {name!r} cannot become {kind}: {error}; byte strings that are not UTF-8 stay binary without "
            "text="
        ) from error


def _of_value(value: Any, kind: Any) -> Any:
    """An array of one row."""
    if is_ragged(value):
        inner = value.values
        rows = pa.LargeListArray.from_arrays(
            pa.array(value.row_splits),
            _of_value(inner, kind.value_type).flatten()
            if is_ragged(inner)
            else _leaf_array(array_column(inner), kind.value_type.value_type, ""),
        )
        return pa.LargeListArray.from_arrays(pa.array([0, len(rows)], pa.int64()), rows)
    if not shape_of(value):
        return pa.array([value if isinstance(value, bytes) else value.item()], kind)
    return _leaf_array(array_column(value[None]), kind, "")


# ----------------------------------------------------------------------------
# Lists of structs in the place of structs of lists, as `as_rows` makes lists of dicts of dicts of lists.
#
# A form says what is made of a part: it is that of `columns.python_values.RowDicts`. Both types have the same lists in the same
# order, around the leaves in the one and around the structs in the other.
# ----------------------------------------------------------------------------


class _NoRowsError(Exception):
    """A type is none of which rows can be made."""


def _rows_type(kind: Any, form: Any) -> Any:
    """The type with lists of structs.

    Raises:
      _NoRowsError: the lists of a struct cannot be equally long, or a struct holds values and marks that are no rows.
    """
    match form:
        case ("told", inner):
            made = _rows_type(kind, inner)
            if types.is_fixed_size_list(made) or (inner == ("leaf",) and types.is_struct(kind)):
                raise _NoRowsError
            return made
        case ("lists", inner):
            return _list_like(_outer(kind), _rows_type(_peeled_type(kind), inner))
        case ("dict", parts):
            return pa.struct([(field.name, _rows_type(field.type, part)) for field, part in _parts_of(kind, parts)])
    return kind


def _columns_type(kind: Any, form: Any, around: Sequence[Any] = ()) -> Any:
    """The type with structs of lists of which `_rows_type` has made a type.

    Args:
      kind: the type with lists of structs.
      form: what was made.
      around: the lists that are to be around the leaves, the outermost first.

    Raises:
      _NoRowsError: it is no such type.
    """
    match form:
        case ("told", inner):
            kind = _columns_type(kind, inner)
        case ("lists", inner):
            return _columns_type(_list(kind).value_type, inner, (*around, kind))
        case ("dict", parts):
            return pa.struct(
                [(field.name, _columns_type(field.type, part, around)) for field, part in _parts_of(kind, parts)]
            )
    for outer in reversed(around):
        kind = _list_like(outer, kind)
    return kind


def _plain_form(kind: Any) -> Any:
    """The form of what is in rows in which all structs of a struct are structs."""
    if not types.is_struct(kind):
        return ("leaf",)
    return ("dict", tuple([(field.name, _plain_form(field.type)) for field in kind]))


def _is_list(kind: Any) -> bool:
    """Whether a type is one of the lists that columns become."""
    return kind is not None and bool(types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _list_like(kind: Any, items: Any) -> Any:
    """The type of lists as another one, of other items."""
    return pa.list_(items, kind.list_size) if types.is_fixed_size_list(kind) else pa.large_list(items)


def _list(kind: Any) -> Any:
    if not _is_list(kind):
        raise _NoRowsError
    return kind


def _parts_of(kind: Any, parts: Any) -> Iterator[tuple[Any, Any]]:
    """The fields of a struct, and what is made of each."""
    forms = {str(name): part for name, part in parts}
    if not types.is_struct(kind) or not forms or {field.name for field in kind} != {*forms}:
        raise _NoRowsError
    return ((field, forms[field.name]) for field in kind)


def _outer(kind: Any) -> Any:
    """The outermost list around all leaves, of nothing."""
    if not types.is_struct(kind):
        return _list_like(_list(kind), pa.null())
    around = {_outer(field.type) for field in kind}
    if len(around) != 1:
        raise _NoRowsError
    return around.pop()


def _peeled_type(kind: Any) -> Any:
    """The type without the outermost list around each leaf."""
    if types.is_struct(kind):
        return pa.struct([(field.name, _peeled_type(field.type)) for field in kind])
    return kind.value_type


def _depth(kind: Any) -> int:
    """The number of lists around the first leaf."""
    if _is_list(kind):
        return 1 + _depth(kind.value_type)
    return _depth(kind.field(0).type) if types.is_struct(kind) and kind.num_fields else 0


def _rows_array(array: Any, form: Any, name: str) -> Any:
    """An array with lists of structs, of one of the type for which `_rows_type` made the type.

    Raises:
      InvalidArgumentError: the lists of a struct differ in length.
    """
    match form:
        case ("told", inner):
            return _rows_array(array, inner, name)
        case ("lists", inner):
            return _relisted(array, inner, name)
        case ("dict", parts):
            forms = {str(key): part for key, part in parts}
            fields = [
                _rows_array(part, forms[field.name], f"{name}.{field.name}")
                for field, part in zip(array.type, array.flatten(), strict=True)
            ]
            names = [field.name for field in array.type]
            return pa.StructArray.from_arrays(fields, names, mask=array.is_null() if array.null_count else None)
    return array


def _rows_paths(paths: Sequence[str], name: str, form: Any) -> list[str]:
    """The paths of nulls in the type of `_rows_type`: lists that are around structs are left out of them."""
    levels: dict[str, int] = {}

    def walk(form: Any, at: str, level: int) -> None:
        levels.setdefault(at, level)
        match form:
            case ("told", inner):  # a mark has made rows of what is around its structs
                walk(inner, at, level if inner == ("leaf",) else 0)
            case ("lists", inner):
                walk(inner, at, level + 1)
            case ("dict", parts):
                for key, part in parts:
                    walk(part, f"{at}.{key}", level)

    walk(form, name, 0)
    made = []
    for path in paths:
        # Names may end with brackets, too.
        places = [at for at in levels if path.startswith(at) and not path[len(at) :].replace("[]", "")]
        place = max(places, key=len, default=path)
        made.append(path[: max(len(place), len(path) - 2 * levels.get(place, 0))])
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
    items = _rows_array(_peeled(array), form, name)
    outer = next(_leaves(array)).type
    if types.is_fixed_size_list(outer):
        return pa.FixedSizeListArray.from_arrays(items, outer.list_size)
    offsets = np.append(0, np.cumsum(first.to_numpy(zero_copy_only=False)))
    mask = array.is_null() if array.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), items, mask=mask)
