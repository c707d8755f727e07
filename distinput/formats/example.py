# SPDX-License-Identifier: Apache-2.0
"""Parsing `tf.train.Example` messages into columns, without the protobuf library."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from math import prod
from typing import Any, NamedTuple

import numpy as np

from distinput.columns.column import Column, Dense, Strings
from distinput.columns.ragged import Ragged, RaggedBatches, ragged_tensor
from distinput.errors import InvalidArgumentError
from distinput.formats.example_encoding import message_of, with_joined_lists
from distinput.formats.features import (
    Feature,
    Features,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    checked_features,
    composed,
    message_key,
    plain_features,
)
from distinput.kernels.example_messages import locate_features
from distinput.kernels.example_values import (
    ANY,
    BYTES,
    FLOAT,
    INT64,
    MISSING,
    NO_ROOM,
    OK,
    SPLIT,
    WIDTHS,
    WRONG_COUNT,
    WRONG_KIND,
    count_values,
    fill_bytes_spans,
    fill_floats,
    fill_int64s,
)
from distinput.kernels.protobuf import MalformedError
from distinput.names.lazy import dataclass
from distinput.values.buffers import empty, told_by
from distinput.values.leaves import STRING, Array, Ints

# ----------------------------------------------------------------------------
# Decoding one feature of many `tf.train.Example` messages into a column, from the locations of its lists.
#
# The separate steps can report a feature that is missing or differs from its declaration.
# ----------------------------------------------------------------------------


KINDS: dict[np.dtype[Any], int] = {STRING: BYTES, np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT64}
"""The kind of feature that holds values of a dtype."""

KIND_NAMES = {MISSING: "none", BYTES: "string", FLOAT: "float", INT64: "int64"}


@dataclass(slots=True)
class Lists:
    """The location of the list of one feature in each of n messages."""

    name: bytes
    data: Array
    kind: int
    kinds: Array
    starts: Ints
    sizes: Ints

    @property
    def key(self) -> str:
        """The key as text."""
        return _as_text(self.name)

    def counts(self) -> Ints:
        """How many values each message has."""
        counts = np.empty(len(self.kinds), np.int64)
        status, index = count_values(self.data, self.kind, self.kinds, self.starts, self.sizes, counts)
        if status != OK:
            raise self.error(status, index)
        return counts

    def count(self, index: int) -> int:
        """How many values one message has."""
        one = slice(index, index + 1)
        alone = Lists(self.name, self.data, self.kind, self.kinds[one], self.starts[one], self.sizes[one])
        return int(alone.counts()[0])

    def fill(self, offsets: Ints, out: Array, more: Array | None = None, shape: tuple[int, ...] = ()) -> None:
        """Decode the values of message i to out[offsets[i]:offsets[i + 1]]."""
        where = (self.data, self.kinds, self.starts, self.sizes, offsets, out)
        if more is not None:
            status, index = fill_bytes_spans(*where, more)
        else:
            status, index = (fill_floats if self.kind == FLOAT else fill_int64s)(*where)
        if status != OK:
            raise self.error(status, index, shape)

    def error(self, status: int, index: int, shape: tuple[int, ...] = ()) -> InvalidArgumentError:
        """The error for a message."""
        what = f"Name: <unknown>, Key: {self.key}, Index: {index}.  "
        expected = KIND_NAMES[self.kind]
        if status == WRONG_KIND:
            found = KIND_NAMES[int(self.kinds[index])]
            return InvalidArgumentError(
                f"{what}Data types don't match. Data type: {found} but expected type: {expected}"
            )
        if status == WRONG_COUNT:
            return InvalidArgumentError(
                f"{what}Can't parse serialized Example: number of {expected} values != expected. "
                f"Values size: {self.count(index)} but output shape: {list(shape)}"
            )
        return InvalidArgumentError(f"{what}Can't parse serialized Example: the list of values is damaged")


def fixed_values(lists: Lists, feature: FixedLenFeature) -> Column:
    """The values of a fixed-length feature, with defaults filled in."""
    shape: tuple[int, ...] = (len(lists.kinds), *feature.shape)
    offsets = np.arange(len(lists.kinds) + 1, dtype=np.int64) * feature.size
    values: Dense | Strings
    if lists.kind == BYTES:
        starts, sizes = np.zeros((2, offsets[-1]), np.int64)
        lists.fill(offsets, starts, sizes, feature.shape)
        values = Strings(lists.data, starts.reshape(shape), sizes.reshape(shape))
    else:
        out = np.zeros(offsets[-1], feature.dtype)
        lists.fill(offsets, out, shape=feature.shape)
        values = Dense(out.reshape(shape))
    return with_defaults(values, feature, lists.kinds, lists.name)


def with_defaults(values: Column, feature: FixedLenFeature, kinds: Array, name: bytes) -> Column:
    """The values, with the default where the feature is missing."""
    missing = np.flatnonzero(kinds == MISSING)
    if not len(missing):
        return values
    default = feature.default()
    if default is None:
        raise InvalidArgumentError(
            f"Name: <unknown>, Feature: {_as_text(name)} (data type: {KIND_NAMES[KINDS[feature.dtype]]}) is required but could "
            f"not be found. Index: {missing[0]}; give it a default_value, or use VarLenFeature"
        )
    if isinstance(values, Dense):
        values.array[missing] = default
        return values
    assert isinstance(values, Strings)
    texts = Strings.of(default.reshape(-1).tolist())
    values.starts[missing] = (texts.starts + len(values.data)).reshape(feature.shape)
    values.sizes[missing] = texts.sizes.reshape(feature.shape)
    data = np.concatenate((values.data, texts.data)) if len(texts.data) else values.data
    return Strings(data, values.starts, values.sizes)


def variable_values(lists: Lists, feature: FixedLenSequenceFeature | VarLenFeature | RaggedFeature) -> Ragged:
    """The values of a variable-length feature."""
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
    size = prod(feature.shape)
    bad = np.flatnonzero(counts % size if size else counts)
    if len(bad):
        raise lists.error(WRONG_COUNT, int(bad[0]), (-1, *feature.shape))
    items = flat.reshape((total // size if size else 0, *feature.shape))
    return Ragged(items, offsets[:-1] // max(1, size), counts // max(1, size))


def _as_text(name: bytes) -> str:
    return name.decode(errors="replace")


# ----------------------------------------------------------------------------
# Parsing `tf.train.Example` messages into columns, without the protobuf library.
#
#     Example { map from key to a list of bytes, of float32 or of int64 }
#
# The wanted features are declared with the classes of `features`. One kernel call finds the features in all messages of a
# block and decodes them in the same pass. If anything is unusual (a list in pieces, a missing feature without a default,
# damage), the block is parsed again in separate steps, which can report what is wrong.
# ----------------------------------------------------------------------------


_BYTE, _INT64 = np.dtype(np.uint8), np.dtype(np.int64)

_ROOM = {BYTES: 32, FLOAT: 128, INT64: 128}
"""Initial buffer size per message, in bytes, for the values of strings and of variable-length numbers."""

_MORE = 4
"""The factor by which a buffer grows when it was too small."""

_MOST_ROOM = {BYTES: 128, FLOAT: 1024, INT64: 1024}
"""Beyond this size strings are left in place in the messages, and numbers are counted before they are decoded."""


def parse_examples(serialized: Strings, features: Features) -> dict[str, Column]:
    """Parse many messages into columns.

    Args:
      serialized: n messages.
      features: the wanted features by key; others are skipped.

    Returns:
      A column for each wanted feature: fixed-length ones as `Dense` [n, *shape] or `Strings`, others as `Ragged`.

    Raises:
      InvalidArgumentError: a message is malformed, lacks a required feature, or has one of another type or size.
    """
    return ExampleParser(features)(serialized)


def parse_example(serialized: Any, features: Features, example_names: Any = None, name: str | None = None) -> Any:
    """Parse a batch of messages into NumPy values; the counterpart of `tf.io.parse_example`.

    Args:
      serialized: a list or array of messages as bytes; a single one is parsed as by `parse_single_example`.
      features: the wanted features by key.
      example_names: ignored.
      name: ignored.

    Returns:
      A dict with an array [n, *shape] for each fixed-length feature, one [n, longest, *shape] for each sequence
      feature, a `SparseTensor` for each `SparseFeature`, and a `RaggedTensor` for the others, which has the attributes of
      TensorFlow's `SparseTensor` as well.

    Raises:
      InvalidArgumentError: there are other things than messages; see also `parse_examples`.
    """
    del example_names, name
    if isinstance(serialized, np.ndarray) and not serialized.shape:
        serialized = serialized.item()
    if isinstance(serialized, bytes):
        return parse_single_example(serialized, features)
    messages = serialized if isinstance(serialized, Strings) else Strings.of(messages_of("parse_example", serialized))
    together = composed(features, batched=True)
    plain = features if together is None else plain_features(features)
    parsed = {key: batch_value(plain[key], column) for key, column in parse_examples(messages, plain).items()}
    return parsed if together is None else together(parsed)


def messages_of(op: str, given: Any) -> list[bytes]:
    """The messages of a batch, if they are that.

    Raises:
      InvalidArgumentError: there are other things.
    """
    alone = isinstance(given, bytes | str | Mapping) or getattr(given, "ndim", 1) == 0
    items = list(given) if isinstance(given, Iterable) and not alone else None
    if items is None or not all(issubclass(kind, bytes) for kind in set(map(type, items))):
        raise InvalidArgumentError(
            f"{op}: serialized must be messages as bytes, got {given!r:.100}; give a list of them"
        )
    return items


def parse_single_example(
    serialized: bytes, features: Features, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """Parse one message into NumPy values; the counterpart of `tf.io.parse_single_example`.

    Args:
      serialized: the message.
      features: the wanted features by key.
      example_names: ignored.
      name: ignored.

    Returns:
      A dict with an array for each feature; for a scalar shape, a scalar or bytes.

    Raises:
      InvalidArgumentError: see `parse_examples`.

    >>> import distinput as di
    >>> message = di.io.encode_example({"id": 7, "name": b"seven"})
    >>> fixed, varying = di.io.FixedLenFeature, di.io.VarLenFeature
    >>> parse_single_example(message, {"name": fixed([], "string"), "no": varying("int64")})
    {'name': b'seven', 'no': array([], dtype=int64)}
    """
    del example_names, name
    try:
        data = np.frombuffer(message_of(serialized), np.uint8)
    except MalformedError:
        raise InvalidArgumentError(
            f"parse_single_example: serialized must be one message as bytes, got {serialized!r:.60}; use parse_example for "
            "several"
        ) from None
    message = Strings(data, np.zeros(1, np.int64), np.array([len(data)]))
    together = composed(features, batched=False)
    plain = features if together is None else plain_features(features)
    parsed = {key: column.row(0) for key, column in parse_examples(message, plain).items()}
    return parsed if together is None else together(parsed)


class ExampleParser:
    """`parse_examples` with fixed features, for repeated use.

    Args:
      features: the wanted features by key.

    Raises:
      InvalidArgumentError: there are no features, or a value is not a feature.
    """

    def __init__(self, features: Features) -> None:
        self.features = dict(checked_features(features))
        keys = {key: message_key(key, feature) for key, feature in self.features.items()}
        self.names = list(dict.fromkeys(keys.values()))
        """The keys in the messages, without duplicates."""
        self.indices = {key: self.names.index(name) for key, name in keys.items()}
        self.keys = np.frombuffer(b"".join(self.names), np.uint8)
        self.key_offsets = np.cumsum([0, *map(len, self.names)], dtype=np.int64)
        places = list(self.indices.values())
        self.at_once = {
            self.indices[key]: (KINDS[feature.dtype], _number(feature))
            for key, feature in self.features.items()
            if _is_decoded_at_once(feature) and places.count(self.indices[key]) == 1
        }
        """Kind and number of values, by key index, of the features that can be decoded as soon as they are found."""
        self._rooms: dict[int, int] = {
            j: _ROOM[kind] for j, (kind, number) in self.at_once.items() if kind == BYTES or number == ANY
        }
        self._layout = self._laid_out(0, self.at_once)

    def __call__(self, serialized: Strings) -> dict[str, Column]:
        """See `parse_examples`."""
        messages = contiguous(serialized)
        parsed_columns = self._decoded(messages) or self._located(messages)
        columns: dict[str, Column] = {}
        for key, feature in self.features.items():
            assert not isinstance(feature, SparseFeature), "its keys are parsed one by one"
            j = self.indices[key]
            values = parsed_columns.values(j, feature)
            if values is None:
                lists = parsed_columns.located(j, self.names[j], KINDS[feature.dtype])
                if isinstance(feature, FixedLenFeature):
                    columns[key] = fixed_values(lists, feature)
                else:
                    columns[key] = variable_values(lists, feature)
            elif parsed_columns.missing and isinstance(feature, FixedLenFeature):
                columns[key] = with_defaults(values, feature, parsed_columns.kinds[j], self.names[j])
            else:
                columns[key] = values
        return columns

    def _laid_out(self, n: int, at_once: Mapping[int, tuple[int, int]]) -> "_Layout":
        """The memory layout of the columns of n messages; features not in `at_once` are only located."""
        columns: list[int] = []
        places: dict[int, tuple[int, int, int, int]] = {}
        rows: dict[int, int] = {}
        size = 0
        for j in range(len(self.names)):
            kind, number = at_once.get(j, (0, -1))
            room = n * self._rooms.get(j, 0)
            if number == -1 or (number == ANY and not room and n):
                columns += (0, -1, len(rows), 0)
                rows[j] = len(rows)
                continue
            columns += (kind, number, size, room)
            places[j] = kind, number, size, room
            table = n * (16 if number == ANY else number * WIDTHS[kind])
            size += -(-(table + room) // 8) * 8
        return _Layout(n, np.array(columns, np.int64), places, rows, size)

    def _decoded(self, messages: "Messages") -> "_Found | None":
        """Locate and decode in one pass; None if anything is unusual or wrong."""
        n = len(messages.starts)
        while True:
            layout = self._layout
            if layout.n != n:
                layout = self._layout = self._laid_out(n, self.at_once)
            found = _Found.of(messages, len(self.names), layout)
            status, where = self._locate(found)
            if status != NO_ROOM:
                break
            # Replaced, not mutated: other threads may be reading them.
            more = _MORE * self._rooms[where]
            most = _MOST_ROOM[self.at_once[where][0]]
            self._rooms = {**self._rooms, where: more if more <= most else 0}
            self._layout = self._laid_out(n, self.at_once)
        found.missing = where
        return found if status == OK else None

    def _located(self, messages: "Messages") -> "_Found":
        """Locate all features without decoding them, with the semantics of protobuf.

        Raises:
          InvalidArgumentError: a message is malformed.
        """
        found = _Found.of(messages, len(self.names), self._laid_out(len(messages.starts), {}))
        status, where = self._locate(found)
        if status == SPLIT:
            found.messages = _with_joined(messages, where)
            status, where = self._locate(found)
        if status != OK:
            raise _malformed(where, found.messages.message(where))
        return found

    def _locate(self, found: "_Found") -> tuple[int, int]:
        starts, sizes = found.lists.reshape(2, -1)
        return locate_features(
            *found.messages, self.keys, self.key_offsets, found.layout.columns, found.kinds.reshape(-1), starts, sizes,
            found.out,
        )  # fmt: skip


def _number(feature: Feature) -> int:
    return feature.size if isinstance(feature, FixedLenFeature) else ANY


def _is_decoded_at_once(feature: Feature) -> bool:
    if isinstance(feature, FixedLenFeature):
        return True
    return feature.dtype != STRING and not (isinstance(feature, FixedLenSequenceFeature) and feature.shape)


class Messages(NamedTuple):
    """n messages: the start of each in the data, and its size."""

    data: Array
    starts: Ints
    sizes: Ints

    def message(self, index: int) -> bytes:
        """The bytes of one message."""
        return self.data[self.starts[index] :][: self.sizes[index]].tobytes()


def contiguous(strings: Strings) -> Messages:
    """The messages as the kernels take them."""
    if strings.starts.ndim != 1:
        raise InvalidArgumentError(
            f"parse_examples: expected one message a row, got {strings.starts.ndim - 1} more axes"
        )
    return Messages(*[np.ascontiguousarray(array) for array in (strings.data, strings.starts, strings.sizes)])


class _Layout(NamedTuple):
    """The layout of columns in one piece of memory.

    Args:
      n: number of messages.
      columns: [k * 4], for `locate_features`.
      places: kind, number of values, offset and room of the columns that are decoded at once, by key index.
      rows: the row in `_Found.lists` of those that are only located, by key index.
      size: of the memory, in bytes.
    """

    n: int
    columns: Ints
    places: dict[int, tuple[int, int, int, int]]
    rows: dict[int, int]
    size: int


@dataclass(slots=True)
class _Found:
    """What `locate_features` found in n messages.

    Args:
      messages: the messages.
      layout: of the columns in `out`.
      out: the decoded values, as bytes.
      kinds: [k, n] kind of each feature in each message.
      lists: [2, l, n] start and size in the data of the lists of the l keys that are only located.
      missing: how many of the k * n features are missing; known if any were decoded.
    """

    messages: Messages
    layout: _Layout
    out: Array
    kinds: Array
    lists: Ints
    missing: int = 0

    @staticmethod
    def of(messages: Messages, keys: int, layout: _Layout) -> "_Found":
        """Allocate memory for so many keys."""
        n = len(messages.starts)
        with told_by("parse_example", [n, layout.size // max(1, n)], _BYTE):
            out = empty((layout.size,), _BYTE)
        lists = np.empty((2, len(layout.rows), n), np.int64)
        return _Found(messages, layout, out, np.empty((keys, n), np.uint8), lists)

    def located(self, j: int, name: bytes, kind: int) -> Lists:
        """The locations of the lists of key j, which was only located."""
        return Lists(name, self.messages.data, kind, self.kinds[j], *self.lists[:, self.layout.rows[j]])

    def values(self, j: int, feature: Feature) -> Column | None:
        """The values of key j, undefined where they are missing; None if they were not decoded."""
        if j not in self.layout.places:
            return None
        kind, number, place, room = self.layout.places[j]
        n, out, dtype = len(self.messages.starts), self.out, feature.dtype
        if number == ANY:
            starts, sizes = np.ndarray((2, n), _INT64, out, place)
            return Ragged(Dense(np.ndarray((room // dtype.itemsize,), dtype, out, place + 16 * n)), starts, sizes)
        shape: tuple[int, ...] = (n, *feature.shape)  # type: ignore[union-attr]
        if kind == BYTES:
            starts, sizes = np.ndarray((2, *shape), _INT64, out, place)
            end = place + 16 * n * number
            return Strings(out[end : end + room] if room else self.messages.data, starts, sizes)
        array = np.ndarray(shape, dtype, out, place)
        # Keeping a small column must not keep the memory of all columns alive.
        return Dense(array.copy() if array.nbytes < len(out) // 8 else array)


def batch_value(feature: Feature, column: Column) -> Any:
    """The values of one feature in a batch of messages, as users get them."""
    if isinstance(column, RaggedBatches):
        return ragged_tensor(column)
    if not isinstance(column, Ragged):
        return column.objects() if isinstance(column, Strings) else column.array  # type: ignore[attr-defined]
    made = ragged_tensor(column)
    return made.to_padded(feature.padding) if isinstance(feature, FixedLenSequenceFeature) else made


def _malformed(index: int, message: bytes) -> InvalidArgumentError:
    shown = repr(message if len(message) <= 60 else message[:60] + b"...")
    return InvalidArgumentError(
        f"Could not parse example input, value: {shown} (Index: {index}); it is no tf.train.Example message"
    )


def _with_joined(given: Messages, index: int) -> Messages:
    """The messages, re-encoded from number `index` on so that each list is in one piece."""
    messages = list(Strings(given.data, given.starts[index:], given.sizes[index:]).values())
    for i, message in enumerate(messages):
        with suppress(MalformedError):  # a damaged one stays as it is; the kernels will report it
            messages[i] = with_joined_lists(message)
    joined = Strings.of(messages)
    return Messages(
        np.concatenate((given.data, joined.data)),
        np.concatenate((given.starts[:index], joined.starts + len(given.data))),
        np.concatenate((given.sizes[:index], joined.sizes)),
    )
