# SPDX-License-Identifier: Apache-2.0
"""`window`: consecutive elements as data sets of their own."""

from dataclasses import dataclass
from functools import cached_property

from distinput.core.block import Block
from distinput.core.column import Datasets
from distinput.core.nest import LEAF
from distinput.core.rows import RowQueue, Stream
from distinput.core.run import Run
from distinput.core.spec import DatasetSpec, Spec
from distinput.core.state import State
from distinput.core.values import STRING
from distinput.ops.slices import rows_node
from distinput.plan.check import at_least
from distinput.plan.grouped import Grouped

__all__ = ["Window"]


@dataclass(frozen=True, eq=False)
class Window(Grouped):
    """Windows of `size` elements, each a data set; every component of the element becomes a data set of its own.

    Shapes: a leaf [...] becomes a data set of up to `size` elements [...]. State: where the first element of the next
    window stands in the input.

    Args:
      size: elements in a window, at least 1.
      shift: elements from the beginning of one window to the next; `size` when None.
      stride: take every `stride`-th element.
      drop_remainder: leave out windows at the end that are not full.

    >>> import distinput as di
    >>> [list(w.as_numpy_iterator()) for w in di.data.Dataset.range(4).window(3, shift=2)]
    [[np.int64(0), np.int64(1), np.int64(2)], [np.int64(2), np.int64(3)]]

    Source: `tf.data.Dataset.window`.
    """

    size: int
    shift: int | None = None
    stride: int = 1
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        at_least("window", "size", self.size, 1)
        at_least("window", "stride", self.stride, 1)
        if self.shift is not None:
            at_least("window", "shift", self.shift, 1)

    @property
    def step(self) -> int:
        return int(self.size if self.shift is None else self.shift)

    @property
    def needed(self) -> int:
        return int(1 + (self.size - 1) * self.stride)

    @cached_property
    def spec(self) -> Spec:
        inner = self.input.spec
        return Spec(inner.structure, tuple([DatasetSpec(Spec(LEAF, (leaf,)).nest) for leaf in inner.leaves]))

    @property
    def cardinality(self) -> int:
        return self.groups(full=self.drop_remainder)

    def stream(self, state: State, run: Run) -> Stream:
        held = RowQueue(self.input.open(state["input"], run), state)
        leaves = self.input.spec.leaves
        while True:
            full = held.fill(self.needed)
            if not held.size or (not full and self.drop_remainder):
                return
            rows = held.peek(min(self.needed, held.size)).rows(0, self.needed, self.stride)
            parts = [Block(LEAF, [column], rows.size) for column in rows.columns]
            nodes = [rows_node(part, (leaf,)) for part, leaf in zip(parts, leaves, strict=True)]
            window = Block(rows.structure, [Datasets([node], STRING) for node in nodes], 1)
            held.fill(self.step)
            held.skip(min(self.step, held.size))
            yield window, held.mark()
