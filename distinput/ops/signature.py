# SPDX-License-Identifier: Apache-2.0
"""Whether elements are what a signature says, looked at a block at a time.

Whole numbers become those of the signature where these hold more: what a function returns as a number of Python has no type
of its own. Everything else must fit.
"""

from collections.abc import Callable

import numpy as np

from distinput.core.block import Block
from distinput.core.column import Array, Column, Datasets, Dense, Objects, Ragged, Strings
from distinput.core.failure import Failure
from distinput.core.nest import Structure
from distinput.core.rows import Stream
from distinput.core.spec import DatasetSpec, LeafSpec, Spec, shape_fits
from distinput.core.state import State
from distinput.core.values import STRING, shape_of

__all__ = ["check_signature", "fitting"]


def fitting(
    op: str, stream: Stream, state: State, spec: Spec, note: Callable[[Exception], None], *, tolerant: bool
) -> Stream:
    """The elements of `stream`, as those of `spec`, as long as they fit it.

    Args:
      op: for the message.
      stream: blocks with marks.
      state: where it begins; it has an element for each of its input, so that places between two marks are known.
      spec: what elements have to be.
      note: told of the error.
      tolerant: whether one that does not is a failure.

    Raises:
      TypeError: one does not; those before it are sent, and `note` is told.
    """
    mark = state
    for made, after in stream:
        block = made if type(made) is Failure else _widened(made, spec)
        done = 0
        while (found := _first_misfit(block, spec)) is not None:
            row, text = found
            if row:
                yield block.rows(0, row), {"input": mark["input"], "skip": mark["skip"] + done + row}
            error = _error(op, text)
            note(error)
            if not tolerant:
                raise error
            done += row + 1
            block = block.rows(row + 1, block.size)
            behind = {"input": mark["input"], "skip": mark["skip"] + done} if block.size else after
            yield Failure(error), behind
        if block.size or not done:
            yield block, after
        mark = after


def check_signature(op: str, block: Block, spec: Spec) -> Block:
    """The elements of `block` as those of `spec`.

    Raises:
      TypeError: one does not.
    """
    made = _widened(block, spec)
    found = _first_misfit(made, spec)
    if found is not None:
        raise _error(op, found[1])
    return made


def _error(op: str, what: str) -> TypeError:
    return TypeError(f"{op}: map_func must return what output_signature says, {what}; change one of them")


def _widened(block: Block, spec: Spec) -> Block:
    """The rows with whole numbers of the dtypes of `spec`, where these can hold all numbers of their own."""
    if len(block.columns) != len(spec.leaves):
        return block
    changed = [_wider(column, leaf) for column, leaf in zip(block.columns, spec.leaves, strict=True)]
    if all(new is old for new, old in zip(changed, block.columns, strict=True)):
        return block
    return Block(block.structure, changed, block.size)


def _wider(column: Column, leaf: LeafSpec) -> Column:
    if isinstance(leaf, DatasetSpec) or column.dtype == leaf.dtype or column.dtype.kind not in "iu":
        return column
    if leaf.dtype.kind not in "iu" or not np.can_cast(column.dtype, leaf.dtype, "safe"):
        return column
    if isinstance(column, Dense):
        return Dense(column.array.astype(leaf.dtype))
    if isinstance(column, Ragged) and isinstance(column.flat, Dense):
        return Ragged(Dense(column.flat.array.astype(leaf.dtype)), column.starts, column.sizes)
    if isinstance(column, Objects):
        return type(column)([item.astype(leaf.dtype) for item in column.items], leaf.dtype)
    return column


def _first_misfit(block: Block, spec: Spec) -> tuple[int, str] | None:
    """The first row that does not fit, and in which way; None where all do."""
    if not block.size:
        return None
    if not _alike(block.structure, spec.structure):
        return 0, f"elements nested as {spec.structure}, got {block.structure}, each dot a component"
    first: tuple[int, str] | None = None
    for column, leaf, path in zip(block.columns, spec.leaves, spec.structure.paths, strict=True):
        row = _misfit(column, leaf)
        if row is not None and (first is None or row < first[0]):
            first = row, f"{leaf}{f' in component {path}' if path else ''}, got {_described(column, row)}"
    return first


def _alike(a: Structure, b: Structure) -> bool:
    """Whether nests are the same, but that a list may stand for a tuple."""
    sequences = ("list", "tuple")
    if a.kind != b.kind and not (a.kind in sequences and b.kind in sequences):
        return False
    return a.keys == b.keys and len(a.children) == len(b.children) and all(map(_alike, a.children, b.children))


def _misfit(column: Column, leaf: LeafSpec) -> int | None:
    """The first row of a column that a spec does not fit; arrays and spans are looked at as a whole."""
    if isinstance(leaf, DatasetSpec):
        nests = [item.element_spec for item in column.items] if isinstance(column, Datasets) else [None]
        return _first_false(np.asarray([nest == leaf.element_spec for nest in nests]))
    if isinstance(column, Datasets):
        return 0
    if column.dtype != leaf.dtype:
        return 0
    wanted = leaf.shape
    if wanted is None:
        return None
    if isinstance(column, Dense):
        return None if shape_fits(column.array.shape[1:], wanted) else 0
    if isinstance(column, Strings):
        return None if shape_fits(column.starts.shape[1:], wanted) else 0
    if isinstance(column, Ragged):
        flat = column.flat
        inner = flat.array.shape[1:] if isinstance(flat, Dense) else flat.starts.shape[1:]
        if not wanted or not shape_fits(inner, wanted[1:]):
            return 0
        return None if wanted[0] is None else _first_false(column.sizes == wanted[0])
    return _first_false(np.asarray([shape_fits(shape_of(item), wanted) for item in column.values()]))


def _first_false(rows: Array) -> int | None:
    return None if rows.all() else int(rows.argmin())


def _described(column: Column, row: int) -> str:
    if isinstance(column, Datasets):
        return f"a data set of {column.items[row].element_spec}"
    shape = shape_of(column.row(row))
    return f"shape {list(shape)} and dtype {'string' if column.dtype == STRING else column.dtype}"
