# SPDX-License-Identifier: Apache-2.0
"""Parsing `tf.train.SequenceExample` messages into columns, without the protobuf library.

    SequenceExample { Features context = 1; FeatureLists feature_lists = 2 }
    FeatureLists { map from key to a list of features, one for each step }

The context has the form of an Example, and is parsed as one. One kernel call finds the steps of all keys in all messages of a
block; those of a key, over all messages, are then decoded together.
"""

from math import prod
from typing import Any

import numpy as np

from distinput.columns.column import Array, Column, Dense, Ints, Strings
from distinput.columns.ragged import Ragged, RaggedBatches
from distinput.errors import InvalidArgumentError, UnimplementedError
from distinput.formats.example import (
    KIND_NAMES,
    KINDS,
    ExampleParser,
    Lists,
    Messages,
    batch_value,
    contiguous,
    fixed_values,
    messages_of,
    variable_values,
)
from distinput.formats.features import (
    Feature,
    Features,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    features_spec,
    message_key,
)
from distinput.kernels.example_values import MISSING, NO_ROOM, OK, WRONG_COUNT, WRONG_KIND
from distinput.kernels.sequence_messages import ABSENT, locate_steps
from distinput.names.lazy import dataclass
from distinput.values.spec import RaggedTensorSpec, Spec, TensorSpec

_ROOM = 16.0
"""Initial room per message for the steps of a key."""

_SPARE = 1.25
"""How much more room than was needed is made for the messages to come."""


