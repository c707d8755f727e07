# SPDX-License-Identifier: Apache-2.0
"""`tf.train.Example` messages into columns and back, without protobuf.

    Example { map from key to a list of bytes, of float32 or of int64 }

Features are declared as with TensorFlow: `FixedLenFeature`, `FixedLenSequenceFeature`, `VarLenFeature` and
`RaggedFeature`.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from distinput.core.block import Block
from distinput.core.buffers import empty
from distinput.core.column import Column, Dense, Ragged, Strings
from distinput.core.spec import Spec, TensorSpec
from distinput.core.values import STRING, as_dtype, as_leaf
from distinput.errors import InvalidArgumentError
from distinput.kernels.example import (
    BYTES,
    FLOAT,
    INT64,
    MISSING,
    OK,
    SPLIT,
    WRONG_COUNT,
    WRONG_KIND,
    count_values,
    fill_bytes_spans,
    fill_floats,
    fill_int64s,
    locate_features,
)

__all__ = [
    "ExampleParser",
    "Feature",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "RaggedValues",
    "VarLenFeature",
    "encode_example",
    "encode_examples",
    "features_spec",
    "parse_example",
    "parse_examples",
    "parse_single_example",
]

Array = np.ndarray[Any, np.dtype[Any]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

_KINDS: dict[np.dtype[Any], int] = {STRING: BYTES, np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT64}
_BYTE = np.dtype(np.uint8)
_NONE: Ints = np.empty(0, np.int64)
_WIDTHS = {BYTES: 16, FLOAT: 4, INT64: 8}  # bytes of a value, as `locate_features` writes it
_NAMES = {MISSING: "none", BYTES: "string", FLOAT: "float", INT64: "int64"}


@dataclass(frozen=True, init=False)
class FixedLenFeature:
    """A feature with the same number of values in every record; the counterpart of `tf.io.FixedLenFeature`.

    Args:
      shape: of the value of a record; `()` or `[]` for a scalar.
      dtype: int64, float32 or string.
      default_value: what a record without the feature gets, a scalar or of the shape; None: such a record is an error.

    Raises:
      InvalidArgumentError: a dtype that no feature has, an unknown dimension, or a default of another shape.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    default_value: Any

    def __init__(self, shape: Sequence[int] | int, dtype: Any, default_value: Any = None) -> None:
        object.__setattr__(self, "shape", _known_shape(shape, "FixedLenFeature"))
        object.__setattr__(self, "dtype", _feature_dtype(dtype))
        object.__setattr__(self, "default_value", default_value)
        if default_value is not None:
            self.default()

    @property
    def size(self) -> int:
        """Values in a record."""
        return math.prod(self.shape)

    def default(self) -> Array | None:
        """The default as an array of the shape and dtype; None if there is none."""
        if self.default_value is None:
            return None
        made = _as_array(self.default_value, self.dtype)
        if made.size != 1 and made.shape != self.shape:
            raise InvalidArgumentError(
                f"FixedLenFeature: default_value must be a scalar or of shape {list(self.shape)}, "
                f"got shape {list(made.shape)}"
            )
        return np.broadcast_to(made.reshape(()) if made.size == 1 else made, self.shape)

    @property
    def spec(self) -> TensorSpec:
        """What a record gets."""
        return TensorSpec(self.shape, self.dtype)


