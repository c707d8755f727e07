# SPDX-License-Identifier: Apache-2.0
"""`reader`: the records of files, in the order in which the files are named."""

import os
import stat
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import chain
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np

from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Ints, Strings
from distinput.columns.picked import RowArray, chosen, joined, put_in_order
from distinput.columns.rows import RowQueue, Stream
from distinput.columns.state import Mark, State, is_position
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.files.compression import Compression, codec_of_suffix
from distinput.files.manifest import MOST_REMOTE, FileTable, NamesFingerprint
from distinput.files.paths import ask_each, local_path
from distinput.files.source import (
    Adjoining,
    beginning_with,
    begun,
    begun_within,
    lying_in,
    stamp_of,
    stamped,
    telling,
    within,
)
from distinput.formats.format import Format, PlacedBlocks, Portion, Position
from distinput.formats.recognise import tell_format
from distinput.kernels.kernel import renewed
from distinput.names.lazy import dataclass
from distinput.names.words import meant
from distinput.ops.as_python import AsDecimal, AsRows, AsText
from distinput.ops.slices import Slices
from distinput.plan.families import SameElements, in_one_order
from distinput.plan.node import INFINITE, UNKNOWN, Latest, Node, once
from distinput.run.run import Run
from distinput.streaming.ahead import (
    BEGINNING_LASTS,
    DAMAGE,
    FILES_AHEAD,
    STAMP_LASTS,
    AskedAhead,
    Pace,
    ReadingPlace,
    RecentStamps,
    blocks_ahead,
    blocks_in,
    places,
    portions_ahead,
    portions_in,
)
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

# ----------------------------------------------------------------------------
# `files`: the names of files whose sizes are known.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FileNames(Slices):
    """The names in a table of files.

    Shapes: string scalars. State: the next row.

    Args:
      table: the files.
    """

    op: ClassVar[str] = "files"
    table: FileTable = field(kw_only=True, repr=False)

    @cached_property
    def names(self) -> NamesFingerprint:
        """All names, as they were listed."""
        return NamesFingerprint(self.table.names, self.table)

    @classmethod
    def of(cls, table: FileTable) -> Self:
        """All names of a table."""
        return cls(ColumnBlock(LEAF, [table.names], len(table)), f"{len(table)} {cls.op}", table=table)


# ----------------------------------------------------------------------------
# How many records follow a position in a file, looked up only as far as somebody asks, to tell where an error was.
# ----------------------------------------------------------------------------


class Follows:
    """The records behind a position: counted by the format where it can, else read, and counted up to damage.

    Args:
      format: how the file is read.
      path: the file.
      position: the position; None: its beginning.
    """

    def __init__(self, format: Format, path: str, position: Position | None) -> None:
        self.rows = 0
        """As many as are known."""
        self._blocks: Iterator[Any] = iter(())
        self._lock = renewed(Lock())  # workers of one process may ask at the same time
        with suppress(DataLossError, InvalidArgumentError, OSError):
            whole = format.rows(path) if format.counts_rows else None
            if whole is not None:
                self.rows = max(0, whole - (position or format.start())["row"])
            else:
                self._blocks = iter(format.read(path, position))

    def at_least(self, rows: int) -> bool:
        """Whether so many follow; a record that is damaged counts."""
        with self._lock:
            return self._read_on(rows)

    def _read_on(self, rows: int) -> bool:
        try:
            while self.rows < rows:
                block = next(self._blocks, None)
                if block is None:
                    return False
                self.rows += block[0].size
        except (DataLossError, InvalidArgumentError, OSError):
            self._blocks = iter(())
            return self.rows == rows - 1
        return True


# ----------------------------------------------------------------------------
# Memory-mapped files as one table: records are numbered across files and gathered directly from the mappings.
# ----------------------------------------------------------------------------


_MOST_FILES = 512
"""More files than this would evict each other from the cache of mappings."""

_MANY = 8
"""With so many requested rows per file, every file is likely to hold one of them."""


