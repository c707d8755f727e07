# SPDX-License-Identifier: Apache-2.0
"""Mapped files as one: their records are numbered one file after the other, and gathered from where they are."""

from collections.abc import Callable, Sequence

import numpy as np

from distinput.core.column import Ints
from distinput.core.picked import Rows, joined
from distinput.files.source import stamp_of
from distinput.formats.format import Format

__all__ = ["MappedFiles"]

_MOST_FILES = 512
"""More of them would drive each other out of the mappings that are kept."""

_MANY = 8
"""Rows for each file from which on every file is likely to have one of them."""


class MappedFiles:
    """Files that are all mapped.

    Args:
      file_format: of the files.
      names: of at least one file.
      ends: the records before each file, and in all.
      check: is called with the name of a file before its records are looked at.
    """

    def __init__(self, file_format: Format, names: tuple[str, ...], ends: Ints, check: Callable[[str], None]) -> None:
        self.names, self._format, self._ends, self._check = names, file_format, ends, check
        self._stamps: list[str] = []
        self._sources: list[Rows] | None = None

    def sources(self, rows: Ints) -> Sequence[Rows] | None:
        """Where the leaves of all records are, for somebody who looks at these; None: that is not known, or not in the files.

        Raises:
          NotFoundError: a file that has one of the rows is not there.
        """
        if self._sources is None or not self._unchanged(rows):
            self._sources = self._joined()
        return self._sources

    def _unchanged(self, rows: Ints) -> bool:
        """Whether the files that have these rows are the ones that were mapped."""
        files: Sequence[int] = range(len(self.names))
        if 1 < len(self.names) > len(rows) // _MANY:
            files = np.unique(np.searchsorted(self._ends, rows, "right") - 1).tolist()
        for file in files:
            self._check(self.names[file])
        return all(stamp_of(self.names[file]) == self._stamps[file] for file in files)

    def _joined(self) -> list[Rows] | None:
        if len(self.names) > _MOST_FILES:
            return None
        files, self._stamps = [], []
        for name, count in zip(self.names, np.diff(self._ends).tolist(), strict=True):
            self._check(name)
            self._stamps.append(stamp_of(name))  # before the file is mapped: one that changes in between is mapped anew
            found = self._format.sources(name)
            if found is None or any(source.shape[0] != count for source in found):
                return None
            files.append(found)
        leaves = [joined(parts) for parts in zip(*files, strict=True)]
        found = [leaf for leaf in leaves if leaf is not None]
        return found if len(found) == len(leaves) else None
