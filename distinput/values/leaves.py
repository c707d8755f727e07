# SPDX-License-Identifier: Apache-2.0
"""Leaf values: what users hand in becomes a NumPy array, a NumPy scalar or bytes; and shapes, as specs tell them."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, time, timedelta
from enum import Enum
from functools import cache
from importlib import import_module
from math import prod
from numbers import Number
from os import PathLike
from typing import Any, NoReturn, Self, SupportsIndex, overload

import numpy as np

from distinput.errors import InvalidArgumentError

# ----------------------------------------------------------------------------
# Shapes as specs tell them: tuples, with what `tf.TensorShape` knows besides.
# ----------------------------------------------------------------------------


Dims = tuple[int | None, ...]
"""Sizes, None for one that is not known."""


class TensorShape(Dims):
    """The sizes of an array's dimensions, None for one that may vary; the counterpart of `tf.TensorShape`.

    It is a tuple, and equals lists as well. `TensorShape(None)` is the shape of which not even the rank is known; it has
    no sizes to look at. `TensorSpec.shape` is None in its place.

    Args:
      dims: the sizes, a number for a shape of one dimension, or None.

    Raises:
      ValueError: a size is negative.

    >>> import distinput as di
    >>> shape = di.data.Dataset.from_tensors([[1, 2, 3]]).batch(4).element_spec.shape
    >>> shape.as_list(), shape == [None, 1, 3], shape[1:].num_elements(), shape.rank
    ([None, 1, 3], True, 3, 3)

    Source: `tf.TensorShape`.
    """

    __slots__ = ()

    def __new__(cls, dims: Iterable[int | None] | int | None) -> Self:
        if dims is None or dims is _UNKNOWN:
            return _UNKNOWN  # type: ignore[return-value]
        if isinstance(dims, str | bytes):
            raise TypeError(
                f"TensorShape: a shape must be a list of sizes, got {dims!r}; the dtype comes after the shape"
            )
        # Arrays of one size for each dimension have the method of an integer too. To ask for the protocol takes 20 us.
        one = isinstance(dims, int) or (hasattr(dims, "__index__") and not getattr(dims, "shape", ()))
        sizes: Any = (dims,) if one else dims
        made = tuple.__new__(cls, [None if d is None else int(d) for d in sizes])
        if any(d is not None and d < 0 for d in made):
            raise ValueError(f"TensorShape: a size must be at least 0, or None, got {list(made)}")
        return made

    @property
    def rank(self) -> int | None:
        """How many dimensions there are; None where that is not known."""
        return len(self)

    @property
    def ndims(self) -> int | None:
        """`rank`, under its older name."""
        return self.rank

    @property
    def dims(self) -> list[int | None] | None:
        """The sizes as a list; None where the rank is not known."""
        return None if self.rank is None else list(self)

    def as_list(self) -> list[int | None]:
        """The sizes as a list.

        Raises:
          ValueError: the rank is not known.
        """
        return list(self)

    def num_elements(self) -> int | None:
        """How many numbers an array of this shape has; None where a size is not known."""
        return prod(self) if self.is_fully_defined() else None  # type: ignore[arg-type]

    def is_fully_defined(self) -> bool:
        """Whether all sizes are known."""
        return self.rank is not None and None not in self

    def is_compatible_with(self, other: Any) -> bool:
        """Whether an array could have this shape and the other one."""
        theirs = as_shape(other)
        if self.rank is None or theirs.rank is None:
            return True
        return len(self) == len(theirs) and all(
            a is None or b is None or a == b for a, b in zip(self, theirs, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Refuse a shape that no array can have besides this one.

        Raises:
          ValueError: the two are not compatible.
        """
        if not self.is_compatible_with(other):
            raise ValueError(f"the shapes {self} and {as_shape(other)} are not compatible")

    def merge_with(self, other: Any) -> "TensorShape":
        """The shape of an array that has both shapes: a size is known if one of them knows it.

        Raises:
          ValueError: the two are not compatible.
        """
        theirs = as_shape(other)
        if self.rank is None or theirs.rank is None:
            return theirs if self.rank is None else self
        self.assert_is_compatible_with(theirs)
        return TensorShape([b if a is None else a for a, b in zip(self, theirs, strict=True)])

    def most_specific_compatible_shape(self, other: Any) -> "TensorShape":
        """The shape that both fit, None where they differ."""
        theirs = as_shape(other)
        if self.rank is None or theirs.rank is None:
            return _UNKNOWN
        if len(self) != len(theirs):
            return _UNKNOWN
        return TensorShape([a if a == b else None for a, b in zip(self, theirs, strict=True)])

    def concatenate(self, other: Any) -> "TensorShape":
        """The dimensions of this shape, then those of the other."""
        theirs = as_shape(other)
        if self.rank is None or theirs.rank is None:
            return _UNKNOWN
        return TensorShape([*self, *theirs])

    def with_rank(self, rank: int) -> "TensorShape":
        """This shape, which must have so many dimensions.

        Raises:
          ValueError: it has another number.
        """
        if self.rank is not None and self.rank != rank:
            raise ValueError(f"the shape {self} must have rank {rank}")
        return TensorShape([None] * rank) if self.rank is None else self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            return list(self) == other
        return tuple.__eq__(self, other) is True and not isinstance(other, _Unknown)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    @overload
    def __getitem__(self, key: SupportsIndex) -> int | None: ...
    @overload
    def __getitem__(self, key: slice) -> "TensorShape": ...
    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return tuple.__new__(TensorShape, found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> "TensorShape":
        return self.concatenate(other)

    def __radd__(self, other: Any) -> "TensorShape":
        return as_shape(other).concatenate(self)

    def __str__(self) -> str:
        return tuple.__repr__(self)

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"


class _Unknown(TensorShape):
    """The shape of unknown rank."""

    __slots__ = ()

    def __new__(cls) -> Self:
        return tuple.__new__(cls)

    @property
    def rank(self) -> None:
        return None

    def as_list(self) -> NoReturn:
        raise ValueError("as_list() is not defined on a TensorShape of unknown rank")

    def __iter__(self) -> Iterator[int | None]:
        raise ValueError("the sizes of a TensorShape of unknown rank cannot be looked at")

    def __len__(self) -> int:
        raise ValueError("a TensorShape of unknown rank has no length")

    def __bool__(self) -> bool:
        return False

    def __getitem__(self, key: Any) -> Any:
        return self if isinstance(key, slice) else None

    def __eq__(self, other: object) -> bool:
        return other is self or other is None

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return "<unknown>"

    def __repr__(self) -> str:
        return "TensorShape(None)"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (None,)


_UNKNOWN = _Unknown()


def as_shape(shape: Any) -> TensorShape:
    """A shape from sizes, a number, or None for an unknown rank."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


# ----------------------------------------------------------------------------
# Leaf values: what users hand in becomes a NumPy array, a NumPy scalar or bytes.
#
# Numbers of Python become int32 or float32 and text becomes UTF-8 bytes, as `tf.convert_to_tensor` does; arrays and NumPy
# scalars keep their dtype.
# ----------------------------------------------------------------------------


STRING = np.dtype(object)

Ints = np.ndarray[Any, np.dtype[np.int64]]
Array = np.ndarray[Any, np.dtype[Any]]
_NUMBERS: dict[type, type[Any]] = {bool: np.bool_, complex: np.complex128, float: np.float32}
"""What numbers of Python become, except for integers, whose size matters."""

_OF_PACKAGES = frozenset(
    {"bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"}
)
"""Dtypes that NumPy knows by name once the package ml_dtypes was imported."""

_ADDED = 2
"""`isbuiltin` of dtypes that a package has added to NumPy's."""

_INT32, _INT64, _UINT64 = np.iinfo(np.int32), np.iinfo(np.int64), np.iinfo(np.uint64)


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """A NumPy dtype; every kind of text is `object`, the dtype of byte strings here.

    Raises:
      TypeError: it is not a dtype.
    """
    if isinstance(dtype, str) and dtype == "string":
        return STRING
    made = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))  # tf.DType objects have as_numpy_dtype
    if made.kind == "O" and isinstance(dtype, type) and not issubclass(dtype, str | bytes) and dtype not in _OBJECTS:
        raise TypeError(
            f"{dtype.__qualname__} is no dtype; times are 'datetime64[D]' (days), 'datetime64[us]' or 'timedelta64[us]', text "
            "is str, and numbers have a name, such as 'float64'"
        )
    return STRING if made.kind in "SUOT" else made


