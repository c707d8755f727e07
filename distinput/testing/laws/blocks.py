# SPDX-License-Identifier: Apache-2.0
"""Results do not depend on how many elements travel together."""

import json
from collections.abc import Callable, Sequence

from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator
from distinput.rewrite import Running
from distinput.testing.block_sizes import small_blocks
from distinput.testing.elements import difference
from distinput.testing.laws.trace import MOST, PassTrace, begun

__all__ = ["check_blocks"]


def check_blocks(fresh: Callable[[], Dataset], *, rows: Sequence[int] = (1, 2, 3), most: int = MOST) -> None:
    """Results do not depend on how many elements travel together: neither elements nor what follows a state.

    Args:
      fresh: makes the pipeline.
      rows: sizes of blocks to try besides the usual one; states taken with one size are restored with the others.
      most: elements looked at when the pipeline is endless.

    Raises:
      AssertionError: a size changes something.

    >>> import distinput as di
    >>> check_blocks(lambda: di.data.Dataset.range(7).filter(lambda x: x % 3 > 0).batch(2))
    """
    dataset = fresh()
    usual = PassTrace.of(begun(dataset.node, dataset.node), most)
    for size in rows:
        with small_blocks(size):
            small = PassTrace.of(begun(dataset.node, dataset.node), most)
            wrong = difference(small.elements, usual.elements)
            if wrong is not None or small.failure != usual.failure:
                raise AssertionError(f"blocks of {size}: {wrong or f'ends with {small.failure}'}")
            _check_resumed(dataset, usual, most, f"a state of usual blocks with blocks of {size}")
        _check_resumed(dataset, small, most, f"a state of blocks of {size} with usual blocks")
        with small_blocks(size + 1):
            _check_resumed(dataset, small, most, f"a state of blocks of {size} with blocks of {size + 1}")


def _check_resumed(dataset: Dataset, trace: PassTrace, most: int, what: str) -> None:
    for position, state in enumerate(trace.states):
        coded = json.loads(json.dumps(state))
        rest = PassTrace.of(DatasetIterator(dataset.node, Running(dataset.node), coded), max(1, most - position))
        wrong = difference(rest.elements, trace.rest(position))
        if wrong is not None or rest.failure != trace.failure:
            raise AssertionError(
                f"{what}, at {position}: {wrong or 'all elements'}, then {rest.failure or 'the end'}; state {json.dumps(coded)}"
            )