class MappedFiles:
    """A list of memory-mapped files.

    Args:
      file_format: of the files.
      names: of the files, at least one.
      ends: number of records before each file, and in total.
      check: called with the name of a file before its records are accessed.
    """

    def __init__(self, file_format: Format, names: tuple[str, ...], ends: Ints, check: Callable[[str], None]) -> None:
        self.names, self._format, self._ends, self._check = names, file_format, ends, check
        self._stamps: list[str] = []
        self._sources: list[RowArray] | None = None

    def sources(self, rows: Ints) -> Sequence[RowArray] | None:
        """The mapped rows of each leaf, valid for access to these rows; None if unknown, or not stored that way.

        Raises:
          NotFoundError: a file that holds one of the rows is missing.
        """
        if self._sources is None or not self._unchanged(rows):
            self._sources = self._joined()
        return self._sources

    def _unchanged(self, rows: Ints) -> bool:
        """True if the files that hold these rows have not changed since they were mapped."""
        files: Sequence[int] = range(len(self.names))
        if 1 < len(self.names) > len(rows) // _MANY:
            files = np.unique(np.searchsorted(self._ends, rows, "right") - 1).tolist()
        for file in files:
            self._check(self.names[file])
        return all(stamp_of(self.names[file]) == self._stamps[file] for file in files)

    def _joined(self) -> list[RowArray] | None:
        if len(self.names) > _MOST_FILES:
            return None
        files, self._stamps = [], []
        for name, count in zip(self.names, np.diff(self._ends).tolist(), strict=True):
            self._check(name)
            self._stamps.append(stamp_of(name))  # before mapping: a file that changes in between is mapped again
            found = self._format.sources(name)
            if found is None or any(source.shape[0] != count for source in found):
                return None
            files.append(found)
        leaves = [joined(parts) for parts in zip(*files, strict=True)]
        found = [leaf for leaf in leaves if leaf is not None]
        return found if len(found) == len(leaves) else None


# ----------------------------------------------------------------------------
# `reader`: the records of files, in the order in which the files are named.
# ----------------------------------------------------------------------------


@contextmanager
def telling_format(format: Format, path: Callable[[], str]) -> Iterator[None]:
    """Say with an error of a format what the file is, if it is of another one.

    Args:
      format: as which it is read.
      path: gives the file, where the message does not begin with it.
    """
    try:
        yield
    except (DataLossError, InvalidArgumentError, NotFoundError) as error:
        with suppress(Exception):  # of asking for the path once more
            tell_format(error, format, path())
        raise


class LaterFormat:
    """A format with what it infers from its files, of which none is opened before somebody asks for it.

    Args:
      stated: the format as users state it.
      paths: gives the names of the files.

    Attributes:
      known: the format as far as it is known now.
    """

    def __init__(self, stated: Format, paths: Callable[[], Iterable[str]]) -> None:
        self.known, self._paths = stated, paths
        self._inferred = False
        self._lock = renewed(Lock())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=renewed(Lock()))

    @property
    def argument_of_states(self) -> Format:
        """The format. An error is that of this call, and the next one looks again."""
        with self._lock:
            if not self._inferred:
                with telling_format(self.known, lambda: next(iter(self._paths()), "")):
                    self.known, self._inferred = self.known.held(self._paths()), True
            return self.known


Counts = tuple[tuple[str, ...], Ints]
"""Files in their order, and the rows before each of them and in all."""


