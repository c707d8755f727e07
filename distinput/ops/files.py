# SPDX-License-Identifier: Apache-2.0
"""`files`: the names of files whose sizes are known."""

from dataclasses import dataclass, field
from functools import cached_property

from distinput.core.block import ColumnBlock
from distinput.core.nest import LEAF
from distinput.files.facts import Names
from distinput.files.table import FileTable
from distinput.ops.slices import Slices

__all__ = ["Files"]


@dataclass(frozen=True, eq=False)
class Files(Slices):
    """The names in a table of files.

    Shapes: string scalars. State: the next row.

    Args:
      table: the files.
    """

    table: FileTable = field(kw_only=True, repr=False)

    @cached_property
    def names(self) -> Names:
        """All names, as they were listed."""
        return Names(self.table.names, self.table)

    @staticmethod
    def of(table: FileTable) -> "Files":
        """All names of a table."""
        return Files(ColumnBlock(LEAF, [table.names], len(table)), f"{len(table)} files", table=table)