@dataclass(frozen=True, init=False)
class FixedLenSequenceFeature:
    """Any number of items of one shape; the counterpart of `tf.io.FixedLenSequenceFeature` for Examples.

    `parse_example` pads the records of a batch to the longest one.

    Args:
      shape: of an item.
      dtype: int64, float32 or string.
      allow_missing: must be true: a record without the feature has no items.
      default_value: what `parse_example` pads with, a scalar; None: 0 or an empty string.

    Raises:
      InvalidArgumentError: `allow_missing` is false, or see `FixedLenFeature`.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    allow_missing: bool
    default_value: Any

    def __init__(
        self, shape: Sequence[int] | int, dtype: Any, allow_missing: bool = False, default_value: Any = None
    ) -> None:
        if not allow_missing:
            raise InvalidArgumentError("FixedLenSequenceFeature: allow_missing must be True to parse an Example")
        object.__setattr__(self, "shape", _known_shape(shape, "FixedLenSequenceFeature"))
        object.__setattr__(self, "dtype", _feature_dtype(dtype))
        object.__setattr__(self, "allow_missing", allow_missing)
        object.__setattr__(self, "default_value", default_value)

    @property
    def spec(self) -> TensorSpec:
        """What a record gets."""
        return TensorSpec((None, *self.shape), self.dtype)


@dataclass(frozen=True, init=False)
class VarLenFeature:
    """A feature with any number of values; the counterpart of `tf.io.VarLenFeature`.

    Args:
      dtype: int64, float32 or string.

    Raises:
      InvalidArgumentError: a dtype that no feature has.
    """

    dtype: np.dtype[Any]

    def __init__(self, dtype: Any) -> None:
        object.__setattr__(self, "dtype", _feature_dtype(dtype))

    @property
    def spec(self) -> TensorSpec:
        """What a record gets."""
        return TensorSpec((None,), self.dtype)


@dataclass(frozen=True, init=False)
class RaggedFeature:
    """A feature with any number of values; `tf.io.RaggedFeature` without partitions.

    Args:
      dtype: int64, float32 or string.
      value_key: the key in the message; None: the key under which this feature is declared.

    Raises:
      InvalidArgumentError: a dtype that no feature has.
    """

    dtype: np.dtype[Any]
    value_key: str | None

    def __init__(self, dtype: Any, value_key: str | None = None) -> None:
        object.__setattr__(self, "dtype", _feature_dtype(dtype))
        object.__setattr__(self, "value_key", value_key)

    @property
    def spec(self) -> TensorSpec:
        """What a record gets."""
        return TensorSpec((None,), self.dtype)


Feature = FixedLenFeature | FixedLenSequenceFeature | VarLenFeature | RaggedFeature
Features = Mapping[str, Feature]


class RaggedValues(NamedTuple):
    """Rows of different lengths: row i is `values[row_splits[i]:row_splits[i + 1]]`.

    It has the attributes of TensorFlow's RaggedTensor, and those of its SparseTensor too.
    """

    values: Array
    row_splits: Ints

    @property
    def indices(self) -> Ints:
        """The row and the place in the row of each value, [m, 2]."""
        sizes = np.diff(self.row_splits)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        return np.stack((rows, np.arange(len(rows)) - self.row_splits[rows]), axis=1)

    @property
    def dense_shape(self) -> Ints:
        """The number of rows, and the length of the longest."""
        sizes = np.diff(self.row_splits)
        return np.array([len(sizes), sizes.max(initial=0)], np.int64)

    def to_list(self) -> list[list[Any]]:
        """Lists of Python values."""
        return [self.values[a:b].tolist() for a, b in zip(self.row_splits[:-1], self.row_splits[1:], strict=True)]


def features_spec(features: Features) -> Spec:
    """What a record is after `parse_examples` or `parse_single_example`."""
    return Spec.of({key: feature.spec for key, feature in _checked(features).items()})


def parse_examples(serialized: Strings, features: Features) -> dict[str, Column]:
    """Columns out of many messages at once.

    Args:
      serialized: n messages.
      features: what is wanted, by key; other features are passed over.

    Returns:
      A column for each wanted feature: fixed-length ones as `Dense` [n, *shape] or `Strings`, others as `Ragged`.

    Raises:
      InvalidArgumentError: a message is none, lacks a required feature, or has one of another type or size.
    """
    return ExampleParser(features)(serialized)


def parse_example(serialized: Any, features: Features, example_names: Any = None, name: str | None = None) -> Any:
    """NumPy values out of a batch of messages; the counterpart of `tf.io.parse_example`.

    Args:
      serialized: a list or array of messages as bytes.
      features: what is wanted, by key.
      example_names: ignored.
      name: ignored.

    Returns:
      A dict with an array [n, *shape] for each fixed-length feature, one [n, longest, *shape] for each sequence
      feature, and `RaggedValues` for the others.

    Raises:
      InvalidArgumentError: see `parse_examples`.
    """
    del example_names, name
    messages = serialized if isinstance(serialized, Strings) else Strings.of(list(serialized))
    columns = parse_examples(messages, features)
    return {key: _batch_value(features[key], column) for key, column in columns.items()}


def parse_single_example(
    serialized: bytes, features: Features, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """NumPy values out of one message; the counterpart of `tf.io.parse_single_example`.

    Args:
      serialized: the message.
      features: what is wanted, by key.
      example_names: ignored.
      name: ignored.

    Returns:
      A dict with an array (for a scalar shape a scalar or bytes) for each feature.

    Raises:
      InvalidArgumentError: see `parse_examples`.

    >>> message = encode_example({"id": 7, "name": b"seven"})
    >>> parse_single_example(message, {"name": FixedLenFeature([], "string"), "no": VarLenFeature("int64")})
    {'name': b'seven', 'no': array([], dtype=int64)}
    """
    del example_names, name
    message = Strings(np.frombuffer(serialized, np.uint8), np.zeros(1, np.int64), np.array([len(serialized)]))
    return {key: column.row(0) for key, column in parse_examples(message, features).items()}


def encode_example(features: Mapping[str, Any]) -> bytes:
    r"""A `tf.train.Example` message, keys in sorted order, so that the same features give the same bytes.

    Args:
      features: values by key: bytes and str become a list of bytes; integers and booleans of int64; floating-point
        numbers of float32; lists and arrays lists of their values, row by row. None and `[]` become a feature without
        a kind, which counts as missing.

    Raises:
      InvalidArgumentError: a value that no kind of feature holds.

    >>> encode_example({"x": [1, 300]})
    b'\n\x0e\n\x0c\n\x01x\x12\x07\x1a\x05\n\x03\x01\xac\x02'
    """
    entries = []
    for key in sorted(features, key=_encoded_key):
        entry = _field(1, _encoded_key(key)) + _field(2, _encode_feature(key, features[key]))
        entries.append(_field(1, entry))
    return _field(1, b"".join(entries))


def encode_examples(block: Block) -> Strings:
    """A message for each element of a block of dicts."""
    return Strings.of([encode_example(element) for element in block.elements()])


def _known_shape(shape: Any, what: str) -> tuple[int, ...]:
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(d is None or d < 0 for d in dims):
        raise InvalidArgumentError(
            f"{what}: all dimensions of the shape must be known, got {list(dims)}; "
            "use FixedLenSequenceFeature or VarLenFeature for values that differ in number"
        )
    return tuple(int(d) for d in dims)


def _feature_dtype(dtype: Any) -> np.dtype[Any]:
    found = as_dtype(dtype)
    if found not in _KINDS:
        raise InvalidArgumentError(f"a feature is int64, float32 or string, got {dtype!r}; parse that and cast it")
    return found


def _as_array(value: Any, dtype: np.dtype[Any]) -> Array:
    if dtype != STRING:
        return np.asarray(value).astype(dtype)
    leaf = as_leaf(value)
    out = np.empty((), object)
    out[()] = leaf
    return leaf if isinstance(leaf, np.ndarray) else out


def _checked(features: Features) -> Features:
    if not features:
        raise InvalidArgumentError("Missing: features was empty; name the features to parse")
    for key, feature in features.items():
        if not isinstance(feature, Feature):
            raise InvalidArgumentError(
                f"Invalid feature {key!r}: expected FixedLenFeature, FixedLenSequenceFeature, VarLenFeature or "
                f"RaggedFeature, got a {type(feature).__name__}"
            )
    return features


def _encoded_key(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key


def _message_key(key: str, feature: Feature) -> bytes:
    return _encoded_key(feature.value_key or key) if isinstance(feature, RaggedFeature) else _encoded_key(key)


class ExampleParser:
    """`parse_examples` for these features, over and over.

    Args:
      features: what is wanted, by key.

    Raises:
      InvalidArgumentError: there is none, or one is no feature.
    """

    def __init__(self, features: Features) -> None:
        self.features = dict(_checked(features))
        keys = {key: _message_key(key, feature) for key, feature in self.features.items()}
        self.names = list(dict.fromkeys(keys.values()))
        """The keys in the messages, none of them twice."""
        self.indices = {key: self.names.index(name) for key, name in keys.items()}
        self.keys = np.frombuffer(b"".join(self.names), np.uint8)
        self.key_offsets = np.cumsum([0, *map(len, self.names)], dtype=np.int64)
        places = list(self.indices.values())
        self.fixed = [
            (self.indices[key], _KINDS[feature.dtype], feature.size)
            for key, feature in self.features.items()
            if isinstance(feature, FixedLenFeature) and places.count(self.indices[key]) == 1
        ]
        """Key, kind and number of values of the features that can be decoded as soon as they are found."""

    def __call__(self, serialized: Strings) -> dict[str, Column]:
        """See `parse_examples`."""
        messages = _contiguous(serialized)
        found = self._decoded(messages) or self._located(messages)
        complete = found.kinds.tobytes().find(MISSING) < 0
        columns: dict[str, Column] = {}
        for key, feature in self.features.items():
            j = self.indices[key]
            values = found.values.get(j)
            if values is not None and complete and feature.dtype != STRING:  # nothing is left to do
                columns[key] = Dense(values.view(feature.dtype).reshape(len(messages.starts), *feature.shape))  # type: ignore[union-attr]
                continue
            data, kind, (starts, sizes) = found.messages.data, _KINDS[feature.dtype], found.spans[:, j]
            lists = _Lists(self.names[j], data, kind, found.kinds[j], starts, sizes, values)
            if isinstance(feature, FixedLenFeature):
                columns[key] = _fixed(lists, feature, complete)
            else:
                columns[key] = _variable(lists, feature)
        return columns

    def _decoded(self, messages: "_Messages") -> "_Found | None":
        """What was found, features of a known size decoded on the way; None where anything is odd or wrong."""
        n = len(messages.starts)
        columns, room = np.full((len(self.names), 3), -1, np.int64), 0
        for j, kind, size in self.fixed:
            columns[j] = kind, size, room
            room += -(-n * size * _WIDTHS[kind] // 8) * 8
        out = empty((room,), _BYTE)
        found = _Found.of(messages, len(self.names))
        if self._locate(found, columns.reshape(-1), out)[0] != OK:
            return None
        place = 0
        for j, kind, size in self.fixed:
            column = out[place : place + n * size * _WIDTHS[kind]]
            # What somebody keeps of a small column must not hold the memory of a large one.
            found.values[j] = column.copy() if kind != BYTES and column.nbytes < room // 8 else column
            place += -(-column.nbytes // 8) * 8
        return found

    def _located(self, messages: "_Messages") -> "_Found":
        """Where everything is, read as protobuf would.

        Raises:
          InvalidArgumentError: something is no message.
        """
        found = _Found.of(messages, len(self.names))
        columns, nowhere = np.full(3 * len(self.names), -1, np.int64), np.empty(0, np.uint8)
        status, index = self._locate(found, columns, nowhere)
        if status == SPLIT:
            found.messages = _with_joined(messages, index)
            status, index = self._locate(found, columns, nowhere)
        if status != OK:
            raise _malformed(index, found.messages.message(index))
        return found

    def _locate(self, found: "_Found", columns: Ints, out: Array) -> tuple[int, int]:
        starts, sizes = found.spans.reshape(2, -1)
        kinds = found.kinds.reshape(-1)
        return locate_features(*found.messages, self.keys, self.key_offsets, columns, kinds, starts, sizes, out)


class _Messages(NamedTuple):
    """n messages: where each begins in the data, and how long it is."""

    data: Array
    starts: Ints
    sizes: Ints

    def message(self, index: int) -> bytes:
        """One of them."""
        return self.data[self.starts[index] :][: self.sizes[index]].tobytes()


def _contiguous(strings: Strings) -> _Messages:
    if strings.starts.ndim != 1:
        raise InvalidArgumentError(
            f"parse_examples: expected one message a row, got {strings.starts.ndim - 1} more axes"
        )
    return _Messages(*[np.ascontiguousarray(array) for array in (strings.data, strings.starts, strings.sizes)])


@dataclass(slots=True)
class _Found:
    """What `locate_features` found in n messages.

    Args:
      messages: the messages.
      kinds: [k, n] of each feature in each message.
      spans: [2, k, n] where each list begins in the data, and how long it is.
      values: of the features that were decoded, as bytes, by the number of their key.
    """

    messages: _Messages
    kinds: Array
    spans: Ints
    values: dict[int, Array]

    @staticmethod
    def of(messages: _Messages, keys: int) -> "_Found":
        """Room for so many keys."""
        n = len(messages.starts)
        return _Found(messages, np.empty((keys, n), np.uint8), np.empty((2, keys, n), np.int64), {})


@dataclass(slots=True)
class _Lists:
    """Where the list of one feature is in each of n messages, or its values if they are decoded already."""

    name: bytes
    data: Array
    kind: int
    kinds: Array
    starts: Ints
    sizes: Ints
    values: Array | None = None

    @property
    def key(self) -> str:
        """The key as text."""
        return self.name.decode(errors="replace")

    def counts(self) -> Ints:
        """How many values each message has."""
        counts = np.empty(len(self.kinds), np.int64)
        status, index = count_values(self.data, self.kind, self.kinds, self.starts, self.sizes, counts)
        if status != OK:
            raise self.error(status, index)
        return counts

    def fill(self, offsets: Ints, out: Array, more: Array | None = None, shape: tuple[int, ...] = ()) -> None:
        """Decode the values of message i to out[offsets[i]:offsets[i + 1]]."""
        where = (self.data, self.kinds, self.starts, self.sizes, offsets, out)
        if more is not None:
            status, index = fill_bytes_spans(*where, more)
        else:
            status, index = (fill_floats if self.kind == FLOAT else fill_int64s)(*where)
        if status != OK:
            raise self.error(status, index, shape)

    def decode(self, feature: FixedLenFeature) -> Array:
        """The values of a feature of a known size, as bytes."""
        n, size = len(self.kinds), feature.size
        offsets = np.arange(n + 1, dtype=np.int64) * size
        out = np.zeros(n * size * _WIDTHS[self.kind], np.uint8)
        if self.kind == BYTES:
            starts, sizes = out.view(np.int64).reshape(2, -1)
            self.fill(offsets, starts, sizes, feature.shape)
        else:
            self.fill(offsets, out.view(feature.dtype), shape=feature.shape)
        return out

    def error(self, status: int, index: int, shape: tuple[int, ...] = ()) -> InvalidArgumentError:
        """What is wrong with a message."""
        what = f"Name: <unknown>, Key: {self.key}, Index: {index}.  "
        expected = _NAMES[self.kind]
        if status == WRONG_KIND:
            found = _NAMES[int(self.kinds[index])]
            return InvalidArgumentError(
                f"{what}Data types don't match. Data type: {found} but expected type: {expected}"
            )
        if status == WRONG_COUNT:
            one = slice(index, index + 1)
            alone = _Lists(self.name, self.data, self.kind, self.kinds[one], self.starts[one], self.sizes[one])
            return InvalidArgumentError(
                f"{what}Can't parse serialized Example: number of {expected} values != expected. "
                f"Values size: {int(alone.counts()[0])} but output shape: {list(shape)}"
            )
        return InvalidArgumentError(f"{what}Can't parse serialized Example: the list of values is damaged")


def _fixed(lists: _Lists, feature: FixedLenFeature, complete: bool) -> Column:
    n = len(lists.kinds)
    missing, default = _NONE, None
    if not complete:
        missing, default = np.flatnonzero(lists.kinds == MISSING), feature.default()
    if len(missing) and default is None:
        raise InvalidArgumentError(
            f"Name: <unknown>, Feature: {lists.key} (data type: {_NAMES[lists.kind]}) is required but could not be "
            f"found. Index: {missing[0]}; give it a default_value, or use VarLenFeature"
        )
    values = lists.values if lists.values is not None else lists.decode(feature)
    if lists.kind != BYTES:
        out = values.view(feature.dtype).reshape(n, *feature.shape)
        if len(missing):
            out[missing] = default
        return Dense(out)
    starts, sizes = values.view(np.int64).reshape(2, n, *feature.shape)
    data = lists.data
    if len(missing) and default is not None:
        texts = Strings.of(default.reshape(-1).tolist())
        starts[missing] = (texts.starts + len(data)).reshape(feature.shape)
        sizes[missing] = texts.sizes.reshape(feature.shape)
        data = np.concatenate((data, texts.data)) if len(texts.data) else data
    return Strings(data, starts, sizes)


def _variable(lists: _Lists, feature: FixedLenSequenceFeature | VarLenFeature | RaggedFeature) -> Ragged:
    counts = lists.counts()
    offsets = np.cumsum([0, *counts]) if len(counts) < 64 else np.concatenate(([0], np.cumsum(counts)))
    total = int(offsets[-1])
    flat: Dense | Strings
    if lists.kind == BYTES:
        starts, sizes = np.zeros((2, total), np.int64)
        lists.fill(offsets, starts, sizes)
        flat = Strings(lists.data, starts, sizes)
    else:
        out = np.empty(total, feature.dtype)
        lists.fill(offsets, out)
        flat = Dense(out)
    if not isinstance(feature, FixedLenSequenceFeature) or not feature.shape:
        return Ragged(flat, offsets[:-1], counts)
    size = math.prod(feature.shape)
    bad = np.flatnonzero(counts % size if size else counts)
    if len(bad):
        raise lists.error(WRONG_COUNT, int(bad[0]), (-1, *feature.shape))
    items = total // size if size else 0
    shaped: Dense | Strings
    if isinstance(flat, Strings):
        shape = (items, *feature.shape)
        shaped = Strings(flat.data, flat.starts.reshape(shape), flat.sizes.reshape(shape))
    else:
        shaped = Dense(flat.array.reshape(items, *feature.shape))
    return Ragged(shaped, offsets[:-1] // max(1, size), counts // max(1, size))


def _batch_value(feature: Feature, column: Column) -> Any:
    if not isinstance(column, Ragged):
        return column.objects() if isinstance(column, Strings) else column.array  # type: ignore[attr-defined]
    flat = column.flat
    values = flat.objects() if isinstance(flat, Strings) else flat.array
    if not isinstance(feature, FixedLenSequenceFeature):
        return RaggedValues(values, np.concatenate(([0], np.cumsum(column.sizes))))
    fill: Any = feature.default_value
    if fill is None:
        fill = b"" if feature.dtype == STRING else 0
    fill = _as_array(fill, feature.dtype).reshape(())[()]
    out = np.full((len(column), int(column.sizes.max(initial=0)), *feature.shape), fill, feature.dtype)
    for i, (a, size) in enumerate(zip(column.starts.tolist(), column.sizes.tolist(), strict=True)):
        out[i, :size] = values[a : a + size]
    return out


def _malformed(index: int, message: bytes) -> InvalidArgumentError:
    shown = repr(message if len(message) <= 60 else message[:60] + b"...")
    return InvalidArgumentError(
        f"Could not parse example input, value: {shown} (Index: {index}); it is no tf.train.Example message"
    )


# Messages as protobuf writes them: fields of tag and content, the tag telling number and form.


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + _varint(len(content)) + content


def _encode_feature(key: str, value: Any) -> bytes:
    if value is None or (isinstance(value, list | tuple) and not len(value)):
        return b""
    if isinstance(value, bytes | bytearray | memoryview | str):
        return _field(BYTES, _field(1, _text(value)))
    array = np.asarray(value) if not _holds_text(value) else np.array(value, object)
    match array.dtype.kind:
        case "f":
            numbers = array.astype("<f4").tobytes()
            return _field(FLOAT, _field(1, numbers) if numbers else b"")
        case "i" | "u" | "b":
            if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
                raise InvalidArgumentError(
                    f"feature {key!r}: {array.max()} is no int64, the only integers of an Example"
                )
            packed = b"".join([_varint(item & (1 << 64) - 1) for item in array.reshape(-1).tolist()])
            return _field(INT64, _field(1, packed) if packed else b"")
        case "S" | "U" | "O":
            items = array.reshape(-1).tolist()
            if all(isinstance(item, bytes | bytearray | memoryview | str) for item in items):
                return _field(BYTES, b"".join([_field(1, _text(item)) for item in items]))
    raise InvalidArgumentError(
        f"feature {key!r}: an Example holds bytes, floating-point numbers and integers, got {value!r:.80}"
    )


def _holds_text(value: Any) -> bool:
    """True for a list of bytes or str; NumPy would strip trailing zeros from them."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, bytes | str)


