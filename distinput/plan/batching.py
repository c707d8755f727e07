# SPDX-License-Identifier: Apache-2.0
"""Steps that make batches: groups of consecutive elements, each stacked into one."""

import dataclasses
from typing import ClassVar

from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.grouped import Grouped
from distinput.plan.node import Node

__all__ = ["Batching"]


class Batching(Grouped):
    """A `Grouped` step whose groups are batches of `batch_size` elements.

    Subclasses have both arguments among their fields, in TensorFlow's order.
    """

    by_element: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    batch_size: int
    drop_remainder: bool

    @property
    def step(self) -> int:
        return int(self.batch_size)

    @property
    def cardinality(self) -> int:
        return self.groups(full=self.drop_remainder)

    @property
    def drops_rows(self) -> bool:
        return bool(self.drop_remainder)

    @property
    def rows_per_batch(self) -> int | None:
        return int(self.batch_size)

    def with_full_batches(self) -> Node:
        return dataclasses.replace(self, drop_remainder=True)  # type: ignore[call-arg]  # a field of every subclass

    def batch_sizes(self) -> BatchSizes | None:
        n = self.input.count_elements()
        return (
            None if n < 0 else BatchSizes.of([([1], n)]).batched(int(self.batch_size), drop_remainder=self.drops_rows)
        )
