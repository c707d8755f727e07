# SPDX-License-Identifier: Apache-2.0
"""The beginnings of the next remote files are fetched while this one is read, where files are read in quick succession."""

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from time import monotonic
from typing import Any, NamedTuple

from distinput.core.pool import Task
from distinput.core.run import Run
from distinput.errors import CancelledError
from distinput.files.described_bytes import DescribedBytes
from distinput.files.paths import local_path
from distinput.files.source import begun

__all__ = ["FILES_AHEAD", "BeginningsAhead"]

FILES_AHEAD = 4
"""Files whose beginnings are there, or on their way."""

_QUICK = 2.0
"""Seconds: behind a file that took longer, the time of a request hardly counts."""

_LONGEST = 5 * _QUICK
"""Seconds that a beginning is good for: then the file may be another one, and the rest of it would not go with it."""


class _Asked(NamedTuple):
    path: str
    at: float
    answer: Task[DescribedBytes | None]


class BeginningsAhead:
    """The beginnings of files that are read one after the other.

    Args:
      run: ends the threads.
      stack: ends them as well.
    """

    def __init__(self, run: Run, stack: ExitStack) -> None:
        self._run, self._stack = run, stack
        self._pool: Any = None
        self._asked: deque[_Asked] = deque()
        self._before = -_QUICK

    def of(self, path: str, following: Sequence[str]) -> DescribedBytes | None:
        """The beginning of a file that is about to be read; None: ask for it.

        Args:
          path: of the file.
          following: the files after it, as far as they are known; they are asked for if the file before it was quickly read.
        """
        while self._asked and self._asked[0].path != path:
            self._asked.popleft().answer.cancel()
        mine = self._asked.popleft() if self._asked else None
        now = monotonic()
        if now - self._before < _QUICK and not self._run.cancelled.is_set():
            for name in following[len(self._asked) : FILES_AHEAD]:
                if local_path(name) is None:
                    self._ask(name, now)
        self._before = now
        if mine is None or now - mine.at > _LONGEST:
            return None
        try:
            return mine.answer.result()
        except CancelledError:  # the run has ended
            return None

    def _ask(self, path: str, now: float) -> None:
        if self._pool is None:
            self._pool = self._stack.enter_context(self._run.pool(FILES_AHEAD))
        self._asked.append(_Asked(path, now, self._pool.submit(begun, path)))
