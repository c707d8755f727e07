# SPDX-License-Identifier: Apache-2.0
"""`map_rows`: call a function on many elements at once."""

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import Any, ClassVar

from distinput.columns.block import Block, ColumnBlock, Failure, block_rows, of_all, sound_parts
from distinput.columns.column import Column, Dense, Ints, StackError, Strings
from distinput.columns.ragged import Arrays, Ragged, ragged_tensor
from distinput.columns.rows import Stream, loosened, passing_over
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.functions.chain import Refills, calling
from distinput.functions.claim import Claim, first_misfit, unlike, widened
from distinput.functions.inference import infer
from distinput.names.lazy import dataclass
from distinput.ops.on_error import guarded
from distinput.ops.slices import rows_of
from distinput.plan.binding import take_functions
from distinput.plan.check import refuse_sparse
from distinput.plan.families import Fused, Neighbours, Signed
from distinput.plan.node import Node
from distinput.plan.options import SkipErrors
from distinput.run.run import Run, stopped
from distinput.values.leaves import as_leaf, shape_of
from distinput.values.nest import component, structure_of
from distinput.values.spec import ElementsSpec, LeafSpec, RaggedTensorSpec, Spec, TensorSpec


@dataclass(frozen=True, eq=False)
class MapRows(Signed):
    """Call `map_func` on many elements at once: every leaf has a first axis of rows, in its arguments and its results.

    Shapes: elements [...] are passed as [n, ...], and a result [n, ...] is n elements [...]. How many rows are passed at once
    is not defined; the function must treat rows independently. Rows that differ in length are passed as a `RaggedTensor`, and
    may be returned as one; rows that differ otherwise are passed as a list of arrays. State: where the next element stands in
    the input.

    Args:
      map_func: called with the components of a tuple as arguments, with anything else as one argument.
      output_signature: a nest of `TensorSpec` for one element that it returns; elements are checked against it, and integers
        become as wide as it says.
      on_error: what happens when `map_func` raises for an element, alone or among others: "raise" that error; "skip" the
        element, up to a budget; `SkipErrors(...)`, with the budget and a file for what was left out. None: as
        `Options.on_error` says, or "raise".

    Raises:
      TypeError: at iteration, a result does not fit `output_signature`.
      DataLossError: at iteration, more elements failed than `on_error` allows.
      InvalidArgumentError: at iteration, `map_func` returns another number of rows than it was given.

    >>> import distinput as di
    >>> di.data.Dataset.range(5).map_rows(lambda x: x * 2 + 1).to_list()
    [1, 3, 5, 7, 9]

    Source: the idea of `datasets.Dataset.map(batched=True)`; TensorFlow writes `batch(n).map(f).unbatch()`.
    """

    tolerant: ClassVar[bool] = True
    map_func: Callable[..., Any]
    output_signature: Any = None
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)
    on_error: str | SkipErrors | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        take_functions(self, "map_rows", "map_func")

    def added(self) -> Node:
        return self if self.raises else guarded(self, self.on_error)

    @cached_property
    def call(self) -> Callable[[Any], Any]:
        """The function of one nest of stacked leaves."""
        return calling(self.map_func)

    @cached_property
    def spec(self) -> Spec:
        return self.signature or self.claim.asked("map_rows", self._inferred)

    def _inferred(self) -> Spec:
        return infer("map_rows", self.call, _Stacked(self.input), self.map_func).map(_one_row)

    def stream(self, state: State, run: Run) -> Stream:
        return _mapped(self.input.open(state["input"], run), state, (self,), run)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.mapped(self.input.fetch(rows, epoch), self.refills())

    def refills(self) -> Refills:
        """What sees, in a pass, whether the function fills arrays again and again."""
        return Refills("map_rows", (self.map_func,), each=False)

    def mapped(self, block: Block, refills: Refills) -> Block:
        """The results of the function for the rows of a block."""
        refuse_sparse("map_rows", block.structure)
        rows = block.structure.build([_whole(c) for c in block.materialize().columns])
        results = list(map(refills.owned, map(self.call, (rows,))))
        refills.check()
        if not results:
            raise stopped()
        (result,) = results
        structure = structure_of(result)
        columns: list[Column] = []
        plain = () if self.signature is None else [type(leaf) is TensorSpec for leaf in self.signature.leaves]
        for place, (leaf, path) in enumerate(zip(structure.flatten(result), structure.paths, strict=True)):
            value = as_leaf(leaf)
            shape = shape_of(value)
            if not shape or shape[0] != block.size:
                raise of_all(
                    InvalidArgumentError(
                        f"map_rows: {component(path) if path else 'the result'} must have {block.size} rows, as many as the "
                        f"function was given, got shape {list(shape)}"
                    )
                )
            column = rows_of(value)
            if isinstance(column, Ragged) and place < len(plain) and plain[place]:
                column = Ragged(column.flat, column.starts, column.sizes)
            columns.append(column)
        made: Block = ColumnBlock(structure, columns, block.size)
        if self.signature is not None:
            made = widened(made, self.signature)
            found = first_misfit(made, self.signature)
        else:
            found = self.claim.misfit(made, lambda: self.spec) if block.size else None
        if found is not None:
            row, wanted, got = found
            raise unlike("map_rows", wanted, got, block.row(row), signed=self.signature is not None)
        return made