_OBJECTS = (object, np.object_)
"""Classes that stand for byte strings. NumPy takes any other class that it does not know for them, too."""


def as_leaf(value: Any) -> Any:
    """`value` as a leaf: an array, a NumPy scalar, bytes, or the object itself if it is a ragged tensor or a nested dataset.

    Raises:
      TypeError: the value cannot be an array.
      InvalidArgumentError: an integer of Python does not fit into int64, or a list that begins with a bool holds numbers.
    """
    kind = type(value)
    if kind is bytes or isinstance(value, np.generic | np.ndarray):
        if isinstance(value, bytes):
            return bytes(value) if kind is not bytes else value
        if isinstance(value, np.ndarray) and kind is not np.ndarray:
            value = _unmasked(value)
        dtype: np.dtype[Any] = value.dtype
        if dtype.kind in "SUOT":
            return _strings(value)
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return value[()]
        return value
    if kind in _NUMBERS:
        return _NUMBERS[kind](value)
    if kind is int:
        if not _INT64.min <= value <= _INT64.max:
            raise InvalidArgumentError(
                f"the integer {value} does not fit into int64; "
                + (
                    "give np.uint64(...) of it"
                    if 0 <= value <= _UINT64.max
                    else "no dtype holds it: give a float, or text"
                )
            )
        return np.int32(value) if _INT32.min <= value <= _INT32.max else np.int64(value)
    if kind is str:
        return value.encode()
    if isinstance(value, tuple(_EXACT)):
        return as_leaf(exact(value))
    if getattr(value, "nest_leaf", False):
        return getattr(value, "node", value)
    if is_ragged(value):
        return value
    if isinstance(value, list | tuple | range):
        return _from_list(value)
    found = array_of(value)
    if found is not None:
        return as_leaf(found)
    raise TypeError(
        f"cannot make an array of a {kind.__name__}; elements are nests (tuple, dict, namedtuple, dataclass) of arrays, "
        f"numbers, str or bytes{_cure(value)}"
    )


