# SPDX-License-Identifier: Apache-2.0
"""The numbers of the passes over a view: the same one in all loader workers of a pass, and another one for each pass.

A DataLoader copies the dataset into its worker processes, and nothing tells the original that a pass begins. With workers that
are started anew for each epoch, no process would be left to count. So the numbers are kept in memory that they share.

PyTorch draws a random number for each pass, which all its workers know. The first worker takes the next pass and records it
under that number; the others find it there. No lock is needed: words of 64 bits are read and written at once, and workers that
come at the same time write the same word.
"""

from typing import Any
from zlib import crc32

import torch

from distinput.core.loader_worker import LoaderWorker
from distinput.errors import InvalidArgumentError
from distinput.interop.torch.readers import starts_worker

__all__ = ["LAST_PASS", "SharedPasses"]

LAST_PASS = (1 << 24) - 1
"""The highest number of a pass."""

_SERIAL = 1 << 8  # of a pass, in the words of passes; the word of the next pass holds its whole serial number
_WORKERS, _PASSES = 256, 1024
_NEXT, _RESUMED, _TAKEN, _FOUND = 0, 1, 2, 2 + _WORKERS
_TOLD = _FOUND + _PASSES
_WORDS = _TOLD + 1


class SharedPasses:
    """The number of the next pass, and those of the passes that have begun."""

    def __init__(self) -> None:
        self._tensor = torch.zeros(_WORDS, dtype=torch.int64).share_memory_()
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

    def tell(self) -> bool:
        """True for the first call in all processes that share the numbers."""
        first = not self._words[_TOLD]
        self._words[_TOLD] = 1
        return bool(first)

    def copy(self) -> "SharedPasses":
        """The same numbers in memory of its own, for a process that is no loader worker of this one."""
        made = SharedPasses()
        made._words[:] = self._words
        return made

    def __getstate__(self) -> dict[str, Any]:
        if starts_worker():
            return {"tensor": self._tensor}
        return {"words": self._words.tolist()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "tensor" in state:
            self._tensor = state["tensor"]
            self._words = self._tensor.numpy()
            return
        SharedPasses.__init__(self)
        self._words[:] = state["words"]


def _after(now: int) -> int:
    """The word of the next pass, after that of this one."""
    return ((now >> 24) + 1) << 24 | min((now & LAST_PASS) + 1, LAST_PASS)
