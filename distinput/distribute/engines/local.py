# SPDX-License-Identifier: Apache-2.0
"""Threads of one process as workers: the reference that every other engine must equal."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from distinput.distribute.collectives.channel import OPS, Array, Bytes, ChannelLost, fold
from distinput.distribute.collectives.collectives import Collectives

_DTYPES = frozenset({"int8", "int16", "int32", "int64", "uint8", "float32", "float64"})


def open_groups(size: int, *, timeout: float = 60.0, name: str = "distinput") -> list[Collectives]:
    """Groups for `size` threads of this process, one for each, in rank order.

    Args:
      size: how many.
      timeout: seconds that a call waits for the others.
      name: shown in messages.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> groups = open_groups(3)
    >>> with ThreadPoolExecutor(3) as pool:
    ...     list(pool.map(lambda group: int(group.all_reduce(group.rank + 1)), groups))
    [6, 6, 6]
    """
    if size < 1:
        raise ValueError(f"open_groups: size must be at least 1, got {size}")
    shared = _SharedState(size)
    with ThreadPoolExecutor(size) as pool:  # they meet, so all of them must be under way
        return list(pool.map(lambda rank: Collectives(LocalChannel(shared, rank), name, timeout), range(size)))


def open_group(rank: int | None, size: int | None, address: str | None, *, timeout: float, name: str) -> Collectives:
    """The group of a job of one worker; see `open_collectives`."""
    if (rank or 0, size or 1) != (0, 1) or address is not None:
        raise ValueError(
            f"the engine 'local' joins threads of one process by open_groups; a process of its own is rank 0 of 1, "
            f"got rank {rank} of {size}, address {address}; for more processes use 'torch', 'mpi' or 'jax'"
        )
    return open_groups(1, timeout=timeout, name=name)[0]


class _SharedState:
    """The state that the threads of all channels of one origin share."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = threading.Condition()
        self.exchanges: dict[tuple[str, int], _Exchange] = {}
        self.statuses: dict[int, str] = {}
        self.gone: dict[tuple[str, int], bool] = {}


class _Exchange:
    """One operation: what each worker contributed, and how many have taken the result."""

    __slots__ = ("contributions", "taken")

    def __init__(self) -> None:
        self.contributions: dict[int, Any] = {}
        self.taken = 0


class _LocalHandle:
    def __init__(self, shared: _SharedState, key: tuple[str, int], finish: Callable[[list[Any]], Any]) -> None:
        self._shared, self._key, self._finish = shared, key, finish
        self._parts: list[Any] | None = None

    def wait(self, seconds: float) -> bool:
        shared = self._shared
        if self._parts is not None:
            return True
        with shared.changed:
            exchange = shared.exchanges[self._key]
            if not shared.changed.wait_for(lambda: len(exchange.contributions) == shared.size, seconds):
                for rank in range(shared.size):
                    if rank not in exchange.contributions and shared.gone.get((self._key[0], rank)):
                        raise ChannelLost(f"thread {rank} closed its group")
                return False
            self._parts = [exchange.contributions[rank] for rank in range(shared.size)]
            exchange.taken += 1
            if exchange.taken == shared.size:
                del shared.exchanges[self._key]
        return True

    def value(self) -> Any:
        assert self._parts is not None
        return self._finish(self._parts)


class _LocalBoard:
    host_rank = None

    def __init__(self, shared: _SharedState, rank: int) -> None:
        self._shared, self._rank = shared, rank

    def publish(self, status: str) -> None:
        with self._shared.changed:
            self._shared.statuses[self._rank] = status

    def read(self) -> Mapping[int, str]:
        with self._shared.changed:
            return {rank: text for rank, text in self._shared.statuses.items() if rank != self._rank}

    def close(self) -> None:
        pass


