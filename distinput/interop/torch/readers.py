# SPDX-License-Identifier: Apache-2.0
"""Who reads a view: ranks, loader workers, what wraps it, and the numbers of its passes."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref
from zlib import crc32

import numpy as np
import torch
import torch.distributed

from distinput.cluster.resolve import resolve
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.plan.check import at_least
from distinput.run.threads import LoaderWorker

# ----------------------------------------------------------------------------
# Who reads a view: what wraps it into batches or shards of its own, seen from the frames of the call.
# ----------------------------------------------------------------------------


_SHARDERS = ("DataLoaderDispatcher", "IterableDatasetShard")
_OF_WORKERS = "MultiProcessingDataLoaderIter"
_FETCHER = "_IterableDatasetFetcher"
_HOLDER = "_PrefetchDataFetcher"
_DEPTH = 100


@dataclass(frozen=True)
class ViewReader:
    """What reads a view.

    Args:
      collates: a DataLoader makes batches of the elements, since it was not given `batch_size=None`.
      sharder: the class of Accelerate that shards the elements for the processes; empty: none.
      unordered: a DataLoader delivers the steps of its workers in the order in which they are ready.
    """

    collates: bool = False
    sharder: str = ""
    unordered: bool = False


def reader() -> ViewReader:
    """What called a method of a view; PyTorch and Accelerate tell it nowhere else."""
    collates = unordered = False
    for caller in _callers():
        name = type(caller).__name__
        if name == _FETCHER:
            collates = collates or bool(getattr(caller, "auto_collation", False))
        elif name.endswith(_OF_WORKERS):
            unordered = unordered or not getattr(caller, "_in_order", True)
        elif name in _SHARDERS:
            return ViewReader(collates, name, unordered)
    return ViewReader(collates, unordered=unordered)


def starts_worker() -> bool:
    """True while a DataLoader starts a loader worker, in its process and in a forked worker; not for other processes."""
    return any(type(caller).__name__.endswith(_OF_WORKERS) for caller in _callers())


def steps_held() -> Callable[[], int]:
    """How many steps of the pass that begins wait in Lightning, which takes one ahead where it does not know their number."""
    holder = next((ref(caller) for caller in _callers() if type(caller).__name__ == _HOLDER), None)

    def held() -> int:
        return len(getattr(holder() if holder else None, "batches", ()))

    return held


def _callers() -> Iterator[Any]:
    """The objects of these classes whose methods are being called, the innermost first.

    The locals of all other frames are left alone: before Python 3.13 a look at them keeps what they hold alive until they end.
    """
    frame, depth = sys._getframe(2), 0
    while frame is not None and depth < _DEPTH:
        owner = frame.f_code.co_qualname.rpartition(".")[0].rpartition(".")[2]
        if owner in (_FETCHER, _HOLDER) or owner in _SHARDERS or owner.endswith(_OF_WORKERS):
            yield frame.f_locals.get("self")
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]


# ----------------------------------------------------------------------------
# The rank of this process and the number of ranks: given, or those of `torch.distributed`, or those of the launcher.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranks:
    """The rank and the number of ranks as given; what was not given is looked up when it is needed.

    Args:
      rank: the rank of this process, from 0; None: not given.
      world_size: how many ranks there are; None: not given.

    Raises:
      InvalidArgumentError: there is no such rank.
    """

    rank: int | None = None
    world_size: int | None = None

    def __post_init__(self) -> None:
        if self.rank is not None:
            at_least("IterableView", "rank", self.rank, 0)
        if self.world_size is not None:
            at_least("IterableView", "world_size", self.world_size, 1)
        if self.rank is not None and self.world_size is not None:
            _check(self.rank, self.world_size)

    def found(self) -> tuple[int, int]:
        """Rank and number of ranks: those given, else those of an initialized `torch.distributed`, else those of the launcher.

        Raises:
          InvalidArgumentError: they contradict each other; a rank was given, and nothing says of how many.
          ValueError: variables of the launcher contradict each other.
        """
        if self.rank is not None and self.world_size is not None:
            return self.rank, self.world_size
        if self.world_size == 1:
            return 0, 1
        rank, size, source = _here()
        if self.world_size is not None and self.world_size != size:
            raise InvalidArgumentError(
                f"IterableView: world_size={self.world_size} was given, but {source} says {size}; pass "
                "rank= as well, or neither"
            )
        if self.rank is not None and source == _NOBODY:
            raise InvalidArgumentError(
                f"IterableView: rank={self.rank} was given without world_size, and neither torch.distributed nor a launcher "
                "says how many ranks there are, so each would read everything; pass world_size= as well, or neither"
            )
        made = rank if self.rank is None else self.rank
        _check(made, size)
        return made, size


def _check(rank: int, size: int) -> None:
    if rank >= size:
        raise InvalidArgumentError(f"IterableView: rank must be from 0 to {size - 1}, got {rank}")


_NOBODY = "the environment (single)"
"""The source of a process that no launcher started."""


def _here() -> tuple[int, int, str]:
    """Rank, number of ranks, and who says so."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        cluster = resolve()
        source = _NOBODY if cluster.source == "single" else f"the environment ({cluster.source})"
        return cluster.rank, cluster.size, source
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    told = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if all(told) and told != (str(rank), str(size)):
        raise InvalidArgumentError(
            f"IterableView: torch.distributed says rank {rank} of {size}, the environment says RANK={told[0]} and "
            f"WORLD_SIZE={told[1]}; pass rank= and world_size= to choose"
        )
    return rank, size, "torch.distributed"


