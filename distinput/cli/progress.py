# SPDX-License-Identifier: Apache-2.0
"""A progress bar on standard error, if that is a terminal."""

import sys
from time import monotonic
from types import TracebackType
from typing import Any, Self

__all__ = ["Progress"]

_SECONDS = 0.1  # between two updates of the plain line


class Progress:
    """tqdm's bar if tqdm is installed, else one line that is overwritten; nothing unless standard error is a terminal.

    Args:
      total: how many there are; None if that is not known.
      what: of what.
      exact: False: there may be fewer.
    """

    def __init__(self, total: int | None, what: str, *, exact: bool = True) -> None:
        self._total, self._what, self._most = total, what, "" if exact or total is None else "at most "
        self._shown = 0.0
        self._watched = sys.stderr.isatty()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._watched:
            try:
                from tqdm import tqdm
            except ImportError:
                return self
            name = f"({self._most.strip()})" if self._most else None
            self._bar = tqdm(
                total=self._total, desc=name, unit=f" {self._what}", unit_scale=True, leave=False, ncols=100
            )
        return self

    def reach(self, done: int) -> None:
        """So many are done."""
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        elif self._watched and (monotonic() - self._shown > _SECONDS or done == self._total):
            self._shown = monotonic()
            of = "" if self._total is None else f" of {self._most}{self._total:,}"
            sys.stderr.write(f"\r\033[K{done:,}{of} {self._what}")
            sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._watched:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