class FileReader(Node):
    """A step that reads files of one format: whole ones, or fragments of them.

    State: where it stands in its input, and the reader's position in the file. Subclasses have both arguments among their
    fields.
    """

    tolerant: ClassVar[bool] = True
    in_record_order: ClassVar[bool] = True
    input: Node
    format: Format

    @abstractmethod
    def reading_as(self, changed: Format) -> "FileReader":
        """This reader with another format, of the same files."""

    @abstractmethod
    def _places(self, state: State, run: Run) -> Iterator[tuple[Mark, ReadingPlace]]:
        """The mark of each element of the input, and where to begin in the file that it names."""

    @abstractmethod
    def _blocks(self, run: Run) -> Callable[[ReadingPlace], PlacedBlocks]:
        """What reads blocks from a place on."""

    @abstractmethod
    def _portions(self, run: Run) -> Callable[[ReadingPlace], Iterator[Portion]]:
        """What reads portions from a place on."""

    @property
    def known(self) -> Format:
        """The format as far as it is known without opening a file; facts of formats are those of its class."""
        return self.format

    @property
    def op(self) -> str:
        return self.known.name

    @property
    def spec_from_file(self) -> bool:
        return self.known.spec_from_file

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0, "position": None}

    def state_misfit(self, state: State) -> str | None:
        return None if is_position(state["position"]) else f"{self.op}: 'position' must be one in a file, or null"

    def told_record(self, error: Exception, state: State, ahead: int) -> str | None:
        if not ahead and isinstance(error, DataLossError | InvalidArgumentError):
            tell_format(error, self.known)
        return ""  # its errors name the file, and where in it as far as the format can tell

    pace = once(Pace)
    """What is known about whether a thread that reads ahead pays."""

    def stream(self, state: State, run: Run) -> Stream:
        return in_one_order(self._ahead(state, run), lambda: self.spec)  # a file may have its columns in another one

    def _ahead(self, state: State, run: Run) -> Stream:
        past_errors = run.goes_past(self.known.errors_of_records)
        if self.known.in_portions and not (past_errors and self.known.resumes):
            return portions_ahead(portions_in(self._places(state, run), self._portions(run), run), run, self.pace)
        if self.known.reads:
            return blocks_ahead(lambda aside: self._read(state, aside), run, self.pace)
        return self._read(state, run)

    def _read(self, state: State, run: Run) -> Stream:
        past = self._past if run.goes_past(self.known.errors_of_records) else None
        return blocks_in(self._places(state, run), self._blocks(run), run, past, one_version=self.known.one_version)

    def _past(self, path: str, position: Position | None) -> Position | None:
        return self.format.past(path, position)


