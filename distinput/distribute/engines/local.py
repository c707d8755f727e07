# SPDX-License-Identifier: Apache-2.0
"""Threads of one process as workers: the reference that every other engine equals."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from distinput.distribute.collectives.channel import Array, Bytes
from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.collectives.failures import ChannelLost
from distinput.distribute.collectives.fold import OPS, fold

__all__ = ["LocalChannel", "open_group", "open_groups"]

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
    room = _Room(size)
    groups: list[Collectives | BaseException] = [ChannelLost("not opened")] * size

    def enter(rank: int) -> None:
        try:
            groups[rank] = Collectives(LocalChannel(room, rank), name, timeout)
        except BaseException as error:  # noqa: BLE001 - raised again below
            groups[rank] = error

    threads = [threading.Thread(target=enter, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    opened = []
    for group in groups:
        if isinstance(group, BaseException):
            raise group
        opened.append(group)
    return opened


def open_group(rank: int | None, size: int | None, address: str | None, *, timeout: float, name: str) -> Collectives:
    """The group of a job of one worker; see `open_collectives`."""
    if (rank or 0, size or 1) != (0, 1) or address is not None:
        raise ValueError(
            f"the engine 'local' joins threads of one process by open_groups; a process of its own is rank 0 of 1, "
            f"got rank {rank} of {size}, address {address}; for more processes use 'torch', 'mpi' or 'jax'"
        )
    return open_groups(1, timeout=timeout, name=name)[0]


class _Room:
    """Where the threads of all channels of one origin meet."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = threading.Condition()
        self.meetings: dict[tuple[str, int], _Meeting] = {}
        self.notices: dict[int, str] = {}
        self.gone: dict[tuple[str, int], bool] = {}


class _Meeting:
    """One operation: what the workers brought, and how many took it away."""

    __slots__ = ("brought", "taken")

    def __init__(self) -> None:
        self.brought: dict[int, Any] = {}
        self.taken = 0


class _LocalHandle:
    def __init__(self, room: _Room, key: tuple[str, int], finish: Callable[[list[Any]], Any]) -> None:
        self._room, self._key, self._finish = room, key, finish
        self._parts: list[Any] | None = None

    def wait(self, seconds: float) -> bool:
        room = self._room
        if self._parts is not None:
            return True
        with room.changed:
            meeting = room.meetings[self._key]
            if not room.changed.wait_for(lambda: len(meeting.brought) == room.size, seconds):
                for rank in range(room.size):
                    if rank not in meeting.brought and room.gone.get((self._key[0], rank)):
                        raise ChannelLost(f"thread {rank} closed its group")
                return False
            self._parts = [meeting.brought[rank] for rank in range(room.size)]
            meeting.taken += 1
            if meeting.taken == room.size:
                del room.meetings[self._key]
        return True

    def value(self) -> Any:
        assert self._parts is not None
        return self._finish(self._parts)


class _LocalBoard:
    host = None

    def __init__(self, room: _Room, rank: int) -> None:
        self._room, self._rank = room, rank

    def write(self, notice: str) -> None:
        with self._room.changed:
            self._room.notices[self._rank] = notice

    def read(self) -> Mapping[int, str]:
        with self._room.changed:
            return {rank: text for rank, text in self._room.notices.items() if rank != self._rank}

    def end(self) -> None:
        pass


class LocalChannel:
    """A channel between threads: what one brings is copied, so that it may be changed afterwards.

    Args:
      room: shared by all threads.
      rank: the thread.
      name: the channel.
    """

    reducible: Mapping[str, frozenset[str]] = dict.fromkeys(OPS, _DTYPES)
    adds_at_once = True

    def __init__(self, room: _Room, rank: int, name: str = "") -> None:
        self._room, self._name = room, name
        self.rank, self.size = rank, room.size
        self.board = _LocalBoard(room, rank)
        self._numbers = {"call": 0, "agree": 0}

    def _bring(self, value: Array, finish: Callable[[list[Any]], Any], kind: str = "call") -> _LocalHandle:
        number = self._numbers[kind]
        self._numbers[kind] += 1
        key = (f"{kind} {self._name}", number)
        with self._room.changed:
            meeting = self._room.meetings.setdefault(key, _Meeting())
            meeting.brought[self.rank] = value.copy()
            if len(meeting.brought) == self.size:
                self._room.changed.notify_all()
        return _LocalHandle(self._room, key, finish)

    def gather(self, mine: Bytes) -> _LocalHandle:
        """[n] of every worker -> [size, n]."""
        return self._bring(mine, np.stack)

    def gather_uneven(self, mine: Bytes, sizes: Sequence[int]) -> _LocalHandle:
        """[sizes[rank]] of every worker -> list of [sizes[i]]."""
        return self._bring(mine, lambda parts: [part.copy() for part in parts])

    def reduce(self, values: Array, op: str) -> _LocalHandle:
        """[n] of every worker -> [n]."""
        return self._bring(values, lambda parts: fold(parts, op))

    def broadcast(self, values: Bytes, root: int) -> _LocalHandle:
        """[n] of the root -> [n]."""
        return self._bring(values if self.rank == root else values[:0], lambda parts: parts[root].copy())

    def add(self, values: Array) -> _LocalHandle:
        """int64 [n] of every worker, summed."""
        return self._bring(values, lambda parts: fold(parts, "sum"), "agree")

    def dup(self, name: str, timeout: float) -> "LocalChannel":
        """Another channel in the same room."""
        return LocalChannel(self._room, self.rank, name)

    def close(self, *, broken: bool) -> None:
        """Tell the others that this thread does not come any more."""
        with self._room.changed:
            for kind in self._numbers:
                self._room.gone[f"{kind} {self._name}", self.rank] = True
            self._room.changed.notify_all()
