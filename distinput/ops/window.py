# SPDX-License-Identifier: Apache-2.0
"""`window`: consecutive elements as datasets of their own."""

from collections import deque
from collections.abc import Sequence
from functools import cached_property
from itertools import islice

from distinput.columns.block import Block, ColumnBlock, Failure, concat_blocks
from distinput.columns.ragged import Datasets
from distinput.columns.rows import RowQueue, Stream
from distinput.columns.state import Mark, State
from distinput.names.lazy import dataclass
from distinput.ops.slices import rows_node
from distinput.plan.check import at_least
from distinput.plan.families import Grouped
from distinput.run.run import Run
from distinput.values.leaves import STRING
from distinput.values.spec import DatasetSpec, Spec


@dataclass(frozen=True, eq=False)
class Window(Grouped):
    """Windows of `size` elements as datasets; every component of the element becomes a dataset of its own.

    Rows of `as_rows` are one component, and text of `as_text` is `str` in windows too.

    Shapes: a leaf [...] becomes a dataset of up to `size` elements [...]. State: where the first element of the next
    window stands in the input.

    Args:
      size: elements in a window, at least 1.
      shift: elements from the beginning of one window to that of the next; `size` if None.
      stride: take every `stride`-th element.
      drop_remainder: leave out windows at the end that are not full.

    >>> import distinput as di
    >>> [list(w.as_numpy_iterator()) for w in di.data.Dataset.range(4).window(3, shift=2)]
    [[np.int64(0), np.int64(1), np.int64(2)], [np.int64(2), np.int64(3)]]

    Source: `tf.data.Dataset.window`.
    """

    tolerant = harmless = True
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
    def members(self) -> range:
        return range(0, self.needed, self.stride)

    @property
    def needed(self) -> int:
        return int(1 + (self.size - 1) * self.stride)

    @cached_property
    def spec(self) -> Spec:
        leaves, (structure, parts) = self.input.spec.leaves, self.input.spec.structure.parted
        return Spec(structure, tuple([DatasetSpec(Spec(part, leaves[a:b]).nest) for part, a, b in parts]))

    @property
    def cardinality(self) -> int:
        return self.groups(full=self.drop_remainder)

    def stream(self, state: State, run: Run) -> Stream:
        # Not every failure is in a window: it may lie between two, or in a last one that is not full.
        held = RowQueue(self.input.open(state["input"], run.tolerating()), state)
        while True:
            if not held.fill(self.needed) and held.failure is not None:
                yield from self._of_places(held, run)
                return
            full = held.size >= self.needed
            if not held.size or (not full and self.drop_remainder):
                return
            window = self._window(held.peek(min(self.needed, held.size)).rows(0, self.needed, self.stride))
            self._pass_over(held)
            yield window, held.mark()

    def _pass_over(self, queue: RowQueue) -> None:
        """Go on to the next window; what lies between the two is dropped as it comes, failures too."""
        left = self.step
        while left and (queue.fill(1) or queue.failure is not None):
            passed = min(left, queue.size) or 1
            if queue.size:
                queue.skip(passed)
            else:
                queue.passed()
            left -= passed

    def _window(self, rows: Block) -> Block:
        leaves, (structure, parts) = self.input.spec.leaves, self.input.spec.structure.parted
        columns = rows.columnar().columns
        nodes = [rows_node(ColumnBlock(part, columns[a:b], rows.size), leaves[a:b]) for part, a, b in parts]
        return ColumnBlock(structure, [Datasets([node], STRING) for node in nodes], 1)

    def _of_places(self, queue: RowQueue, run: Run) -> Stream:
        """Windows of elements and failures alike; a window that contains a failure is a failure."""
        pending: deque[tuple[Block, Mark]] = deque()  # each with the mark before it

        def pull() -> bool:
            mark = queue.mark()
            if queue.fill(1):
                pending.append((queue.take(1), mark))
            elif queue.failure is not None:
                pending.append((queue.passed(), mark))
            else:
                return False
            return True

        while True:
            while len(pending) < self.needed and pull():
                pass
            if not pending or (len(pending) < self.needed and self.drop_remainder):
                return
            picked = [part for part, _ in islice(pending, 0, self.needed, self.stride)]
            for _ in range(self.step):
                if pending or pull():
                    pending.popleft()
            yield self._window_of(picked, run), pending[0][1] if pending else queue.mark()

    def _window_of(self, parts: Sequence[Block], run: Run) -> Block:
        for part in parts:
            if type(part) is Failure:
                if not run.tolerant:
                    raise part.error
                return part
        return self._window(concat_blocks(parts))
