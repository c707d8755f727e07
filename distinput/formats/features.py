# SPDX-License-Identifier: Apache-2.0
"""Declarations of the features to parse from `tf.train.Example` messages, as in TensorFlow; some are made of several keys."""

import operator
from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import prod
from typing import Any, ClassVar

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.plan.check import in_int64, normalized, taken
from distinput.values.leaves import STRING, Array, Ints, as_dtype, as_leaf, cast_within, lost
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.sparse_tensor import SparseTensor
from distinput.values.spec import RaggedTensorSpec, SparseTensorSpec, Spec, TensorSpec

# ----------------------------------------------------------------------------
# Declarations of the features to parse from `tf.train.Example` messages, as in TensorFlow.
# ----------------------------------------------------------------------------


_DEFAULTS = {STRING: ("text", "OS"), as_dtype("float32"): ("numbers", "iuf"), as_dtype("int64"): ("integers", "iu")}
"""For each dtype that features have: what their defaults are, and the kinds of NumPy's dtypes that are such."""


@dataclass(frozen=True, init=False)
class FixedLenFeature:
    """A feature with the same number of values in every record; the counterpart of `tf.io.FixedLenFeature`.

    Args:
      shape: of the value of a record; `()` or `[]` for a scalar.
      dtype: int64, float32 or string.
      default_value: the value for a record without the feature: a scalar, or as many values as the shape has, in any
        shape; None: such a record is an error.

    Raises:
      InvalidArgumentError: the dtype is unsupported, a rank or dimension is unknown, or the default has another size or type.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    default_value: Any

    def __init__(self, shape: Sequence[int] | int, dtype: Any, default_value: Any = None) -> None:
        normalized(self, "shape", _known_shape(shape, "FixedLenFeature"))
        normalized(self, "dtype", _feature_dtype(dtype))
        normalized(self, "default_value", deepcopy(taken(default_value)))
        if default_value is not None:
            self.default()

    @property
    def size(self) -> int:
        """Number of values in a record."""
        return prod(self.shape)

    def default(self) -> Array | None:
        """The default as an array with the shape and dtype of the feature; None if there is none."""
        if self.default_value is None:
            return None
        made = as_feature_array(self.default_value, self.dtype)
        if made.size not in (1, self.size):
            raise InvalidArgumentError(
                f"FixedLenFeature: default_value must be a scalar or of shape {list(self.shape)}, "
                f"got shape {list(made.shape)}, which has a different number of values"
            )
        return made.reshape(self.shape) if made.size == self.size else np.broadcast_to(made.reshape(()), self.shape)

    @property
    def spec(self) -> TensorSpec:
        """The spec of the parsed value of one record."""
        return TensorSpec(self.shape, self.dtype)


@dataclass(frozen=True, init=False)
class FixedLenSequenceFeature:
    """Any number of items of one shape; the counterpart of `tf.io.FixedLenSequenceFeature`.

    `parse_example` pads the records of a batch to the longest one.

    Args:
      shape: of an item.
      dtype: int64, float32 or string.
      allow_missing: a record without the feature has no items; must be True to parse an Example.
      default_value: what `parse_example` pads with, a scalar; None: 0 or an empty string.

    Raises:
      InvalidArgumentError: see `FixedLenFeature`.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    allow_missing: bool
    default_value: Any

    def __init__(
        self, shape: Sequence[int] | int, dtype: Any, allow_missing: bool = False, default_value: Any = None
    ) -> None:
        normalized(self, "shape", _known_shape(shape, "FixedLenSequenceFeature"))
        normalized(self, "dtype", _feature_dtype(dtype))
        normalized(self, "allow_missing", allow_missing)
        normalized(self, "default_value", deepcopy(taken(default_value)))

    @property
    def padding(self) -> Any:
        """What the records of a batch are padded with: a scalar of the dtype."""
        fill: Any = self.default_value
        if fill is None:
            fill = b"" if self.dtype == STRING else 0
        made = as_feature_array(fill, self.dtype)
        if made.size != 1:
            raise InvalidArgumentError(f"FixedLenSequenceFeature: default_value must be a scalar, got {fill!r}")
        return made.reshape(())[()]

    @property
    def spec(self) -> TensorSpec:
        """The spec of the parsed value of one record."""
        return TensorSpec((None, *self.shape), self.dtype)


