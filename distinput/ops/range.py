# SPDX-License-Identifier: Apache-2.0
"""`range`, `counter` and `random`: numbers in equal steps, and numbers at random."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block, ColumnBlock, block_rows
from distinput.columns.column import Dense, Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.plan.check import integer, normalized
from distinput.plan.families import InMemory, Seeded, words_of
from distinput.plan.node import INFINITE
from distinput.run.run import Run
from distinput.values.leaves import STRING, as_dtype
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

# ----------------------------------------------------------------------------
# `range`: consecutive integers.
# ----------------------------------------------------------------------------


_LEAST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_NO_NUMBERS = "bcmMOSU"  # the kinds of dtypes; those of `ml_dtypes` are of kind V


@dataclass(frozen=True, eq=False)
class Range(InMemory):
    """The numbers from `first` on, in steps of `step`, before `stop`.

    Shapes: scalars of `output_type`. State: the next row.

    Args:
      first: the first number.
      stop: the end, which is not included.
      step: the distance between numbers, not 0.
      output_type: their dtype.

    Raises:
      InvalidArgumentError: `step` is 0, or a number is none of `output_type`.
      TypeError: `output_type` is not a dtype of integers or floats.

    Source: `tf.data.Dataset.range`.
    """

    first: int
    stop: int
    step: int = 1
    output_type: Any = np.int64

    def __post_init__(self) -> None:
        if self.step == 0:
            raise InvalidArgumentError("range: step must not be 0")
        if self._dtype == STRING or self._dtype.kind in _NO_NUMBERS:
            raise TypeError(f"range: output_type must be a dtype of integers or floats, got {self.output_type!r}")
        if self._dtype != np.int64 and self.size:
            self._check_ends(self._dtype)

    def _check_ends(self, dtype: Any) -> None:
        """Refuse numbers that would become others."""
        ends = (self.first, self.first + (self.size - 1) * self.step)
        if dtype.kind in "iu":
            least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        elif dtype.kind == "f":  # the numbers that are multiples of a power of two need fewer digits
            common = (self.first | self.step) & -(self.first | self.step)
            most = min(common << (np.finfo(dtype).nmant + 1), int(np.finfo(dtype).max))
            least = -most
        else:
            return
        for end in ends:
            if not least <= end <= most:
                raise InvalidArgumentError(
                    f"range: {end} is none of the numbers that {dtype} holds all of, {least} to {most}; give a wider "
                    "output_type"
                )

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), self._dtype)

    @cached_property
    def _dtype(self) -> Any:
        return as_dtype(self.output_type)

    @property
    def cardinality(self) -> int:
        # As in TensorFlow, a range up to the largest number is infinite: `enumerate` zips with it.
        return INFINITE if self.step > 0 and self.stop >= _LARGEST else self.size

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return max(0, -(-(self.stop - self.first) // self.step))

    def stream(self, state: State, run: Run) -> Stream:
        size, group = self.size, run.group(self)
        # Batches are views, so nothing looks at all of a block at once; none is joined of two blocks.
        most = block_rows(8) * (4 if group > 1 else 1)
        most -= most % group if group <= most else 0
        for row in range(state["row"], size, most):
            end = min(row + most, size)
            yield self._block(self._numbers(row, end)), {"row": end}

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._block(rows if (self.first, self.step) == (0, 1) else rows * self.step + self.first)

    def rows_of(self, numbers: Sequence[int]) -> list[int]:
        places = [divmod(number - self.first, self.step) for number in numbers]
        count = self.cardinality
        return [row for row, rest in places if not rest and row >= 0 and (count < 0 or row < count)]

    def _numbers(self, row: int, end: int) -> Ints:
        """The numbers of these rows as int64."""
        first, behind = self.first + row * self.step, self.first + end * self.step
        if _LEAST <= behind <= _LARGEST:
            return np.arange(first, behind, self.step, dtype=np.int64)
        return np.arange(end - row) * self.step + first

    def _block(self, numbers: Ints) -> Block:
        dtype = self._dtype
        return ColumnBlock(LEAF, [Dense(numbers if numbers.dtype == dtype else numbers.astype(dtype))], len(numbers))


# ----------------------------------------------------------------------------
# `counter`: numbers without an end, in equal steps.
# ----------------------------------------------------------------------------


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
      TypeError: `output_type` is not a dtype of numbers, or a float is given where it is one of integers.
      InvalidArgumentError: `first` or `step` does not fit into 64 bits.

    Source: `tf.data.Dataset.counter`.
    """

    cardinality: ClassVar[int] = INFINITE
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
                normalized(self, name, _number(shown, value))
            else:
                normalized(self, name, _in_64_bits(shown, integer("counter", shown, value)))
        normalized(self, "output_type", dtype)

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), self.output_type)

    def stream(self, state: State, run: Run) -> Stream:
        row, most = state["row"], block_rows(self.output_type.itemsize)
        while True:
            yield self._block(_rows(row, most)), {"row": row + most}
            row += most

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._block(rows)

    def rows_of(self, numbers: Sequence[int]) -> list[int]:
        if self.output_type.kind == "f" or not self.step:
            return []
        places = [divmod(number - self.first, self.step) for number in numbers]
        return [row for row, rest in places if not rest and row >= 0]

    def _block(self, rows: Any) -> Block:
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


