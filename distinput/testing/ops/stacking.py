# SPDX-License-Identifier: Apache-2.0
"""Groups of elements as one element, stacked or padded: what the batching ops must give, in plain NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.core.ragged_tensor import RaggedTensor
from distinput.core.spec import Spec, TensorSpec

__all__ = ["cut", "padded", "ragged_stack", "stack", "stacked", "stacked_leaf"]


def cut(elements: list[Any], size: int, *, drop: bool) -> list[list[Any]]:
    """Elements in groups of `size`; the last one may be shorter, and is left out then if `drop`."""
    groups = [elements[i : i + size] for i in range(0, len(elements), size)]
    return [group for group in groups if len(group) == size] if drop else groups


def stack(leaves: list[Any]) -> Any:
    """Leaves of one shape as one array with a first axis: [...] of each -> [n, ...]."""
    if isinstance(leaves[0], bytes) or leaves[0].dtype == object:
        made = np.empty((len(leaves), *getattr(leaves[0], "shape", ())), object)
        for index, leaf in enumerate(leaves):
            made[index] = leaf
        return made
    return np.stack(leaves)


def ragged_stack(leaves: list[Any], ragged_rank: int, spec: TensorSpec) -> RaggedTensor:
    """Arrays or ragged tensors as the rows of one ragged tensor: made of lists.

    Args:
      leaves: the rows.
      ragged_rank: of the whole.
      spec: of a row.
    """
    rows: list[Any] = [leaf.to_list() if isinstance(leaf, RaggedTensor) else list(leaf) for leaf in leaves]
    splits = []
    for _ in range(ragged_rank):
        splits.append(np.cumsum([0, *map(len, rows)]))
        rows = [item for row in rows for item in row]
    inner = tuple([d or 0 for d in (spec.shape or ())[ragged_rank:]])
    if rows and spec.dtype != object:
        inner = np.shape(rows[0])  # where the spec does not know it
    values: Any = np.empty((len(rows), *inner), spec.dtype)
    for place, item in enumerate(rows):
        values[place] = item
    for each in reversed(splits):
        values = RaggedTensor.from_row_splits(values, each)
    return values  # type: ignore[no-any-return]


def stacked_leaf(leaves: list[Any], spec: TensorSpec) -> Any:
    """Leaves of a spec as one, with a first axis."""
    return stack(leaves) if spec.ragged_rank is None else ragged_stack(leaves, spec.ragged_rank + 1, spec)


def stacked(spec: Spec, elements: list[Any]) -> Any:
    """Elements as one, with a first axis."""
    columns = zip(*map(spec.structure.flatten, elements), strict=True)
    made = zip(columns, spec.tensors("pipelines"), strict=True)
    return spec.structure.build([stacked_leaf(list(leaves), leaf) for leaves, leaf in made])


def padded(spec: Spec, elements: list[Any], fill: Any = None, width: int | None = None) -> Any:
    """Elements as one, each leaf padded to the largest of the group.

    Args:
      spec: what an element looks like.
      elements: at least one.
      fill: what to pad with; zeros or empty text when None.
      width: how large every unknown dimension becomes; None: the largest of the group.
    """
    columns = []
    for leaves, leaf_spec in zip(
        zip(*map(spec.structure.flatten, elements), strict=True), spec.tensors("padded"), strict=True
    ):
        arrays = [leaf.to_padded(fill) if isinstance(leaf, RaggedTensor) else leaf for leaf in leaves]
        shape = _padded_shape(arrays, leaf_spec, width)
        columns.append(stack([_pad(array, shape, fill) for array in arrays]))
    return spec.structure.build(columns)


def _padded_shape(leaves: Sequence[Any], spec: TensorSpec, width: int | None) -> tuple[int, ...]:
    wanted = [width if d is None else d for d in spec.shape or ()]
    dims = [max(getattr(leaf, "shape", ())[axis] for leaf in leaves) for axis in range(len(wanted))]
    return tuple([dim if want is None else want for dim, want in zip(dims, wanted, strict=True)])


def _pad(leaf: Any, shape: tuple[int, ...], fill: Any) -> Any:
    if isinstance(leaf, bytes) or not leaf.shape:
        return leaf
    missing = b"" if leaf.dtype == object else leaf.dtype.type(fill or 0)
    made = np.full(shape, missing, leaf.dtype)
    made[tuple(slice(0, size) for size in leaf.shape)] = leaf
    return made
