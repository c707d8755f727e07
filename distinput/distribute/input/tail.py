# SPDX-License-Identifier: Apache-2.0
"""The tail: what happens to a step with fewer rows than the global batch size.

`partial` delivers it as it is, as TensorFlow does; `pad` pads every replica's part with zeros and adds a mask of the
rows that are data; `drop` leaves the step out; `error` raises.
"""

from functools import lru_cache, partial
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.distribute.core.values import PerReplica
from distinput.errors import InvalidArgumentError
from distinput.sharding.batches import batch_size_of
from distinput.values.leaves import zero
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import Spec, TensorSpec

__all__ = ["StepPadding", "check_rows", "global_batch_size", "only_full", "short"]


def global_batch_size(dataset: Any, tail: str) -> int:
    """The number of rows of a full step.

    Raises:
      ValueError: it is unknown, so there is no telling which steps are full.
    """
    size = batch_size_of(dataset.node)
    if size is None:
        raise ValueError(
            f"InputOptions(tail={tail!r}): the global batch size must be known, which a function over whole batches or a "
            "parallel batch hides; call it on single elements, before batch"
        )
    return size


def only_full(dataset: Any) -> Any:
    """The dataset without partial batches, as if `batch` had been called with drop_remainder=True."""
    return Dataset(dataset.node.with_full_batches())


def check_rows(dataset: Any, rows: int) -> bool:
    """True if all batches are known to be full before anything is read; False if only reading can tell.

    Raises:
      InvalidArgumentError: some batch is known to be short.
    """
    sizes = dataset.node.batch_sizes()
    for there in [] if sizes is None else [size for pattern, _ in sizes.runs for size in pattern]:
        if there != rows:
            raise short(there, rows)
    return sizes is not None


def short(there: int, rows: int) -> InvalidArgumentError:
    """The error raised for tail='error'."""
    return InvalidArgumentError(
        f"InputOptions(tail='error'): every step needs {rows} rows, one has {there}; choose a batch size that divides "
        "the number of rows, or tail 'pad' or 'drop'"
    )


class StepPadding:
    """Pads the parts of a step to the same number of rows: a step -> (step, mask).

    Args:
      spec: the spec of one replica's part.
      rows: the number of rows of each padded part.
    """

    __slots__ = ("_rows", "_spec")

    def __init__(self, spec: Spec, rows: int) -> None:
        self._spec, self._rows = spec, rows

    @property
    def spec(self) -> Spec:
        """The spec of a replica's part and its mask."""
        padded = self._spec.map(
            lambda leaf: (
                leaf.with_shape((self._rows, *leaf.shape[1:])) if isinstance(leaf, TensorSpec) and leaf.shape else leaf
            )
        )
        return Spec.of((padded.nest, TensorSpec([self._rows], "bool")))

    def __call__(self, step: Any) -> Any:
        """Pad the parts `[n, ...] -> [rows, ...]`; add for each a mask `[rows]` that is true for its n rows of data.

        Raises:
          InvalidArgumentError: a part has more than `rows` rows.
        """
        structure = self._spec.structure
        leaves = structure.flatten(step)
        kept = {place for first in structure.sparse for place in (first, first + 1)}  # rows without values
        shapes = {first + 2 for first in structure.sparse}
        padded = list(leaves)
        for place, (value, leaf) in enumerate(zip(leaves, self._spec.tensors("pad"), strict=True)):
            if place not in kept:
                pad = self._padded_shape if place in shapes else partial(self._padded, leaf=leaf)
                padded[place] = (
                    PerReplica(list(map(pad, value.values))) if isinstance(value, PerReplica) else pad(value)
                )
        first, rows_of = (leaves[2], _rows_of_shape) if 2 in shapes else (leaves[0], len)
        mask: Any
        if isinstance(first, PerReplica):
            mask = PerReplica([_mask(rows_of(part), self._rows) for part in first.values])
        else:
            mask = _mask(rows_of(first), self._rows)
        return structure.build(padded), mask

    def _padded_shape(self, part: Any) -> Any:
        """The `dense_shape` of a sparse tensor with the rows that it lacks, which have no values."""
        self._check(_rows_of_shape(part))
        return np.array([self._rows, *part[1:]], np.int64)

    def _check(self, there: int) -> None:
        if there > self._rows:
            raise InvalidArgumentError(
                f"InputOptions(tail='pad'): a replica's part must have at most {self._rows} rows, got {there}"
            )

    def _padded(self, part: Any, leaf: TensorSpec) -> Any:
        there = len(part)
        if there == self._rows:
            return part
        self._check(there)
        if leaf.ragged_rank:
            splits = np.concatenate((part.row_splits, np.repeat(part.row_splits[-1:], self._rows - there)))
            return RaggedTensor(part.values, splits)  # rows without values
        made = zero(leaf.dtype, (self._rows, *part.shape[1:]))
        made[:there] = part
        return made


def _rows_of_shape(dense_shape: Any) -> int:
    return int(dense_shape[0])


@lru_cache(maxsize=1024)
def _mask(there: int, rows: int) -> Any:
    mask = np.arange(rows) < there
    mask.flags.writeable = False
    return mask
