# SPDX-License-Identifier: Apache-2.0
"""Fetching the elements whose positions an op has chosen, in blocks of a good size."""

from collections.abc import Iterable, Iterator
from functools import partial
from time import perf_counter

from distinput.core.block import Block
from distinput.core.column import Ints
from distinput.core.failure import sound_parts
from distinput.core.leaves import STRING
from distinput.core.picked import WIDE_BYTES, Picked
from distinput.core.rows import PACE_SECONDS
from distinput.core.run import Run
from distinput.core.sizes import gathered_rows, rows_within
from distinput.core.spec import TensorSpec
from distinput.plan.node import Node

__all__ = ["fetched"]

_GROWTH = 64
"""A block has at most so many times the rows of the one before it."""


def fetched(source: Node, choices: Iterable[Ints], epoch: int, group: int, run: Run) -> Iterator[Block]:
    """The elements of `source` at these positions.

    Blocks are small, so that copied rows stay in the cache. Where rows are copied only when they are handed out, blocks grow to
    what can be fetched in a short time; where a function is called or a file read for each row, they hold no more than that.

    Args:
      source: an input with random access.
      choices: arrays of positions, in whole groups except for the last.
      epoch: of the input.
      group: how many positions must be in the same block.
      run: says whether elements are handed out one by one.
    """
    grows = run.by_element and run.run_ahead is None and group > 1
    most = run.at_once(gathered_rows(source.spec.row_bytes, group))
    known = all(
        isinstance(leaf, TensorSpec) and leaf.size is not None and leaf.dtype != STRING for leaf in source.spec.leaves
    )
    slow = source.may_fail  # it does more than copy
    likely = group
    for numbers in choices:
        first = 0
        while first < len(numbers):
            begin = perf_counter()
            taken = most if known and not slow else min(most, likely)
            some = numbers[first : first + taken]
            parts = sound_parts(len(some), partial(_fetched, source, some, epoch), tolerant=run.tolerant)
            block, done = next(parts)
            first += taken
            if block.size and (slow or not known):
                likely = most if known else max(group, rows_within(block.size, block.nbytes) // group * group)
                likely = min(_GROWTH * taken, likely)
                if slow:
                    pace = int(taken * PACE_SECONDS / max(perf_counter() - begin, 1e-9))
                    likely = min(likely, max(group, pace // group * group))
            if done == len(some) and most < len(numbers) and grows and _is_picked(block):
                spent = max(perf_counter() - begin, PACE_SECONDS / _GROWTH)
                most *= max(1, int(PACE_SECONDS / spent))  # at this pace
            yield block
            for block, _ in parts:
                yield block


def _fetched(source: Node, numbers: Ints, epoch: int, first: int, end: int) -> Block:
    return source.fetch(numbers[first:end], epoch)


def _is_picked(block: Block) -> bool:
    """Whether the elements are gathered later, except for a few bytes."""
    columns = block.columnar().columns
    now = [column for column in columns if not isinstance(column, Picked)]
    return len(now) < len(columns) and sum(column.nbytes for column in now) <= WIDE_BYTES * block.size
