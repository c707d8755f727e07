# SPDX-License-Identifier: Apache-2.0
"""`split` and `kfold`: parts of a dataset, chosen by a seed and the positions of its elements alone."""

from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from math import lcm
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from distinput.columns.block import Block, Failure
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.ops.balanced_sample import BalancedSample
from distinput.ops.first_come import FirstCome
from distinput.ops.repeat import Repeat
from distinput.plan.check import at_least, integer
from distinput.plan.families import SameElements, key_of, walk_made, words_of
from distinput.plan.node import INFINITE, UNKNOWN, Node, above
from distinput.run.run import Run

_FINEST = 10_000
_WINDOW = 4096


@dataclass(frozen=True, eq=False)
class Part(SameElements):
    """The elements that are dealt to one part.

    Every `group` consecutive elements are put in a random order of their own, and the part has the places from `first` to
    before `stop` of each, or all others. Whether an element is in the part follows from the seed and its position, so elements
    that are added at the end change nothing, and element i of the part is found without looking at those before.

    Shapes and order: unchanged. State: that of the input, and the position there.

    Args:
      group: how many consecutive elements are dealt at a time.
      first: the first place of the part.
      stop: the place behind its last one.
      within: False: the part has all other places.
      seed: any integer.
    """

    tolerant = harmless = same_access = by_position = thins = True
    op: ClassVar[str] = "split"
    group: int
    first: int
    stop: int
    within: bool = True
    seed: int = 0

    @cached_property
    def _size(self) -> int:
        """Elements of the part in a whole group."""
        inside = self.stop - self.first
        return inside if self.within else self.group - inside

    @cached_property
    def _key(self) -> int:
        return key_of(int(self.seed), self.group)

    def _chosen(self, groups: Ints) -> NDArray[np.bool_]:
        """Which elements of these groups are in the part: [groups] -> [groups, group]."""
        words = words_of(self._key, groups[:, None] * self.group + np.arange(self.group))
        places = words.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        inside = (places >= self.first) & (places < self.stop)
        return inside if self.within else ~inside

    def _before(self, position: int) -> int:
        """How many elements of the part are before a position of the input."""
        group, rest = divmod(position, self.group)
        return group * self._size + (int(self._chosen(np.array([group]))[0, :rest].sum()) if rest else 0)

    def _positions(self, rows: Ints) -> Ints:
        """Where these elements of the part are in the input."""
        groups, places = np.divmod(rows, self._size)
        once, which = np.unique(groups, return_inverse=True)
        found = np.nonzero(self._chosen(once))[1].reshape(len(once), self._size)
        positions: Ints = groups * self.group + found[which.reshape(-1), places]
        return positions

    @cached_property
    def cardinality(self) -> int:
        n = self.input.cardinality
        return n if n < 0 else self._before(n)

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "row": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        n = self.input.cardinality
        if n == UNKNOWN:
            return None
        at_end = n != INFINITE and row >= self.cardinality
        position = n if at_end else int(self._positions(np.array([row]))[0])
        return above(self.input.start_at(position, epoch), row=position)

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        row = self._before(state["row"]) + ahead
        return None if row < 0 else (state["input"], int(self._positions(np.array([row]))[0]) - state["row"])

    def stream(self, state: State, run: Run) -> Stream:
        row = state["row"]
        low = high = 0  # positions of which it is known whether they are in the part
        chosen = np.empty(0, np.bool_)
        for block, upstream in self.input.open(state["input"], run):
            size = block.size or (type(block) is Failure)  # which takes the place of one element
            if size and not low <= row <= row + size <= high:
                begin, end = row // self.group, max(row + size, row + _WINDOW) // self.group + 1
                low, high = begin * self.group, end * self.group
                chosen = self._chosen(np.arange(begin, end)).reshape(-1)
            kept = np.flatnonzero(chosen[row - low : row - low + size])
            row += size
            if len(kept):
                yield block if len(kept) == size else block.take(kept), {"input": upstream, "row": row}

    def fetch(self, rows: Ints, epoch: int) -> Block:
        return self.input.fetch(self._positions(rows), epoch)


