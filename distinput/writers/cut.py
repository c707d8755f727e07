# SPDX-License-Identifier: Apache-2.0
"""Where files end: how many elements go into each."""

from dataclasses import dataclass

from distinput.core.sizes import balanced_slice
from distinput.errors import InvalidArgumentError
from distinput.plan.check import at_least

__all__ = ["SHARD_BYTES", "Cut"]

SHARD_BYTES = 256 << 20
"""The size at which a file ends, if nothing else was asked for."""


@dataclass(frozen=True)
class Cut:
    """How elements are cut into files.

    Args:
      shards: so many files, of as many elements each; None: as many as are needed.
      shard_bytes: about so many bytes a file; None: `SHARD_BYTES`, or no limit where one of the others is given.
      shard_rows: so many elements a file.

    Raises:
      InvalidArgumentError: more than one of them is given, or one is less than 1.
    """

    shards: int | None = None
    shard_bytes: int | None = None
    shard_rows: int | None = None

    def __post_init__(self) -> None:
        given = {name: value for name, value in vars(self).items() if value is not None}
        if len(given) > 1:
            raise InvalidArgumentError(f"write: give one of {' and '.join(given)}, since each says where files end")
        for name, value in given.items():
            at_least("write", name, value, 1)

    def rows(self, index: int, total: int) -> int | None:
        """Elements of file `index`; None: its bytes decide.

        Args:
          index: of the file.
          total: elements in all, negative if that is not known.
        """
        if self.shard_rows is not None:
            return self.shard_rows
        if self.shards is None:
            return None
        if self.shards == 1:
            return 1 << 62
        part = balanced_slice(total, self.shards, index)
        rows: int = part.stop - part.start
        return rows

    @property
    def bytes(self) -> int:
        """At how many bytes a file ends, where rows do not decide."""
        return self.shard_bytes or SHARD_BYTES
