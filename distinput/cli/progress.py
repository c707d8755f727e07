# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error, if that is a terminal."""

import sys
from time import monotonic
from types import TracebackType
from typing import Any, Self

__all__ = ["Progress"]

_SECONDS = 0.1  # seconds between two updates of the plain line


class Progress:
    """tqdm's bar if tqdm is installed, else one line that is overwritten; nothing unless standard error is a terminal.

    Args:
      total: the number of steps.
      what: a name for the task.
    """

    def __init__(self, total: int, what: str) -> None:
        self._total, self._what = total, what
        self._done = 0
        self._shown = 0.0
        self._watched = sys.stderr.isatty()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._watched:
            try:
                from tqdm import tqdm
            except ImportError:
                return self
            self._bar = tqdm(total=self._total, desc=f"  {self._what}", unit=" steps", leave=False, ncols=100)
        return self

    def step(self, note: str) -> None:
        """Count a step that is done; `note` reports on it."""
        self._done += 1
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update()
        elif self._watched and (monotonic() - self._shown > _SECONDS or self._done == self._total):
            self._shown = monotonic()
            sys.stderr.write(f"\r\033[K  {self._what}: step {self._done} of {self._total}, {note}")
            sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._watched:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
