# SPDX-License-Identifier: Apache-2.0
"""Whether elements are what a signature says, looked at a block at a time.

Whole numbers become those of the signature where these hold more: what a function returns as a number of Python has no type
of its own. Everything else must fit.
"""

from typing import Any

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Array, Column
from distinput.core.dense import Dense
from distinput.core.leaves import STRING, dtype_name, dtype_of, is_ragged, shape_of
from distinput.core.nest import Structure
from distinput.core.objects import Arrays, Datasets, Objects
from distinput.core.ragged import Ragged
from distinput.core.ragged_batches import frozen_rows, ragged_spec
from distinput.core.regroup import loose_rows
from distinput.core.spec import DatasetSpec, ElementsSpec, LeafSpec, OptionalSpec, Spec, TensorSpec, shape_fits

__all__ = ["Misfit", "described", "first_misfit", "widened"]

Misfit = tuple[int, str, str]
"""A row, what it must be, and what it is."""


def widened(block: Block, spec: Spec) -> Block:
    """The rows with integers cast to the dtypes of `spec`, where that is safe."""
    columns = block.columnar().columns
    if len(columns) != len(spec.leaves):
        return block
    changed = [_wider(column, leaf) for column, leaf in zip(columns, spec.leaves, strict=True)]
    if all(new is old for new, old in zip(changed, columns, strict=True)):
        return block
    return ColumnBlock(block.structure, changed, block.size)


def _wider(column: Column, leaf: LeafSpec) -> Column:
    if isinstance(leaf, ElementsSpec):
        return column
    if leaf.ragged_rank == 0:
        column = _loose(column)
    if column.dtype == leaf.dtype or column.dtype.kind not in "iu":
        return column
    if leaf.dtype.kind not in "iu" or not np.can_cast(column.dtype, leaf.dtype, "safe"):
        return column
    column = column.materialize()  # another dtype is another array
    if column.ragged_rank is not None:
        return frozen_rows(column, lambda rows: _wider(rows, leaf))
    if isinstance(column, Dense):
        return Dense(column.array.astype(leaf.dtype))
    if isinstance(column, Ragged) and isinstance(column.flat, Dense):
        return Ragged(Dense(column.flat.array.astype(leaf.dtype)), column.starts, column.sizes, column.loose)
    if isinstance(column, Objects | Arrays):
        return type(column)([item.astype(leaf.dtype) for item in column.items], leaf.dtype)
    return column


def _loose(column: Column) -> Column:
    """Rows that the signature calls those of ragged tensors: their batches are ragged."""
    if column.lengths() is None or isinstance(column, Datasets):
        return column
    return loose_rows(column)


def first_misfit(block: Block, spec: Spec, *, datasets_alike: bool = True) -> Misfit | None:
    """The first row that does not fit a spec; None if all fit.

    Args:
      block: elements.
      spec: what they must be.
      datasets_alike: whether the elements of datasets among them must fit as well.
    """
    if not block.size:
        return None
    if not _alike(block.structure, spec.structure):
        return 0, f"elements nested as {spec.structure}", f"{block.structure}, each dot a component"
    first: Misfit | None = None
    for column, leaf, path in zip(block.columnar().columns, spec.leaves, spec.structure.paths, strict=True):
        row = _misfit(column, leaf, datasets_alike)
        if row is not None and (first is None or row < first[0]):
            first = row, f"{leaf}{f' in component {path}' if path else ''}", _described(column, row)
    return first


def _alike(a: Structure, b: Structure) -> bool:
    """Whether nests are the same, except that a list may stand for a tuple."""
    sequences = ("list", "tuple")
    if a.kind != b.kind and not (a.kind in sequences and b.kind in sequences):
        return False
    return a.keys == b.keys and len(a.children) == len(b.children) and all(map(_alike, a.children, b.children))


def _misfit(column: Column, leaf: LeafSpec, datasets_alike: bool) -> int | None:
    """The first row of a column that does not fit a spec; arrays and spans are checked as a whole."""
    if isinstance(leaf, OptionalSpec):
        items = column.items if isinstance(column, Datasets) and column.optional else [None]
        return _first_false(np.asarray([item is not None and item.leaf_spec.is_subtype_of(leaf) for item in items]))
    if isinstance(leaf, DatasetSpec):
        if isinstance(column, Datasets) and not datasets_alike:
            return None
        nests = [item.element_spec for item in column.items] if isinstance(column, Datasets) else [None]
        return _first_false(np.asarray([nest == leaf.element_spec for nest in nests]))
    assert isinstance(leaf, TensorSpec)
    if isinstance(column, Datasets):
        return 0
    if column.dtype != leaf.dtype:
        return 0
    if leaf.ragged_rank or column.ragged_rank is not None:
        return _ragged_misfit(column, leaf)
    wanted = leaf.shape
    if wanted is None:
        return None
    if leaf.sizes is not None:
        return _first_false(np.fromiter(map(leaf.fits_value, column.values()), bool, len(column)))
    if column.inner is not None:
        return None if shape_fits(column.inner, wanted) else 0
    if isinstance(column, Ragged):
        if not wanted or not shape_fits(column.flat.inner, wanted[1:]):
            return 0
        return None if wanted[0] is None else _first_false(column.sizes == wanted[0])
    return _first_false(np.asarray([shape_fits(shape_of(item), wanted) for item in column.values()]))


def _ragged_misfit(column: Column, leaf: TensorSpec) -> int | None:
    """As `_misfit`, where the column or the spec is one of ragged tensors."""
    if column.ragged_rank is None:
        return 0
    found = ragged_spec(column)
    if not found.alike(leaf) or leaf.shape is None:
        return 0
    if shape_fits(found.shape, leaf.shape):
        return None
    return _first_false(np.fromiter(map(leaf.fits_value, column.values()), bool, len(column)))


def _first_false(rows: Array) -> int | None:
    return None if rows.all() else int(rows.argmin())


def _described(column: Column, row: int) -> str:
    if isinstance(column, Datasets) and not column.optional:
        return f"a dataset of {column.items[row].element_spec}"
    return described(column.row(row))


def described(leaf: Any) -> str:
    """A leaf in words."""
    if getattr(leaf, "is_optional", False):
        return f"an Optional of {leaf.element_spec}"
    if getattr(leaf, "nest_leaf", False):
        return "a dataset"
    if is_ragged(leaf):
        return f"a ragged tensor of shape {leaf.shape} with ragged_rank {leaf.ragged_rank} and dtype {dtype_name(leaf.dtype)}"
    text, dtype = " ".join(repr(leaf).split()), dtype_of(leaf)
    kind = f"shape {list(shape_of(leaf))} and dtype {'string' if dtype == STRING else dtype}"
    return f"{kind}, {text if len(text) <= 80 else text[:80] + '...'},"
