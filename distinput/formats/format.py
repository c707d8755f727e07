# SPDX-License-Identifier: Apache-2.0
"""What a file format answers: what its records look like, how many there are, where to cut, and the records."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from distinput.core.block import Block
from distinput.core.column import Ints
from distinput.core.picked import Rows
from distinput.core.spec import Spec
from distinput.errors import DataLossError, InvalidArgumentError, StateError
from distinput.files.source import size_of
from distinput.files.table import FileTable
from distinput.formats.portion import Portion

__all__ = ["BLOCK_ROWS", "Format", "Fragment", "Position", "check_position", "cut_rows"]

Position = dict[str, Any]
"""Where a reader stands in one file: small, and plain JSON. `row` is the number of the next record."""

BLOCK_ROWS = 32768
"""The most rows that a block of a format has."""


def check_position(path: str, position: Position) -> None:
    """Refuse a position before the beginning of a file; one behind its end is found out by whoever goes there.

    Raises:
      StateError: it is one.
    """
    if any(place < 0 for place in position.values()):
        raise StateError(f"{path}: {position} is no position in a file; the state that holds it is damaged")


def cut_rows(rows: int, most: int, group: int = 1, given: int = 0) -> Iterator[tuple[int, int]]:
    """Where to cut rows into blocks: (first, stop) of each.

    Args:
      rows: how many there are.
      most: in a block, or a group where that has more.
      group: blocks end where so many rows do, counted with those that were given before.
      given: rows that were given before.

    >>> list(cut_rows(10, 4)), list(cut_rows(10, 5, group=2, given=1))
    ([(0, 4), (4, 8), (8, 10)], [(0, 3), (3, 7), (7, 10)])
    """
    step = max(1, most // group) * group
    first, stop = 0, step - given % group
    while first < rows:
        yield first, min(stop, rows)
        first, stop = stop, stop + step


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
    fetches: ClassVar[bool] = False
    """True when `fetch` works wherever `rows` gives a number."""
    maps: ClassVar[bool] = False
    """True when local files are mapped into memory, so that `gathers` may be true of them."""
    in_portions: ClassVar[bool] = False
    """True when `portions` works: decoding takes long, and can be done ahead."""
    reads: ClassVar[bool] = False
    """True when a block is read and looked through without Python's lock, which can be done ahead."""
    lists_fragments: ClassVar[bool] = False
    """True when a file says where it can be cut, so that it has to be looked into for that."""
    states_cardinality: ClassVar[bool] = False
    """True when a dataset of these files states how many elements it has, which TensorFlow's readers never do."""

    @abstractmethod
    def spec(self, path: str | None) -> Spec:
        """What a record looks like.

        Args:
          path: a file to look at, for formats whose files say it; None where there is none.
        """

    def check_spec(self, path: str, spec: Spec) -> None:
        """Refuse a file whose records look different from those of the files before it.

        Raises:
          InvalidArgumentError: they do.
        """
        found = self.spec(path) if self.spec_from_file else spec
        if found != spec:
            raise InvalidArgumentError(
                f"{path}: its records look like {found.nest}, but those of the first file like {spec.nest}; read files of "
                "different records with datasets of their own, and bring them to one form before they are put together"
            )

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

    def read_groups(
        self, path: str, position: Position | None, size: int, given: int
    ) -> Iterator[tuple[Block, Position]]:
        """`read`, for a caller who wants `size` rows at a time: blocks should end where a group of rows does.

        Args:
          path: the file.
          position: where to begin.
          size: rows in a group.
          given: rows that the caller has already, of this file and others.
        """
        del size, given
        return self.read(path, position)

    def portions(
        self, path: str, position: Position | None, stop: Position | None, size: int, given: int
    ) -> Iterator[Portion]:
        """`read_groups` in portions that can be decoded ahead; for formats where `in_portions`.

        Args:
          path: the file.
          position: where to begin.
          stop: the position behind the last record; None: the end of the file.
          size: rows in a group.
          given: rows that the caller has already, of this file and others.
        """
        raise NotImplementedError(f"{self.name} is not read in portions")

    def gathers(self, path: str) -> bool:
        """True when `fetch` costs no more than the rows that it gives, wherever they are in the file."""
        del path
        return False

    def sources(self, path: str) -> Sequence[Rows] | None:
        """Where the leaves of all records of a mapped file are, from when that is known on; None: some lie elsewhere.

        They show the file as it is now; nobody may look at them when its stamp has changed.
        """
        del path
        return None

    def rows(self, path: str) -> int | None:
        """How many records the file has; None if that cannot be told without reading them."""
        del path
        return None

    def fragments(self, path: str) -> list[Fragment]:
        """The smallest parts of the file that can be read alone, in order; together they are the whole file."""
        return [Fragment(path, self.start(), None, self.rows(path), size_of(path))]

    def bytes_read(self, path: str, size: int) -> int:
        """How many of the `size` bytes of a file are read for all of its records; all, where no columns are left out."""
        del path
        return size

    def seek(self, path: str, row: int) -> Position | None:
        """The position of record `row`, if it can be told without reading the records before it."""
        del path
        return self.start() if row == 0 else None

    def start(self) -> Position:
        """The position of the first record of any file."""
        return {"row": 0}

    def units(self, files: FileTable) -> Ints | None:
        """How many units each file has, if files of this format can be cut between any two of them, else None.

        A unit is what `part` counts: a byte of text, a record of fixed length.

        Raises:
          InvalidArgumentError: a file cannot have this size.
        """
        del files
        return None

    def unit_bytes(self, files: FileTable) -> int:
        """Bytes of a unit of these files."""
        del files
        return 1

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        """The part of a file from unit `start` to before unit `stop`; None: to its end.

        The parts of a file that begin where others end have each record of the file exactly once.
        """
        if start or stop is not None:
            raise ValueError(f"{self.name}: files can only be read whole, got the part from {start} to {stop}")
        return Fragment(path, self.start(), None, None, 0)

    def read_fragment(self, fragment: Fragment, position: Position | None = None) -> Iterator[tuple[Block, Position]]:
        """The records of a fragment, or those from a position in it on, as `read` gives those of a file.

        Raises:
          NotFoundError: the file is not there.
          DataLossError: the file is damaged, or is shorter than the fragment says.
        """
        at = fragment.start if position is None else position
        if fragment.stop is None:
            yield from self.read(fragment.path, at)
            return
        left = fragment.stop["row"] - at["row"]
        if left <= 0:
            return
        for block, after in self.read_until(fragment.path, at, fragment.stop):
            if block.size >= left:
                yield block.rows(0, left), after if block.size == left else fragment.stop
                return
            left -= block.size
            yield block, after
        raise DataLossError(f"{fragment.path}: ends {left} records before record {fragment.stop['row']}; it changed")

    def fetch(self, path: str, rows: Ints) -> Block:
        """The rows with these numbers, in this order, without reading much else; for formats where `fetches`.

        Raises:
          InvalidArgumentError: a row that is not there.
        """
        raise NotImplementedError(f"{self.name} cannot fetch single records")

    def read_until(self, path: str, position: Position, stop: Position) -> Iterator[tuple[Block, Position]]:
        """`read`, for a caller who will not look behind `stop`."""
        del stop
        return self.read(path, position)
