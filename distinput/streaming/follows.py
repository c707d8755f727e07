# SPDX-License-Identifier: Apache-2.0
"""How many records follow a position in a file, looked up only as far as somebody asks, to tell where an error was."""

from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import Any

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.formats.format import Format, Position

__all__ = ["Follows"]


class Follows:
    """The records behind a position: counted by the format where it can, else read, and counted up to damage.

    Args:
      format: how the file is read.
      path: the file.
      position: the position; None: its beginning.
    """

    def __init__(self, format: Format, path: str, position: Position | None) -> None:
        self.rows = 0
        """As many as are known."""
        self._blocks: Iterator[Any] = iter(())
        self._lock = Lock()  # workers of one process may ask at the same time
        with suppress(DataLossError, InvalidArgumentError, OSError):
            whole = format.rows(path) if format.counts_rows else None
            if whole is not None:
                self.rows = max(0, whole - (position or format.start())["row"])
            else:
                self._blocks = iter(format.read(path, position))

    def at_least(self, rows: int) -> bool:
        """Whether so many follow; a record that is damaged counts."""
        with self._lock:
            return self._read_on(rows)

    def _read_on(self, rows: int) -> bool:
        try:
            while self.rows < rows:
                block = next(self._blocks, None)
                if block is None:
                    return False
                self.rows += block[0].size
        except (DataLossError, InvalidArgumentError, OSError):
            self._blocks = iter(())
            return self.rows == rows - 1
        return True
