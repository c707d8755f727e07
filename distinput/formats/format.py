# SPDX-License-Identifier: Apache-2.0
"""The interface of a file format, and the portions that are decoded together."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block
from distinput.columns.column import Ints
from distinput.columns.picked import RowArray, check_rows
from distinput.errors import DataLossError, InvalidArgumentError, StateError
from distinput.files.folder import without_notes
from distinput.files.manifest import FileTable
from distinput.files.source import read_range, size_of
from distinput.names.lazy import dataclass, library
from distinput.url_secrets import printed_without_secrets
from distinput.values.spec import Spec

hashlib = library("hashlib")  # for fingerprints

# ----------------------------------------------------------------------------
# A portion: rows of a file that are decoded together, possibly before they are requested.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows of a file that are decoded together.

    The work is split into two calls so that the long one can run ahead: `decode` mostly runs without the GIL, on any
    thread; `blocks` is Python code that runs when the rows are requested.

    Args:
      rows: number of rows.
      nbytes: approximate memory of the decoded rows.
      follows: true if the previous portion must be decoded first, because both come from one stream.
      decode: called once; its result is passed to `blocks`. Either may raise errors of the file.
      blocks: yields the rows, each block with the position after it.
      past: of the position of a bad record among these rows, what of the portion is behind it, None if nothing is, and the
        position there; None: nothing behind it can be read.
      waits: true if `decode` mostly waits for a network, so more of them should be under way.
    """

    rows: int
    nbytes: int
    follows: bool
    decode: Callable[[], Any]
    blocks: Callable[[Any], Iterator[tuple[Block, dict[str, Any]]]]
    past: "Callable[[dict[str, Any] | None], tuple[Portion | None, dict[str, Any]]] | None" = None
    waits: bool = False

    def changed(self, change: Callable[[Block], Block]) -> "Portion":
        """The same rows, each block of which is changed."""
        past = self.past
        if past is None:
            behind = None
        else:

            def behind(position: dict[str, Any] | None) -> "tuple[Portion | None, dict[str, Any]]":
                rest, at = past(position)
                return None if rest is None else rest.changed(change), at

        def blocks(decoded: Any) -> Iterator[tuple[Block, dict[str, Any]]]:
            return ((change(block), after) for block, after in self.blocks(decoded))

        return replace(self, blocks=blocks, past=behind)


# ----------------------------------------------------------------------------
# The interface of a file format: the spec of its records, their number, where a file can be split, and the records.
# ----------------------------------------------------------------------------


Position = dict[str, Any]
"""The position of a reader in a file: a small JSON object. `row` is the number of the next record."""

PlacedBlocks = Iterator[tuple[Block, Position]]
"""Blocks of records, each with the position after it."""

BLOCK_ROWS = 32768
"""The most rows in a block that a format yields."""


def check_position(path: str, position: Position) -> None:
    """Reject a position before the beginning of a file; one past the end is detected when reading starts there.

    Raises:
      StateError: a part of the position is negative.
    """
    if any(place < 0 for place in position.values()):
        raise StateError(f"{path}: {position} is not a position in a file; the state that holds it is damaged")


def check_reached(path: str, count: int, at: int, what: str = "row") -> None:
    """Refuse to go on behind the end of a file.

    Raises:
      DataLossError: it has fewer rows than before.
    """
    if at > count:
        raise DataLossError(
            f"{path}: has {count} {what}s, but reading must continue at {what} {at}; the file has changed"
        )


def rows_in(path: str, rows: Any, count: int) -> Ints:
    """The numbers of rows that are asked for.

    Raises:
      InvalidArgumentError: one of them is not in the file, which has `count`.
    """
    wanted = np.asarray(rows, np.int64)
    try:
        check_rows(wanted, count)
    except IndexError as error:
        raise InvalidArgumentError(f"{path}: {error}") from None
    return wanted


