# SPDX-License-Identifier: Apache-2.0
"""Values of others where they come in: those of Arrow, pandas and polars become NumPy's, and nobody else can change them."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import lru_cache
from itertools import chain
from operator import is_
from sys import getrefcount
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Column, Dense, Strings
from distinput.columns.ragged import Arrays, Objects, Ragged, frozen_rows, ragged_tensor
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import later, library
from distinput.values.buffers import FEWEST_BYTES, calibrated, copy_of, is_pooled
from distinput.values.leaves import Array, array_of, is_ragged, without_padding
from distinput.values.nest import map_leaves, structure_of, too_deep

if TYPE_CHECKING:
    from distinput.arrow import arrow
else:
    arrow = later("distinput.arrow.arrow")  # few values are tables, and the types of Arrow are much to load

pa = library("pyarrow")

# ----------------------------------------------------------------------------
# Tables and Arrow arrays of other libraries: which values are such, and how they are read through pyarrow.
#
# pyarrow is imported when the first table is read; none of the other libraries is imported.
#
# Source: "The Arrow PyCapsule Interface" in Arrow's documentation.
# ----------------------------------------------------------------------------


_COLUMNS_OF = ("column_names", "columns", "schema")
"""A class with one of these attributes has columns; those of single arrays have none of them."""
_OWN_ARRAYS = ("__array_interface__", "__array_struct__")
"""A class with one of these has an array as NumPy has it, and shows it to Arrow in another form, as images of Pillow do."""
_EXPORTS = ("__arrow_c_stream__", "__arrow_c_array__")
"""Source: "The Arrow PyCapsule Interface" in Arrow's documentation."""


def is_table(value: Any) -> bool:
    """Whether a value has columns with names, recognized by what its class can do.

    That is what pandas, polars, pyarrow, DuckDB and Hugging Face call a DataFrame, a Table, a relation or a Dataset, and
    anything else with columns that exports Arrow's PyCapsules.

    >>> import pyarrow as pa
    >>> is_table(pa.table({"x": [1]})), is_table(pa.array([1])), is_table({"x": [1]})
    (True, False, False)
    """
    kind: Any = type(value)
    return _is_table_class(kind)


def is_stream(value: Any) -> bool:
    """Whether a value exports an Arrow stream whose rows are not in memory: a reader, a query, a dataset of this library."""
    kind = type(value)
    if not hasattr(kind, "__arrow_c_stream__") or library_of(kind) in ("pandas", "polars"):
        return False
    return not hasattr(kind, "num_rows") and not hasattr(kind, "num_chunks")


def is_arrow_array(value: Any) -> bool:
    """Whether a value is a single Arrow array, in one chunk or several, or exports one.

    A pandas Series whose values NumPy holds is not: NumPy reads it directly. An array of pandas that knows missing values is:
    NumPy would make others of them.
    """
    kind: Any = type(value)
    if not _is_array_class(kind):
        return False
    return not (library_of(kind) == "pandas" and _is_of_numpy(value.dtype))


def _is_of_numpy(dtype: Any) -> bool:
    """Whether NumPy makes an array of a column of pandas; of a sparse one, of which Arrow makes none, a dense one."""
    return (isinstance(dtype, np.dtype) and dtype.kind != "O") or type(dtype).__name__ == "SparseDtype"


@lru_cache(maxsize=1024)
def _is_table_class(kind: Any) -> bool:
    if getattr(kind, "nest_leaf", False):
        return False
    if not any(hasattr(kind, name) for name in _EXPORTS):
        return is_hugging_face(kind)
    return any(hasattr(kind, name) for name in _COLUMNS_OF)


@lru_cache(maxsize=1024)
def _is_array_class(kind: Any) -> bool:
    if library_of(kind) == "distinput" or any(hasattr(kind, name) for name in _OWN_ARRAYS):
        return False
    if library_of(kind) == "pandas" and hasattr(kind, "__arrow_array__"):
        return True
    return any(hasattr(kind, name) for name in _EXPORTS) and not _is_table_class(kind)


def library_of(kind: type) -> str:
    """The name of the library that a class is of."""
    return kind.__module__.partition(".")[0]


def is_hugging_face(kind: type) -> bool:
    """Whether a class is `datasets.Dataset`, which shows its columns but exports no capsule."""
    return hasattr(kind, "with_format") and hasattr(kind, "column_names") and hasattr(kind, "num_rows")


