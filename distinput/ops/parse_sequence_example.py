# SPDX-License-Identifier: Apache-2.0
"""`parse_sequence_example`: serialized `tf.train.SequenceExample` records into columns, a block at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Ints
from distinput.core.failure import Failure, sound_parts
from distinput.core.leaves import STRING
from distinput.core.rows import Stream, passing_over
from distinput.core.run import Run
from distinput.core.spec import Spec, TensorSpec
from distinput.core.state import State
from distinput.core.strings import Strings
from distinput.formats.sequence_example import SequenceExampleParser
from distinput.ops.on_error import guarded
from distinput.plan.node import Node
from distinput.plan.one_for_one import OneForOne
from distinput.plan.skip_errors import SkipErrors

__all__ = ["ParseSequenceExample"]


@dataclass(frozen=True, eq=False)
class ParseSequenceExample(OneForOne):
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

    tolerant: ClassVar[bool] = True
    context_features: Mapping[str, Any] | None = None
    sequence_features: Mapping[str, Any] | None = None
    on_error: str | SkipErrors | None = field(default=None, kw_only=True)

    def added(self) -> Node:
        return guarded(self, self.on_error)

    def __post_init__(self) -> None:
        spec = self.input.spec
        leaf = spec.leaves[0]
        if not spec.structure.is_leaf or not isinstance(leaf, TensorSpec) or (leaf.dtype, leaf.shape) != (STRING, ()):
            raise TypeError(f"parse_sequence_example: elements must be strings, got {spec.nest}; unbatch them first")
        assert self._parser is not None  # refuses features while the pipeline is built

    @cached_property
    def _parser(self) -> SequenceExampleParser:
        return SequenceExampleParser(self.context_features, self.sequence_features)

    @cached_property
    def spec(self) -> Spec:
        return self._parser.spec

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

    def _parsed(self, block: Block) -> Block:
        column = block.columnar().columns[0]
        assert isinstance(column, Strings)
        structure = self.spec.structure
        return ColumnBlock(structure, structure.flatten(self._parser(column)), block.size)