@dataclass(frozen=True, init=False)
class VarLenFeature:
    """A feature with any number of values; the counterpart of `tf.io.VarLenFeature`.

    Args:
      dtype: int64, float32 or string.

    Raises:
      InvalidArgumentError: the dtype is unsupported.
    """

    dtype: np.dtype[Any]

    def __init__(self, dtype: Any) -> None:
        normalized(self, "dtype", _feature_dtype(dtype))

    @property
    def spec(self) -> TensorSpec:
        """The spec of the parsed value of one record."""
        return TensorSpec((None,), self.dtype)


@dataclass(frozen=True)
class _Keyed:
    """Rows as the values of a key divide them."""

    key: str


class RowLengths(_Keyed):
    """Rows whose lengths are the values of a key; see `RaggedFeature`."""

    def lengths(self, given: Ints, total: int) -> Ints | None:
        """The length of each row; None if these are none."""
        return given


class RowSplits(_Keyed):
    """Rows between the values of a key, of which the first is 0; see `RaggedFeature`."""

    def lengths(self, given: Ints, total: int) -> Ints | None:
        """The length of each row; None if these are none."""
        return np.diff(given) if not len(given) or given[0] == 0 else None


class RowStarts(_Keyed):
    """Rows that begin at the values of a key; see `RaggedFeature`."""

    def lengths(self, given: Ints, total: int) -> Ints | None:
        """The length of each row; None if these are none."""
        return np.diff(given, append=total) if not len(given) or given[0] == 0 else None


class RowLimits(_Keyed):
    """Rows that end before the values of a key; see `RaggedFeature`."""

    def lengths(self, given: Ints, total: int) -> Ints | None:
        """The length of each row; None if these are none."""
        return np.diff(given, prepend=0)


_MOST_ROWS = 1 << 27
"""Rows of one record, most of them without values, whose lengths take 1 GiB: numbers behind them are damaged."""


class ValueRowIds(_Keyed):
    """The number of the row of each value, in ascending order, is the value of a key; see `RaggedFeature`."""

    def lengths(self, given: Ints, total: int) -> Ints | None:
        """The length of each row; None if these are none."""
        if len(given) != total or (np.diff(given, prepend=0) < 0).any() or (given >= _MOST_ROWS).any():
            return None
        return np.bincount(given).astype(np.int64) if total else given


@dataclass(frozen=True, init=False)
class UniformRowLength:
    """Rows of one length; see `RaggedFeature`.

    Args:
      length: at least 1.

    Raises:
      TypeError: it is not an integer.
      InvalidArgumentError: it is less.
    """

    length: int

    def __init__(self, length: int) -> None:
        normalized(self, "length", in_int64("UniformRowLength", "length", length))
        if self.length < 1:
            raise InvalidArgumentError(f"UniformRowLength: length must be at least 1, got {length}")


_PARTITIONS = (RowLengths, RowLimits, RowSplits, RowStarts, UniformRowLength, ValueRowIds)