# ----------------------------------------------------------------------------
# The numbers of the passes over a view: the same one in all loader workers of a pass, and another one for each pass.
#
# A DataLoader copies the dataset into its worker processes, and nothing tells the original that a pass begins. With workers
# that are started anew for each epoch, no process would be left to count. So the numbers are kept in memory that they
# share.
#
# PyTorch draws a random number for each pass, which all its workers know. The first worker takes the next pass and records
# it under that number; the others find it there. No lock is needed: words of 64 bits are read and written at once, and
# workers that come at the same time write the same word.
# ----------------------------------------------------------------------------


LAST_PASS = (1 << 24) - 1
"""The highest number of a pass."""

_SERIAL = 1 << 8  # of a pass, in the words of passes; the word of the next pass holds its whole serial number
_WORKERS, _PASSES = 256, 1024
_NEXT, _RESUMED, _TAKEN, _FOUND = 0, 1, 2, 2 + _WORKERS
_TOLD = _FOUND + _PASSES
_WORDS = _TOLD + 1
_OF_A_NUMBER = 8
"""Words for the text of a seed, or of the number of a pass within a pass."""


class SharedPasses:
    """The number of the next pass, those of the passes that have begun, and what they leave to later ones.

    Args:
      lasting: how many seeds and numbers of passes they may leave.
    """

    def __init__(self, lasting: int = 0) -> None:
        room = _OF_A_NUMBER * (lasting + 1) if lasting else 0
        self._tensor = torch.zeros(_WORDS + room, dtype=torch.int64).share_memory_()
        self._words = self._tensor.numpy()

    @property
    def next(self) -> int:
        """The number of the pass that begins next."""
        return int(self._words[_NEXT]) & LAST_PASS

    @property
    def begun(self) -> int:
        """How many passes have begun, in this process and in loader workers."""
        return int(self._words[_NEXT]) >> 24

    def set_next(self, number: int) -> None:
        """Give the next pass this number.

        Raises:
          InvalidArgumentError: there is no such pass.
        """
        if not 0 <= number <= LAST_PASS:
            raise InvalidArgumentError(
                f"IterableView: the number of a pass must be from 0 to {LAST_PASS}, got {number}"
            )
        self._words[_NEXT] = self.begun << 24 | number

    @property
    def resumed(self) -> int:
        """Which pass begins at a saved position, counted from 1; 0: none."""
        return int(self._words[_RESUMED])

    def resume_next(self) -> int:
        """Note that the next pass begins at a saved position; returns which pass that is, counted from 1."""
        self._words[_RESUMED] = self.begun + 1
        return self.resumed

    def begin(self, worker: LoaderWorker | None = None, nth: int = 0) -> tuple[int, int]:
        """Begin a pass in this process: its number, and which pass over the view it is, counted from 1.

        Args:
          worker: the loader worker that this process is, if it is one.
          nth: how many passes it began before; more than 0 where workers persist.
        """
        words = self._words
        now = int(words[_NEXT])  # read first: a pass recorded later is found below
        if worker is None:
            begun, words[_NEXT] = (now & LAST_PASS, (now >> 24) + 1), _after(now)
            return begun  # no function is called before it is taken
        draw = f"{worker.draw} {nth}".encode()
        key, place, own = crc32(draw) >> 1, _FOUND + crc32(draw[::-1]) % _PASSES, _TAKEN + worker.number % _WORKERS
        word = int(words[place])
        # A draw repeats if a program seeds PyTorch for each epoch; then what this worker took before is an earlier pass.
        if word >> 32 != key or word == int(words[own]):
            word = key << 32 | ((now >> 24) + 1) % _SERIAL << 24 | now & LAST_PASS
            words[place] = word
            words[_NEXT] = _after(now)
        words[own] = word
        newest = self.begun + 1  # the worker that recorded the pass may not have counted it yet
        return word & LAST_PASS, newest - (newest - (word >> 24)) % _SERIAL

    @property
    def lasts(self) -> bool:
        """Whether passes leave anything to later ones."""
        return bool(self._words.size > _WORDS)

    @property
    def left(self) -> State:
        """What a pass has left to later ones; empty: nothing yet."""
        try:
            found: State = json.loads(self._words[_WORDS:].tobytes().rstrip(b"\0") or b"{}")
        except ValueError:  # another worker of the pass is about to write what this one knows
            return {}
        return found

    def leave(self, state: State) -> None:
        """Leave something to later passes, as all workers of this one do."""
        text, room = json.dumps(state).encode(), self._words[_WORDS:]
        if len(text) <= room.nbytes:
            room[:] = np.frombuffer(text.ljust(room.nbytes, b"\0"), np.int64)

    def tell(self) -> bool:
        """True for the first call in all processes that share the numbers."""
        first = not self._words[_TOLD]
        self._words[_TOLD] = 1
        return bool(first)

    def copy(self) -> "SharedPasses":
        """The same numbers in memory of its own, for a process that is no loader worker of this one."""
        made = SharedPasses.__new__(SharedPasses)
        made.__setstate__({"words": self._words.tolist()})
        return made

    def __getstate__(self) -> dict[str, Any]:
        if starts_worker():
            return {"tensor": self._tensor}
        return {"words": self._words.tolist()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = "tensor" not in state
        self._tensor = torch.tensor(state["words"]).share_memory_() if own else state["tensor"]
        self._words = self._tensor.numpy()


def _after(now: int) -> int:
    """The word of the next pass, after that of this one."""
    return ((now >> 24) + 1) << 24 | min((now & LAST_PASS) + 1, LAST_PASS)
