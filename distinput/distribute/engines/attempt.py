# SPDX-License-Identifier: Apache-2.0
"""A name for one attempt of a job, under which its workers find nothing that earlier attempts left in the store.

A store may outlive the workers: that of torchrun's agent does so whenever it starts them again, and neither the numbers
of restarts nor those of groups opened before need be equal on all machines then. So nothing is derived from numbers:
every worker leaves a fresh word, and rank 0 makes a name from the words of all.
"""

import secrets
import time
from typing import Protocol

from distinput.distribute.collectives.failures import ChannelLost

__all__ = ["Keys", "name_of_attempt"]

_LOOKS = (1e-3, 2e-2)  # the shortest and the longest time between two looks; each is twice the last one


class Keys(Protocol):
    """What is needed of a store."""

    def put(self, key: str, value: str) -> None:
        """Write a value; a new one replaces the old one."""
        ...

    def look(self, key: str) -> str | None:
        """The value, None if there is none; never waits for one."""
        ...


def name_of_attempt(keys: Keys, rank: int, size: int, folder: str, timeout: float) -> str:
    """The name that the workers of this attempt share, and no other attempt has.

    Rank 0 may meet old words first. It gives a new name whenever a word changes, and the name holds as soon as every
    worker has repeated it; a worker repeats only a name that was made with its own fresh word.

    Args:
      keys: the store.
      rank: this worker.
      size: how many there are.
      folder: where the words stand.
      timeout: seconds to wait for the others.

    Raises:
      ChannelLost: not all workers came.
    """
    mine = secrets.token_hex(8)
    if size == 1:
        return mine
    keys.put(f"{folder}/word/{rank}", mine)
    deadline, pause = time.monotonic() + timeout, _LOOKS[0]
    leader = _Leader(keys, size, folder, mine) if rank == 0 else None
    follower = _Follower(keys, rank, folder, mine)
    while True:
        name = leader.step() if leader is not None else follower.step()
        if name is not None:
            return name
        if time.monotonic() >= deadline:
            late = leader.late() if leader is not None else follower.late()
            raise ChannelLost(f"rank {', '.join(map(str, late))} did not come")
        time.sleep(pause)
        pause = min(2 * pause, _LOOKS[1])


class _Leader:
    def __init__(self, keys: Keys, size: int, folder: str, mine: str) -> None:
        self._keys, self._size, self._folder, self._mine = keys, size, folder, mine
        self._words: list[str | None] = []
        self._name = ""

    def step(self) -> str | None:
        words = [self._mine, *(self._keys.look(f"{self._folder}/word/{rank}") for rank in range(1, self._size))]
        if None in words:
            return None
        if words != self._words:
            self._words, self._name = words, secrets.token_hex(8)
            self._keys.put(f"{self._folder}/offer", " ".join([self._name, *map(str, words)]))
        if self.late():
            return None
        self._keys.put(f"{self._folder}/name", self._name)
        return self._name

    def late(self) -> list[int]:
        """Who has not repeated the newest name."""
        said = (self._keys.look(f"{self._folder}/repeat/{rank}") for rank in range(1, self._size))
        return [rank for rank, name in enumerate(said, 1) if not self._name or name != self._name]


class _Follower:
    def __init__(self, keys: Keys, rank: int, folder: str, mine: str) -> None:
        self._keys, self._rank, self._folder, self._mine = keys, rank, folder, mine
        self._repeated = ""

    def step(self) -> str | None:
        name, *words = (self._keys.look(f"{self._folder}/offer") or "").split(" ")
        if self._mine not in words[self._rank : self._rank + 1]:
            return None
        if name != self._repeated:
            self._keys.put(f"{self._folder}/repeat/{self._rank}", name)
            self._repeated = name
        return name if self._keys.look(f"{self._folder}/name") == name else None

    def late(self) -> list[int]:
        """Rank 0, unless it has come; then whoever has not repeated its newest name."""
        name, *words = (self._keys.look(f"{self._folder}/offer") or "").split(" ")
        if self._mine not in words:
            return [0]
        said = ((rank, self._keys.look(f"{self._folder}/repeat/{rank}")) for rank in range(1, len(words)))
        return [rank for rank, repeated in said if repeated != name] or [0]
