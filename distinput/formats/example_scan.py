# SPDX-License-Identifier: Apache-2.0
"""All features of many `tf.train.Example` messages as arrays, without a declaration: kinds, counts and values by key."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from distinput.core.strings import Strings
from distinput.errors import InvalidArgumentError
from distinput.formats.decoded_example import decode_example
from distinput.formats.example import Messages, contiguous
from distinput.formats.example_encoding import lists_of
from distinput.formats.example_lists import KINDS, Lists
from distinput.kernels.example import locate_features
from distinput.kernels.example_unknown import UNKNOWN, unknown_key
from distinput.kernels.example_values import BYTES, FLOAT, INT64, MISSING, OK
from distinput.kernels.protobuf import MalformedError

__all__ = ["ExampleScan", "FeatureValues", "decoded_features"]

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_KEYS = 1000
"""With more keys than this, messages are decoded one by one: an array for each key and message would be mostly empty."""

_NOTHING = np.empty(0, np.uint8)


@dataclass(frozen=True)
class FeatureValues:
    """A feature in n messages.

    Attributes:
      kinds: [n] of uint8: `MISSING`, `BYTES`, `FLOAT` or `INT64`.
      counts: [n] values of each message; 0 where it is missing.
      values: by kind, those of all messages that have it: float32 or int64, and for bytes the size of each.
    """

    kinds: Array
    counts: Array
    values: dict[int, Array]


class ExampleScan:
    """Finds all features in messages, some at a time: keys are learned from the first message that has them.

    >>> import distinput as di
    >>> found = ExampleScan()(Strings.of([di.io.encode_example({"x": [1, 2]}), di.io.encode_example({"name": "Ada"})]))
    >>> found["x"].counts, found["x"].values, found["name"].values
    (array([2, 0]), {3: array([1, 2])}, {1: array([3])})
    """

    def __init__(self) -> None:
        self._keys: dict[bytes, str] = {}
        self._fast = True

    def __call__(self, serialized: Strings) -> dict[str, FeatureValues]:
        """The features of messages; one without a kind in all of them is there without values.

        Raises:
          InvalidArgumentError: one is no such message; `row` of the error is its number.
        """
        messages = contiguous(serialized)
        found = self._found(messages) if self._fast else None
        return decoded_features(serialized) if found is None else found

    def _found(self, messages: Messages) -> dict[str, FeatureValues] | None:
        """None where a message is unusual or damaged, which looking at them one by one sorts out."""
        if not self._learned(messages):
            return None
        names, n = list(self._keys), len(messages.starts)
        columns = np.array([(0, -1, row, 0) for row in range(len(names))], np.int64).reshape(-1)
        kinds = np.empty((len(names), n), np.uint8)
        starts, sizes = np.empty((2, len(names), n), np.int64)
        status, _ = locate_features(
            *messages, *_joined(names), columns, kinds.reshape(-1), starts.reshape(-1), sizes.reshape(-1), _NOTHING
        )
        if status != OK:
            return None
        try:
            return {
                self._keys[name]: _values(Lists(name, messages.data, MISSING, kinds[j], starts[j], sizes[j]))
                for j, name in enumerate(names)
            }
        except InvalidArgumentError:
            return None

    def _learned(self, messages: Messages) -> bool:
        """Learn all keys; False if that is not worth it, or a message is damaged."""
        first = 0
        while True:
            status, first = unknown_key(*messages, first, *_joined(list(self._keys)))
            if status != UNKNOWN:
                return status == OK
            try:
                for key in sorted(lists_of(messages.message(first))):
                    self._keys.setdefault(key, key.decode())
            except (MalformedError, UnicodeDecodeError):
                return False
            if len(self._keys) > _MOST_KEYS:
                self._fast = False
                return False


def _joined(keys: list[bytes]) -> tuple[Array, Array]:
    return np.frombuffer(b"".join(keys), np.uint8), np.cumsum([0, *map(len, keys)], dtype=np.int64)


def _values(lists: Lists) -> FeatureValues:
    """Count and decode the lists of a feature, of each kind that it has."""
    kinds, counts, values = lists.kinds, np.zeros(len(lists.kinds), np.int64), {}
    for kind in (BYTES, FLOAT, INT64):
        here = kinds == kind
        if not here.any():
            continue
        lists.kind, lists.kinds = kind, kinds if here.all() else np.where(here, kinds, np.uint8(MISSING))
        there = lists.counts()
        offsets = np.cumsum(np.concatenate([[0], there]), dtype=np.int64)
        if kind == BYTES:
            begins, made = np.empty((2, offsets[-1]), np.int64)
            lists.fill(offsets, begins, made)
        else:
            made = np.empty(offsets[-1], np.float32 if kind == FLOAT else np.int64)
            lists.fill(offsets, made)
        counts += there
        values[kind] = made
    return FeatureValues(kinds, counts, values)


def decoded_features(serialized: Strings) -> dict[str, FeatureValues]:
    """The same, by decoding one message after the other: what `ExampleScan` does for the unusual.

    Raises:
      InvalidArgumentError: one is no such message; `row` of the error is its number.
    """
    messages, found = serialized.objects().tolist(), dict[str, list[tuple[int, Any]]]()
    for row, message in enumerate(messages):
        try:
            decoded = decode_example(message)
        except InvalidArgumentError as error:
            error.row = row  # type: ignore[attr-defined]
            raise
        for key, values in decoded.items():
            found.setdefault(key, []).append((row, values))
    return {key: _gathered(len(messages), there) for key, there in found.items()}


def _gathered(n: int, found: list[tuple[int, Any]]) -> FeatureValues:
    kinds, counts, values = np.zeros(n, np.uint8), np.zeros(n, np.int64), dict[int, list[Array]]()
    for row, each in found:
        if each is None:
            continue
        kind = KINDS[each.dtype]
        kinds[row], counts[row] = kind, len(each)
        lengths = np.array([len(text) for text in each], np.int64) if kind == BYTES else each
        values.setdefault(kind, []).append(lengths)
    return FeatureValues(kinds, counts, {kind: np.concatenate(lists) for kind, lists in sorted(values.items())})
