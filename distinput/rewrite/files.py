# SPDX-License-Identifier: Apache-2.0
"""Columns and rows that nobody wants are not read from files."""

from collections.abc import Sequence
from dataclasses import replace

from distinput.ops.fragment_reader import FragmentReader
from distinput.ops.prefetch import Prefetch
from distinput.ops.reader import Reader
from distinput.ops.select import Select
from distinput.ops.shuffle import Shuffle
from distinput.ops.where import Where
from distinput.plan.node import Node


def select_in_files(node: Node) -> Node | None:
    """The reader leaves out the other columns; the states are the reader's either way."""
    match node:
        case Select(Reader() | FragmentReader() as reader, columns):
            chosen = reader.format.with_columns(columns)
            return None if chosen is None else replace(reader, format=chosen)
    return None


def select_before_filter(node: Node) -> Node | None:
    """Only the columns that stay, and those that the condition reads, go into the filter."""
    match node:
        case Select(Where(Reader() as reader) as where, columns) if where.fields is not None:
            wanted = (*columns, *sorted(where.fields - set(columns)))
            if reader.format.with_columns(wanted) is None or not _fewer(wanted, reader):
                return None
            below = replace(where, input=Select(reader, wanted, origin=node.origin))
            return replace(node, input=below)
    return None


def select_before_order(node: Node) -> Node | None:
    """Rows are shuffled, and made ahead, with the columns that stay, so that a reader below need not read the others.

    Neither looks at the rows, and a selection has no state of its own: order and states are the same.
    """
    match node:
        case Select(Prefetch() | Shuffle() as moved, columns) if _leaves_out(moved.input, columns):
            return replace(moved, input=replace(node, input=moved.input))
    return None


def _leaves_out(node: Node, columns: Sequence[str]) -> bool:
    """Whether a selection would come down to a reader that can leave out columns."""
    while isinstance(node, Prefetch | Shuffle) or (isinstance(node, Where) and node.fields is not None):
        node = node.input
    return isinstance(node, Reader | FragmentReader) and node.format.with_columns(columns) is not None


def _fewer(wanted: tuple[str, ...], reader: Reader) -> bool:
    """Whether the reader has not been told yet to read these columns alone."""
    known = getattr(reader.format, "columns", None)
    return known is None or set(wanted) < set(known)


def filter_in_files(node: Node) -> Node | None:
    """The reader leaves out parts of files that cannot satisfy the condition; the filter stays, for the rows of the others."""
    match node:
        case Where(Reader() as reader) if node.term is not None:
            pruned = reader.format.where(node.term)
            if pruned is not None:
                return replace(node, input=replace(reader, format=pruned).same_as(reader))
    return None