@dataclass(frozen=True, eq=False)
class Reader(FileReader):
    """The records of each file that `input` names, one file after the other.

    Shapes: those of the format. State: which name, and the reader's position in that file.

    Args:
      given: how a file is read.
      table: the files as they were listed, which must not have changed since; None if they were not listed.
      group: how many rows are wanted together; blocks should end at the borders of such groups.
      on_error: None if the options of the pipeline say what happens to what cannot be read.

    Source: `tf.data.TextLineDataset` and similar datasets over a dataset of names.
    """

    reads_files: ClassVar[bool] = True
    input: Node
    given: Format | LaterFormat
    table: FileTable | None = field(default=None, repr=False)
    group: int = 1
    on_error: Any = field(default="raise", repr=False)

    def __post_init__(self) -> None:
        spec = self.input.spec
        if not spec.structure.is_leaf or spec.leaves[0] != _NAME:
            raise TypeError(f"{self.op}: filenames must be strings, got {spec.nest}")

    def reading_as(self, changed: Format) -> "Reader":
        return replace(self, given=changed)

    @cached_property
    def format(self) -> Format:  # type: ignore[override]  # nobody sets it
        """How a file is read."""
        return self.given.argument_of_states if isinstance(self.given, LaterFormat) else self.given

    @property
    def known(self) -> Format:
        return self.given.known if isinstance(self.given, LaterFormat) else self.given

    def arguments(self) -> dict[str, Any]:
        found = super().arguments()
        del found["given"]
        return {"format": self.known, **found}

    @cached_property
    def identity(self) -> dict[str, Any]:
        _ = self.format
        return super().identity

    @cached_property
    def spec(self) -> Spec:
        if not self.format.spec_from_file:
            return self.format.spec(None)
        with telling_format(self.format, lambda: self._first_name):
            return self.format.spec(self._first_name)

    @cached_property
    def _first_name(self) -> str:
        name = next(paths_of(self.input), None)
        if name is None:
            raise NotFoundError(f"{self.format.name}: there is no file that shows what its records look like")
        return name

    @cached_property
    def counts(self) -> Counts | None:
        """The files of the first pass; None if their rows cannot be counted without reading them.

        Nor can those of a file that is damaged. Where such are left out, that is found, and told, once reading gets there.
        """
        names = self._names_of_pass(0)
        if names is None:
            return None
        ends = [0]
        try:
            with telling_format(self.format, lambda: names[0]):
                for rows in ask_each(self.format.rows, names):
                    if rows is None:
                        return None
                    ends.append(ends[-1] + rows)
        except (*DAMAGE, NotFoundError):
            if self.on_error in (None, "raise"):
                raise
            return None
        return names, np.asarray(ends, np.int64)

    def _names_of_pass(self, epoch: int) -> tuple[str, ...] | None:
        """The files of one pass in their order; None if their rows are not to be counted."""
        n = self.input.cardinality
        if not self.format.counts_rows or not self.input.random_access or n < 0:
            return None
        return tuple([_path(name) for name in self.input.fetch(np.arange(n), epoch).elements()])

    @property
    def uncounted(self) -> str | None:
        """The first file of which the records cannot be counted, though those of others of its format can; None: none."""
        names = self._names_of_pass(0) if self.counts is None else None
        return next((name for name in names or () if self.format.rows(name) is None), None)

    def counts_in(self, epoch: int) -> Counts | None:
        """`counts` in the order of the files in one pass, since their names may be shuffled anew for each pass."""
        if self.counts is None or epoch == 0:
            return self.counts
        return self._counts_of_pass.of(epoch, partial(self._counted, self.counts, epoch))

    _counts_of_pass = once(Latest[int, Counts])

    def _counted(self, counts: Counts, epoch: int) -> Counts:
        names = self._names_of_pass(epoch)
        assert names is not None
        if names == counts[0]:
            return counts
        rows = dict(zip(counts[0], np.diff(counts[1]).tolist(), strict=True))
        return names, np.cumsum([0, *[rows[name] for name in names]], dtype=np.int64)

    @property
    def cardinality(self) -> int:
        if not self.format.states_cardinality:
            return UNKNOWN
        counts = self.counts
        return UNKNOWN if counts is None else int(counts[1][-1])

    def count_elements(self) -> int:
        counts = self.counts
        return self._listed_rows() if counts is None else int(counts[1][-1])

    def _listed_rows(self) -> int:
        """The number of records in the given files, if a manifest tells it."""
        table, n = self.table, self.input.count_elements()
        if table is None or table.rows is None or n < 0:
            return n if n == INFINITE else UNKNOWN
        total = 0
        for path in paths_of(self.input):
            index = table.index(path)
            rows = -1 if index < 0 else int(table.rows[index])
            if rows < 0:
                return UNKNOWN
            total += rows
        return total

    def for_groups(self, size: int) -> Node | None:
        if self.group > 1 or size < 2:
            return None
        made = replace(self, group=size)
        if "counts" in self.__dict__:  # for the check of what was counted
            made.__dict__["counts"] = self.counts
        return made.same_as(self)

    def file_facts(self) -> dict[str, Any]:
        names = {} if self.names is None else {**self.names.words, **self._remote_stamps}
        return {**names, **self.format.version_facts()}

    @cached_property
    def names(self) -> NamesFingerprint | None:
        """The names of a few remote files; the source knows the local ones, but not that these names are opened as files."""
        source = self.input
        while isinstance(source, SameElements):
            source = source.input
        if not isinstance(source, Slices) or source.names is not None or not 0 < source.cardinality <= MOST_REMOTE:
            return None
        (texts,) = source.block.columnar().columns
        found = NamesFingerprint(texts) if isinstance(texts, Strings) else None
        return found if found is not None and found.remote else None

    @cached_property
    def _remote_stamps(self) -> dict[str, Any]:
        return self.names.stamps() if self.names is not None else {}

    @cached_property
    def gathers(self) -> bool:
        """Whether any records can be fetched without reading others."""
        if not self.format.maps or not self.counts:
            return False
        return len(self.counts[0]) > 0 and all(map(self.format.gathers, self.counts[0]))

    @property
    def random_access(self) -> bool:
        return self.gathers

    @cached_property
    def may_fail(self) -> bool:
        return not self.gathers or self.input.may_fail  # what is mapped hardly ever fails

    @property
    def fetches(self) -> bool:
        return self.format.fetches and self.counts is not None

    @property
    def fetches_few(self) -> bool:
        """Whether one record is fetched with less work than a large part of its file, as far as the first file tells."""
        with suppress(Exception), self._recent.of(self._first_name):  # which `fetch` raises
            return self.format.fetches_few(self._first_name)
        return True

    def fetch(self, rows: Ints, epoch: int) -> Block:
        counts = self.counts_in(epoch)
        assert counts is not None
        names, ends = counts
        sources = self._mapped(names, ends).sources(rows) if self.gathers else None
        if sources is not None:
            return ColumnBlock(self.spec.structure, [chosen(source, rows) for source in sources], len(rows))
        if len(names) == 1:
            return self._fetch(names[0], rows)
        files = np.searchsorted(ends, rows, "right") - 1
        # Some formats read on from one row to the next, so the rows of a file must ascend; mapped formats do not need that.
        order = np.argsort(files.astype(np.uint16) if self.gathers and len(names) < 1 << 16 else rows, kind="stable")
        cuts = np.searchsorted(files[order], np.arange(len(names) + 1))
        parts, places = [], []
        for file in np.flatnonzero(np.diff(cuts)).tolist():
            places.append(order[cuts[file] : cuts[file + 1]])
            parts.append(self._fetch(names[file], rows[places[-1]] - ends[file]))
        return put_in_order(parts, places) if parts else self._fetch(names[0], rows)

    def _fetch(self, path: str, rows: Ints) -> Block:
        with self._recent.of(path):
            self._check(path)
            return self.format.fetch(path, rows).built_as(self.spec.structure)

    def _check(self, path: str) -> None:
        """Refuse a file that is not as it was listed, or whose records differ in kind from those of the first file."""
        if self.table is not None:
            self.table.check(self.table.index(path))
        if path not in self._alike:
            self.format.check_spec(path, self.spec)
            self._alike.add(path)

    def _check_count(self, path: str) -> None:
        """Refuse a file that has another number of records than when they were counted."""
        if self.__dict__.get("counts") is None:
            return
        counted = self._rows_counted.get(path)
        if counted is not None and (found := self.format.rows(path)) != counted:
            raise DataLossError(
                f"{path}: had {counted} records when they were counted, and has {found}: it was changed; make the dataset "
                "again to read it as it is now"
            )

    @cached_property
    def _rows_counted(self) -> dict[str, int]:
        assert self.counts is not None
        return dict(zip(self.counts[0], np.diff(self.counts[1]).tolist(), strict=True))

    def _mapped(self, names: tuple[str, ...], ends: Ints) -> MappedFiles:
        """The mapped files in this order, joined once for all fetches."""
        return self._mapped_files.of(names, lambda: MappedFiles(self.format, names, ends, self._check))

    _mapped_files = once(Latest[tuple[str, ...], MappedFiles])

    _recent = once(RecentStamps)
    """The stamps of files whose rows are fetched, again and again."""

    _alike = once(set[str])
    """Files whose records are known to be of the same kind as those of the first file."""

    def start_at(self, row: int, epoch: int) -> State | None:
        counts = self.counts_in(epoch)
        if counts is None:
            return None
        names, ends = counts
        index = min(int(np.searchsorted(ends, row, side="right")) - 1, len(names))
        at = self.input.start_at(index, epoch)
        if at is None:
            return None
        position = self.format.seek(names[index], row - int(ends[index])) if index < len(names) else None
        return {"input": at, "skip": 0, "position": position}

    def place_of(self, state: State, ahead: int) -> dict[str, Any] | None:
        position = state["position"]
        with Run() as run:
            queue = RowQueue(self.input.open(state["input"], run), state)
            while queue.fill(1):
                path = _path(queue.take(1).row(0))
                row = (position or {"row": 0})["row"] + ahead
                if ahead < 0:
                    return {"file": path, "row": row} if row >= 0 else None
                left = self._left.of((path, str(position)), partial(Follows, self.format, path, position))
                if left.at_least(ahead + 1):
                    return {"file": path, "row": row}
                ahead -= left.rows
                position = None
        return None

    _left = once(Latest[tuple[str, str], Follows])

    @property
    def is_small(self) -> bool:
        """Whether it reads one small local file."""
        source = self.input
        return (
            isinstance(source, Slices)
            and source.cardinality == 1
            and _small_bytes(_path(source.block.row(0))) is not None
        )

    @property
    def plain(self) -> bool:
        """Whether files are read without a look at what others hold, and by this thread."""
        return self.format.reads and not self.format.in_portions and not self.format.spec_from_file

    def small_bytes(self, name: bytes) -> int | None:
        """The size of another file, if it is small, and is compressed as its only one is, if their names tell that."""
        path, auto = os.fsdecode(name), getattr(self.format, "compression_type", "AUTO") == "AUTO"
        return _small_bytes(path) if auto or codec_of_suffix(path) == self._first_codec else None

    @cached_property
    def _first_codec(self) -> Compression:
        return codec_of_suffix(self._first_name)

    def other(self, path: str, run: Run, given: int, alone: Callable[[], Node]) -> Stream:
        """The records of another file than its only one, with the states of a reader of that file.

        Args:
          path: the file.
          run: in which nothing is tolerated.
          given: see `Format.read_groups`.
          alone: makes a reader of that file, which says what goes wrong.
        """
        place: ReadingPlace = {"path": path, "position": None}
        state: State = {**self.start(0)}
        with suppress(Exception):
            if self.table is not None:
                self.table.check(self.table.index(path))
            blocks = self.format.read_groups(path, None, self.group, given)
            for block, after in blocks if run.asked.room is None else begun_within(run.room, blocks):
                run.reading = partial(_told, place := {**place, "position": after})
                state = {**state, "position": after}
                yield block, state
            return
        yield from alone().open(state, run)

    def _places(self, state: State, run: Run) -> Iterator[tuple[Mark, ReadingPlace]]:
        """The mark of each name, and where to begin in its file; checks the file against the list and the first file."""
        queue = RowQueue(self.input.open(state["input"], run), state)
        with ExitStack() as stack:
            in_order, told = self.known.from_front, self.known.spec_from_file
            beginnings = AskedAhead(begun, BEGINNING_LASTS, run, stack) if in_order else None
            stamps = AskedAhead(self._stamp_ahead, STAMP_LASTS, run, stack, always=True) if told else None

            def opened(name: Any, position: Position | None) -> ReadingPlace:
                path, stamp = _path(name), None
                place: ReadingPlace = {"path": path, "position": position, "last": in_order and not queue.size}
                if self.table is not None:
                    self.table.check(self.table.index(path))
                run.reading = partial(_told, place)
                if local_path(path) is None:
                    following = queue.peek(min(queue.size, FILES_AHEAD)).elements() if queue.size else ()
                    names = [_path(each) for each in following]
                    if stamps is not None:
                        stamp = stamps.of(path, names) or stamp_of(path)
                    if beginnings is not None:
                        place["begun"] = beginnings.of(path, names)
                place["stamp"] = stamp
                with stamped(path, stamp):
                    place["stated_rows"] = self.format.stated_rows
                    if self.format.wants(path):
                        self.format.check_spec(path, self.spec)
                    self._check_count(path)
                return place

            yield from places(queue, state, run, opened)

    def _stamp_ahead(self, path: str) -> str | None:
        """The stamp of a file that is read soon, after a look at what tells its records; None if it cannot be had."""
        with suppress(Exception):
            stamp = stamp_of(path)
            with stamped(path, stamp), suppress(Exception):
                if self.format.wants(path):
                    self.format.spec(path)
            return stamp
        return None

    def _blocks(self, run: Run) -> Callable[[ReadingPlace], PlacedBlocks]:
        rows, groups = self.group if run.asked.later else 0, -1
        memory = Adjoining() if self.group > 1 and run.asked.room is None else None

        def read(place: ReadingPlace) -> PlacedBlocks:
            nonlocal rows, groups
            if memory is not None and groups < rows // self.group:
                groups = rows // self.group
                memory.part()
            blocks = self.format.read_groups(place["path"], place["position"], self.group, rows)
            begun, requested = place.pop("begun", None), run.asked.requested if place.pop("last", False) else None
            path, stamp = place["path"], place["stamp"]
            if (stamp, begun, requested, run.asked.room) != (None,) * 4:
                with stamped(path, stamp), beginning_with(path, begun), telling(requested), within(*run.room):
                    first = next(blocks, None)
                blocks = chain(iter([] if first is None else [first]), blocks)  # lets go of it when it is used up
                del begun, first  # their memory is not held while the rest is read
            elif memory is not None:
                with lying_in(memory):
                    first = next(blocks, None)
                blocks = chain(iter([] if first is None else [first]), blocks)
                del first
            for block, after in blocks:
                rows += block.size
                yield block, after

        return read

    def _portions(self, run: Run) -> Callable[[ReadingPlace], Iterator[Portion]]:
        rows = 0

        def read(place: ReadingPlace) -> Iterator[Portion]:
            nonlocal rows
            path, begun = place["path"], place.pop("begun", None)
            portions = self.format.portions(path, place["position"], None, self.group, rows)
            with stamped(path, place["stamp"]), beginning_with(path, begun), within(*run.room):
                first = next(portions, None)
            portions = chain(iter([] if first is None else [first]), portions)
            del begun, first  # as in `_blocks`
            for portion in portions:
                rows += portion.rows
                yield portion

        return read