class _LocalDevices:
    """Operations on arrays that are on devices.

    Args:
      channel: what carries them.
      ops: their library.
      device: this worker's.
    """

    def __init__(self, channel: "LocalChannel", ops: Any, device: Any) -> None:
        self._channel, self._ops, self._device = channel, ops, device
        self.kind = f"{ops.library} devices"

    def reducible(self, dtype: str) -> bool:
        """True for numbers of usual size."""
        return dtype in _DTYPES

    def all_gather(self, flat: Any, sizes: Sequence[int]) -> _LocalHandle:
        """[sizes[rank]] of every worker -> list of [sizes[i]]."""
        return self._channel.contribute(self._ops.copy(flat, self._device), self._here)

    def all_reduce(self, flat: Any) -> _LocalHandle:
        """[n] of every worker -> [n]."""
        return self._channel.contribute(
            self._ops.copy(flat, self._device), lambda parts: self._ops.total(self._here(parts), flat.dtype)
        )

    def _here(self, parts: list[Any]) -> list[Any]:
        return [self._ops.copy(part, self._device) for part in parts]


class LocalChannel:
    """A channel between threads: contributions are copied, so that the arrays may be changed afterwards.

    Args:
      shared: the state that all threads share.
      rank: the thread.
      name: the channel.
    """

    reducible: Mapping[str, frozenset[str]] = dict.fromkeys(OPS, _DTYPES)
    post_is_cheap = True

    def __init__(self, shared: _SharedState, rank: int, name: str = "") -> None:
        self._shared, self._name = shared, name
        self.rank, self.size = rank, shared.size
        self.status_board = _LocalBoard(shared, rank)
        self._numbers = {"call": 0, "agree": 0}

    def contribute(self, value: Any, finish: Callable[[list[Any]], Any], kind: str = "call") -> _LocalHandle:
        """Give a value to all threads, which nobody writes to any more.

        Args:
          value: the value.
          finish: makes the result of the values of all threads.
          kind: the stream of operations.
        """
        number = self._numbers[kind]
        self._numbers[kind] += 1
        key = (f"{kind} {self._name}", number)
        with self._shared.changed:
            exchange = self._shared.exchanges.setdefault(key, _Exchange())
            exchange.contributions[self.rank] = value
            if len(exchange.contributions) == self.size:
                self._shared.changed.notify_all()
        return _LocalHandle(self._shared, key, finish)

    def all_gather(self, mine: Bytes) -> _LocalHandle:
        """[n] of every worker -> [size, n]."""
        return self.contribute(mine.copy(), np.stack)

    def all_gather_uneven(self, mine: Bytes, sizes: Sequence[int]) -> _LocalHandle:
        """[sizes[rank]] of every worker -> list of [sizes[i]]."""
        return self.contribute(mine.copy(), lambda parts: [part.copy() for part in parts])

    def all_reduce(self, values: Array, op: str) -> _LocalHandle:
        """[n] of every worker -> [n]."""
        return self.contribute(values.copy(), lambda parts: fold(parts, op))

    def broadcast(self, values: Bytes, root: int) -> _LocalHandle:
        """[n] of the root -> [n]."""
        mine = values if self.rank == root else values[:0]
        return self.contribute(mine.copy(), lambda parts: parts[root].copy())

    def post_sum(self, values: Array) -> _LocalHandle:
        """int64 [n] of every worker, summed."""
        return self.contribute(values.copy(), lambda parts: fold(parts, "sum"), "agree")

    def on_devices(self, ops: Any, device: Any) -> "_LocalDevices":
        """Operations on arrays of any library; nothing leaves the process."""
        return _LocalDevices(self, ops, device)

    def dup(self, name: str, timeout: float) -> "LocalChannel":
        """Another channel between the same threads."""
        return LocalChannel(self._shared, self.rank, name)

    def close(self, *, broken: bool) -> None:
        """Tell the others that this thread no longer takes part."""
        with self._shared.changed:
            for kind in self._numbers:
                self._shared.gone[f"{kind} {self._name}", self.rank] = True
            self._shared.changed.notify_all()