def _in_64_bits(name: str, value: int) -> int:
    """A number of which TensorFlow makes a tensor; it wraps around where the dtype is narrower."""
    if not -(2**63) <= value < 2**64:
        raise InvalidArgumentError(f"counter: {name} must fit into 64 bits, got {value}")
    return value


def _rows(first: int, count: int) -> Any:
    """The rows from `first` on; behind the last row of int64 those modulo 2 ** 64, since numbers wrap around."""
    if first + count < _LARGEST:
        return np.arange(first, first + count)
    return np.arange(count, dtype=np.uint64) + _word(first)


def _word(number: int) -> np.uint64:
    return np.uint64(number % (1 << 64))


# ----------------------------------------------------------------------------
# `random`: random integers without an end.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Random(Seeded):
    """Random integers from 0 to 2 ** 32 - 1, each equally likely, without an end.

    Each number is a function of the seed, the pass and its position. They are not the numbers of TensorFlow.

    Shapes: int64 scalars. State: the seed, the pass and the next row.

    Args:
      seed: any integer; None draws one, which a saved state remembers, and gives other numbers in each pass.
      rerandomize_each_iteration: True: other numbers in each pass, with a seed too.

    Raises:
      TypeError: `seed` is not an integer.

    Source: `tf.data.Dataset.random`.
    """

    harmless: ClassVar[bool] = True
    cardinality: ClassVar[int] = INFINITE
    random_access: ClassVar[bool] = True
    seed: int | None = None
    rerandomize_each_iteration: bool | None = None

    def __post_init__(self) -> None:
        self.check_seed("random")

    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), np.int64)

    @property
    def reshuffles(self) -> bool:
        return self.seed is None or bool(self.rerandomize_each_iteration)

    def start(self, epoch: int) -> State:
        return self.seeded(epoch)

    def start_at(self, row: int, epoch: int) -> State:
        return self.seeded(epoch, row)

    def stream(self, state: State, run: Run) -> Stream:
        row, most = state["row"], block_rows(8)
        while True:
            yield self._block(_rows(row, most), state), {**state, "row": row + most}
            row += most

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self._block(rows, self.start(epoch))

    def _block(self, rows: Any, state: State) -> Block:
        """The numbers of these rows: [n] -> [n]."""
        words = words_of(self.key_of_pass(state), rows)
        return ColumnBlock(LEAF, [Dense((words >> np.uint64(32)).astype(np.int64))], len(rows))
