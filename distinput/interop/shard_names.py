# SPDX-License-Identifier: Apache-2.0
"""Names of the parts of a source that is not stored in files, so that it can be divided among workers as files are."""

from dataclasses import dataclass
from functools import cached_property

from distinput.core.block import ColumnBlock
from distinput.core.nest import LEAF
from distinput.files.table import FileTable
from distinput.ops.files import FileNames

__all__ = ["ShardNames"]


@dataclass(frozen=True, eq=False)
class ShardNames(FileNames):
    """Names such as "shard 3 of 8"; the sizes in the table are weights for balancing."""

    @property
    def op(self) -> str:
        return "shards"

    @cached_property
    def names(self) -> None:  # type: ignore[override]  # nothing is known of them but that they are there
        return None

    @staticmethod
    def of(table: FileTable) -> "ShardNames":
        """All names of a table."""
        return ShardNames(ColumnBlock(LEAF, [table.names], len(table)), f"{len(table)} shards", table=table)
