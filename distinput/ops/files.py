# SPDX-License-Identifier: Apache-2.0
"""`files`: the names of files whose sizes are known."""

from dataclasses import dataclass, field
from functools import cached_property

from distinput.columns.block import ColumnBlock
from distinput.files.manifest import NamesFingerprint
from distinput.files.table import FileTable
from distinput.ops.slices import Slices
from distinput.values.nest import LEAF

__all__ = ["FileNames"]


@dataclass(frozen=True, eq=False)
class FileNames(Slices):
    """The names in a table of files.

    Shapes: string scalars. State: the next row.

    Args:
      table: the files.
    """

    table: FileTable = field(kw_only=True, repr=False)

    @property
    def op(self) -> str:
        return "files"

    @cached_property
    def names(self) -> NamesFingerprint:
        """All names, as they were listed."""
        return NamesFingerprint(self.table.names, self.table)

    @staticmethod
    def of(table: FileTable) -> "FileNames":
        """All names of a table."""
        return FileNames(ColumnBlock(LEAF, [table.names], len(table)), f"{len(table)} files", table=table)