def arrow_array_of(value: Any) -> Any:
    """A value for which `is_arrow_array` is true as a pyarrow Array or ChunkedArray, without a copy.

    Raises:
      TypeError: Arrow has no type for its values.
    """
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value
    try:
        if library_of(type(value)) == "pandas":
            return pa.array(value, from_pandas=True)
        _check_objects({getattr(value, "name", ""): getattr(value, "dtype", None)})
        return pa.chunked_array(value) if hasattr(value, "__arrow_c_stream__") else pa.array(value)
    except (pa.ArrowException, ValueError) as error:
        raise TypeError(f"an array of {library_of(type(value))} that Arrow cannot hold: {error}") from error


def array_of_one(scalar: Any) -> Any:
    """A scalar of Arrow as an array of its type with this value alone."""
    while isinstance(scalar, pa.RunEndEncodedScalar):
        scalar = scalar.value
    return pa.array([scalar], scalar.type)


def table_of(value: Any) -> Any:
    """A table as a pyarrow Table; columns are not copied where both hold them the same way.

    The index of a pandas DataFrame is left out. Streams are read to their end.

    Raises:
      TypeError: Arrow has no type for the values of a column.
      ValueError: two columns have the same name.
    """
    if isinstance(value, pa.Table):
        table = value
    elif isinstance(value, pa.RecordBatch):
        table = pa.Table.from_batches([value])
    elif library_of(type(value)) == "pandas":
        return _of_pandas(value)
    elif is_hugging_face(type(value)):
        table = value.with_format("arrow")[:]
    else:
        _check_objects(getattr(value, "schema", None))
        table = pa.table(value)
    _check_names(table.column_names)
    return table


