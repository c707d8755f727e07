# SPDX-License-Identifier: Apache-2.0
"""`parse_example` and `parse_sequence_example`: serialized messages into columns, a block at a time."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, Failure, sound_parts
from distinput.columns.column import Column, Ints, Strings
from distinput.columns.ragged import Ragged, RaggedBatches
from distinput.columns.regroup import column_of, split
from distinput.columns.rows import Stream, passing_over
from distinput.columns.state import State
from distinput.formats.example import ExampleParser
from distinput.formats.features import (
    Feature,
    FixedLenSequenceFeature,
    RaggedFeature,
    VarLenFeature,
    composed,
    features_spec,
    plain_features,
)
from distinput.formats.sequence_example import SequenceExampleParser
from distinput.names.lazy import dataclass
from distinput.ops.map import Map
from distinput.ops.on_error import guarded
from distinput.plan.check import parallel_calls
from distinput.plan.families import OneForOne
from distinput.plan.node import Node
from distinput.plan.options import SkipErrors
from distinput.run.run import Run
from distinput.values.leaves import STRING
from distinput.values.spec import LeafSpec, RaggedTensorSpec, Spec, TensorSpec


class _Parse(OneForOne):
    """Each record of a block is parsed alone."""

    tolerant: ClassVar[bool] = True

    @abstractmethod
    def _parsed(self, block: Block) -> Block:
        """What is in the records of a block."""

    def _part(self, block: Block, first: int, end: int) -> Block:
        return self._parsed(block.rows(first, end))

    def stream(self, state: State, run: Run) -> Stream:
        for block, at in passing_over(self.input.open(state["input"], run), state):
            if type(block) is Failure:
                yield block, at(0)
                continue
            for made, done in sound_parts(block.size, partial(self._part, block), tolerant=run.tolerant):
                yield made, at(done)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._parsed(self.input.fetch(rows, epoch))


# ----------------------------------------------------------------------------
# `parse_example`: serialized `tf.train.Example` records into columns, a block at a time.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ParseExample(_Parse):
    """Parse serialized Examples into dicts from feature name to value.

    Shapes: a string becomes one value for each feature: [*shape] for `FixedLenFeature`, [number of values] for `VarLenFeature`;
    a vector of k strings becomes k of each, [k, *shape], with a `RaggedTensor` of k rows for `VarLenFeature` and
    `RaggedFeature`, and sequences padded to the longest for `FixedLenSequenceFeature`. A `SparseFeature` becomes a
    `SparseTensor`, a `RaggedFeature` with partitions a `RaggedTensor` of rows of rows. Order: unchanged. State: where the
    next element stands in the input. All records of a block are parsed by one call of compiled code.

    Args:
      features: dict from name to `FixedLenFeature`, `VarLenFeature` or another feature of `distinput.io`.
      num_parallel_calls, deterministic: accepted as TensorFlow's.
      on_error: what happens when a record cannot be parsed: "raise" that error; "skip" the element (a vector of records as a
        whole), up to a budget; `SkipErrors(...)`, with the budget and a file for what was left out. None: as
        `Options.on_error` says, or "raise".

    Raises:
      TypeError: elements are not strings.
      InvalidArgumentError: at iteration, a record is malformed or lacks a feature; the message names record and feature.
      DataLossError: at iteration, more elements failed than `on_error` allows.

    >>> import distinput as di
    >>> record = di.io.encode_example({"x": [1, 2], "y": [0.5]})
    >>> ds = di.data.Dataset.from_tensors(record)
    >>> list(ds.parse_example({"x": di.io.VarLenFeature("int64"), "y": di.io.FixedLenFeature([], "float32")}))
    [{'x': array([1, 2]), 'y': np.float32(0.5)}]

    Source: `tf.data.experimental.parse_example_dataset`; TensorFlow's `tf.io.parse_single_example` for the rules.
    """

    keeps_batches: ClassVar[bool] = True
    features: Mapping[str, Feature]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    on_error: str | SkipErrors | None = field(default=None, kw_only=True)

    def added(self) -> Node:
        batched = self._first is not _SCALAR
        together = composed(self.features, batched)
        if together is None:
            return self if self.raises else guarded(self, self.on_error)
        parsed = guarded(replace(self, features=plain_features(self.features)), self.on_error)
        signature = together.spec(parsed.spec.nest, self._first if batched else None)
        return guarded(Map(parsed, together, output_signature=signature, vectorize=False), self.on_error)

    def __post_init__(self) -> None:
        parallel_calls("parse_example", self.num_parallel_calls)
        spec = self.input.spec
        leaf = spec.leaves[0]
        text = isinstance(leaf, TensorSpec) and leaf.dtype == STRING and leaf.shape is not None and len(leaf.shape) < 2
        if not spec.structure.is_leaf or not text:
            raise TypeError(f"parse_example: elements must be strings or vectors of strings, got {spec.nest}")

    @cached_property
    def _first(self) -> Any:
        """The dimension before those of the features: the size of a batch of records, or `_SCALAR`."""
        leaf = self.input.spec.leaves[0]
        assert isinstance(leaf, TensorSpec)
        return leaf.shape[0] if leaf.shape else _SCALAR

    @cached_property
    def spec(self) -> Spec:
        made = features_spec(self.features)
        if self._first is _SCALAR:
            return made
        keys = made.structure.keys
        leaves = [
            self._of_batch(self.features[key], leaf)
            for key, leaf in zip(keys, made.tensors("parse_example"), strict=True)
        ]
        return Spec(made.structure, tuple(leaves))

    def _of_batch(self, feature: Feature, leaf: TensorSpec) -> LeafSpec:
        shape = (self._first, *leaf.shape)  # type: ignore[misc]
        if isinstance(feature, VarLenFeature | RaggedFeature):
            return RaggedTensorSpec(shape, leaf.dtype, 1)
        return leaf.with_shape(shape)

    def over_pieces(self, pieces: Node, each: int) -> Node | None:
        # Sequences are padded to the longest of the whole batch, so a worker needs the rows of the others too.
        padded = any(isinstance(feature, FixedLenSequenceFeature) for feature in self.features.values())
        return None if padded and self._first is not _SCALAR else super().over_pieces(pieces, each)

    @cached_property
    def _parser(self) -> ExampleParser:
        return ExampleParser(self.features)

    def _parsed(self, block: Block) -> Block:
        column = block.columnar().columns[0]
        counts: Ints | None = None
        if self._first is not _SCALAR:
            lengths = column.lengths()
            counts = np.full(block.size, lengths, np.int64)
            column = column.unstack()
        assert isinstance(column, Strings)
        structure = self.spec.structure
        columns: list[Column] = structure.flatten(self._parser(column))
        if counts is not None:
            columns = [_batched(c, counts, self.features[key]) for c, key in zip(columns, structure.keys, strict=True)]
        return ColumnBlock(structure, columns, block.size)


def _batched(column: Column, counts: Ints, feature: Feature) -> Column:
    """Values of records in batches of so many; those of sequences are padded to the longest of the batch, as in TensorFlow."""
    if not isinstance(column, Ragged):
        return split(column, counts)
    made = RaggedBatches(column, np.cumsum(counts) - counts, counts)
    if not isinstance(feature, FixedLenSequenceFeature):
        return made
    fill = feature.padding
    return column_of([batch.to_padded(fill) for batch in made.values()], column.dtype)


_SCALAR = object()


# ----------------------------------------------------------------------------
# `parse_sequence_example`: serialized `tf.train.SequenceExample` records into columns, a block at a time.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ParseSequenceExample(_Parse):
    """Parse serialized SequenceExamples into tuples of a dict of the context and a dict of the sequences.

    Shapes: a string becomes (context, sequences). In the context, [*shape] for `FixedLenFeature` and [number of values] for
    `VarLenFeature` and `RaggedFeature`; in the sequences, [steps, *shape] for `FixedLenSequenceFeature` and a `RaggedTensor`
    [steps, values] for the others. Order: unchanged. State: where the next element stands in the input. `padded_batch` and
    `ragged_batch` make batches of them.

    Args:
      context_features: features of the whole, by key; None: none.
      sequence_features: features of each step, by key: `FixedLenSequenceFeature`, `VarLenFeature` or `RaggedFeature`.
      on_error: "raise", "skip" or `SkipErrors(...)`, for a record that cannot be parsed. None: as `Options.on_error` says, or
        "raise".

    Raises:
      TypeError: elements are not strings.
      InvalidArgumentError: there are no features, or one is of a class that does not fit its place; at iteration, a record is
        malformed or lacks a feature; the message names record and feature.

    >>> import distinput as di
    >>> record = di.io.encode_sequence_example({"id": 7}, {"x": [[1, 2], [3, 4], [5, 6]]})
    >>> steps = {"x": di.io.FixedLenSequenceFeature([2], "int64")}
    >>> di.data.Dataset.from_tensors(record).parse_sequence_example({"id": di.io.FixedLenFeature([], "int64")}, steps).to_list()
    [({'id': 7}, {'x': [[1, 2], [3, 4], [5, 6]]})]

    Source: `tf.io.parse_single_sequence_example` for the rules.
    """

    context_features: Mapping[str, Any] | None = None
    sequence_features: Mapping[str, Any] | None = None
    on_error: str | SkipErrors | None = field(default=None, kw_only=True)

    def added(self) -> Node:
        return self if self.raises else guarded(self, self.on_error)

    def __post_init__(self) -> None:
        spec = self.input.spec
        leaf = spec.leaves[0]
        if not spec.structure.is_leaf or not isinstance(leaf, TensorSpec) or (leaf.dtype, leaf.shape) != (STRING, ()):
            raise TypeError(f"parse_sequence_example: elements must be strings, got {spec.nest}; unbatch them first")
        self._parser  # noqa: B018 - refuses features while the pipeline is built

    @cached_property
    def _parser(self) -> SequenceExampleParser:
        return SequenceExampleParser(self.context_features, self.sequence_features)

    @cached_property
    def spec(self) -> Spec:
        return self._parser.spec

    def _parsed(self, block: Block) -> Block:
        column = block.columnar().columns[0]
        assert isinstance(column, Strings)
        structure = self.spec.structure
        return ColumnBlock(structure, structure.flatten(self._parser(column)), block.size)
