# SPDX-License-Identifier: Apache-2.0
"""What a file format answers: what its records look like, how many there are, where to cut, and the records."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from distinput.core.block import Block
from distinput.core.spec import Spec
from distinput.files.source import size_of

__all__ = ["BLOCK_ROWS", "Format", "Fragment", "Position"]

Position = dict[str, Any]
"""Where a reader stands in one file: small, and plain JSON. `row` is the number of the next record."""

BLOCK_ROWS = 16384
"""The most rows that a block of a format has."""


@dataclass(frozen=True)
class Fragment:
    """A part of a file that can be read alone.

    Args:
      path: the file.
      start: the position of its first record.
      stop: the position behind its last record; None: the end of the file.
      rows: how many records it has, None if that is not known without reading it.
      nbytes: about how many bytes of the file it takes.
    """

    path: str
    start: Position
    stop: Position | None
    rows: int | None
    nbytes: int


class Format(ABC):
    """A way to read records from files. Subclasses are frozen dataclasses that hold the options of the format.

    The law: for every `(block, after)` that `read` yields, `read(path, after)` yields exactly the records that follow,
    and `read(path, seek(path, row))` exactly those from `row` on.
    """

    __slots__ = ()
    name: ClassVar[str]
    spec_from_file: ClassVar[bool] = False
    """True when `spec` needs a file to look at."""
    counts_rows: ClassVar[bool] = False
    """True when `rows` and `seek` work without reading the records."""
    states_cardinality: ClassVar[bool] = False
    """True when a data set of these files states how many elements it has, which TensorFlow's readers never do."""

    @abstractmethod
    def spec(self, path: str | None) -> Spec:
        """What a record looks like.

        Args:
          path: a file to look at, for formats whose files say it; None where there is none.
        """

    @abstractmethod
    def read(self, path: str, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        """The records from a position to the end of the file, each block with the position behind it.

        Records before a damaged one are yielded before the error is raised. The file is closed when the generator is.

        Args:
          path: the file.
          position: where to begin; None: at the first record.

        Raises:
          NotFoundError: the file is not there.
          DataLossError: the file is damaged, or is shorter than the position says.
        """

    def rows(self, path: str) -> int | None:
        """How many records the file has; None if that cannot be told without reading them."""
        del path
        return None

    def fragments(self, path: str) -> list[Fragment]:
        """The smallest parts of the file that can be read alone, in order; together they are the whole file."""
        return [Fragment(path, self.start(), None, self.rows(path), size_of(path))]

    def seek(self, path: str, row: int) -> Position | None:
        """The position of record `row`, if it can be told without reading the records before it."""
        del path
        return self.start() if row == 0 else None

    def start(self) -> Position:
        """The position of the first record of any file."""
        return {"row": 0}