def as_eager_leaf(value: Any) -> Any:
    """`as_leaf` of what stands outside of functions: finite floats of Python must stay finite.

    TensorFlow refuses them there, too, and makes them infinite where it traces a function.

    Raises:
      InvalidArgumentError: a float is too large for float32, or see `as_leaf`.
    """
    with np.errstate(over="ignore"):
        leaf = as_leaf(value)
    dtype = getattr(leaf, "dtype", STRING)
    if isinstance(value, float | list | tuple) and dtype.kind == "f" and np.isinf(leaf).any():
        given = np.asarray(value, np.float64)
        if not np.isinf(given).all(where=np.isinf(leaf)):
            largest = np.abs(given[np.isfinite(given)]).max()
            beside = "" if dtype == np.float32 else f" beside one of {dtype}"
            raise InvalidArgumentError(
                f"the float {largest} is too large for {dtype}, which floats of Python become{beside}; "
                "give np.float64(...) of it"
            )
    return leaf


def as_wide_leaf(value: Any, dtype: Any = np.float64) -> Any:
    """`as_leaf` where floats of 64 bits are stated, which it is cast to: a list of numbers has a dtype that holds all of them.

    >>> as_leaf([np.float32(1), 0.1]).dtype, as_wide_leaf([np.float32(1), 0.1]).dtype
    (dtype('float32'), dtype('float64'))
    """
    wide = isinstance(value, list | tuple) and dtype in (np.float64, np.complex128)
    return _from_list(value, wide=True) if wide else as_leaf(value)


