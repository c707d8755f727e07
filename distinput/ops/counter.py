# SPDX-License-Identifier: Apache-2.0
"""`counter`: numbers without an end, in equal steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from distinput.core.block import Block, ColumnBlock
from distinput.core.column import Ints
from distinput.core.dense import Dense
from distinput.core.leaves import as_dtype
from distinput.core.nest import LEAF
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.sizes import block_rows
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.plan.check import integer, normalized
from distinput.plan.in_memory import InMemory
from distinput.plan.node import INFINITE

__all__ = ["Counter"]


@dataclass(frozen=True, eq=False)
class Counter(InMemory):
    """The numbers `first`, `first + step`, `first + 2 * step`, ..., without an end.

    Integers wrap around at the end of their dtype, as NumPy's do. Floats are computed from their position, so that errors of
    rounding do not add up.

    Shapes: scalars of `output_type`. State: the next row.

    Args:
      first: the first number.
      step: the distance between numbers.
      output_type: their dtype.

    Raises:
      TypeError: `output_type` is no dtype of numbers, or a float is given where it is one of integers.

    Source: `tf.data.Dataset.counter`.
    """

    first: Any = 0
    step: Any = 1
    output_type: Any = np.int64

    def __post_init__(self) -> None:
        dtype = as_dtype(self.output_type)
        if dtype.kind not in "iuf":
            raise TypeError(f"counter: dtype must be one of numbers, got {dtype}")
        for name in ("first", "step"):
            value = getattr(self, name)
            shown = "start" if name == "first" else name
            if dtype.kind == "f":
                normalized(self, name, float(_number(shown, value)))
            else:
                normalized(self, name, integer("counter", shown, value))
        normalized(self, "output_type", dtype)

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), self.output_type)

    @property
    def cardinality(self) -> int:
        return INFINITE

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def start_at(self, row: int, epoch: int) -> State:
        return {"row": row}

    def stream(self, state: State, run: Run) -> Stream:
        row, most = state["row"], block_rows(self.output_type.itemsize)
        while True:
            yield self._block(np.arange(row, row + most)), {"row": row + most}
            row += most

    @property
    def random_access(self) -> bool:
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._block(rows)

    def rows_of(self, numbers: Sequence[int]) -> list[int]:
        if self.output_type.kind == "f" or not self.step:
            return []
        places = [divmod(number - self.first, self.step) for number in numbers]
        return [row for row, rest in places if not rest and row >= 0]

    def _block(self, rows: Ints) -> Block:
        """The numbers of these rows: [n] -> [n]."""
        if self.output_type.kind == "f":
            return ColumnBlock(LEAF, [Dense((self.first + rows * self.step).astype(self.output_type))], len(rows))
        with np.errstate(over="ignore"):  # modulo 2 ** 64, of which every integer dtype keeps its last bits
            words = rows.astype(np.uint64) * _word(self.step) + _word(self.first)
        return ColumnBlock(LEAF, [Dense(words.astype(self.output_type))], len(rows))


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"counter: {name} must be a number, got {value!r}")
    return float(value)


def _word(number: int) -> np.uint64:
    return np.uint64(number % (1 << 64))