def _of_pandas(frame: Any) -> Any:
    """A DataFrame column by column: arrays of NumPy are taken as they are, so NaN stays NaN, and nothing is copied."""
    names = [str(name) for name in frame.columns]
    _check_names(names)
    arrays = []
    for place, name in enumerate(names):
        column = frame.iloc[:, place]
        plain = _is_of_numpy(column.dtype)
        try:
            arrays.append(pa.array(column.to_numpy()) if plain else pa.array(column, from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise TypeError(f"column {name!r} of a DataFrame cannot become an array: {error}") from error
    return pa.table([each if isinstance(each, pa.ChunkedArray) else pa.chunked_array([each]) for each in arrays], names)


def _check_objects(schema: Any) -> None:
    """Reject columns of Python objects in polars, which exports their addresses.

    Raises:
      TypeError: there is one.
    """
    if isinstance(schema, Mapping):
        for name, kind in schema.items():
            if str(kind) == "Object":
                raise TypeError(f"column {name!r} holds Python objects, for which Arrow has no type")


def _check_names(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"several columns have the same name; give each its own: {', '.join(names)}")


# ----------------------------------------------------------------------------
# Values of Arrow, pandas and polars become NumPy's where they come in: `adopt`, for whatever a user hands in.
#
# The border is here. `structure_of` knows nests of Python, and a table has columns, so it must be made a nest before.
# Results of functions pass `owned`, which adopts what it finds. A single array of Arrow, with its nulls, texts and lists,
# is read by `array_of_others`, also for `as_leaf`, which knows the name of that function and no more.
#
# pyarrow is imported when the first such value comes.
# ----------------------------------------------------------------------------


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
      InvalidArgumentError: the nest is too deep, or holds itself.

    >>> import pyarrow as pa
    >>> adopt({"ids": pa.array([1, 2]), "n": 3})
    {'ids': array([1, 2]), 'n': 3}
    """
    kind = type(value)
    if kind in _OWN or (kind is tuple and _OWN.issuperset(map(type, value))):  # nearly always
        return value
    try:
        return _adopted(value)
    except RecursionError:
        raise too_deep() from None
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
        each = _adopted if kind is tuple else _member
        items = [each(item) for item in value]
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
    read = table_of(table)
    try:
        columns = arrow.columns_of(arrow.one_batch(read), {})
    except (arrow.NullsError, arrow.UnsupportedTypeError) as error:
        raise TypeError(f"a table whose columns are not all arrays: {error}") from None
    return {name: _columns_as_arrays(column, name) for name, column in columns.items()}


def _columns_as_arrays(column: Any, name: str) -> Any:
    if isinstance(column, Mapping):
        return {key: _columns_as_arrays(inner, f"{name}.{key}") for key, inner in column.items()}
    return _whole(column)


def _of_array(value: Any) -> Any:
    array = arrow_array_of(value)
    try:
        column = arrow.to_column(array, "of the array")
    except (arrow.NullsError, arrow.UnsupportedTypeError) as error:
        named = "; give it in a table, as in pa.table({'rows': array})" if arrow.has_structs(array.type) else ""
        raise TypeError(f"{error}{named}") from None
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


# ----------------------------------------------------------------------------
# Values that nobody else can change.
#
# A function or a generator may fill one array, list or dict again and again and give it out each time. Elements wait in
# blocks, so what was given must be copied before the next call, unless its reference counts show that nobody else holds it.
# And what many elements or later passes look at (the user's own arrays, what a cache keeps) is handed out as read-only
# views.
# ----------------------------------------------------------------------------


_PLAIN = (np.generic, bool, int, float, complex, str, bytes, type(None))
_SIMPLE = frozenset((*np.sctypeDict.values(), bool, int, float, complex, str, bytes, type(None))) - {np.void}
"""Without records of NumPy, which are views of memory that can be written to."""

_ndarray = np.ndarray


Noted = Callable[[Any, Any], None]
"""Called with something that can be changed and is no array of NumPy, and its copy, or an array over its memory."""


def copying(copy: Callable[[Array], Array], noted: Noted | None = None) -> Callable[[Any], Any]:
    """As `owned`, with another way to copy an array, and told of all else that is copied."""

    def owned(value: Any) -> Any:
        kind = type(value)
        if kind in _SIMPLE:
            return value
        if kind is _ndarray:
            if getrefcount(value) <= _ALONE and (value.base is None or _is_base_alone(value)):
                return value
            return copy(value)
        if kind is not tuple and kind is not list and kind is not dict:
            return _deep_copy(value, copy, noted)
        held = getrefcount(value) > _ALONE
        for item in value.values() if kind is dict else value:
            inner = type(item)
            if inner is _ndarray:
                if held or getrefcount(item) > _AMONG_ITEMS or (item.base is not None and not _is_base_alone(item)):
                    break
            elif inner not in _SIMPLE:
                break
        else:
            if not held or kind is tuple:
                return value
            made = kind(value)
            if noted is not None:
                noted(value, made)
            return made
        return _deep_copy(value, copy, noted)

    return owned


def kept(value: Any) -> Any:
    """A copy of everything in a value that can be changed, to be looked at later.

    >>> array = np.zeros(2)
    >>> before = kept({"total": array})
    >>> array += 1
    >>> before["total"]
    array([0., 0.])
    """
    return _copy_of(value)


_LENT_BYTES = 1 << 15
"""Arrays of this size and larger are looked at again when they come again."""


def lent(block: Block) -> Block:
    """The same elements; arrays that somebody else holds, and does not change, are handed out as read-only views.

    Only elements that are alone in a block, and items of several lengths, have not been copied side by side.
    """
    if block.size == 1:
        return frozen(block)
    columns = block.columnar().columns
    if not any(isinstance(column, Objects | Arrays) for column in columns):
        return block
    kept = [_frozen_column(column) if isinstance(column, Objects | Arrays) else column for column in columns]
    return ColumnBlock(block.structure, kept, block.size)


_LOOKED_AT = 64
"""Values of an array that are looked at, to see whether it was changed."""


def look_of(array: Array) -> bytes:
    """A few values of an array at equal distances, by which most changes are noticed.

    >>> array = np.zeros(1000)
    >>> before = look_of(array)
    >>> array[:] = 1
    >>> look_of(array) == before
    False
    """
    flat: Any = array.reshape(-1) if array.flags.c_contiguous else array.flat
    return bytes(without_padding(np.asarray(flat[:: max(1, array.size // _LOOKED_AT)])).tobytes())


class Promise:
    """Lets through what a user's function gives, where the user says that it does not change an array after that.

    Most false promises are noticed: a large array that comes again in the same memory must look as it did, unless that memory
    was freed meanwhile. A few of its values are compared, at equal distances.

    Args:
      who: begins the message.
    """

    _SEEN = 256

    def __init__(self, who: str) -> None:
        self._who = who
        self._seen: OrderedDict[tuple[int, int], tuple[Callable[[], Any] | None, bytes]] = OrderedDict()

    def __call__(self, value: Any) -> Any:
        """The value itself, with arrays and tables of Arrow as NumPy's.

        Raises:
          InvalidArgumentError: an array was changed after it had been given.
        """
        kind = type(value)
        items = value.values() if kind is dict else value if kind is tuple or kind is list else (value,)
        foreign = False
        for item in items:
            inner = type(item)
            if inner is _ndarray:
                if item.nbytes >= _LENT_BYTES:
                    self._check(item)
            elif inner not in _SIMPLE:
                foreign = True
                for leaf in structure_of(item, lists=True).flatten(item):
                    self._check(leaf)
        return adopt(value) if foreign else value

    def _check(self, leaf: Any) -> None:
        if not isinstance(leaf, np.ndarray) or leaf.nbytes < _LENT_BYTES or leaf.dtype.hasobject:
            return
        owner = _owner_of(leaf)
        if type(owner) is bytes:
            return
        place = leaf.__array_interface__["data"][0], leaf.nbytes
        look = look_of(leaf)
        known, before = self._seen.setdefault(place, (_reference_to(owner), look))
        if known is not None and known() is not owner:
            self._seen[place] = _reference_to(owner), look
        elif before != look:
            raise InvalidArgumentError(
                f"{self._who} gave an array that it has changed since it gave it before; with copy=False an array must not "
                "change any more once it was given: leave out copy=False, or make a new array each time"
            )
        if len(self._seen) > self._SEEN:
            self._seen.popitem(last=False)


def _owner_of(array: Array) -> Any:
    """What lives as long as the memory of an array belongs to it."""
    owner: Any = array
    while True:
        below = owner.obj if type(owner) is memoryview else owner.base if isinstance(owner, np.ndarray) else None
        if below is None or (isinstance(below, np.ndarray) and is_pooled(below)):  # which outlives what it is lent to
            storage = getattr(owner, "untyped_storage", None)  # of PyTorch, which makes a tensor anew for each array
            return owner if storage is None else storage()
        owner = below


def _reference_to(owner: Any) -> Callable[[], Any] | None:
    """What gives the owner while it lives; None for a `bytearray` and the like, of which that cannot be known."""
    try:
        return ref(owner)
    except TypeError:
        return None


def is_plain(value: Any) -> bool:
    """True for numbers and text, which nobody can change."""
    items = value if type(value) is tuple else (value,)
    return all(isinstance(item, _PLAIN) and not isinstance(item, np.void) for item in items)


def _is_base_alone(array: Array) -> bool:
    """Whether the memory of an array that nobody else holds is held by nobody else either."""
    base: Any = array.base
    if base is None:
        return True
    if type(base) is np.ndarray:
        if base.base is None:
            return getrefcount(base) <= _OF_VIEW
        # Memory of ours, which images are decoded into: the pool holds it beside the view.
        return getrefcount(base) <= _OF_VIEW + 1 and is_pooled(base)
    return type(base) is bytes


def fresh_copy(array: Array) -> Array:
    """Fresh memory is expensive, so that of large copies is used again."""
    return array.copy() if array.nbytes < FEWEST_BYTES or type(array) is not np.ndarray else copy_of(array)


def _deep_copy(value: Any, copy: Callable[[Array], Array], noted: Noted | None) -> Any:
    try:
        return _copy_of(value, copy, noted)
    except RecursionError:
        raise too_deep() from None


def _copy_of(item: Any, copy: Callable[[Array], Array] = fresh_copy, noted: Noted | None = None) -> Any:
    kind = type(item)
    if kind in _SIMPLE:
        return item
    if kind is _ndarray:
        return copy(item)
    if kind is tuple:
        return tuple([_copy_of(value, copy, noted) for value in item])
    made: Any
    if kind is list:  # of which most hold numbers and text
        made = [value if type(value) in _SIMPLE else _copy_of(value, copy, noted) for value in item]
    elif kind is dict:
        made = {key: _copy_of(value, copy, noted) for key, value in item.items()}
    else:
        made = map_leaves(lambda leaf: _copied(leaf, copy, noted), item, lists=False)
    if noted is not None and not isinstance(made, np.ndarray):
        noted(item, made)
    return made


def _copied(leaf: Any, copy: Callable[[Array], Array], noted: Noted | None) -> Any:
    if isinstance(leaf, np.ndarray):
        return copy(leaf)
    if is_ragged(leaf) or isinstance(leaf, np.void):
        return leaf.copy()
    if isinstance(leaf, _PLAIN) or getattr(leaf, "nest_leaf", False):
        return leaf
    if isinstance(leaf, list):  # of a class of the user's own
        items = [_copy_of(value, copy, noted) for value in leaf]
        if noted is not None:
            noted(leaf, items)
        return items
    adopted = adopt(leaf)
    if adopted is not leaf:  # a table, or an array of Arrow, which may own the memory
        if noted is not None:
            noted(leaf, adopted)
        return _copy_of(adopted, copy, noted)
    found = array_of(leaf)  # of another library, or a buffer, which may own the memory
    if isinstance(found, np.ndarray):
        if noted is not None:
            noted(leaf, found)
        return copy(found)
    return found.copy() if is_ragged(found) else leaf if found is None else found


owned = copying(fresh_copy)
"""What a function returned, with copies of what somebody else may hold and change; to be called through `map`.

Only there do the reference counts match those measured at import: `map(owned, map(function, elements))`.
"""


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
        flat: Any = _frozen_column(column.flat)
        return Ragged(flat, column.starts, column.sizes, column.loose)
    if column.ragged_rank is not None:
        return frozen_rows(column, _frozen_column)
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
