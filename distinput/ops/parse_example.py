# SPDX-License-Identifier: Apache-2.0
"""`parse_example`: serialized `tf.train.Example` records into columns, a block at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Column, Ints, Strings
from distinput.core.failure import Failure, sound_parts
from distinput.core.leaves import STRING
from distinput.core.rows import Stream, passing_over
from distinput.core.run import Run
from distinput.core.spec import LeafSpec, Spec, TensorSpec
from distinput.core.state import State
from distinput.errors import InvalidArgumentError
from distinput.formats.example import ExampleParser
from distinput.formats.features import Feature, features_spec
from distinput.plan.check import parallel_calls
from distinput.plan.one_for_one import OneForOne

__all__ = ["ParseExample"]


@dataclass(frozen=True, eq=False)
class ParseExample(OneForOne):
    """Parse serialized Examples into dicts from feature name to value.

    Shapes: a string becomes one value for each feature: [*shape] for `FixedLenFeature`, [number of values] for `VarLenFeature`;
    a vector of k strings becomes k of each, [k, *shape], and then features must have a fixed length. Order: unchanged. State:
    where the next element stands in the input. All records of a block are parsed by one call of compiled code.

    Args:
      features: dict from name to `FixedLenFeature`, `VarLenFeature` or another feature of `distinput.io`.
      num_parallel_calls, deterministic: accepted as TensorFlow's.

    Raises:
      TypeError: elements are not strings.
      InvalidArgumentError: at iteration, a record is malformed or lacks a feature; the message names record and feature.

    >>> import distinput as di
    >>> record = di.io.encode_example({"x": [1, 2], "y": [0.5]})
    >>> ds = di.data.Dataset.from_tensors(record)
    >>> list(ds.parse_example({"x": di.io.VarLenFeature("int64"), "y": di.io.FixedLenFeature([], "float32")}))
    [{'x': array([1, 2]), 'y': np.float32(0.5)}]

    Source: `tf.data.experimental.parse_example_dataset`; TensorFlow's `tf.io.parse_single_example` for the rules.
    """

    tolerant: ClassVar[bool] = True
    keeps_batches: ClassVar[bool] = True
    features: Mapping[str, Feature]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None

    def __post_init__(self) -> None:
        parallel_calls("parse_example", self.num_parallel_calls)
        spec = self.input.spec
        leaf = spec.leaves[0]
        text = isinstance(leaf, TensorSpec) and leaf.dtype == STRING and leaf.shape is not None and len(leaf.shape) < 2
        if not spec.structure.is_leaf or not text:
            raise TypeError(f"parse_example: elements must be strings or vectors of strings, got {spec.nest}")
        varying = any(None in (leaf.shape or ()) for leaf in features_spec(self.features).tensors("parse_example"))
        if self._first is not _SCALAR and varying:
            raise InvalidArgumentError(
                "parse_example: a feature of variable length cannot be parsed from a batch; parse before batching, then use "
                "padded_batch"
            )

    @cached_property
    def _first(self) -> Any:
        """The dimension before those of the features: the size of a batch of records, or `_SCALAR`."""
        leaf = self.input.spec.leaves[0]
        assert isinstance(leaf, TensorSpec)
        return leaf.shape[0] if leaf.shape else _SCALAR

    @cached_property
    def spec(self) -> Spec:
        made = features_spec(self.features)
        return made if self._first is _SCALAR else made.map(self._of_batch)

    def _of_batch(self, leaf: LeafSpec) -> LeafSpec:
        return leaf.with_shape((self._first, *leaf.shape))  # type: ignore[misc]

    def stream(self, state: State, run: Run) -> Stream:
        for block, _, _, at in passing_over(self.input.open(state["input"], run), state):
            if type(block) is Failure:
                yield block, at(0)
                continue
            for made, done in sound_parts(block.size, partial(self._part, block), tolerant=run.tolerant):
                yield made, at(done)

    def _part(self, block: Block, first: int, end: int) -> Block:
        return self._parsed(block.rows(first, end))

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._parsed(self.input.fetch(rows, epoch))

    @cached_property
    def _parser(self) -> ExampleParser:
        return ExampleParser(self.features)

    def _parsed(self, block: Block) -> Block:
        column = block.columnar().columns[0]
        counts: Ints | None = None
        if self._first is not _SCALAR:
            lengths = column.lengths()
            counts = np.broadcast_to(np.asarray(lengths, np.int64), block.size)
            column = column.unstack()
        assert isinstance(column, Strings)
        structure = self.spec.structure
        columns: list[Column] = structure.flatten(self._parser(column))
        if counts is not None:
            columns = [c.split(counts) for c in columns]
        return ColumnBlock(structure, columns, block.size)


_SCALAR = object()
