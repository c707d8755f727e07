# SPDX-License-Identifier: Apache-2.0
"""Features that are made of several keys of a message: sparse tensors, and ragged tensors with partitions.

Each key is parsed as a feature of its own, under a name that no key of the user has; then the values are put together.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from distinput.columns.column import Ints
from distinput.errors import InvalidArgumentError
from distinput.formats.features import (
    Feature,
    Features,
    RaggedFeature,
    SparseFeature,
    UniformRowLength,
    checked_features,
)
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.sparse_tensor import SparseTensor
from distinput.values.spec import LeafSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec

__all__ = ["Composed", "composed", "is_composed", "plain_features"]

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
        made: LeafSpec = RaggedTensorSpec(shape, feature.dtype, rank) if rank else TensorSpec(shape, feature.dtype)
        return made


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
