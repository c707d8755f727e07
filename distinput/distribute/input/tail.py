# SPDX-License-Identifier: Apache-2.0
"""The tail: what happens to a step for which there are fewer rows than the global batch size.

`partial` delivers what there is, as TensorFlow does; `pad` fills every replica's part up with zeros and says by a mask which
rows are data; `drop` leaves the step out; `error` raises.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from distinput.core.leaves import zero
from distinput.core.spec import Spec, TensorSpec
from distinput.data.dataset import Dataset
from distinput.distribute.values import PerReplica
from distinput.errors import InvalidArgumentError
from distinput.sharding.batches import batch_size_of

__all__ = ["Padding", "check_rows", "global_batch_size", "only_full", "short"]


def global_batch_size(dataset: Any, tail: str) -> int:
    """Rows of a full step.

    Raises:
      ValueError: it is not known, so nobody can tell which steps are full.
    """
    size = batch_size_of(dataset.node)
    if size is None:
        raise ValueError(
            f"InputOptions(tail={tail!r}): the global batch size must be known, which a function over whole batches or a "
            "parallel batch hides; call it on single elements, before batch"
        )
    return size


def only_full(dataset: Any) -> Any:
    """The dataset without the batches that are not full, as if `batch` had been called with drop_remainder=True."""
    return Dataset(dataset.node.with_full_batches())


def check_rows(dataset: Any, rows: int) -> bool:
    """True when every batch is known to be full before anything is read; False when only reading can tell.

    Raises:
      InvalidArgumentError: some batch is known to be short.
    """
    sizes = dataset.node.batch_sizes()
    for there in [] if sizes is None else [size for pattern, _ in sizes.runs for size in pattern]:
        if there != rows:
            raise short(there, rows)
    return sizes is not None


def short(there: int, rows: int) -> InvalidArgumentError:
    """The error of tail='error'."""
    return InvalidArgumentError(
        f"InputOptions(tail='error'): every step needs {rows} rows, one has {there}; choose a batch size that divides "
        "the number of rows, or tail 'pad' or 'drop'"
    )


class Padding:
    """Fills the parts of a step up to one number of rows: a step -> (step, mask).

    Args:
      spec: of one replica's part.
      rows: that each part will have.
    """

    __slots__ = ("_rows", "_spec")

    def __init__(self, spec: Spec, rows: int) -> None:
        self._spec, self._rows = spec, rows

    @property
    def spec(self) -> Spec:
        """Of a replica's part and its mask."""
        padded = self._spec.map(
            lambda leaf: (
                leaf.with_shape((self._rows, *leaf.shape[1:])) if isinstance(leaf, TensorSpec) and leaf.shape else leaf
            )
        )
        return Spec.of((padded.nest, TensorSpec([self._rows], "bool")))

    def __call__(self, step: Any) -> Any:
        """The step with parts `[n, ...] -> [rows, ...]`, and for each part a mask `[rows]` that is true for its n rows.

        Raises:
          InvalidArgumentError: a part has more rows.
        """
        leaves = self._spec.structure.flatten(step)
        padded = [
            PerReplica([self._padded(part, leaf) for part in value.values])
            if isinstance(value, PerReplica)
            else self._padded(value, leaf)
            for value, leaf in zip(leaves, self._spec.tensors("pad"), strict=True)
        ]
        first = leaves[0]
        mask: Any
        if isinstance(first, PerReplica):
            mask = PerReplica([_mask(len(part), self._rows) for part in first.values])
        else:
            mask = _mask(len(first), self._rows)
        return self._spec.structure.build(padded), mask

    def _padded(self, part: Any, leaf: TensorSpec) -> Any:
        there = len(part)
        if there == self._rows:
            return part
        if there > self._rows:
            raise InvalidArgumentError(
                f"InputOptions(tail='pad'): a replica's part must have at most {self._rows} rows, got {there}"
            )
        made = zero(leaf.dtype, (self._rows, *part.shape[1:]))
        made[:there] = part
        return made


@lru_cache(maxsize=1024)
def _mask(there: int, rows: int) -> Any:
    mask = np.arange(rows) < there
    mask.flags.writeable = False
    return mask
