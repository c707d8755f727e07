# SPDX-License-Identifier: Apache-2.0
"""`copied`: elements in memory of their own."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from distinput.core.block import Block
from distinput.core.column import Ints
from distinput.core.copying import CopyingBlock
from distinput.core.failure import Failure
from distinput.core.rows import Stream, passing_over
from distinput.core.run import Run
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.plan.one_for_one import OneForOne

__all__ = ["Copied"]

_PIECE_BYTES = 1 << 19
"""Bytes of elements that are copied together: few enough to stay in a core's cache until they are used."""

_LARGE_BYTES = 1 << 15
"""Elements larger than this are copied one by one when they are handed out, which is cheaper than a trip through the caches."""


@dataclass(frozen=True, eq=False)
class Copied(OneForOne):
    """Elements that share no memory with the input, and may be written to.

    `batch`, `rebatch`, `take` and the cut for replicas deliver views of what they read, which costs nothing; but a view keeps
    its whole source alive, and writing to it writes to the source. This op copies every element once. The memory of elements
    that the consumer has dropped is used again for later ones.

    Shapes and order: unchanged. State: where the next element stands in the input.

    >>> import distinput as di
    >>> import numpy as np
    >>> source = np.zeros(4)
    >>> for batch in di.data.Dataset.from_tensor_slices(source).batch(2).copied():
    ...     batch += 1
    >>> source
    array([0., 0., 0., 0.])

    Source: distinput's own; TensorFlow always delivers copies.
    """

    by_element: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    keeps_batches: ClassVar[bool] = True
    view_only: ClassVar[bool] = True  # a copy is best made in the cache of the core that uses it, by its own thread

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    def stream(self, state: State, run: Run) -> Stream:
        late = run.late(self)
        for block, _, _, at in passing_over(self.input.open(state["input"], run), state):
            if type(block) is Failure:
                yield block, at(0)
                continue
            if run.by_element and block.nbytes > _LARGE_BYTES * block.size:
                yield CopyingBlock(block, late), at(block.size)
                continue
            most = max(1, _PIECE_BYTES * block.size // max(1, block.nbytes))
            for first in range(0, block.size, most):
                end = min(first + most, block.size)
                yield block.rows(first, end).copied(), at(end)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(rows, epoch).copied()
