# SPDX-License-Identifier: Apache-2.0
"""Rules about sources: columns, rows and orders that a reader can see to itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from distinput.functions.claim import Claim
from distinput.ops.filter import Where
from distinput.ops.flat_map import FlatMap
from distinput.ops.fragment_reader import FragmentReader
from distinput.ops.global_shuffle import GlobalShuffle
from distinput.ops.interleave import Interleave
from distinput.ops.prefetch import Prefetch
from distinput.ops.reader import Reader
from distinput.ops.select import Select
from distinput.ops.shuffle import Shuffle
from distinput.ops.source import Source
from distinput.plan.node import Node
from distinput.rewrite.rules import rewrite
from distinput.values.spec import Spec

__all__ = [
    "filter_in_files",
    "read_after_shuffle",
    "select_before_filter",
    "select_before_order",
    "select_in_files",
    "select_in_made",
]


# ----------------------------------------------------------------------------
# Columns and rows that nobody wants are not read from files.
# ----------------------------------------------------------------------------


def select_in_files(node: Node) -> Node | None:
    """The reader leaves out the other columns; the states are the reader's either way."""
    match node:
        case Select(Reader() | FragmentReader() as reader, columns):
            chosen = reader.format.with_columns(node.whole)
            if chosen is None or node.whole == columns:
                return None if chosen is None else reader.reading_as(chosen)
            return replace(node, input=reader.reading_as(chosen)) if _fewer(node.whole, reader) else None
    return None


def select_in_made(node: Node) -> Node | None:
    """The selection is made in each dataset that the function returns, where readers of files may leave out columns.

    Which rows there are, and whose turn it is, does not depend on columns, and a selection has no state of its own.
    """
    match node:
        case Select(FlatMap() | Interleave() as made, columns) if made.through is None and node.whole == columns:
            return replace(made, through=_Selected(node, tuple(columns)), claim=Claim())
    return None


@dataclass(frozen=True)
class _Selected:
    """A selection from a dataset that a function made, as far down as it goes.

    Args:
      outside: the same selection, where the user wrote it.
      columns: what stays.
    """

    outside: Node
    columns: tuple[str, ...]

    @property
    def spec(self) -> Spec:
        return self.outside.spec

    def __call__(self, made: Node) -> Node:
        selected = Select(made, self.columns, origin=self.outside.origin)
        if not _leaves_out(made, self.columns):
            return selected
        _ = selected.spec  # so that a column which is not there is no fault of the file
        rules = (select_before_filter, select_before_order, select_in_files, filter_in_files)
        return rewrite(selected, rules)[0]


def select_before_filter(node: Node) -> Node | None:
    """Only the columns that stay, and those that the condition reads, go into the filter."""
    match node:
        case Select(Where(FlatMap() | Interleave() | Reader() as source) as where) if where.fields is not None:
            wanted = (*node.whole, *sorted(where.fields - set(node.whole)))
            if not _leaves_out(source, wanted) or not _fewer(wanted, source):
                return None
            below = replace(where, input=Select(source, wanted, origin=node.origin))
            return replace(node, input=below)
    return None


def select_before_order(node: Node) -> Node | None:
    """Rows are shuffled, and made ahead, with the columns that stay, so that a reader below need not read the others.

    Neither looks at the rows, and a selection has no state of its own: order and states are the same.
    """
    match node:
        case Select(Prefetch() | Shuffle() as moved) if _leaves_out(moved.input, node.whole):
            return replace(moved, input=replace(node, input=moved.input))
    return None


def _leaves_out(node: Node, columns: Sequence[str]) -> bool:
    """Whether a selection would come down to a reader that can leave out columns, or may, in datasets that a function makes."""
    while isinstance(node, Prefetch | Shuffle) or (isinstance(node, Where) and node.fields is not None):
        node = node.input
    if isinstance(node, FlatMap | Interleave):
        return node.through is None
    return isinstance(node, Reader | FragmentReader) and node.format.with_columns(columns) is not None


def _fewer(wanted: tuple[str, ...], source: Node) -> bool:
    """Whether the reader has not been told yet to read these columns alone."""
    known = getattr(source.format, "columns", None) if isinstance(source, Reader | FragmentReader) else None
    return known is None or set(wanted) < set(known)


def filter_in_files(node: Node) -> Node | None:
    """The reader leaves out parts of files that cannot satisfy the condition; the filter stays, for the rows of the others."""
    match node:
        case Where(Reader() as reader) if node.term is not None:
            pruned = reader.format.where(node.term)
            if pruned is not None:
                return replace(node, input=reader.reading_as(pruned).same_as(reader))
    return None


# ----------------------------------------------------------------------------
# Sources that are read by position.
# ----------------------------------------------------------------------------


def read_after_shuffle(node: Node) -> Node | None:
    """Positions are shuffled before their items are read, so that threads and processes read ahead in the new order."""
    match node:
        case GlobalShuffle(Source() as source):
            return source.with_inputs((replace(node, input=source.input),))
    return None