@dataclass(frozen=True, eq=False)
class FusedMapRows(Fused[MapRows]):
    """Neighbouring `map_rows` that run as one: each block goes through all functions, so that they can share memory.

    Shapes: those of the last one. State: where the next element stands in the input.

    Args:
      functions: the steps, the first one first.
    """

    def stream(self, state: State, run: Run) -> Stream:
        return _mapped(self.input.open(state["input"], run), state, self.maps, run)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        block = self.input.fetch(rows, epoch)
        for step in self.maps:
            block = step.mapped(block, step.refills())
        return block


def fused(first: MapRows | FusedMapRows, then: MapRows) -> FusedMapRows | None:
    """`then` over `first` as one node; None if errors of the first are not treated as those of the second."""
    if then.on_error not in (None, "raise"):
        return None
    steps = (first,) if isinstance(first, MapRows) else first.maps
    return FusedMapRows(first.input, Neighbours((*steps, then)), origin=then.origin)


def _mapped(upstream: Stream, state: State, steps: Sequence[MapRows], run: Run) -> Stream:
    for step in steps:
        step.decide(run)
    calls = [(step, step.refills()) for step in steps]
    for block, at in passing_over(upstream, state):
        if type(block) is Failure:
            yield block, at(0)
            continue
        most = run.at_once(block_rows(block.nbytes / max(1, block.size)))
        for first in range(0, block.size, most):
            part = block.rows(first, first + most)
            for rows, done in sound_parts(part.size, partial(_made, part, calls, run), tolerant=run.tolerant):
                yield rows, at(first + done)


def _made(block: Block, calls: Sequence[tuple[MapRows, Refills]], run: Run, first: int, end: int) -> Block:
    made = block.rows(first, end)
    for step, refills in calls:
        try:
            made = step.mapped(made, refills)
        except Exception as error:
            run.annotate(error, step.where)
            raise
    return made


@dataclass(frozen=True, eq=False)
class _Stacked(Node):
    """The input as `map_func` gets it, to find out what it returns."""

    tolerant: ClassVar[bool] = True
    input: Node

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec.map(lambda leaf: leaf if isinstance(leaf, ElementsSpec) else _many_rows(leaf))

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state, run):
            if type(block) is Failure:
                yield block, after
            elif block.size:  # rows that are not there cannot be put together
                try:
                    many = loosened(block, self.input.spec.map(_row_of)).stack(block.size)
                # The function is given a list of rows that differ in shape, and an array of a single one.
                except StackError:
                    many = block.rows(0, 1).stack(1)
                yield many, after


def _row_of(leaf: LeafSpec) -> LeafSpec:
    """The spec of a row among many: of a ragged tensor where rows differ in length alone."""
    if type(leaf) is TensorSpec and leaf.shape and leaf.shape[0] is None and None not in leaf.shape[1:]:
        return RaggedTensorSpec(leaf.shape, leaf.dtype, 0)
    return leaf


def _many_rows(leaf: TensorSpec) -> TensorSpec:
    row = _row_of(leaf)
    assert isinstance(row, TensorSpec)
    return row if row.shape is None else row.with_shape((None, *row.shape))


def _one_row(leaf: LeafSpec) -> LeafSpec:
    if isinstance(leaf, ElementsSpec) or leaf.shape is None:
        return leaf
    if not leaf.shape:
        raise InvalidArgumentError("map_rows: the function must return arrays with a first axis of rows, got a scalar")
    return leaf.with_shape(leaf.shape[1:])


def _whole(column: Column) -> Any:
    """All rows as one array, as a ragged tensor if they differ in length, or as a list if they differ otherwise."""
    if isinstance(column, Dense):
        return column.array
    if isinstance(column, Strings):
        return column.objects()
    if isinstance(column, Ragged | Arrays) or column.ragged_rank is not None:
        return ragged_tensor(column.joined() if isinstance(column, Arrays) else column)  # type: ignore[arg-type]
    return list(column.values())
