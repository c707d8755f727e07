# SPDX-License-Identifier: Apache-2.0
"""Values of all replicas to compare, and comparisons that say what was expected."""

from typing import Any

import numpy as np

from distinput.distribute.core.strategy import Strategy

__all__ = ["each_replica", "local_ids", "part", "same", "uneven"]

Array = np.ndarray[Any, np.dtype[Any]]


def part(replica: int, width: int = 2) -> Array:
    """The rows of a replica, [n, width] of float64: one, two or none of them, so that replicas differ."""
    rows = (replica + 1) % 3
    return 10.0 * replica + np.arange(rows * width, dtype=np.float64).reshape(rows, width)


def uneven(strategy: Strategy) -> tuple[Any, Array]:
    """A distributed value of `part` of every replica, and the rows of all replicas in one piece."""
    total = strategy.num_replicas_in_sync
    value = strategy.experimental_distribute_values_from_function(lambda context: part(_replica(context)))
    return value, np.concatenate([part(replica) for replica in range(total)])


def each_replica(strategy: Strategy, shape: tuple[int, ...] = (2,), dtype: Any = np.float64) -> tuple[Any, Array]:
    """A distributed value of one shape, and the values of all replicas stacked, [replicas, *shape]."""
    total = strategy.num_replicas_in_sync
    every = np.arange(total * int(np.prod(shape)), dtype=dtype).reshape(total, *shape) + 1
    return strategy.experimental_distribute_values_from_function(lambda context: every[_replica(context)].copy()), every


def local_ids(strategy: Strategy) -> list[int]:
    """The numbers of the replicas of this process, as the values that are made for them are numbered."""
    ids = strategy.experimental_distribute_values_from_function(_replica)
    return [int(number) for number in strategy.experimental_local_results(ids)]


def same(what: str, found: Any, expected: Any, *, close: float = 1e-6) -> None:
    """Refuse a number or an array that differs from the expected one in shape or, by more than rounding, in value.

    Raises:
      AssertionError: it does.
    """
    given, wanted = np.asarray(found), np.asarray(expected)
    if given.shape == wanted.shape and np.allclose(given, wanted, rtol=close, atol=close, equal_nan=True):
        return
    raise AssertionError(f"{what}: got {given.tolist()}, expected {wanted.tolist()}")


def _replica(context: Any) -> int:
    return int(context.replica_id_in_sync_group)
