# SPDX-License-Identifier: Apache-2.0
"""A name for one attempt of a job, under which its workers find nothing that earlier attempts have left in the store.

A store may outlive the workers: torchrun's agent keeps its store whenever it restarts them, and then neither the numbers of
restarts nor those of groups opened before need be equal on all machines. So the name is not derived from numbers: every
worker writes a random token, and rank 0 proposes a name for the tokens of all.
"""

import secrets
import time
from typing import Protocol

from distinput.distribute.collectives.channel import ChannelLost

__all__ = ["KeyValueStore", "attempt_name"]

_PAUSES = (1e-3, 2e-2)  # seconds between two looks at the store, at least and at most; each time twice as long


class KeyValueStore(Protocol):
    """The interface of a store that all workers share."""

    def put(self, key: str, value: str) -> None:
        """Write a value; it replaces an older one."""
        ...

    def get(self, key: str) -> str | None:
        """The value, None if there is none; does not wait for one."""
        ...


def attempt_name(store: KeyValueStore, rank: int, size: int, folder: str, timeout: float) -> str:
    """The name that the workers of this attempt share, and that no other attempt has.

    Rank 0 may find tokens of an earlier attempt first. It proposes a new name whenever a token changes, and the name is final
    as soon as every worker has confirmed it; a worker confirms only a name that was proposed for its own new token.

    Args:
      store: shared by all workers.
      rank: this worker.
      size: how many workers there are.
      folder: the prefix of the keys.
      timeout: seconds to wait for the others.

    Raises:
      ChannelLost: not all workers came.
    """
    mine = secrets.token_hex(8)
    if size == 1:
        return mine
    store.put(f"{folder}/token/{rank}", mine)
    deadline, pause = time.monotonic() + timeout, _PAUSES[0]
    leader = _Leader(store, size, folder, mine) if rank == 0 else None
    follower = _Follower(store, rank, folder, mine)
    while True:
        name = leader.step() if leader is not None else follower.step()
        if name is not None:
            return name
        if time.monotonic() >= deadline:
            late = leader.late() if leader is not None else follower.late()
            raise ChannelLost(f"rank {', '.join(map(str, late))} did not come")
        time.sleep(pause)
        pause = min(2 * pause, _PAUSES[1])


class _Leader:
    def __init__(self, store: KeyValueStore, size: int, folder: str, mine: str) -> None:
        self._store, self._size, self._folder, self._mine = store, size, folder, mine
        self._tokens: list[str | None] = []
        self._name = ""

    def step(self) -> str | None:
        tokens = [self._mine, *(self._store.get(f"{self._folder}/token/{rank}") for rank in range(1, self._size))]
        if None in tokens:
            return None
        if tokens != self._tokens:
            self._tokens, self._name = tokens, secrets.token_hex(8)
            self._store.put(f"{self._folder}/proposal", " ".join([self._name, *map(str, tokens)]))
        if self.late():
            return None
        self._store.put(f"{self._folder}/name", self._name)
        return self._name

    def late(self) -> list[int]:
        """The workers that have not confirmed the latest name."""
        confirmed = (self._store.get(f"{self._folder}/confirmed/{rank}") for rank in range(1, self._size))
        return [rank for rank, name in enumerate(confirmed, 1) if not self._name or name != self._name]


class _Follower:
    def __init__(self, store: KeyValueStore, rank: int, folder: str, mine: str) -> None:
        self._store, self._rank, self._folder, self._mine = store, rank, folder, mine
        self._confirmed = ""

    def step(self) -> str | None:
        name, *tokens = (self._store.get(f"{self._folder}/proposal") or "").split(" ")
        if self._mine not in tokens[self._rank : self._rank + 1]:
            return None
        if name != self._confirmed:
            self._store.put(f"{self._folder}/confirmed/{self._rank}", name)
            self._confirmed = name
        return name if self._store.get(f"{self._folder}/name") == name else None

    def late(self) -> list[int]:
        """Rank 0, unless it has come; then the workers that have not confirmed its latest name."""
        name, *tokens = (self._store.get(f"{self._folder}/proposal") or "").split(" ")
        if self._mine not in tokens:
            return [0]
        confirmed = ((rank, self._store.get(f"{self._folder}/confirmed/{rank}")) for rank in range(1, len(tokens)))
        return [rank for rank, confirmation in confirmed if confirmation != name] or [0]