def _text(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number, form and content of each field of a message that the kernels found to be well-formed so far."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            value |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        start = at
        match tag & 7:
            case 0:
                varint()
            case 1:
                at += 8
            case 2:
                size = varint()
                start, at = at, at + size
            case 5:
                at += 4
            case _:
                raise IndexError
        if at > len(message):
            raise IndexError
        yield tag >> 3, tag & 7, message[start:at]


def _with_joined(given: _Messages, index: int) -> _Messages:
    """The messages, those from number `index` on written anew with each of their lists in one piece."""
    messages = list(Strings(given.data, given.starts[index:], given.sizes[index:]).values())
    for i, message in enumerate(messages):
        with contextlib.suppress(IndexError):  # a damaged one stays as it is, and the kernels will find it
            messages[i] = _joined(message)
    joined = Strings.of(messages)
    return _Messages(
        np.concatenate((given.data, joined.data)),
        np.concatenate((given.starts[:index], joined.starts + len(given.data))),
        np.concatenate((given.sizes[:index], joined.sizes)),
    )


def _joined(message: bytes) -> bytes:
    """The same message with one list for each key.

    Two pieces of a message mean the same as the piece made by writing them one after the other; of a map the last entry
    with a key counts, and of a choice the last kind.
    """
    found: dict[bytes, bytes] = {}
    for number, form, features in _fields(message):
        for number2, form2, entry in _fields(features) if (number, form) == (1, 2) else ():
            if (number2, form2) != (1, 2):
                continue
            key, feature = b"", b""
            for number3, form3, content in _fields(entry):
                if (number3, form3) == (1, 2):
                    key = content
                elif (number3, form3) == (2, 2):
                    feature += content
            found[key] = feature
    entries = []
    for key, feature in found.items():
        kind, values = MISSING, b""
        for number, form, content in _fields(feature):
            if form == 2 and number in (BYTES, FLOAT, INT64):
                kind, values = number, values + content if number == kind else content
        entry = _field(1, key) + _field(2, _field(kind, values) if kind else b"")
        entries.append(_field(1, entry))
    return _field(1, b"".join(entries))