def blocks_of(portions: Iterator[Portion]) -> PlacedBlocks:
    """The rows of portions, each decoded when its turn comes."""
    try:
        for portion in portions:
            yield from portion.blocks(portion.decode())
    finally:  # at a bad record too, whose error may live long
        portions.close()  # type: ignore[attr-defined]


def cut_rows(rows: int, most: int, group: int = 1, given: int = 0) -> Iterator[tuple[int, int]]:
    """Where to cut rows into blocks: (first, stop) of each.

    Args:
      rows: how many there are.
      most: the most rows in a block; a group may exceed it.
      group: blocks end at multiples of so many rows, counting those given before.
      given: rows given before.

    >>> list(cut_rows(10, 4)), list(cut_rows(10, 5, group=2, given=1))
    ([(0, 4), (4, 8), (8, 10)], [(0, 3), (3, 7), (7, 10)])
    """
    step = max(1, most // group) * group
    first, stop = 0, step - given % group
    while first < rows:
        yield first, min(stop, rows)
        first, stop = stop, stop + step


@printed_without_secrets
@dataclass(frozen=True)
class Fragment:
    """A part of a file that can be read independently.

    Args:
      path: the file.
      start: the position of its first record.
      stop: the position after its last record; None: the end of the file.
      rows: number of records; None if unknown without reading it.
      nbytes: approximate size in the file, in bytes.
    """

    path: str
    start: Position
    stop: Position | None
    rows: int | None
    nbytes: int


class Format(ABC):
    """A way to read records from files. Subclasses are frozen dataclasses that hold the options of the format.

    The law: for every `(block, after)` that `read` yields, `read(path, after)` yields exactly the records that follow
    the block, and `read(path, seek(path, row))` yields exactly those from `row` on.
    """

    __slots__ = ()
    name: ClassVar[str]
    spec_from_file: ClassVar[bool] = False
    """True if `spec` depends on the file."""
    counts_rows: ClassVar[bool] = False
    """True if `rows` and `seek` work without reading the records."""
    fetches: ClassVar[bool] = False
    """True if `fetch` works for every file for which `rows` returns a number."""
    maps: ClassVar[bool] = False
    """True if local files are memory-mapped, so that `gathers` may be true for them."""
    in_portions: ClassVar[bool] = False
    """True if `portions` is implemented: decoding is expensive and can be done ahead."""
    reads: ClassVar[bool] = False
    """True if a block is read and scanned without the GIL, so that it can be done ahead."""
    from_front: ClassVar[bool] = False
    """True if files are read from their first byte on, so that their beginnings can be asked for ahead."""
    errors_of_records: ClassVar[bool] = False
    """Whether an error is of a single record, as in TensorFlow's CSV, so that `ignore_errors` goes on behind it."""
    resumes: ClassVar[bool] = False
    """True if `past` leads behind a damaged record; a run that leaves such out then reads blocks, not portions."""
    lists_fragments: ClassVar[bool] = False
    """True if listing the fragments of a file requires reading its metadata."""
    one_version: ClassVar[bool] = False
    """Whether `on_error="skip"` loses the rest of a file that has changed since it was opened, whatever could be read of it."""
    has_columns: ClassVar[bool] = False
    """True if records are dicts of columns, so that others may be added."""
    suffixes: ClassVar[tuple[str, ...]] = ()
    """How names of files of this format end, if each of them also begins with one of `marks`."""
    marks: ClassVar[tuple[bytes, ...]] = ()
    """What files of this format begin with."""
    states_cardinality: ClassVar[bool] = False
    """True if a dataset of these files reports its cardinality, which TensorFlow's readers never do."""
    brings_together: ClassVar[str] = ""
    """How users bring files that differ to one schema, if the format can."""

    @classmethod
    def of_options(cls, **options: Any) -> "Format":
        """The format with the options of users, some of which may ask for another class.

        Raises:
          TypeError: there is no such option.
        """
        return cls(**options)

    def version_facts(self) -> dict[str, str]:
        """What states say of the version of the table that the files are of: "snapshot" in words, and when it was "made"."""
        return {}

    @abstractmethod
    def spec(self, path: str | None) -> Spec:
        """The spec of a record.

        Args:
          path: a file to inspect, for formats where the spec depends on the file; None if there is no file.
        """

    def check_spec(self, path: str, spec: Spec) -> None:
        """Reject a file whose records have another spec than those of the first file.

        Raises:
          InvalidArgumentError: the specs differ.
        """
        found = self.spec(path) if self.spec_from_file else spec
        if found != spec:
            raise InvalidArgumentError(
                f"{path}: its records are {found.nest}, but those of the first file are {spec.nest}; "
                f"{self.brings_together}make a dataset of each kind of file, map them to one form, then concatenate them"
            )

    def held(self, paths: Iterable[str]) -> "Format":
        """This format with what it infers from files stated, so that all of them have to agree with it.

        Args:
          paths: the files in their order; only as many are looked at as it takes.
        """
        del paths
        return self

    @classmethod
    def of_folder(cls, paths: list[str]) -> list[str]:
        """The files of a folder that are meant: where some have a suffix of this format, those and what begins as they do.

        So a README, or a list of checksums, beside the files is not read as one of them.
        """
        paths = without_notes(paths)
        others = [path for path in paths if not path.lower().endswith(cls.suffixes)] if cls.suffixes else []
        if not others or len(others) == len(paths):
            return paths
        longest = max(map(len, cls.marks))
        left = {path for path in others if not read_range(path, 0, longest).startswith(cls.marks)}
        return [path for path in paths if path not in left]

    @abstractmethod
    def read(self, path: str, position: Position | None = None) -> PlacedBlocks:
        """The records from a position to the end of the file, each block with the position after it.

        Records before a damaged one are yielded before the error is raised. Closing the generator closes the file.

        Args:
          path: the file.
          position: where to begin; None: at the first record.

        Raises:
          NotFoundError: the file is not there.
          DataLossError: the file is damaged, or is shorter than the position says.
        """

    def read_groups(self, path: str, position: Position | None, size: int, given: int) -> PlacedBlocks:
        """Like `read`, for a caller that takes `size` rows at a time: blocks should end where a group of rows does.

        Args:
          path: the file.
          position: where to begin.
          size: rows in a group.
          given: rows that the caller already has, from this file and others.
        """
        del size, given
        return self.read(path, position)

    def portions(
        self, path: str, position: Position | None, stop: Position | None, size: int, given: int
    ) -> Iterator[Portion]:
        """Like `read_groups`, in portions that can be decoded ahead; for formats with `in_portions`.

        Args:
          path: the file.
          position: where to begin.
          stop: the position after the last record; None: the end of the file.
          size: rows in a group.
          given: rows that the caller already has, from this file and others.
        """
        raise NotImplementedError(f"{self.name} is not read in portions")

    def with_columns(self, columns: Sequence[str]) -> "Format | None":
        """The same format, of which only these columns are read, in this order; None if it reads records whole."""
        del columns
        return None

    def where(self, term: Any) -> "Format | None":
        """The same format without parts of files that hold no row for which an expression is true, as their statistics tell.

        Args:
          term: what the expression is made of, a `arrow.expression.Term`.

        Returns:
          A format that cannot count or fetch rows any more; None if files have no statistics.
        """
        del term
        return None

    def wants(self, path: str) -> bool:
        """Whether a file may hold records that are wanted: false if its name alone tells that it does not."""
        del path
        return True

    def fetches_few(self, path: str) -> bool:
        """False if `fetch` decodes a large part of a file for a single row."""
        del path
        return True

    def gathers(self, path: str) -> bool:
        """True if the cost of `fetch` depends only on the number of rows, not on where they are in the file."""
        del path
        return False

    def sources(self, path: str) -> Sequence[RowArray] | None:
        """The mapped rows of each leaf of a file; None if not known yet, or if a leaf is not stored that way.

        They show the current contents of the file and must not be accessed once its stamp has changed.
        """
        del path
        return None

    def rows(self, path: str) -> int | None:
        """The number of records in the file; None if unknown without reading them."""
        del path
        return None

    def stated_rows(self, path: str) -> int | None:
        """The number of records that the file says it has, though it may be damaged; asked where an error is told."""
        return self.rows(path) if self.counts_rows else None

    def fragments(self, path: str) -> list[Fragment]:
        """The smallest parts of the file that can be read independently, in order; together they cover the file."""
        return [Fragment(path, self.start(), None, self.rows(path), size_of(path))]

    def size(self, path: str) -> int:
        """The size of a file in bytes; 0 if unknown. Overridden by formats of what is no file."""
        return size_of(path)

    def bytes_read(self, path: str, size: int) -> int:
        """How many of the `size` bytes of a file are read for all of its records; fewer if columns are left out."""
        del path
        return size

    def seek(self, path: str, row: int) -> Position | None:
        """The position of record `row`; None if unknown without reading the records before it."""
        del path
        return self.start() if row == 0 else None

    def ends_at(self, path: str, position: Position | None) -> bool:
        """Whether no record follows a position; asked where an error is told."""
        try:
            rows = self.rows(path)
            if rows is not None:
                return bool((position or self.start())["row"] >= rows)
            return next(self.read(path, position), None) is None
        except (DataLossError, OSError):
            return False

    def past(self, path: str, position: Position | None) -> Position | None:
        """The position of the first record behind a damaged one from which on the file can be read; None: it is not known.

        Args:
          path: the file.
          position: of the damaged record; None: the first one.
        """
        del path, position
        return None

    def start(self) -> Position:
        """The position of the first record of any file."""
        return {"row": 0}

    def units(self, files: FileTable) -> Ints | None:
        """The number of units in each file; None if files of this format cannot be split between any two units.

        A unit is what `part` counts in, such as a byte of text or a fixed-length record.

        Raises:
          InvalidArgumentError: a file cannot have this size.
        """
        del files
        return None

    def unit_bytes(self, files: FileTable) -> int:
        """The size of a unit of these files in bytes."""
        del files
        return 1

    def part(self, path: str, start: int, stop: int | None) -> Fragment:
        """The part of a file from unit `start` to before unit `stop`; None: to its end.

        Adjacent parts that cover a file contain each of its records exactly once.
        """
        if start or stop is not None:
            raise ValueError(f"{self.name}: files can only be read whole, got the part from {start} to {stop}")
        return Fragment(path, self.start(), None, None, 0)

    def read_fragment(self, fragment: Fragment, position: Position | None = None) -> PlacedBlocks:
        """Like `read`, for the records of a fragment, or those from a position in it on.

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
        raise DataLossError(
            f"{fragment.path}: ends {left} records too early, before record {fragment.stop['row']}; the file has changed"
        )

    def fetch(self, path: str, rows: Ints) -> Block:
        """The rows with these numbers, in this order, read by random access; for formats with `fetches`.

        Raises:
          InvalidArgumentError: a row number is out of range.
        """
        raise NotImplementedError(f"{self.name} cannot fetch single records")

    def read_until(self, path: str, position: Position, stop: Position) -> PlacedBlocks:
        """Like `read`, for a caller that uses nothing after `stop`."""
        del stop
        return self.read(path, position)


# ----------------------------------------------------------------------------
# Ranges of files as arrays: what one worker reads, in order.
# ----------------------------------------------------------------------------


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
        found.update(os.fsencode("\0".join(self.files.paths())))
        for part in (self.file, self.start, self.stop):
            found.update(np.ascontiguousarray(part).tobytes())
        return str(found.hexdigest())

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