@dataclass(frozen=True, init=False)
class SparseFeature:
    """Values and their places under several keys, as one sparse tensor; the counterpart of `tf.io.SparseFeature`.

    Args:
      index_key: the key of the places; a list of them for several axes.
      value_key: the key of the values.
      dtype: of the values: int64, float32 or string.
      size: the size of the array, for several axes a list of them. Places are not compared with it, as in TensorFlow.
      already_sorted: True if the places of each record are in ascending order, so that they need not be sorted.

    Raises:
      InvalidArgumentError: the dtype is unsupported, a key is missing, or there are not as many sizes as keys.

    >>> import distinput as di
    >>> record = di.io.encode_example({"place": [7, 2], "weight": [0.5, 1.5]})
    >>> feature = di.io.SparseFeature("place", "weight", "float32", size=10)
    >>> di.io.parse_single_example(record, {"x": feature})["x"].to_dense().tolist()
    [0.0, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0]
    """

    index_key: Any
    value_key: str
    dtype: np.dtype[Any]
    size: Any
    already_sorted: bool

    def __init__(self, index_key: Any, value_key: str, dtype: Any, size: Any, already_sorted: bool = False) -> None:
        if not index_key or not value_key:
            raise InvalidArgumentError(
                f"SparseFeature: needs index_key and value_key, got index_key={index_key!r} and value_key={value_key!r}"
            )
        normalized(self, "index_key", list(index_key) if isinstance(index_key, list | tuple) else index_key)
        normalized(self, "value_key", value_key)
        normalized(self, "dtype", _feature_dtype(dtype))
        normalized(self, "size", taken(size))
        normalized(self, "already_sorted", bool(already_sorted))
        several = isinstance(self.index_key, list)
        if several != isinstance(size, list | tuple) or (several and len(size) != len(self.index_key)):
            raise InvalidArgumentError(
                f"SparseFeature: size must be a number for one index_key, and a list of as many for a list of them, got "
                f"index_key={index_key!r} and size={size!r}"
            )
        self.sizes  # noqa: B018 - checks them

    @property
    def index_keys(self) -> tuple[str, ...]:
        """The keys of the places, one for each axis."""
        return tuple(self.index_key) if isinstance(self.index_key, list) else (self.index_key,)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each axis."""
        given = self.size if isinstance(self.size, list | tuple) else (self.size,)
        try:
            return tuple([in_int64("SparseFeature", "size", operator.index(size)) for size in given])
        except TypeError:
            raise InvalidArgumentError(f"SparseFeature: size must be integers, got {self.size!r}") from None


@dataclass(frozen=True, init=False)
class RaggedFeature:
    """A feature with any number of values, in rows of rows if there are partitions; the counterpart of `tf.io.RaggedFeature`.

    Args:
      dtype: int64, float32 or string.
      value_key: the key in the message; None: the key under which this feature is declared.
      partitions: how the values are divided into rows, from the outermost dimension on, such as
        `RaggedFeature.RowLengths("key")`.
      row_splits_dtype: accepted as TensorFlow's; row splits are int64.
      validate: accepted as TensorFlow's; row splits are always valid.

    Raises:
      InvalidArgumentError: the dtype is unsupported.
      TypeError: a partition is something else.

    >>> import distinput as di
    >>> record = di.io.encode_example({"words": ["a", "b", "c"], "lengths": [2, 1]})
    >>> feature = di.io.RaggedFeature("string", "words", [di.io.RaggedFeature.RowLengths("lengths")])
    >>> di.io.parse_single_example(record, {"sentences": feature})["sentences"].to_list()
    [[b'a', b'b'], [b'c']]
    """

    dtype: np.dtype[Any]
    value_key: str | None
    partitions: tuple[Any, ...]
    row_splits_dtype: ClassVar[np.dtype[Any]] = np.dtype(np.int64)
    validate: ClassVar[bool] = False
    RowLengths: ClassVar[type[RowLengths]] = RowLengths
    RowLimits: ClassVar[type[RowLimits]] = RowLimits
    RowSplits: ClassVar[type[RowSplits]] = RowSplits
    RowStarts: ClassVar[type[RowStarts]] = RowStarts
    UniformRowLength: ClassVar[type[UniformRowLength]] = UniformRowLength
    ValueRowIds: ClassVar[type[ValueRowIds]] = ValueRowIds

    def __init__(
        self,
        dtype: Any,
        value_key: str | None = None,
        partitions: Sequence[Any] = (),
        row_splits_dtype: Any = np.int32,
        validate: bool = False,
    ) -> None:
        del row_splits_dtype, validate
        given = tuple(partitions)
        for partition in given:
            if not isinstance(partition, _PARTITIONS):
                raise TypeError(
                    f"RaggedFeature: each partition must be one such as RaggedFeature.RowLengths('key'), got {partition!r}"
                )
        normalized(self, "partitions", given)
        normalized(self, "dtype", _feature_dtype(dtype))
        normalized(self, "value_key", value_key)

    @property
    def spec(self) -> TensorSpec:
        """The spec of the parsed value of one record."""
        return TensorSpec((None,), self.dtype)


Feature = FixedLenFeature | FixedLenSequenceFeature | VarLenFeature | RaggedFeature | SparseFeature
Features = Mapping[str, Feature]


def features_spec(features: Features) -> Spec:
    """The spec of a record after `parse_examples` or `parse_single_example`."""
    made = {}
    for key, feature in checked_features(features).items():
        assert not isinstance(feature, SparseFeature), "its keys are parsed one by one"
        made[key] = feature.spec
    return Spec.of(made)


def _known_shape(shape: Any, what: str) -> tuple[int, ...]:
    dims = _dims(shape)
    if dims is None or any(d is None or d < 0 for d in dims):
        given = shape if dims is None else list(dims)
        raise InvalidArgumentError(
            f"{what}: all dimensions of the shape must be known, got {given}; "
            "use FixedLenSequenceFeature or VarLenFeature for values that differ in number"
        )
    return tuple([in_int64(what, "each dimension", d) for d in dims])


def _dims(shape: Any) -> tuple[int | None, ...] | None:
    """The dimensions of a shape, including negative ones; None if the rank is unknown or it is not a shape."""
    if isinstance(shape, int | np.integer):
        return (int(shape),)
    if shape is None or getattr(shape, "rank", 0) is None:
        return None
    try:
        return tuple([None if d is None else operator.index(d) for d in shape])
    except TypeError:
        return None


def _feature_dtype(dtype: Any) -> np.dtype[Any]:
    found = as_dtype(dtype)
    if found not in _DEFAULTS:
        raise InvalidArgumentError(f"a feature is int64, float32 or string, got {dtype!r}; parse that and cast it")
    return found


def as_feature_array(value: Any, dtype: np.dtype[Any]) -> Array:
    """A default as an array.

    Raises:
      InvalidArgumentError: it is of another type.
    """
    what, kinds = _DEFAULTS[dtype]
    array = np.asarray(as_leaf(value) if dtype == STRING else value)
    if array.size and array.dtype.kind not in kinds:
        shown = "string" if dtype == STRING else dtype
        raise InvalidArgumentError(f"default_value must be {what} for a feature of {shown}, got {value!r}")
    if dtype == np.int64:
        try:
            return cast_within(array, dtype)  # type: ignore[no-any-return]
        except InvalidArgumentError:
            raise InvalidArgumentError(f"default_value must fit into {dtype}, got {value!r}") from None
    if dtype != STRING:
        with np.errstate(over="ignore"):
            cast: Array = array.astype(dtype)
        if lost(array, cast).any():
            raise InvalidArgumentError(f"default_value is too large for a feature of {dtype}, got {value!r}")
        return cast
    if array.dtype == STRING:
        return array
    out = np.empty((), object)  # NumPy's own kind of text cuts off zeros at the end
    out[()] = as_leaf(value)
    return out


def checked_features(features: Features) -> Features:
    """The same features, checked.

    Raises:
      InvalidArgumentError: there are no features, or a value is not a feature.
      TypeError: they are no dict.
    """
    if not features:
        raise InvalidArgumentError("Missing: features was empty; name the features to parse")
    if not isinstance(features, Mapping):
        raise TypeError(f"features must be a dict from key to feature, got {features!r:.80}")
    for key, feature in features.items():
        if not isinstance(feature, Feature):
            raise InvalidArgumentError(
                f"Invalid feature {key!r}: expected FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, RaggedFeature or "
                f"SparseFeature, got a {type(feature).__name__}"
            )
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise InvalidArgumentError(
                f"FixedLenSequenceFeature: allow_missing must be True to parse an Example, got False for {key!r}"
            )
    return features


def message_key(key: str, feature: Feature) -> bytes:
    """The key in the messages of a feature that is declared under `key`."""
    name: str | bytes = feature.value_key or key if isinstance(feature, RaggedFeature) else key
    return name.encode() if isinstance(name, str) else name


# ----------------------------------------------------------------------------
# Features that are made of several keys of a message: sparse tensors, and ragged tensors with partitions.
#
# Each key is parsed as a feature of its own, under a name that no key of the user has; then the values are put together.
# ----------------------------------------------------------------------------


_INT64 = np.dtype(np.int64)
_PART = "{}\0{}"  # no key of a message that people name holds a zero character


@dataclass(frozen=True)
class KeyValues:
    """The values of one key in n records.

    Args:
      flat: the values of all records, one after the other.
      counts: [n], how many each record has.
    """

    flat: Any
    counts: Ints


def is_composed(feature: Any) -> bool:
    """True for a feature that is made of several keys."""
    return isinstance(feature, SparseFeature) or (isinstance(feature, RaggedFeature) and bool(feature.partitions))


def plain_features(features: Features) -> dict[str, Feature]:
    """The features to parse: composed ones as one for each of their keys."""
    made: dict[str, Feature] = {}
    for key, feature in features.items():
        if not is_composed(feature):
            made[key] = feature
            continue
        for part, (name, dtype) in enumerate(_keys(key, feature)):
            made[_PART.format(key, part)] = RaggedFeature(dtype, name)
    return made


@dataclass(frozen=True)
class Composed:
    """Puts parsed keys together; a function of one parsed element.

    Args:
      features: as the user declared them.
      batched: True if an element holds a batch of records, False if it holds one.
    """

    features: Mapping[str, Feature]
    batched: bool

    def __call__(self, parsed: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: self._made(key, feature, parsed) if is_composed(feature) else parsed[key]
            for key, feature in self.features.items()
        }

    def spec(self, parsed: Mapping[str, Any], first: int | None) -> dict[str, Any]:
        """The specs of what it returns.

        Args:
          parsed: the specs of the parsed elements, by key.
          first: the number of records of a batch, if it is known.
        """
        return {
            key: self._spec(feature, first) if is_composed(feature) else parsed[key]
            for key, feature in self.features.items()
        }

    def _made(self, key: str, feature: Any, parsed: Mapping[str, Any]) -> Any:
        parts = [self._keyed(parsed[_PART.format(key, part)]) for part in range(len(_keys(key, feature)))]
        if isinstance(feature, SparseFeature):
            return _sparse(key, feature, parts[0], parts[1:], self.batched)
        return _ragged(key, feature, parts[0], parts[1:], self.batched)

    def _keyed(self, value: Any) -> KeyValues:
        if self.batched:
            return KeyValues(value.flat_values, value.row_lengths())
        return KeyValues(value, np.array([len(value)]))

    def _spec(self, feature: Any, first: int | None) -> Any:
        outer = [first] if self.batched else []
        if isinstance(feature, SparseFeature):
            return SparseTensorSpec([*outer, *feature.sizes], feature.dtype)
        inner, ragged = _inner(feature)
        shape = [*outer, None, *[None] * len(ragged), *inner]
        rank = len(outer) + len(ragged)
        return RaggedTensorSpec(shape, feature.dtype, rank) if rank else TensorSpec(shape, feature.dtype)


def composed(features: Features, batched: bool) -> Composed | None:
    """What puts the keys of composed features together; None if there are none.

    Raises:
      InvalidArgumentError: there are no features, or a value is not a feature.
    """
    checked_features(features)
    return Composed(dict(features), batched) if any(map(is_composed, features.values())) else None


def _keys(key: str, feature: Any) -> list[tuple[str, Any]]:
    """The keys in the messages, and their dtypes: that of the values first."""
    if isinstance(feature, SparseFeature):
        return [(feature.value_key, feature.dtype), *[(name, _INT64) for name in feature.index_keys]]
    partitions = [part for part in feature.partitions if not isinstance(part, UniformRowLength)]
    return [(feature.value_key or key, feature.dtype), *[(part.key, _INT64) for part in partitions]]


def _sparse(
    key: str, feature: SparseFeature, values: KeyValues, indices: Sequence[KeyValues], batched: bool
) -> SparseTensor:
    for name, index in zip(feature.index_keys, indices, strict=True):
        wrong = np.flatnonzero(index.counts != values.counts)
        if len(wrong):
            at = wrong[0]
            raise InvalidArgumentError(
                f"SparseFeature {key!r}: each value needs an index, got {values.counts[at]} values of {feature.value_key!r} "
                f"and {index.counts[at]} indices of {name!r} in record {at}; write as many of both"
            )
    records = len(values.counts)
    rows = [np.repeat(np.arange(records), values.counts)] if batched else []
    columns = [*rows, *[index.flat for index in indices]]
    places, flat = np.stack(columns, axis=1).astype(_INT64, copy=False), values.flat
    if not feature.already_sorted:
        order = np.lexsort(columns[::-1])
        places, flat = places[order], flat[order]
    return SparseTensor(places, flat, np.array([*[records] * batched, *feature.sizes], _INT64))


def _inner(feature: RaggedFeature) -> tuple[list[int], list[Any]]:
    """The sizes of the inner dimensions that are uniform, and the partitions that remain, from the outermost on."""
    inner: list[int] = []
    ragged = list(feature.partitions)
    while ragged and isinstance(ragged[-1], UniformRowLength):
        inner.insert(0, ragged.pop().length)
    return inner, ragged


def _ragged(key: str, feature: RaggedFeature, values: KeyValues, keyed: Sequence[KeyValues], batched: bool) -> Any:
    inner, ragged = _inner(feature)
    flat, counts = values.flat, np.asarray(values.counts)
    if inner:
        counts = _divided(key, counts, prod(inner))
        flat = flat.reshape(-1, *inner)
    left = list(keyed)
    for partition in reversed(ragged):
        if isinstance(partition, UniformRowLength):
            counts = _divided(key, counts, partition.length)
            flat = RaggedTensor.from_row_lengths(flat, np.full(int(counts.sum()), partition.length))
            continue
        lengths = _lengths(key, partition, left.pop(), counts)
        flat = RaggedTensor.from_row_lengths(flat, np.concatenate([np.zeros(0, _INT64), *lengths]))
        counts = np.array([len(each) for each in lengths], _INT64)
    return RaggedTensor.from_row_lengths(flat, counts) if batched else flat


def _divided(key: str, counts: Ints, length: int) -> Ints:
    """The number of rows of so many values in each record."""
    wrong = np.flatnonzero(counts % length)
    if len(wrong):
        raise InvalidArgumentError(
            f"RaggedFeature {key!r}: rows of {length} values need a multiple of that, got {counts[wrong[0]]} in record "
            f"{wrong[0]}"
        )
    return counts // length


def _lengths(key: str, partition: Any, keyed: KeyValues, counts: Ints) -> list[Ints]:
    """The lengths of the rows of each record.

    Raises:
      InvalidArgumentError: they do not take in all values of a record.
    """
    ends = np.cumsum(keyed.counts)
    per_key = []
    for record, (start, stop) in enumerate(zip(ends - keyed.counts, ends, strict=True)):
        given, total = keyed.flat[start:stop], operator.index(counts[record])
        lengths = partition.lengths(given, total)
        if lengths is None or (lengths < 0).any() or lengths.sum() != total:
            kind = type(partition).__name__
            raise InvalidArgumentError(
                f"RaggedFeature {key!r}: {kind}({partition.key!r}) must divide all {total} values of record {record}, got "
                f"{given.tolist()}; write {kind} that fit the values"
            )
        per_key.append(lengths)
    return per_key
