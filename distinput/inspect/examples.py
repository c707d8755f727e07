# SPDX-License-Identifier: Apache-2.0
"""The features of `tf.train.Example` messages of files, a block of messages at a time."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from distinput.columns.column import Array, Strings
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.source import stamp_of
from distinput.formats.example import KINDS, Lists, Messages, contiguous
from distinput.formats.example_encoding import decode_example, lists_of
from distinput.formats.features import FixedLenFeature, VarLenFeature
from distinput.inspect.files import Files
from distinput.kernels.example_messages import UNKNOWN, locate_features, unknown_key
from distinput.kernels.example_values import BYTES, FLOAT, INT64, MISSING, OK
from distinput.kernels.protobuf import MalformedError
from distinput.names.lazy import dataclass

# ----------------------------------------------------------------------------
# All features of many `tf.train.Example` messages as arrays, without a declaration: kinds, counts and values by key.
# ----------------------------------------------------------------------------


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


# ----------------------------------------------------------------------------
# The features of `tf.train.Example` messages, found out by looking at them.
# ----------------------------------------------------------------------------


DTYPES = {BYTES: "string", FLOAT: "float32", INT64: "int64"}


@dataclass
class FeatureFound:
    """What is known of a feature.

    Attributes:
      dtype: "int64", "float32", "string", "none" if no message has a value, or "mixed".
      present: messages that have it.
      fewest: values in a message that has it.
      most: the same.
    """

    dtype: str = "none"
    present: int = 0
    fewest: int = 0
    most: int = 0

    def add(self, kinds: Any, counts: Any) -> None:
        """Look at the feature in consecutive messages: kinds [n], `MISSING` where it has none, and counts [n] of values."""
        there = np.flatnonzero(kinds != MISSING)
        if not len(there):
            return
        kinds, counts = kinds[there], counts[there]
        if self.dtype == "none":
            self.dtype = DTYPES[int(kinds[0])]
        if any(DTYPES[kind] != self.dtype for kind in np.unique(kinds[counts > 0]).tolist()):
            self.dtype = "mixed"
        least = int(counts.min())
        self.fewest = least if not self.present else min(self.fewest, least)
        self.most = max(self.most, int(counts.max()))
        self.present += len(there)

    def shape(self, messages: int) -> tuple[int | None, ...]:
        """[] where every message has one value, [n] where every one has n, else [None]."""
        if self.present < messages or self.fewest != self.most:
            return (None,)
        return () if self.most == 1 else (self.most,)


def declaration(feature: FeatureFound, messages: int) -> Any:
    """The declaration of a feature, for `parse_example`.

    >>> declaration(FeatureFound("int64", 2, 1, 1), 2)
    FixedLenFeature(shape=(), dtype=dtype('int64'), default_value=None)
    """
    dtype: Any = "int64" if feature.dtype == "none" else feature.dtype
    shape = feature.shape(messages)
    return (
        VarLenFeature(dtype) if None in shape else FixedLenFeature([size for size in shape if size is not None], dtype)
    )


def as_code(feature: FeatureFound, messages: int) -> str:
    """The declaration as Python has it."""
    dtype, shape = "int64" if feature.dtype == "none" else feature.dtype, feature.shape(messages)
    return f'di.io.VarLenFeature("{dtype}")' if None in shape else f'di.io.FixedLenFeature({list(shape)}, "{dtype}")'


_FEW = 1000
"""So many messages are decoded before compiled kernels would be there."""

_MOST = 8192


@dataclass(frozen=True)
class Scanned:
    """Consecutive messages of a file.

    Attributes:
      file: its path.
      row: the number of the first message.
      size: how many there are.
      features: what they hold, by key.
    """

    file: str
    row: int
    size: int
    features: dict[str, FeatureValues]


def scanned(
    files: Files, path: str, scan: Callable[[Strings], dict[str, FeatureValues]], most: int | None = None
) -> Iterator[Scanned]:
    """The messages of a file, in order.

    Args:
      files: what it is one of.
      path: the file.
      scan: what finds their features.
      most: how many messages; None: all.

    Raises:
      NotFoundError: the file is not there.
      DataLossError: a record is no Example; it is named.
    """
    stamp_of(path)
    row = 0
    with closing(files.format.read(path)) as blocks:  # type: ignore[type-var]  # a generator
        for block, _ in blocks:
            first = 0
            while first < block.size and row != most:
                last = min(first + _MOST, block.size, block.size if most is None else first + most - row)
                column = block.rows(first, last).columnar().columns[0]
                assert isinstance(column, Strings)
                try:
                    found = scan(column)
                except InvalidArgumentError as error:
                    number = row + getattr(error, "row", 0)
                    raise DataLossError(
                        f"{path}: record {number} is not an Example: {error}; look at the bytes with records='bytes'"
                    ) from None
                yield Scanned(path, row, last - first, found)
                row, first = row + last - first, last
            if row == most:
                return


def features_of(files: Files, most: int | None = None) -> tuple[dict[str, FeatureFound], int]:
    """What the features of messages are, by key in ascending order, and how many messages there were.

    Args:
      files: of messages.
      most: how many messages of the first file to look at; None: all of all files.

    >>> import distinput as di
    >>> from distinput.inspect.files import open_files
    >>> with di.io.TFRecordWriter("two.tfrecord") as writer:
    ...     writer.write(di.io.encode_example({"x": [1, 2]}))
    ...     writer.write(di.io.encode_example({"x": 3}))
    >>> features_of(open_files("two.tfrecord"))
    ({'x': FeatureFound(dtype='int64', present=2, fewest=1, most=2)}, 2)
    """
    few = most is not None and most <= _FEW
    scan = decoded_features if few else ExampleScan()
    found: dict[str, FeatureFound] = {}
    number = 0
    for path in files.paths if most is None else files.paths[:1]:
        for part in scanned(files, path, scan, most):
            for key, values in part.features.items():
                found.setdefault(key, FeatureFound()).add(values.kinds, values.counts)
            number += part.size
    return {key: found[key] for key in sorted(found)}, number
