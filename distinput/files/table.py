# SPDX-License-Identifier: Apache-2.0
"""Many files as a few arrays: a million names take no more memory than their characters."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distinput.columns.column import Ints
from distinput.columns.strings import Strings
from distinput.errors import DataLossError
from distinput.files.paths import ask_each
from distinput.files.source import size_of, version_of

__all__ = ["FileTable"]


@dataclass(frozen=True, eq=False)
class FileTable:
    """An ordered list of files.

    Args:
      names: [n] paths or URLs over one buffer.
      sizes: [n] in bytes; 0 also where unknown.
      rows: [n] number of records, -1 where unknown; None: unknown for all files.
      stamps: [n] strings that identify the version of each file; None: unknown.
    """

    names: Strings
    sizes: Ints
    rows: Ints | None = None
    stamps: Strings | None = None

    @staticmethod
    def of(paths: Sequence[str], sizes: Any = None) -> "FileTable":
        """Make a table from paths; sizes are looked up unless they are given.

        Raises:
          NotFoundError: a file is not there.
        """
        known: Iterable[int] = ask_each(size_of, paths) if sizes is None else sizes
        return FileTable(Strings.of([path.encode() for path in paths]), np.fromiter(known, np.int64, len(paths)))

    def __len__(self) -> int:
        return len(self.sizes)

    def path(self, index: int) -> str:
        """The path of one file."""
        name: bytes = self.names.row(index)
        return name.decode()

    def index(self, path: str) -> int:
        """The index of the file with this path, for names in ascending order; -1 if there is none."""
        name = path.encode()
        place = bisect_left(range(len(self)), name, key=self.names.row)
        return place if place < len(self) and self.names.row(place) == name else -1

    def check(self, index: int) -> None:
        """Reject a file that has changed since it was listed.

        Raises:
          NotFoundError: it is gone.
          DataLossError: it has changed.
        """
        if self.stamps is None or index < 0:
            return
        path, listed = self.path(index), self.stamps.row(index).decode()
        found = version_of(path)
        if found != listed:
            raise DataLossError(
                f"{path}: has changed since the manifest was written (version {found}, listed {listed}); write the "
                "manifest again"
            )

    def take(self, indices: Ints) -> "FileTable":
        """The files at these indices, as copies."""
        return FileTable(
            _alone(self.names.take(indices)),
            self.sizes.take(indices),
            None if self.rows is None else self.rows.take(indices),
            None if self.stamps is None else _alone(self.stamps.take(indices)),
        )


def _alone(texts: Strings) -> Strings:
    """A compact copy of the strings; made with NumPy, since loading a kernel takes longer than copying a few names."""
    sizes = texts.sizes
    before = np.cumsum(sizes) - sizes
    places = np.arange(int(sizes.sum())) + np.repeat(texts.starts - before, sizes)
    return Strings(texts.data.take(places), before, sizes)
