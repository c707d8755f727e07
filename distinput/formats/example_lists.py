# SPDX-License-Identifier: Apache-2.0
"""Decoding one feature of many `tf.train.Example` messages into a column, from the locations of its lists.

The separate steps can report a feature that is missing or differs from its declaration.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from distinput.columns.column import Column
from distinput.columns.dense import Dense
from distinput.columns.ragged import Ragged
from distinput.columns.strings import Strings
from distinput.errors import InvalidArgumentError
from distinput.formats.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from distinput.kernels.example_values import (
    BYTES,
    FLOAT,
    INT64,
    MISSING,
    OK,
    WRONG_COUNT,
    WRONG_KIND,
    count_values,
    fill_bytes_spans,
    fill_floats,
    fill_int64s,
)
from distinput.values.leaves import STRING

__all__ = ["KINDS", "Lists", "fixed_values", "variable_values", "with_defaults"]

Array = np.ndarray[Any, np.dtype[Any]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

KINDS: dict[np.dtype[Any], int] = {STRING: BYTES, np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT64}
"""The kind of feature that holds values of a dtype."""

_NAMES = {MISSING: "none", BYTES: "string", FLOAT: "float", INT64: "int64"}


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
        expected = _NAMES[self.kind]
        if status == WRONG_KIND:
            found = _NAMES[int(self.kinds[index])]
            return InvalidArgumentError(
                f"{what}Data types don't match. Data type: {found} but expected type: {expected}"
            )
        if status == WRONG_COUNT:
            one = slice(index, index + 1)
            alone = Lists(self.name, self.data, self.kind, self.kinds[one], self.starts[one], self.sizes[one])
            return InvalidArgumentError(
                f"{what}Can't parse serialized Example: number of {expected} values != expected. "
                f"Values size: {int(alone.counts()[0])} but output shape: {list(shape)}"
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
            f"Name: <unknown>, Feature: {_as_text(name)} (data type: {_NAMES[KINDS[feature.dtype]]}) is required but could "
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
    items = total // size if size else 0
    shaped: Dense | Strings
    if isinstance(flat, Strings):
        shape = (items, *feature.shape)
        shaped = Strings(flat.data, flat.starts.reshape(shape), flat.sizes.reshape(shape))
    else:
        shaped = Dense(flat.array.reshape(items, *feature.shape))
    return Ragged(shaped, offsets[:-1] // max(1, size), counts // max(1, size))


def _as_text(name: bytes) -> str:
    return name.decode(errors="replace")
