# SPDX-License-Identifier: Apache-2.0
"""Ranges of files as arrays: what one worker reads, in order."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from distinput.core.column import Ints
from distinput.files.table import FileTable
from distinput.formats.format import Format, Fragment

__all__ = ["END", "Fragments"]

END = -1
"""The stop of a part that extends to the end of its file."""


@dataclass(frozen=True, eq=False)
class Fragments:
    """Parts of files, in order.

    Args:
      files: the files that have a part here.
      file: [n] which of them.
      start: [n] where each part begins, in units of the format.
      stop: [n] where it ends, or `END`.
      rows: [n] records, -1 where unknown.
      nbytes: [n] about how many bytes of the file it takes.
    """

    files: FileTable
    file: Ints
    start: Ints
    stop: Ints
    rows: Ints
    nbytes: Ints

    def __len__(self) -> int:
        return len(self.file)

    def fragment(self, number: int, file_format: Format) -> Fragment:
        """Part `number`, as the format reads it."""
        path, stop = self.files.path(int(self.file[number])), int(self.stop[number])
        return file_format.part(path, int(self.start[number]), None if stop == END else stop)

    def path(self, number: int) -> str:
        """The file of part `number`."""
        return self.files.path(int(self.file[number]))

    @cached_property
    def total_rows(self) -> int | None:
        """Records in all parts; None if unknown."""
        return None if (self.rows < 0).any() else int(self.rows.sum())

    @cached_property
    def digest(self) -> str:
        """A hash of the parts."""
        found = hashlib.blake2s(digest_size=6)
        found.update("\0".join(self.files.path(i) for i in range(len(self.files))).encode())
        for part in (self.file, self.start, self.stop):
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()

    def __str__(self) -> str:
        return f"{len(self)} parts of {len(self.files)} files #{self.digest}"

    def table(self) -> list[dict[str, Any]]:
        """One dict for each part, for a printed plan."""
        found = []
        for i in range(len(self)):
            stop, rows = int(self.stop[i]), int(self.rows[i])
            part: dict[str, Any] = {"file": self.path(i)}
            if self.start[i] or stop != END:
                part |= {"start": int(self.start[i]), "stop": None if stop == END else stop}
            found.append({**part, "rows": None if rows < 0 else rows, "bytes": int(self.nbytes[i])})
        return found
