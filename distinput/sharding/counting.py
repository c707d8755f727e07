# SPDX-License-Identifier: Apache-2.0
"""How many elements and rows a tree gives, where that follows from what is known without reading records.

`Node.cardinality` says what TensorFlow would say, which is "unknown" for many trees that can be counted all the same.
"""

from dataclasses import dataclass
from functools import cached_property

from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.spec import Spec, TensorSpec
from distinput.core.state import State
from distinput.ops.batch import Batch
from distinput.ops.concatenate import Concatenate
from distinput.ops.copied import Copied
from distinput.ops.fragments import FragmentReader
from distinput.ops.global_shuffle import GlobalShuffle
from distinput.ops.identity import AssertCardinality, WithOptions
from distinput.ops.interleave import FlatMap, Interleave
from distinput.ops.own_rows import OwnPieces, OwnRows
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.parse_example import ParseExample
from distinput.ops.prefetch import Prefetch
from distinput.ops.reader import Reader
from distinput.ops.rebatch import LegacyRebatch, Rebatch
from distinput.ops.repeat import Repeat
from distinput.ops.shard import Shard
from distinput.ops.shuffle import Shuffle
from distinput.ops.take import Skip, Take
from distinput.ops.unbatch import Unbatch
from distinput.partition.sizes import Sizes
from distinput.plan.node import INFINITE, UNKNOWN, Node, walk

__all__ = ["elements_of", "sizes_of"]

_MOST_NAMES = 10_000  # for which a function is asked for its reader


@dataclass(frozen=True, eq=False)
class _Counted(Node):
    """Stands for an input of which only the number of elements matters."""

    input: Node
    count: int

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    @property
    def cardinality(self) -> int:
        return self.count

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State:
        return {}

    def stream(self, state: State, run: Run) -> Stream:
        return self.input.open(state, run)


def elements_of(node: Node) -> int:
    """How many elements: a count, `INFINITE` or `UNKNOWN`."""
    if isinstance(node, AssertCardinality):
        return int(node.expected_cardinality)
    if isinstance(node, Reader):
        counts = node.counts
        return _listed_rows(node) if counts is None else int(counts[1][-1])
    if isinstance(node, FragmentReader):
        return _of_fragments(node)
    if isinstance(node, Rebatch | Unbatch):
        return _of_rows(node)
    if isinstance(node, FlatMap | Interleave):
        return _of_made(node)
    if not node.inputs or isinstance(node, OwnPieces | OwnRows):
        return node.cardinality
    counts_below = [elements_of(source) for source in node.inputs]
    if UNKNOWN in counts_below and node.cardinality == UNKNOWN:
        return UNKNOWN
    known = [
        source if count == UNKNOWN else _Counted(source, count)
        for source, count in zip(node.inputs, counts_below, strict=True)
    ]
    return node.with_inputs(tuple(known)).cardinality


def _listed_rows(node: Reader) -> int:
    """Records of the files that a reader is given, where a manifest says how many each has."""
    table, n = node.table, elements_of(node.input)
    if table is None or table.rows is None or n < 0:
        return n if n == INFINITE else UNKNOWN
    total = 0
    with Run() as run:
        for block, _ in node.input.open(node.input.start(0), run):
            for name in block.elements():
                index = table.index(name.decode())
                rows = -1 if index < 0 else int(table.rows[index])
                if rows < 0:
                    return UNKNOWN
                total += rows
    return total


def _of_fragments(node: FragmentReader) -> int:
    rows, n = node.rows, elements_of(node.input)
    if rows is None or n == UNKNOWN:
        return UNKNOWN
    passes = 1
    for step in walk(node.input):
        if isinstance(step, Repeat):
            passes = INFINITE if INFINITE in (passes, step.passes) else passes * step.passes
    total = int(rows.sum())
    return total if passes == INFINITE and not total else INFINITE if passes == INFINITE else total * passes


def _of_rows(node: Rebatch | Unbatch) -> int:
    if elements_of(node.input) == INFINITE:
        return node.cardinality if node.cardinality != UNKNOWN else INFINITE
    if isinstance(node, Unbatch):
        below = sizes_of(node.input)
        return UNKNOWN if below is None else below.rows
    sizes = sizes_of(node)
    return UNKNOWN if sizes is None else sizes.count


def _of_made(node: FlatMap | Interleave) -> int:
    """The sum over the datasets that the function makes, where these are of listed names and can be counted."""
    n = elements_of(node.input)
    listed = all(not isinstance(step, Reader) and (step.inputs or step.random_access) for step in walk(node.input))
    if not 0 <= n <= _MOST_NAMES or not listed:
        return node.cardinality
    total = 0
    with Run() as run:
        for block, _ in node.input.open(node.input.start(0), run):
            for element in block.elements():
                count = elements_of(node.call(element))
                if count < 0:
                    return UNKNOWN
                total += count
    return total


def _sizes_of_pieces(node: OwnPieces) -> Sizes | None:
    """Rows of each piece."""
    pieces = node.pieces
    if pieces.rows is None:
        return None
    batches = Sizes.of([([1], pieces.rows)]).batched(pieces.batch_size, drop_remainder=pieces.drop_remainder)
    deal = pieces.deal
    return None if deal.balanced else batches.cut(deal.pieces).every(deal.period, deal.first)


def sizes_of(node: Node) -> Sizes | None:
    """Rows of each element of a tree of batches; None where they are not known, or have no end."""
    if isinstance(node, OwnPieces):
        return _sizes_of_pieces(node)
    if isinstance(node, Batch | PaddedBatch):
        n = elements_of(node.input)
        ones = Sizes.of([([1], n)])
        return None if n < 0 else ones.batched(int(node.batch_size), drop_remainder=bool(node.drop_remainder))
    if isinstance(node, Concatenate):
        parts = [sizes_of(source) for source in node.inputs]
        whole: Sizes | None = Sizes()
        for part in parts:
            whole = None if whole is None or part is None else whole.then(part)
        return whole
    if isinstance(node, _OF_SIZES):
        below = sizes_of(node.inputs[0])
        return None if below is None else _changed(node, below)
    leaves = node.spec.leaves
    firsts = {leaf.shape[0] if isinstance(leaf, TensorSpec) and leaf.shape else None for leaf in leaves}
    first, n = firsts.pop() if len(firsts) == 1 else None, elements_of(node)
    return None if first is None or n < 0 else Sizes.of([([first], n)])


_OF_SIZES = (
    Copied, GlobalShuffle, LegacyRebatch, ParseExample, Prefetch, Rebatch, Repeat, Shard, Shuffle, Skip, Take, WithOptions,
)  # fmt: skip


def _changed(node: Node, below: Sizes) -> Sizes | None:
    match node:
        case Rebatch():
            return below.rebatched(node.sizes, drop_remainder=node.drop_remainder)
        case LegacyRebatch():
            return below.cut(node.num_replicas)
        case Shard():
            return None if node.is_hint else below.every(int(node.num_shards), int(node.index))
        case Take():
            return below if node.count < 0 else below.part(0, int(node.count))
        case Skip():
            return Sizes() if node.count < 0 else below.part(int(node.count))
        case Repeat():
            return below.repeated(node.passes) if node.passes != INFINITE else (Sizes() if not below.count else None)
        case Shuffle() | GlobalShuffle():
            return below if below.uniform else None
    return below