def exact(value: Any) -> Any:
    """A number or text of a class of the user's own, such as a member of an `IntEnum`, as the plain one that it is.

    >>> class Name(str): ...
    >>> type(exact(Name("a")))
    <class 'str'>
    """
    return next(made(value) for kind, made in _EXACT.items() if isinstance(value, kind))


_EXACT: dict[type, Any] = {
    bool: bool,
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: bytes.__bytes__,
}
"""What makes the plain number or text, whatever a class derived from it says."""


def _unmasked(array: Any) -> Any:
    """An array of a class derived from NumPy's as a plain one."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        count = np.ma.getmaskarray(array).sum()
        raise TypeError(
            f"cannot make an array of a {type(array).__name__} with {count} masked values, which would come back; fill "
            "them first: .filled(0), or .filled(np.nan) for floats"
        )
    return np.asarray(array)


def _cure(value: Any) -> str:
    """What to give in place of a value of the standard library."""
    if isinstance(value, Enum):
        return "; give the .value of a member of an Enum"
    if isinstance(value, date | timedelta):  # a datetime is a date
        return "; give np.datetime64(...) of a time, np.timedelta64(...) of a difference of times"
    if isinstance(value, Number):
        return "; give float(...) or str(...) of it"
    if isinstance(value, AbstractSet):
        return "; a set has no order: give sorted(...) of it"
    if type(value).__name__ == "LazyFrame":
        return "; a LazyFrame has no rows yet: give .collect() of it"
    if type(value).__name__ == "NAType":
        return "; NA is no value: put another one in its place"
    if isinstance(value, PathLike | time) or type(value).__module__ in ("ipaddress", "uuid"):
        return "; give str(...) of it"
    if hasattr(value, "toarray"):  # a sparse matrix of SciPy
        return "; give .toarray() of it"
    return "; give list(...) of it" if isinstance(value, Iterable) else ""


def as_leaves(
    values: Sequence[Any], paths: Sequence[str], make: Callable[..., Any] | None = None, *each: Sequence[Any]
) -> list[Any]:
    """The values as leaves; an error names the component whose value it is.

    Args:
      values: the leaves of a nest as users write them.
      paths: those of its structure.
      make: makes a leaf of a value; None: `as_leaf`.
      each: what else it takes, one for each value.

    Raises:
      TypeError: a value cannot be an array.
      InvalidArgumentError: an integer of Python does not fit into int64.
    """
    made: list[Any] = []
    try:
        made.extend(map(make or as_leaf, values, *each))  # keeps what was made before an error
    except (TypeError, InvalidArgumentError) as error:
        path = paths[len(made)]
        if not path:
            raise
        raise type(error)(f"component {path}: {error}") from error
    return made


def as_python(value: Any) -> Any:
    """An array as nested lists of Python values, or a NumPy scalar as one.

    Times that `datetime` does not have, such as those in nanoseconds, stay as NumPy has them; its own `tolist` gives integers.

    >>> as_python(np.array([1, 2])), as_python(np.datetime64("2020-01-02", "s"))
    ([1, 2], datetime.datetime(2020, 1, 2, 0, 0))
    >>> as_python(np.timedelta64(5, "ns"))
    np.timedelta64(5,'ns')
    """
    plain = value.tolist()
    if value.dtype.kind not in "mM" or not any(type(item) is int for item in np.ravel(np.array(plain, object))):
        return plain
    kept = np.empty(value.shape, object)
    kept.reshape(-1)[:] = list(np.ravel(value))
    return kept.tolist()


def cast_within(value: Any, dtype: np.dtype[Any]) -> Any:
    """An array or a scalar of another dtype, as NumPy casts it, but no number becomes one at the other end, or infinite.

    Fractions are cut off, and floats are rounded.

    Raises:
      InvalidArgumentError: a number is beyond those of the dtype.

    >>> cast_within(np.array([2.5, -1]), np.dtype("int8"))
    array([ 2, -1], dtype=int8)
    """
    if value.dtype.kind == "V" and _is_float(value.dtype) and value.dtype != dtype:
        value = value.astype(np.float32)  # which holds all numbers of ml_dtypes
    if is_short_int(dtype) and value.dtype.kind in "iuf":
        with np.errstate(invalid="ignore"):
            short = value.astype(dtype)
        _check_within(value, short.astype(np.int64) == np.trunc(value), dtype)
        return short
    if dtype.kind not in "iu":
        given, wide = value.dtype, dtype.kind == "f" and dtype.itemsize > max(2, value.dtype.itemsize)
        if wide or given == dtype or given.kind not in "iufc" or not _is_float(dtype):
            return value.astype(dtype, copy=False)
        with np.errstate(over="ignore"):
            made = value.astype(dtype)
        if np.count_nonzero(np.isfinite(made)) < made.size:  # rarely, and quick to see
            _check_within(value, ~lost(value, made), dtype)
        return made
    if value.dtype.kind not in "iuf" or np.can_cast(value.dtype, dtype):
        return value.astype(dtype, copy=False)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    if value.dtype.kind == "f":
        wide = value.astype(np.float64) if value.dtype.itemsize < 8 else value  # the bounds need its digits
        within = (np.trunc(wide) >= float(least)) & (wide < most + 1.0)  # NaN is not
    else:
        within = (value >= least) & (value <= most)
    _check_within(value, within, dtype)
    return value.astype(dtype, copy=False)


def _check_within(value: Any, within: Any, dtype: np.dtype[Any]) -> None:
    if not np.all(within):
        wrong = np.asarray(value)[~within].reshape(-1)[0].item()
        raise InvalidArgumentError(
            f"the {'integer' if type(wrong) is int else 'number'} {wrong} does not fit into {dtype}, which is stated; state a "
            "wider dtype"
        )


def lost(given: Any, made: Any) -> Any:
    """Which numbers were finite before a cast, and are not after it: True for each.

    >>> given = np.array([1e300, np.inf, 1.0])
    >>> with np.errstate(over="ignore"):
    ...     lost(given, given.astype(np.float32))
    array([ True, False, False])
    """
    return np.isfinite(given) & ~np.isfinite(made) if _is_float(made.dtype) else np.zeros(np.shape(given), np.bool_)


def is_short_int(dtype: np.dtype[Any]) -> bool:
    """True for integers of ml_dtypes, of 4 bits or fewer."""
    return dtype.kind == "V" and "int" in dtype.name


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fc" or "float" in dtype.name  # those of ml_dtypes are of kind V


def is_ragged(value: Any) -> bool:
    """True for a `RaggedTensor`, whose module is loaded when the first one is made."""
    return getattr(value, "is_ragged", False) is True


def dtype_of(leaf: Any) -> np.dtype[Any]:
    """The dtype of a leaf value; `object` for bytes."""
    return STRING if isinstance(leaf, bytes) else leaf.dtype


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The name of a dtype as users give it: that of byte strings is "string"."""
    return "string" if dtype == STRING else str(dtype)


