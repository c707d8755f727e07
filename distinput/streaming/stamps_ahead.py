# SPDX-License-Identifier: Apache-2.0
"""What the server says of the next remote file is asked while this one is read, and once for all who read it."""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from distinput.core.run import Run
from distinput.files.hints import stamped
from distinput.files.paths import local_path
from distinput.files.source import stamp_of

if TYPE_CHECKING:
    from distinput.core.pool import Task

__all__ = ["StampsAhead"]

_LONGEST = 2.0
"""Seconds that an answer is good for: behind a file that takes longer, asking again costs little, and the file may be new."""


class StampsAhead:
    """The stamps of files that are read one after the other; see `stamp_of`.

    Args:
      look: reads what is known of a file by its stamp, such as its footer; an error is left to who reads the file.
      run: ends the thread.
      stack: ends the thread as well.
    """

    def __init__(self, look: Callable[[str], Any], run: Run, stack: ExitStack) -> None:
        self._look, self._run, self._stack = look, run, stack
        self._pool: Any = None
        self._asked: tuple[str, float, Task[str | None]] | None = None

    def of(self, path: str) -> str | None:
        """The stamp of a file that is about to be read; None for a local file, which is quickly asked.

        Raises:
          NotFoundError: it is not there.
        """
        asked, self._asked = self._asked, None
        if local_path(path) is not None:
            return None
        if asked is not None and asked[0] == path and monotonic() - asked[1] < _LONGEST:
            stamp = asked[2].result()
            if stamp is not None:
                return stamp
        return stamp_of(path)

    def ask(self, path: str) -> None:
        """Have a thread ask for the stamp of the next file."""
        if local_path(path) is not None or self._run.cancelled.is_set():
            return
        if self._pool is None:
            self._pool = self._stack.enter_context(self._run.pool(1))
        self._asked = path, monotonic(), self._pool.submit(self._answer, path)

    def _answer(self, path: str) -> str | None:
        with suppress(Exception):
            stamp = stamp_of(path)
            with stamped(path, stamp), suppress(Exception):
                self._look(path)
            return stamp
        return None