def parts(node: Node, fractions: tuple[Any, ...], seed: int) -> list[Node]:
    """The parts of `split`.

    Raises:
      InvalidArgumentError: fractions are not between 0 and 1, sum to more than 1 or are too fine; or `_divisible`.
      TypeError: a fraction is not a number, or `seed` is not an integer.
    """
    integer("split", "seed", seed)
    exact = [_fraction(each) for each in fractions]
    rest = 1 - sum(exact)
    if not exact or rest < 0:
        raise InvalidArgumentError(
            f"split: takes fractions that sum to at most 1, such as split(0.8) or split(0.8, 0.1), got {fractions}"
        )
    shares = [*exact, rest] if rest else exact
    group = lcm(*[share.denominator for share in shares])
    if group > _FINEST:
        raise InvalidArgumentError(
            f"split: fractions must have a common denominator of at most {_FINEST:,}, got {fractions}; round them"
        )
    divisible = _divisible("split", node)
    ends = accumulate([int(share * group) for share in shares], initial=0)
    return [Part(divisible, group, first, stop, True, int(seed)) for first, stop in pairwise(ends)]


def folds(node: Node, k: int, i: int, seed: int) -> tuple[Node, Node]:
    """The training set and the test set of `kfold`.

    Raises:
      InvalidArgumentError: `k` is below 2, or `i` not one of the folds; or `_divisible`.
      TypeError: an argument is not an integer.
    """
    integer("kfold", "seed", seed)
    k = at_least("kfold", "k", k, 2)
    if k > _FINEST:
        raise InvalidArgumentError(f"kfold: k must be at most {_FINEST:,}, got {k}")
    if not 0 <= integer("kfold", "i", i) < k:
        raise InvalidArgumentError(f"kfold: i must be from 0 to {k - 1}, got {i}")
    divisible, fold, seed = _divisible("kfold", node), int(i), int(seed)
    return Part(divisible, k, fold, fold + 1, False, seed), Part(divisible, k, fold, fold + 1, True, seed)


def _fraction(value: Any) -> Fraction:
    """A fraction as it is written: 0.8 is 4/5."""
    try:
        near = Fraction(str(value)) if isinstance(value, float | np.floating) else Fraction(value)
    except (OverflowError, TypeError, ValueError):
        raise TypeError(f"split: a fraction must be a number, got {value!r}") from None
    if not 0 < near <= 1:
        raise InvalidArgumentError(f"split: a fraction must be above 0 and at most 1, got {value!r}")
    if near.denominator <= _FINEST:
        return near
    return close if abs((close := near.limit_denominator(_FINEST)) - near) < 1e-12 else near


def _divisible(op: str, node: Node) -> Node:
    """A pipeline in which each position has one record, the same in every pass, process and part.

    Raises:
      InvalidArgumentError: it has another order in each pass or process, or records are repeated.
    """
    for step in walk_made(node):
        sample = step if isinstance(step, BalancedSample) else None
        changes = isinstance(step, FirstCome) or (sample is not None and sample.live is not None)
        if changes or (step.chooses and (step.draws or step.reshuffles)):
            raise InvalidArgumentError(
                f"{op}: the parts are of positions, and {step}, made at {step.origin}, puts other records there in each pass "
                f"or process, so a record would be in several parts; {op} first and shuffle the parts, or give it a seed and "
                "reshuffle_each_iteration=False"
            )
        if isinstance(step, Repeat) or (sample is not None and sample.on_end == "repeat"):
            raise InvalidArgumentError(
                f"{op}: {step}, made at {step.origin}, gives a record at several positions, so it would be in several parts; "
                f"{op} first and repeat the parts"
            )
    return node