def paths_of(names: Node) -> Iterator[str]:
    """The files that a step names in its first pass."""
    if type(names) is Slices:
        yield from map(_path, names.block.elements())
        return
    with Run() as run:
        for block, _ in names.open(names.start(0), run):
            for name in block.elements():
                yield _path(name)


_SMALL_BYTES = 4 << 20
"""A file of at most so many bytes is read in turn, as long as that is quick."""


def _small_bytes(path: str) -> int | None:
    """The size of a small local file; None: it is none."""
    local = local_path(path)
    try:
        status = None if local is None else os.stat(local)
    except OSError:  # said when it is read
        return None
    if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > _SMALL_BYTES:
        return None
    return status.st_size


def _told(place: ReadingPlace) -> str:
    return f"{place['path']} at {place['position'] or 'its beginning'}"


def _path(name: Any) -> str:
    if not isinstance(name, bytes | str):  # `as_text` makes `str`
        raise InvalidArgumentError(f"a file name must be a scalar string, got {name!r}")
    return os.fsdecode(name)


_NAME = Spec.leaf((), object).leaves[0]


# ----------------------------------------------------------------------------
# Arguments of readers, each of which is an op behind the reader.
# ----------------------------------------------------------------------------


_HANDED_OUT: dict[str, dict[str, Callable[[Node], Node] | None]] = {
    "decimals": {"text": None, "decimal": AsDecimal, "float64": partial(AsDecimal, dtype="float64")},
    "nested": {"columns": None, "rows": AsRows},
    "text": {"bytes": None, "str": AsText},
}
"""By argument and value, the op; in the order in which they are added, since text that became a decimal is none."""


def handed_out(reader: Node, **arguments: str) -> Node:
    """A reader, and behind it the ops that its arguments say.

    Args:
      reader: whose elements are columns, text that is bytes, and decimals that are text.
      **arguments: `text`, `nested`, `decimals`.

    Raises:
      InvalidArgumentError: an argument has no such value.

    >>> from distinput.ops.slices import from_tensor_slices
    >>> handed_out(from_tensor_slices(["a"]), text="str").op
    'as_text'
    """
    for name, steps in _HANDED_OUT.items():
        value = arguments.get(name, next(iter(steps)))
        if not isinstance(value, str) or value not in steps:
            raise InvalidArgumentError(f"{name} cannot be {value!r}, {meant(str(value), list(steps), 'it is one of')}")
        step = steps[value]
        reader = reader if step is None else step(reader)
    return reader
