# SPDX-License-Identifier: Apache-2.0
"""Memory-mapped files as one table: records are numbered across files and gathered directly from the mappings."""

from collections.abc import Callable, Sequence

import numpy as np

from distinput.core.column import Ints
from distinput.core.picked import RowArray, joined
from distinput.files.source import stamp_of
from distinput.formats.format import Format

__all__ = ["MappedFiles"]

_MOST_FILES = 512
"""More files than this would evict each other from the cache of mappings."""

_MANY = 8
"""With so many requested rows per file, every file is likely to hold one of them."""


class MappedFiles:
    """A list of memory-mapped files.

    Args:
      file_format: of the files.
      names: of the files, at least one.
      ends: number of records before each file, and in total.
      check: called with the name of a file before its records are accessed.
    """

    def __init__(self, file_format: Format, names: tuple[str, ...], ends: Ints, check: Callable[[str], None]) -> None:
        self.names, self._format, self._ends, self._check = names, file_format, ends, check
        self._stamps: list[str] = []
        self._sources: list[RowArray] | None = None

    def sources(self, rows: Ints) -> Sequence[RowArray] | None:
        """The mapped rows of each leaf, valid for access to these rows; None if unknown, or not stored that way.

        Raises:
          NotFoundError: a file that holds one of the rows is missing.
        """
        if self._sources is None or not self._unchanged(rows):
            self._sources = self._joined()
        return self._sources

    def _unchanged(self, rows: Ints) -> bool:
        """True if the files that hold these rows have not changed since they were mapped."""
        files: Sequence[int] = range(len(self.names))
        if 1 < len(self.names) > len(rows) // _MANY:
            files = np.unique(np.searchsorted(self._ends, rows, "right") - 1).tolist()
        for file in files:
            self._check(self.names[file])
        return all(stamp_of(self.names[file]) == self._stamps[file] for file in files)

    def _joined(self) -> list[RowArray] | None:
        if len(self.names) > _MOST_FILES:
            return None
        files, self._stamps = [], []
        for name, count in zip(self.names, np.diff(self._ends).tolist(), strict=True):
            self._check(name)
            self._stamps.append(stamp_of(name))  # before mapping: a file that changes in between is mapped again
            found = self._format.sources(name)
            if found is None or any(source.shape[0] != count for source in found):
                return None
            files.append(found)
        leaves = [joined(parts) for parts in zip(*files, strict=True)]
        found = [leaf for leaf in leaves if leaf is not None]
        return found if len(found) == len(leaves) else None
