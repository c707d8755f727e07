# SPDX-License-Identifier: Apache-2.0
"""The common base of Parquet, Arrow IPC and npy: files that state the spec and the number of their rows."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from distinput.core.block import Block
from distinput.core.spec import Spec
from distinput.errors import InvalidArgumentError
from distinput.formats.format import Format, Fragment, Position, check_position

__all__ = ["TableFormat"]


class TableFormat(Format):
    """A format whose files are tables: rows are numbered, and reading can begin at any of them."""

    __slots__ = ()
    spec_from_file: ClassVar[bool] = True
    counts_rows: ClassVar[bool] = True
    fetches: ClassVar[bool] = True
    states_cardinality: ClassVar[bool] = True

    def spec(self, path: str | None) -> Spec:
        if path is None:
            raise InvalidArgumentError(
                f"{self.name}: the spec of a row is determined by the files; name at least one file"
            )
        return self.spec_of(path)

    @abstractmethod
    def spec_of(self, path: str) -> Spec:
        """The spec of a row of this file."""

    def seek(self, path: str, row: int) -> Position | None:
        del path
        return {"row": row}

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        """The rows from `start` to before `stop`."""
        if stop is None:
            return Fragment(path, {"row": start}, None, None, 0)
        return Fragment(path, {"row": start}, {"row": stop}, stop - start, 0)

    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        return self.read_groups(path, position, 1, 0)

    @staticmethod
    def first_row(path: str, position: Position | None) -> int:
        """The number of the row at which reading begins.

        Raises:
          StateError: the position is invalid.
        """
        if position is None:
            return 0
        check_position(path, position)
        row: int = position["row"]
        return row

    @abstractmethod
    def read_groups(
        self, path: str, position: Position | None, size: int, given: int
    ) -> Iterator[tuple[Block, Position]]:
        """Like `read`, in blocks that end where groups of `size` rows do."""