def parse_sequence_example(
    serialized: Any,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Parse a batch of SequenceExamples into NumPy values; the counterpart of `tf.io.parse_sequence_example`.

    Args:
      serialized: a list or array of n messages as bytes.
      context_features: features of the whole, by key, as for `parse_example`.
      sequence_features: features of each step, by key: `FixedLenSequenceFeature`, `VarLenFeature` or `RaggedFeature`.
      example_names: ignored.
      name: ignored.

    Returns:
      The context, as `parse_example` gives it; the sequences: an array [n, most steps, *shape], padded with zeros or empty
      strings, for `FixedLenSequenceFeature`, and a `RaggedTensor` [n, steps, values] for the others; and, for each
      `FixedLenSequenceFeature`, how many steps each message has.

    Raises:
      InvalidArgumentError: see `SequenceExampleParser`.

    >>> import distinput as di
    >>> messages = [di.io.encode_sequence_example({"id": 7}, {"x": [[1, 2], [3, 4]]}) for _ in range(2)]
    >>> steps = {"x": di.io.FixedLenSequenceFeature([2], "int64")}
    >>> context, sequences, lengths = parse_sequence_example(messages, {"id": di.io.FixedLenFeature([], "int64")}, steps)
    >>> context["id"].tolist(), sequences["x"].shape, lengths["x"].tolist()
    ([7, 7], (2, 2, 2), [2, 2])
    """
    del example_names, name
    parser = SequenceExampleParser(context_features, sequence_features)
    if not isinstance(serialized, Strings):
        serialized = Strings.of(messages_of("parse_sequence_example", serialized))
    context, sequences = parser(serialized)
    whole = {key: batch_value(parser.context[key], column) for key, column in context.items()}
    lengths: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for key, column in sequences.items():
        feature = parser.sequences[key]
        values[key] = batch_value(feature, column)
        if isinstance(feature, FixedLenSequenceFeature):
            lengths[key] = np.array(column.sizes)  # type: ignore[attr-defined]
    return whole, values, lengths


def parse_single_sequence_example(
    serialized: bytes,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse one SequenceExample into NumPy values; the counterpart of `tf.io.parse_single_sequence_example`.

    Args:
      serialized: the message.
      context_features: features of the whole, by key.
      sequence_features: features of each step, by key.
      example_name: ignored.
      name: ignored.

    Returns:
      The context, as `parse_single_example` gives it; and the sequences: an array [steps, *shape] for
      `FixedLenSequenceFeature`, a `RaggedTensor` [steps, values] for the others.

    Raises:
      InvalidArgumentError: see `SequenceExampleParser`.

    >>> import distinput as di
    >>> message = di.io.encode_sequence_example({"id": 7}, {"words": [["a"], ["b", "c"]]})
    >>> parse_single_sequence_example(
    ...     message, {"id": di.io.FixedLenFeature([], "int64")}, {"words": di.io.VarLenFeature("string")}
    ... )
    ({'id': np.int64(7)}, {'words': RaggedTensor([[b'a'], [b'b', b'c']], dtype=string)})
    """
    del example_name, name
    if not isinstance(serialized, bytes | bytearray | memoryview):
        raise InvalidArgumentError(
            f"parse_single_sequence_example: serialized must be one message as bytes, got {serialized!r:.60}; use "
            "parse_sequence_example for several"
        )
    message = Strings.of([bytes(serialized)])
    context, sequences = SequenceExampleParser(context_features, sequence_features)(message)
    features, lists = ({key: column.row(0) for key, column in part.items()} for part in (context, sequences))
    return features, lists


class SequenceExampleParser:
    """Parses many SequenceExamples into columns.

    Args:
      context_features: features of the whole, by key; None: none.
      sequence_features: features of each step, by key; None: none.

    Raises:
      InvalidArgumentError: there are no features; a feature is of a class that does not fit its place; while it is called, a
        message is malformed, lacks a feature that must be there, or has one of another type or size.
    """

    def __init__(self, context_features: Features | None, sequence_features: Features | None) -> None:
        if not context_features and not sequence_features:
            raise InvalidArgumentError(
                "parse_sequence_example: both context_features and sequence_features are empty; name the features to parse"
            )
        self.context, self.sequences = dict(context_features or {}), dict(sequence_features or {})
        for key, feature in (*self.context.items(), *self.sequences.items()):
            if isinstance(feature, SparseFeature) or (isinstance(feature, RaggedFeature) and feature.partitions):
                raise UnimplementedError(
                    f"parse_sequence_example: feature {key!r} is made of several keys, which only an Example may be; parse "
                    "each key with VarLenFeature, and put them together inside of map"
                )
        for key, feature in self.context.items():
            if isinstance(feature, FixedLenSequenceFeature):
                raise _unsupported("context_features", key, feature, "FixedLenFeature, VarLenFeature or RaggedFeature")
        for key, feature in self.sequences.items():
            if not isinstance(feature, FixedLenSequenceFeature | VarLenFeature | RaggedFeature):
                raise _unsupported(
                    "sequence_features", key, feature, "FixedLenSequenceFeature, VarLenFeature or RaggedFeature"
                )
            if isinstance(feature, FixedLenSequenceFeature) and feature.default_value is not None:
                raise InvalidArgumentError(
                    f"parse_sequence_example: feature {key!r} of sequence_features must have no default_value, got "
                    f"{feature.default_value!r}; steps are padded with zeros or empty strings"
                )
        self._parse_context = ExampleParser(self.context) if self.context else None
        names = {key: message_key(key, feature) for key, feature in self.sequences.items()}
        self._names = list(dict.fromkeys(names.values()))
        self._indices = {key: self._names.index(name) for key, name in names.items()}
        self._keys = np.frombuffer(b"".join(self._names), np.uint8)
        self._key_offsets = np.cumsum([0, *map(len, self._names)], dtype=np.int64)
        self._room = np.full(len(self._names), _ROOM)

    def __call__(self, serialized: Strings) -> tuple[dict[str, Column], dict[str, Column]]:
        """Columns of the context and of the sequences, by key."""
        context = self._parse_context(serialized) if self._parse_context is not None else {}
        if not self.sequences:
            return context, {}
        messages = contiguous(serialized)
        found = self._located(messages)
        return context, {key: self._column(key, feature, messages, found) for key, feature in self.sequences.items()}

    def _located(self, messages: Messages) -> "_Found":
        """The steps of all keys.

        Raises:
          InvalidArgumentError: a message is malformed.
        """
        n = len(messages.starts)
        # A step takes two bytes at least.
        rooms = np.minimum(np.ceil(self._room * n), messages.sizes.sum() // 2).astype(np.int64)
        while True:
            found = _Found.of(n, rooms)
            status, where = found.locate(messages, self._keys, self._key_offsets)
            if status != NO_ROOM:
                break
            rooms = found.totals()
            # Replaced, not mutated: other threads may be reading it.
            self._room = np.maximum(self._room, rooms / n * _SPARE)
        if status != OK:
            shown = repr(messages.message(where)[:60])
            raise InvalidArgumentError(
                f"Could not parse sequence example input, value: {shown} (Index: {where}); it is no "
                "tf.train.SequenceExample message"
            )
        return found

    def _column(self, key: str, feature: Feature, messages: Messages, found: "_Found") -> Column:
        """The steps of one key in all messages."""
        j = self._indices[key]
        counts = found.counts[j]
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            missing = np.flatnonzero(counts == ABSENT)
            if len(missing):
                raise InvalidArgumentError(
                    f"Name: <unknown>, Feature list {key!r} is required but could not be found. Index: {missing[0]}; with "
                    "allow_missing=True it has no steps then"
                )
        counts = np.maximum(counts, 0)
        starts = np.cumsum(counts) - counts
        part = slice(found.rooms[j], found.rooms[j] + int(counts.sum()))
        steps = found.kinds[part], found.starts[part], found.sizes[part]
        lists = _StepLists(self._names[j], messages.data, KINDS[feature.dtype], *steps, starts)
        if isinstance(feature, FixedLenSequenceFeature):
            lists.check_kinds(feature)
            values = fixed_values(lists, FixedLenFeature(feature.shape, feature.dtype))
            assert isinstance(values, Dense | Strings)
            return Ragged(values, starts, counts)
        return RaggedBatches(variable_values(lists, VarLenFeature(feature.dtype)), starts, counts)

    @property
    def spec(self) -> Spec:
        """What a record looks like: a tuple of the context and the sequences."""
        context = features_spec(self.context).nest if self.context else {}
        return Spec.of((context, {key: _spec_of(feature) for key, feature in self.sequences.items()}))


def _spec_of(feature: Feature) -> TensorSpec:
    if isinstance(feature, FixedLenSequenceFeature):
        return feature.spec
    return RaggedTensorSpec((None, None), feature.dtype, 1)


def _unsupported(where: str, key: str, feature: Any, wanted: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"parse_sequence_example: feature {key!r} of {where} must be a {wanted}, got a {type(feature).__name__}"
    )


@dataclass(slots=True)
class _Found:
    """What `locate_steps` found in n messages.

    Args:
      rooms: [k + 1] the first step of each key.
      counts: [k, n] the number of steps of each key in each message, or `ABSENT`.
      kinds: of each step.
      starts: of the list of each step, in the data.
      sizes: of the list of each step, in bytes.
    """

    rooms: Ints
    counts: Ints
    kinds: Array
    starts: Ints
    sizes: Ints

    @staticmethod
    def of(n: int, rooms: Ints) -> "_Found":
        """Allocate memory for n messages with so many steps of each key."""
        places = np.concatenate(([0], np.cumsum(rooms)))
        total = int(places[-1])
        kinds = np.empty(total, np.uint8)
        return _Found(places, np.empty((len(rooms), n), np.int64), kinds, *np.empty((2, total), np.int64))

    def locate(self, messages: Messages, keys: Array, key_offsets: Ints) -> tuple[int, int]:
        """See `locate_steps`."""
        counts = self.counts.reshape(-1)
        return locate_steps(
            *messages, keys, key_offsets, self.rooms, counts, self.kinds, self.starts, self.sizes
        )  # fmt: skip

    def totals(self) -> Ints:
        """The number of steps of each key."""
        return np.maximum(self.counts, 0).sum(axis=1)  # type: ignore[no-any-return]


@dataclass(slots=True)
class _StepLists(Lists):
    """The lists of all steps of one key; errors name message and step."""

    firsts: Ints
    """The number of the first step of each message."""

    def check_kinds(self, feature: FixedLenSequenceFeature) -> None:
        """Refuse a step without values, unless it should have none."""
        missing = np.flatnonzero(self.kinds == MISSING)
        if len(missing) and prod(feature.shape):
            raise self.error(WRONG_COUNT, int(missing[0]), feature.shape)

    def error(self, status: int, index: int, shape: tuple[int, ...] = ()) -> InvalidArgumentError:
        """The error for a step."""
        message = int(np.searchsorted(self.firsts, index, side="right")) - 1
        what = (
            f"Name: <unknown>, Feature list: {self.key}, Index: {message}, step {index - int(self.firsts[message])}.  "
        )
        expected = KIND_NAMES[self.kind]
        if status == WRONG_KIND:
            return InvalidArgumentError(f"{what}Data types don't match. Expected type: {expected}")
        if status == WRONG_COUNT:
            return InvalidArgumentError(
                f"{what}Number of {expected} values != expected.  values size: {self.count(index)} but output shape: "
                f"{list(shape)}"
            )
        return InvalidArgumentError(f"{what}Can't parse serialized SequenceExample: the list of values is damaged")