def shape_of(leaf: Any) -> tuple[int, ...]:
    """The shape of a leaf value; () for bytes."""
    return () if isinstance(leaf, bytes) else leaf.shape


def dtype_code(dtype: np.dtype[Any]) -> str:
    """What `np.dtype` makes the dtype of again: bfloat16 and the like by name, whose `str` is that of bytes or of no dtype."""
    if dtype.kind == "T":
        return "T"
    return dtype.name if dtype.isbuiltin == _ADDED else dtype.str


def without_padding(array: Any) -> Any:
    """An array whose bytes are those of its values: between the fields of a struct there may be anything, other in each copy.

    >>> one, other = [np.full(16, byte, np.uint8).view(np.dtype("b, f8", align=True)) for byte in (0, 255)]
    >>> one[0] = other[0] = (1, 2.0)
    >>> one.tobytes() == other.tobytes(), without_padding(one).tobytes() == without_padding(other).tobytes()
    (False, True)
    """
    if array.dtype.names is None:
        return array
    made = np.zeros(array.shape, array.dtype)
    for name in array.dtype.names:
        made[name] = without_padding(array[name])
    return made


def counts_several(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype of times counts several units at once, as `datetime64[25s]` does. To pyarrow it is `datetime64[s]`."""
    return dtype.kind in "mM" and np.datetime_data(dtype)[1] != 1


def zero(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Zeros, empty byte strings, or NaT for points in time, of a dtype and shape."""
    if dtype == STRING:
        return np.full(shape, b"", dtype=object) if shape else b""
    if shape:
        return np.full(shape, "NaT", dtype) if dtype.kind == "M" else np.zeros(shape, dtype)
    alone = dtype.isbuiltin != _ADDED and dtype.kind != "V"  # those are made of a number, or of their fields
    return dtype.type() if alone else np.zeros((), dtype)[()]


def _strings(value: Any) -> Any:
    """Arrays of text of any kind -> object array of bytes, or bytes for a scalar."""
    if isinstance(value, np.generic) or value.ndim == 0:
        item = value.item()
        return _text(item)
    flat = value.reshape(-1)
    out = np.empty(flat.shape, dtype=object)
    items = flat.tolist()
    try:
        out[:] = [_text(item) for item in items]
    except TypeError:
        raise _no_strings(items) from None
    return out.reshape(value.shape)


def _no_strings(items: list[Any]) -> Exception:
    """The error for objects that are not all text: what NumPy has made of None, of mixed lists and of very large integers."""
    wrong = next(item for item in items if not isinstance(item, str | bytes))
    large = next((item for item in items if type(item) is int and not _INT64.min <= item <= _UINT64.max), None)
    if large is not None and all(isinstance(item, int) for item in items):
        return InvalidArgumentError(
            f"the integer {large} does not fit into int64 or uint64; give floats, or text, which is parsed inside of map"
        )
    if any(item is None for item in items):
        cure = "None is no value: put another one in its place, such as float('nan') among floats or '' among text"
    elif all(isinstance(item, int | float | np.number | np.bool_) for item in items):
        cure = "these are numbers alone: give the array with a dtype of theirs, by .astype(int) or .astype(float)"
    elif isinstance(wrong, int | float | np.generic):
        cure = "numbers and text do not go into one array: give them as two components, or all as text"
    elif isinstance(wrong, dict):
        cure = "rows are a dict of lists here, {'name': [...]}, of which `as_rows` makes a list of dicts again"
    else:
        other = "" if isinstance(wrong, list | tuple) else _cure(wrong).removeprefix("; ")
        cure = other or "give numbers, text, or arrays of them"
    return TypeError(
        f"an array of objects may hold only str or bytes, got {wrong!r:.80} ({type(wrong).__name__}); {cure}"
    )


def _text(item: Any) -> Any:
    if isinstance(item, bytes):
        return item if type(item) is bytes else exact(item)
    if isinstance(item, str):
        return exact(item).encode()
    if getattr(item, "nest_leaf", False) and not getattr(item, "is_optional", False):
        return item
    raise TypeError(f"an array of objects may hold only str or bytes, got {item!r:.80} ({type(item).__name__})")


_MOST_AXES = 64
"""Of an array of NumPy."""


def first_of(value: Any) -> Any:
    """The first member of the first of lists of lists; the value itself, if it is no list, or an empty one.

    Raises:
      InvalidArgumentError: they have more levels than any array has axes, as a list has that holds itself.
    """
    for _ in range(_MOST_AXES + 1):
        if not (isinstance(value, list | tuple) and value):
            return value
        value = value[0]
    raise InvalidArgumentError(
        f"a list becomes an array, which has at most {_MOST_AXES} axes, but it has more levels; if it does not hold "
        "itself, give its values as an array"
    )


def members_of(items: Sequence[Any]) -> list[Any]:
    """What is in lists of lists, as deep as all of them go; the first member alone where some are lists and some are not.

    Raises:
      InvalidArgumentError: see `first_of`.
    """
    first_of(flat := list(items))
    while flat and isinstance(flat[0], list | tuple):
        flat = [x for row in flat for x in row] if all(isinstance(row, list | tuple) for row in flat) else flat[:1]
    return flat


def _from_list(value: Any, *, wide: bool = False) -> Any:
    """Lists of numbers or text -> an array; numbers of Python get that of NumPy's beside them, or TensorFlow's."""
    items = list(value)
    flat = members_of(items)
    kinds = set(map(type, flat))
    if not all(map(_is_numpy_or_python, kinds)):
        items = [_of_others(item) for item in items]
        flat = members_of(items)
        kinds = set(map(type, flat))
    if flat and isinstance(flat[0], str | bytes):
        return _strings(np.array(items, dtype=object))
    try:
        array = np.array(items)
    except ValueError as error:
        raise TypeError(
            f"a list becomes an array, so its members must agree in shape: {error} Several components are a tuple, (x, y); "
            "Dataset.from_source takes a list of arrays of several lengths"
        ) from None
    if array.dtype.kind in "SUOT":
        # From the items once more: NumPy has already written numbers beside text as text.
        return _strings(np.array(items, dtype=object))
    if not flat:
        return array.astype(np.float32)
    if array.dtype.kind != "b" and _is_bool(flat[0]):
        other = next(x for x in flat if not _is_bool(x))
        raise InvalidArgumentError(
            f"a list that begins with a bool becomes an array of bools, got {other!r:.60} ({type(other).__name__}) beside "
            f"{flat[0]!r:.60}; make a number of each bool, as int(x) does, or give them as two components"
        )
    narrow = array.dtype if wide else _dtype_among(array, flat, kinds)
    if narrow.kind == "f":
        exactly = _with_integers(items, narrow) if _has_integers(flat, kinds) else None
        return array.astype(narrow, copy=False) if exactly is None else exactly
    return array.astype(narrow, copy=False)


def _dtype_among(array: Array, flat: list[Any], kinds: set[type]) -> np.dtype[Any]:
    """The dtype of a list with this array: that of its NumPy members, whatever numbers of Python stand beside them.

    NumPy makes float64 of a float32 beside a number of Python. Integers that the dtype does not hold make it a wider one.
    """
    kind = array.dtype.kind
    if kind not in "fiu" or (len(kinds) == 1 and all(issubclass(each, np.generic) for each in kinds)):
        return array.dtype
    own = [dtype for dtype in _dtypes_in(flat) if dtype.kind in ("f" if kind == "f" else "iu")]
    if kind == "f":
        return np.result_type(*own) if own else np.dtype(np.float32)
    narrow = np.result_type(*own) if own else np.dtype(np.int32)
    for dtype in (narrow, np.result_type(narrow, np.int32)):
        if array.min() >= np.iinfo(dtype).min and array.max() <= np.iinfo(dtype).max:
            return dtype
    return array.dtype


def _dtypes_in(members: Iterable[Any]) -> set[np.dtype[Any]]:
    """The dtypes of arrays and scalars of NumPy, in lists too."""
    dtypes = {member.dtype for member in members if isinstance(member, np.generic | np.ndarray)}
    return dtypes.union(*[_dtypes_in(member) for member in members if isinstance(member, list | tuple)])


def _is_bool(member: Any) -> bool:
    return type(member) is bool or getattr(member, "dtype", None) == np.bool_


def _has_integers(members: list[Any], kinds: set[type]) -> bool:
    """Whether some of the members are integers, or arrays of integers."""
    if any(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return True
    arrays = any(issubclass(kind, np.ndarray) for kind in kinds)
    return arrays and any(isinstance(member, np.ndarray) and member.dtype.kind in "iu" for member in members)


def _with_integers(items: list[Any], dtype: np.dtype[Any]) -> Any:
    """The array of lists of which NumPy makes floats though there are integers in it; None where floats hold them all.

    Raises:
      InvalidArgumentError: no dtype holds all of the values.
    """
    objects = np.array(items, dtype=object)
    numbers = objects.reshape(-1).tolist()
    integers = [int(x) for x in numbers if isinstance(x, int | np.integer)]
    if len(integers) == len(numbers):
        for bounds in (_UINT64, _INT64):
            if min(integers) >= bounds.min and max(integers) <= bounds.max:
                return np.array(integers, bounds.dtype).reshape(objects.shape)
        raise InvalidArgumentError(
            f"integers from {min(integers)} to {max(integers)} do not fit into int64, nor into uint64; give floats, or text, "
            "which is parsed inside of map"
        )
    most = 1 << (np.finfo(dtype).nmant + 1)
    for integer in integers:
        if abs(integer) > most:
            with np.errstate(over="ignore"):
                nearest = dtype.type(integer)
            if np.isinf(nearest) or int(nearest) != integer:
                raise InvalidArgumentError(
                    f"the integer {integer} beside floats would become {nearest:.0f}, the nearest {dtype}; give them as two "
                    "components, or an array of a dtype that holds both"
                )
    return None


def _is_numpy_or_python(kind: type) -> bool:
    return kind is np.ndarray or issubclass(kind, (np.generic, *_EXACT)) or kind is type(None)


def _of_others(item: Any) -> Any:
    """A member of a list, in which arrays and scalars of other libraries are NumPy's."""
    if isinstance(item, list | tuple):
        return list(map(_of_others, item))
    if _is_numpy_or_python(type(item)) or is_ragged(item):
        return item
    found = _unmasked(item) if isinstance(item, np.ndarray) else array_of(item)
    return item if found is None else as_leaf(found)


def array_of(value: Any) -> Any:
    """What other libraries, and Python itself, have as an array; without a copy wherever NumPy can look at the same memory.

    A bytearray and a memoryview of bytes are text, as bytes are; every other buffer is an array of its numbers.

    Returns:
      None: it is not an array.

    Raises:
      TypeError: an array that is not on the host, or a column that cannot be an array.

    Source: NumPy's interoperability protocols, the DLPack and Arrow PyCapsule interfaces, PEP 3118.
    """
    if isinstance(value, bytearray) or (isinstance(value, memoryview) and value.format in _BYTES and value.ndim == 1):
        return bytes(value)
    if type(value).__module__.partition(".")[0] == "torch":
        return _from_torch(value)
    read = _reader_of_others()(value)
    if read is not None:
        return read
    if any(hasattr(value, name) for name in _ARRAYS):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError) as error:
            raise TypeError(f"cannot read a {type(value).__name__} by DLPack: {error}; move it to the host") from error
    try:
        return np.asarray(memoryview(value))
    except TypeError:  # no buffer
        return None


READER = "distinput.arrow.adopt:array_of_others"
"""What reads arrays of libraries that have nulls and more types than NumPy: above, and loaded when a stranger's value comes."""


@cache
def _reader_of_others() -> Callable[[Any], Any]:
    module, _, name = READER.partition(":")
    reader: Callable[[Any], Any] = getattr(import_module(module), name)
    return reader


_BYTES = ("B", "b", "c", "@B", "<B")
_ARRAYS = ("__array__", "__array_interface__", "__array_struct__")


def _from_torch(value: Any) -> Any:
    """The values of a tensor, without its gradients; bfloat16 and float8 by their bits, or as float32 if NumPy lacks them."""
    if hasattr(value, "detach"):
        value = value.detach()
    if hasattr(value, "resolve_neg"):  # of complex numbers, which a view may negate or conjugate
        value = value.resolve_conj().resolve_neg()
    name = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if name not in _OF_PACKAGES or value.device.type != "cpu":
        return np.asarray(value) if hasattr(value, "__array__") else None
    try:
        dtype = np.dtype(name)
    except TypeError:
        return np.asarray(value.float())
    torch = sys.modules["torch"]  # whose tensor this is
    return np.asarray(value.view(torch.int16 if dtype.itemsize == 2 else torch.uint8)).view(dtype)
