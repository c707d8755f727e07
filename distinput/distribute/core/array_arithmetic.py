# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on the values of replicas: sums, means over the true number of rows, for every array library."""

import operator
from collections.abc import Iterable, Sequence
from enum import Enum
from math import inf, nextafter, prod
from operator import itemgetter
from typing import Any, ClassVar, Protocol

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# What arithmetic on the values of replicas needs of an array library, and NumPy's answer.
#
# A backend whose replicas compute with arrays of another library states it as `Devices.arrays`; then `reduce`, `gather`,
# `all_reduce` and `all_gather` stay on the devices.
# ----------------------------------------------------------------------------


class ArrayOps(Protocol):
    """An array library, as a frozen object without a state; its arrays have `shape`, `ndim` and `dtype`.

    Nothing here may take the values of an array to the host, but `to_host`. `total` and `concatenate` take arrays on several
    devices, and bring them to that of the first one.
    """

    @property
    def library(self) -> str:
        """The name of the library's package."""

    def owns(self, value: Any) -> bool:
        """True for an array of this library whose values are known, so not for one that stands for others in a trace."""

    def array(self, value: Any) -> Any:
        """An array of this library as it is, a number or a NumPy array as one of the library, anything else as NumPy's."""

    def value(self, array: Any) -> Any:
        """An array as it is returned: NumPy's without axes are scalars."""

    def kind(self, dtype: Any) -> str:
        """The kind of a dtype as NumPy's `dtype.kind`: "b", "i", "u", "f" or "c" for bool and numbers, whatever their size."""

    def name(self, dtype: Any) -> str:
        """The name of a dtype, the same in all libraries: "float32", "bfloat16"."""

    def dtype(self, name: str) -> Any:
        """The dtype with a name."""

    def wide(self, dtype: Any) -> Any:
        """The dtype in which values are added for a mean: a wider one for integers and small floats, any other itself.

        Integers would wrap around, so those of 64 bits are added as floats. Floats of fewer than 32 bits can hold neither large
        sums nor large counts.
        """

    def sum(self, array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
        """The sum over axes in a dtype, on the device of the array; with no axes a copy."""

    def total(self, arrays: Sequence[Any], dtype: Any) -> Any:
        """((0 + 1) + 2) + ... of arrays of one shape, in a dtype and in new memory, where the first one is.

        Integers wrap around. Where every order gives the same bits, the devices may add among themselves.
        """

    def total_of_devices(self, arrays: Sequence[Any], dtype: Any) -> Any:
        """As `total`, but in the order of the library by which devices add among themselves; None: there is none for these."""

    def mean(self, total: Any, count: int, dtype: Any) -> Any:
        """A total divided by a number, NaN for 0 / 0.

        Args:
          total: the sum of values of `dtype`, in `wide(dtype)`.
          count: how many there were.
          dtype: kept by floats and complex numbers; the mean of integers has the widest float of the device.
        """

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        """The arrays one after the other along an axis, in new memory, where the first one is."""

    def together(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """The arrays on the device of the first one; those that are there already as they are."""

    def move(self, array: Any, device: Any) -> Any:
        """The array on a device of the library; itself if it is there already."""

    def copy(self, array: Any, device: Any) -> Any:
        """The array on a device, in memory of its own where the library has arrays that can be written to."""

    def zeros(self, shape: Sequence[int], dtype: Any, device: Any) -> Any:
        """An array of zeros on a device."""

    def take(self, array: Any, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
        """The rows with these numbers, `[n, ...] -> [m, ...]`."""

    def to_host(self, array: Any) -> Any:
        """The values as a NumPy array."""


@dataclass(frozen=True)
class NumpyArrays:
    """NumPy's arrays. Most answers are NumPy's own functions, so that asking for them costs nothing."""

    library: ClassVar[str] = "numpy"
    """See `ArrayOps.library`."""
    value = staticmethod(itemgetter(()))
    name = staticmethod(str)

    @staticmethod
    def array(value: Any) -> Any:
        """See `ArrayOps.array`; in the byte order of this machine, since NumPy adds in no other."""
        array = np.asarray(value)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

    @staticmethod
    def kind(dtype: Any) -> str:
        """See `ArrayOps.kind`; "f" for bfloat16 and the other floats of packages, which NumPy calls "V"."""
        kind: str = dtype.kind
        return "f" if kind == "V" and dtype.isbuiltin == 2 and "float" in dtype.name else kind

    @staticmethod
    def owns(value: Any) -> bool:
        """True for a NumPy array or scalar."""
        return isinstance(value, np.ndarray | np.generic)

    @staticmethod
    def dtype(name: str) -> Any:
        """See `ArrayOps.dtype`."""
        return np.dtype(name)

    @staticmethod
    def wide(dtype: Any) -> Any:
        """See `ArrayOps.wide`."""
        if dtype.itemsize < _FLOAT32.itemsize and NumpyArrays.kind(dtype) == "f":
            return _FLOAT32
        return dtype if dtype.kind not in "iu" else _FLOAT64 if dtype.itemsize == 8 else _INT64

    @staticmethod
    def sum(array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
        """See `ArrayOps.sum`."""
        if dtype.kind == "V" and axes:  # NumPy would round bfloat16 after each row, and 256 + 1 is 256 there
            return np.asarray(np.add.reduce(array, axis=axes, dtype=np.float32)).astype(dtype)
        return np.asarray(np.add.reduce(array, axis=axes, dtype=dtype))

    @staticmethod
    def total(arrays: Sequence[Any], dtype: Any) -> Any:
        """See `ArrayOps.total`; without axes a scalar."""
        total = np.array(arrays[0], dtype)
        for array in arrays[1:]:
            np.add(total, array, out=total, casting="unsafe")
        return total[()]

    @staticmethod
    def total_of_devices(arrays: Sequence[Any], dtype: Any) -> None:
        """None: there is one memory."""

    @staticmethod
    def mean(total: Any, count: int, dtype: Any) -> Any:
        """See `ArrayOps.mean`; without axes a scalar."""
        value = np.true_divide(total, count)
        if dtype.kind in "iu":
            return value[()]
        return np.asarray(value).astype(dtype, copy=False)[()]

    concatenate = staticmethod(np.concatenate)

    @staticmethod
    def together(arrays: Sequence[Any]) -> Sequence[Any]:
        """The arrays as they are."""
        return arrays

    @staticmethod
    def move(array: Any, device: Any = None) -> Any:  # noqa: ARG004 - there is one memory
        """The array itself."""
        return array

    @staticmethod
    def copy(array: Any, device: Any = None) -> Any:  # noqa: ARG004 - there is one memory
        """A copy; without axes a scalar."""
        return np.array(array)[()]

    @staticmethod
    def zeros(shape: Sequence[int], dtype: Any, device: Any = None) -> Any:  # noqa: ARG004 - there is one memory
        """See `ArrayOps.zeros`."""
        return np.zeros(shape, dtype)

    @staticmethod
    def take(array: Any, rows: Any) -> Any:
        """See `ArrayOps.take`."""
        return np.asarray(array)[rows]

    to_host = staticmethod(np.asarray)


_INT64, _FLOAT32, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64)

NUMPY = NumpyArrays()
"""The arrays of the host."""


def arrays_of(devices: Any) -> ArrayOps | None:
    """The library whose arrays the replicas on these devices compute with; None for NumPy, where values are not moved."""
    found: ArrayOps | None = getattr(devices, "arrays", None)
    return None if found is None or isinstance(found, NumpyArrays) else found


# ----------------------------------------------------------------------------
# Arithmetic on the values of replicas: sums, means over the true number of rows, concatenation.
#
# Pure functions on sequences of arrays. Values are added in replica order, so every run gives the same bits. The rules are
# the same for the arrays of all libraries: the argument `ops` is the library, NumPy if it is not given, and all arrays of a
# call are arrays of it on one device.
# ----------------------------------------------------------------------------


# ---- How the values of several replicas are reduced to one


class ReduceOp(Enum):
    """`SUM` adds the values of the replicas; `MEAN` divides the sum by the number of values added.

    `ReduceOp(name)` finds a member by its name, in upper or lower case.

    Raises:
      ValueError: no member has that name.

    >>> import distinput as di
    >>> di.distribute.ReduceOp("mean")
    <ReduceOp.MEAN: 'MEAN'>

    Source: `tf.distribute.ReduceOp`.
    """

    SUM = "SUM"
    MEAN = "MEAN"

    @classmethod
    def _missing_(cls, value: object) -> "ReduceOp":
        if isinstance(value, str) and value.upper() in cls.__members__:
            return cls[value.upper()]
        raise ValueError(f"{value!r} is not a valid ReduceOp; it has {', '.join(cls.__members__)}")

    @staticmethod
    def of(value: Any) -> "ReduceOp":
        """The member that a caller's `reduce_op` argument means.

        Raises:
          ValueError: a string that names no member.
          TypeError: neither a member nor a string.
        """
        if isinstance(value, ReduceOp | str):
            return ReduceOp(value)
        raise TypeError(f"Expected `reduce_op` to be a ReduceOp ('SUM' or 'MEAN'), got {value!r}")


# ---- Sums that do not depend on the order of their terms, so that any number of workers gets the same bits
#
# A float is an integer times a power of two. Its digits are split into bands of `BITS` binary digits at fixed positions.
# Each band is added up in integers, which is exact in any order; only the total is rounded. Workers exchange the bands.
#
# Source: the long accumulator of Kulisch (1986), with bands as in Collange, Defour, Graillat and Iakymchuk (2015).

BITS = 24
"""Binary digits of a band, few enough for sums of up to 2**38 terms to fit into 64 bits."""

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Bands:
    """The exact sum of some arrays of one shape.

    Args:
      first: the number of the lowest band; band k holds multiples of 2 ** (BITS * k).
      digits: [bands, ...], the sum of each band.
      special: [...], the sum of the terms that are infinite or NaN, 0 where all are finite; None if all of them are.
    """

    first: int
    digits: Ints
    special: np.ndarray[Any, Any] | None = None


def bands_of(array: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Bands:
    """The exact sum of an array over `axes`.

    >>> import numpy as np
    >>> rounded(bands_of(np.array([1e16, 1.0, -1e16]), (0,)), 1, np.dtype(float)).item()
    1.0
    """
    rest = array.astype(np.float64)
    shape = tuple([n for axis, n in enumerate(array.shape) if axis not in axes])
    finite, special = np.isfinite(rest), None
    if not finite.all():
        with np.errstate(invalid="ignore"):
            special = np.asarray(np.where(finite, 0.0, rest).sum(axis=axes))
        rest = np.where(finite, rest, 0.0)
    top = float(np.abs(rest).max(initial=0.0))
    if top == 0:
        return Bands(0, np.zeros((0, *shape), np.int64), special)
    band = int(np.frexp(top)[1]) // BITS
    digits: list[Ints] = []
    while rest.any():
        # Both the quotient and the remainder are exact: the divisor is a power of two and rounding is towards zero.
        whole = np.trunc(np.ldexp(rest, -BITS * band))
        rest = rest - np.ldexp(whole, BITS * band)
        digits.append(np.asarray(whole.astype(np.int64).sum(axis=axes)))
        band -= 1
    return Bands(band + 1, np.stack(digits[::-1]), special)


def joined(parts: Iterable[Bands]) -> Bands:
    """The exact sum of several exact sums of the same shape."""
    parts = list(parts)
    special = [part.special for part in parts if part.special is not None]
    used = [part for part in parts if len(part.digits)]
    if not used:
        total = parts[0]
    else:
        first = min(part.first for part in used)
        last = max(part.first + len(part.digits) for part in used)
        digits = np.zeros((last - first, *used[0].digits.shape[1:]), np.int64)
        for part in used:
            begin = part.first - first
            digits[begin : begin + len(part.digits)] += part.digits
        total = Bands(first, digits)
    if not special:
        return total
    with np.errstate(invalid="ignore"):
        return Bands(total.first, total.digits, np.asarray(sum(special[1:], special[0])))


def rounded(total: Bands, divisor: int, dtype: np.dtype[Any]) -> Any:
    """The sum divided by `divisor`, rounded once to `dtype`; NaN for a divisor of 0."""
    shape = total.digits.shape[1:]
    if divisor == 0:
        return np.full(shape, np.nan, dtype)[()]
    out = np.zeros(shape)
    if len(total.digits):
        columns = total.digits.reshape(len(total.digits), -1).T.tolist()
        narrow = dtype.itemsize < 8
        out = np.array([_value(column, total.first, divisor, narrow) for column in columns]).reshape(shape)
    if total.special is not None:
        out = np.where(total.special == 0, out, total.special / divisor)
    with np.errstate(over="ignore"):
        return out.astype(dtype)[()]


def _value(digits: list[int], first: int, divisor: int, narrow: bool) -> float:
    """The number, rounded once; if it is rounded again to fewer digits, so that this gives what rounding once would."""
    from fractions import Fraction  # for sums of floats between workers alone

    number = sum(digit << (BITS * i) for i, digit in enumerate(digits))
    shift = BITS * first
    exact = Fraction(number << shift, divisor) if shift >= 0 else Fraction(number, divisor << -shift)
    try:
        made = float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
    if not narrow or Fraction(made) == exact:
        return made
    # Of the two floats beside the number the one whose last digit is odd: no float of fewer digits, nor the middle of two.
    other = nextafter(made, inf if exact > made else -inf)
    return made if np.float64(made).view(np.int64) & 1 else other


# ---- Sums, means and concatenations of the parts of replicas


def reduce_parts(op: ReduceOp, parts: Sequence[Any], ops: ArrayOps = NUMPY) -> Any:
    """The elementwise sum or mean of n parts of one shape: `[...] * n -> [...]`.

    SUM keeps the dtype. MEAN divides by n: integers become float64 when n > 1.

    Raises:
      InvalidArgumentError: shapes or dtypes differ, or a part is not numeric.

    Source: `tf.distribute.Strategy.reduce` with `axis=None`.
    """
    arrays = check_numbers(parts, op, ops)
    dtype = arrays[0].dtype
    if op is ReduceOp.SUM or len(arrays) == 1:
        return ops.total(arrays, dtype)
    return ops.mean(ops.total(arrays, ops.wide(dtype)), len(arrays), dtype)


def check_numbers(parts: Sequence[Any], op: ReduceOp, ops: ArrayOps = NUMPY) -> list[Any]:
    """The parts as numeric arrays of one shape and dtype.

    Raises:
      InvalidArgumentError: shapes or dtypes differ, or a part is not numeric.
    """
    arrays = [_numbers(part, op, ops) for part in parts]
    check_alike(arrays, ops)
    return arrays


def check_alike(
    arrays: Sequence[Any],
    ops: ArrayOps = NUMPY,
    what: str = "with axis=None all values",
    cure: str = "; reduce over the rows with axis=0",
) -> None:
    """Check that arrays, or what is known of them, have one shape and dtype.

    Raises:
      InvalidArgumentError: they do not.
    """
    first = arrays[0]
    for i, array in enumerate(arrays):
        if array.shape != first.shape:
            raise InvalidArgumentError(
                f"reduce: {what} must have the same size and shape, got {list(first.shape)} on replica 0 and "
                f"{list(array.shape)} on replica {i}{cure}"
            )
        _check_dtype(array.dtype, first.dtype, i, ops)


def _check_dtype(dtype: Any, first: Any, replica: int, ops: ArrayOps, what: str = "reduce") -> None:
    if dtype != first:
        raise InvalidArgumentError(
            f"{what}: all values must have the same dtype, got {ops.name(first)} on replica 0 and {ops.name(dtype)} on "
            f"replica {replica}"
        )


def added_as(op: ReduceOp, dtype: Any, ops: ArrayOps = NUMPY) -> Any:
    """The dtype in which values are added; integers are exact in any order."""
    return dtype if op is ReduceOp.SUM else ops.wide(dtype)


def added_as_integers(op: ReduceOp, parts: Sequence[Any]) -> bool:
    """True if all parts are added as integers."""
    return all(added_as(op, np.asarray(part).dtype).kind in "iu" for part in parts)


def reduce_rows(op: ReduceOp, parts: Sequence[Any], axis: Any, ops: ArrayOps = NUMPY) -> Any:
    """Sum or mean over the axes of each part, then over the parts; sizes along these axes may differ.

    MEAN divides by the true number of items, so an empty part has no weight; integers become float64. The mean of no
    items is NaN.

    Args:
      op: SUM or MEAN.
      parts: one array for each replica.
      axis: an int or a tuple of ints.
      ops: the library of the arrays.

    Raises:
      ValueError: an axis that a part does not have.
      TypeError: the axis is neither an int nor a tuple of ints.
      InvalidArgumentError: the remaining shapes or the dtypes differ, or a part is not numeric.

    Source: `tf.distribute.Strategy.reduce` with an axis.
    """
    sums, counts, dtype = row_sums(op, parts, axis, ops)
    return total_of_rows(op, sums, counts, dtype, axis, ops)


def row_sums(op: ReduceOp, parts: Sequence[Any], axis: Any, ops: ArrayOps = NUMPY) -> tuple[list[Any], list[int], Any]:
    """The sum of each part over its axes, the number of items summed, and the dtype of the parts.

    Parts may be on several devices; the sum of each stays on its device.

    Raises:
      As `reduce_rows`, as far as a single part can show it.
    """
    arrays = [_numbers(part, op, ops) for part in parts]
    axes = [check_axis(axis, array.ndim) for array in arrays]
    dtype = arrays[0].dtype
    wide = added_as(op, dtype, ops)
    _check_dtypes(arrays, ops)
    sums = [ops.sum(array, of, wide) for array, of in zip(arrays, axes, strict=True)]
    return sums, [_count(array, of) for array, of in zip(arrays, axes, strict=True)], dtype


def total_of_rows(
    op: ReduceOp, sums: Sequence[Any], counts: Sequence[int], dtype: Any, axis: Any, ops: ArrayOps = NUMPY
) -> Any:
    """The sum or mean of the results of `row_sums`, in the order of the parts.

    Raises:
      InvalidArgumentError: the sums differ in shape or dtype.
    """
    check_sums(sums, axis, ops)
    total = ops.total(sums, sums[0].dtype)
    if op is ReduceOp.SUM:
        return total
    return mean_of_rows(total, sum(counts), dtype, ops)


def check_sums(sums: Sequence[Any], axis: Any, ops: ArrayOps = NUMPY) -> None:
    """Check that sums over an axis, or what is known of them, have one shape and dtype.

    Raises:
      InvalidArgumentError: they do not.
    """
    if axis is None:
        check_alike(sums, ops)
    else:
        check_alike(sums, ops, f"what is left after summing over axis {axis}", "")


def mean_of_rows(total: Any, rows: int, dtype: Any, ops: ArrayOps = NUMPY) -> Any:
    """The mean of the rows of a dtype whose sum is `total`; NaN if there are none."""
    with np.errstate(divide="ignore", invalid="ignore"):  # on purpose: no warning
        return ops.mean(total, rows, dtype)


def exact_rows(op: ReduceOp, parts: Sequence[Any], axis: Any) -> tuple[list[Bands], list[int], np.dtype[Any]]:
    """As `row_sums`, with exact sums."""
    arrays = [_numbers(part, op, NUMPY) for part in parts]
    _check_dtypes(arrays, NUMPY)
    dtype = arrays[0].dtype
    if dtype.kind not in "fiu":
        cure = "reduce .real and .imag one by one" if dtype.kind == "c" else "make them float32 with astype first"
        raise InvalidArgumentError(f"reduce: deterministic=True needs integers or floats, got {dtype}; {cure}")
    axes = [check_axis(axis, array.ndim) for array in arrays]
    counts = [_count(array, of) for array, of in zip(arrays, axes, strict=True)]
    return [_exact_sum(array, of) for array, of in zip(arrays, axes, strict=True)], counts, dtype


def _exact_sum(array: np.ndarray[Any, Any], axes: tuple[int, ...]) -> Bands:
    if array.dtype.kind == "f":
        return bands_of(array, axes)
    low = array & 0xFFFFFFFF  # a float holds each half
    return joined([bands_of(low, axes), bands_of(array - low, axes)])


def exact_total(op: ReduceOp, sums: Sequence[Bands], counts: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """The sum or mean of the results of `exact_rows`, rounded once: the same bits however the rows are divided.

    Raises:
      InvalidArgumentError: the sums differ in shape.
    """
    for i, part in enumerate(sums):
        if part.digits.shape[1:] != sums[0].digits.shape[1:]:
            raise InvalidArgumentError(
                f"reduce: all values must have the same size and shape, got {list(sums[0].digits.shape[1:])} on replica 0 and "
                f"{list(part.digits.shape[1:])} on replica {i}"
            )
    return rounded(joined(sums), 1 if op is ReduceOp.SUM else sum(counts), dtype if dtype.kind == "f" else _FLOAT64)


def reduce_undistributed(
    op: ReduceOp, value: Any, replicas: int, cure: str = "reduce the result of `run`, or use MEAN"
) -> Any:
    """Reduce a value that is the same on all replicas: its mean is itself; a sum is allowed only for zero.

    Args:
      op: SUM or MEAN.
      value: the value.
      replicas: how many there are.
      cure: what to do instead of a sum, for the message.

    Raises:
      ValueError: a sum over several replicas of anything other than zero.

    Source: the rule of `tf.distribute` for values that are not distributed.
    """
    if op is ReduceOp.MEAN or replicas == 1:
        return value
    try:
        zero = bool(((value if hasattr(value, "ndim") else np.asarray(value)) == 0).all())
    except (AttributeError, TypeError, ValueError):
        zero = False
    if zero:
        return value
    raise ValueError(
        f"A non-DistributedValues value {value!r} cannot be reduced with the given reduce op {op.name}: it would be "
        f"counted once or {replicas} times; {cure}"
    )


def gather_parts(parts: Sequence[Any], axis: Any, ops: ArrayOps = NUMPY) -> Any:
    """Concatenate along one axis, along which sizes may differ: `[.., n_i, ..] -> [.., sum n_i, ..]`.

    The axis may be negative. All dtypes are allowed, text and bool included.

    Raises:
      InvalidArgumentError: scalars, an axis out of range, ranks, other dimensions or dtypes that differ.
      TypeError: the axis is not an int.

    Source: `tf.distribute.Strategy.gather`.
    """
    arrays = [ops.array(part) for part in parts]
    return ops.concatenate(arrays, check_gather(arrays, axis, ops))


def check_gather(arrays: Sequence[Any], axis: Any, ops: ArrayOps = NUMPY, what: str = "gather") -> int:
    """The axis along which arrays, or what is known of them, can be concatenated, from 0.

    Raises:
      As `gather_parts`.
    """
    first = arrays[0]
    if any(array.ndim == 0 for array in arrays):
        raise InvalidArgumentError(f"{what}: Can't concatenate scalars; give each of them an axis first")
    for i, array in enumerate(arrays):
        if array.ndim != first.ndim:
            raise InvalidArgumentError(
                f"{what}: Shape mismatch: Ranks of all input tensors should match, got shape {list(first.shape)} on "
                f"replica 0 and {list(array.shape)} on replica {i}"
            )
    try:
        where = operator.index(axis)
    except TypeError:
        raise TypeError(f"{what}: axis must be an int, got {axis!r}") from None
    if not -first.ndim <= where < first.ndim:
        raise InvalidArgumentError(
            f"{what}: Expected concatenating dimensions in the range [{-first.ndim}, {first.ndim}), got axis {axis}"
        )
    where %= first.ndim
    for i, array in enumerate(arrays):
        for d in range(first.ndim):
            if d != where and array.shape[d] != first.shape[d]:
                raise InvalidArgumentError(
                    f"{what}: Shape mismatch: Dimension {d} in both shapes must be equal, got {list(first.shape)} on "
                    f"replica 0 and {list(array.shape)} on replica {i}"
                )
        if {getattr(one.dtype, "kind", None) for one in (array, first)} not in ({"S"}, {"U"}):  # text of any width
            _check_dtype(array.dtype, first.dtype, i, ops, what)
    return int(where)


def check_axis(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes as non-negative numbers; none for None, so that each value counts once.

    Raises:
      TypeError: neither None, nor an int, nor a tuple of ints.
      ValueError: an axis is out of range or named twice.
    """
    if axis is None:
        return ()
    try:
        given = tuple([operator.index(a) for a in axis]) if isinstance(axis, tuple) else (operator.index(axis),)
    except TypeError:
        raise TypeError(f"reduce: axis must be None, an int or a tuple of ints, got {axis!r}") from None
    for a in given:
        if not -rank <= a < rank:
            raise ValueError(
                f"reduce: Invalid reduction dimension {a} for a value of rank {rank}; it must be in [{-rank}, {rank})"
            )
    axes = tuple([a % rank for a in given])
    if len(set(axes)) != len(axes):
        raise ValueError(f"reduce: Invalid reduction dimension: axis {axis} names the same dimension twice")
    return axes


def _numbers(value: Any, op: ReduceOp, ops: ArrayOps) -> Any:
    array = ops.array(value)
    if ops.kind(array.dtype) not in "iufc":
        kind = "None" if value is None else "strings" if ops.kind(array.dtype) in "SUO" else ops.name(array.dtype)
        raise InvalidArgumentError(f"reduce: {op.name} needs numbers, got {kind}; convert them with astype first")
    return array


def _check_dtypes(arrays: Sequence[Any], ops: ArrayOps) -> None:
    """Check the arrays of this process, which may have any of the replicas."""
    dtype = arrays[0].dtype
    for array in arrays:
        if array.dtype != dtype:
            raise InvalidArgumentError(
                f"reduce: all values must have the same dtype, got {ops.name(dtype)} and {ops.name(array.dtype)}"
            )


def _count(array: Any, axes: tuple[int, ...]) -> int:
    return prod([array.shape[axis] for axis in axes])
