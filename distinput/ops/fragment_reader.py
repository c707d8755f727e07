# SPDX-License-Identifier: Apache-2.0
"""`fragments` and `fragment_reader`: the records of fragments, which are parts of files."""

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from distinput.columns.column import Ints
from distinput.columns.rows import RowQueue
from distinput.columns.state import Digest, Mark, State, common_folder, texts_of
from distinput.errors import NotFoundError
from distinput.files.manifest import NamesFingerprint
from distinput.files.source import begun_within
from distinput.formats.format import END, Format, Fragment, Fragments, PlacedBlocks, Portion, Position
from distinput.names.lazy import dataclass
from distinput.ops.range import Range
from distinput.ops.reader import FileReader
from distinput.plan.node import INFINITE, UNKNOWN, Latest, Node, once
from distinput.run.run import Run
from distinput.streaming.ahead import DAMAGE, ReadingPlace, places
from distinput.values.spec import Spec


@dataclass(frozen=True, eq=False)
class FragmentNumbers(Range):
    """The numbers of some fragments, from 0 on.

    Args:
      fragments: the fragments; a state of the pipeline is valid only for these.
    """

    indifferent: ClassVar[frozenset[str]] = frozenset({"parts"})  # their reader tells them
    op: ClassVar[str] = "fragments"
    fragments: Fragments | None = None

    @staticmethod
    def of(fragments: Fragments) -> "FragmentNumbers":
        """The numbers of all fragments."""
        return FragmentNumbers(0, len(fragments), fragments=fragments)

    def arguments(self) -> dict[str, Any]:
        return {"parts": self.fragments}


@dataclass(frozen=True, eq=False)
class FragmentReader(FileReader):
    """The records of the fragments whose numbers `input` gives, one fragment after the other.

    Shapes: those of the format. State: which number, and the reader's position in the file of that fragment.

    Args:
      fragments: the fragments.
      format: how their files are read.
      example: a file that shows what records look like if there is no fragment; None: there is no file at all.
      on_error: as the reader of the whole files has it; with anything but "raise", files that cannot be counted are left out.
    """

    indifferent: ClassVar[frozenset[str]] = frozenset({"parts"})  # told by `contents`, names and places apart
    input: Node
    fragments: Fragments
    format: Format
    example: str | None = None
    on_error: Any = field(default="raise", repr=False)

    def arguments(self) -> dict[str, Any]:
        return {"parts": self.fragments}

    def contents(self) -> dict[str, Any]:
        fragments, names = self.fragments, texts_of(self.fragments.files.names)
        cut = len(common_folder(names))
        values, under = Digest(), Digest()
        for digest, texts in ((values, names), (under, [name[cut:] for name in names])):
            for part in (fragments.file, fragments.start, fragments.stop):
                digest.array(part)
            digest.texts(texts)
        words = {"format": Digest().add(str(self.format)).word, "values": values.word, "under": under.word}
        return {**words, **self.names.words}

    def file_facts(self) -> dict[str, Any]:
        return {**self.names.stamps(), **self.format.version_facts()}

    @cached_property
    def names(self) -> NamesFingerprint:
        """The files of the fragments, as they were listed if versions were."""
        files = self.fragments.files
        return NamesFingerprint(files.names, None if files.stamps is None else files)

    @cached_property
    def spec(self) -> Spec:
        path = self.fragments.path(0) if len(self.fragments) else self.example
        if path is None and self.format.spec_from_file:
            raise NotFoundError(f"{self.format.name}: there is no file that shows what its records look like")
        return self.format.spec(path)

    def reading_as(self, changed: Format) -> "FragmentReader":
        return replace(self, format=changed)

    @cached_property
    def rows(self) -> Ints | None:
        """The records of each fragment; None if they cannot be counted without reading."""
        rows = self.fragments.rows.copy()
        if not self.format.counts_rows:
            return None if (rows < 0).any() else rows
        for number in np.flatnonzero(rows < 0).tolist():
            try:
                whole = self.format.rows(self.fragments.path(number))
            except (*DAMAGE, NotFoundError):
                if self.on_error == "raise":
                    raise
                return None  # the file is left out once reading gets there
            if whole is None:
                return None
            stop = int(self.fragments.stop[number])
            rows[number] = (whole if stop == END else stop) - self.fragments.start[number]
        return rows

    def _ends(self, epoch: int) -> Ints | None:
        """For each number of the input, where its records end among those of all, in one pass."""
        if not self.input.random_access or self.input.cardinality < 0 or self.rows is None:
            return None
        return self._ends_of_pass.of(epoch, partial(self._summed, self.rows, epoch))

    _ends_of_pass = once(Latest[int, Ints])

    def _summed(self, rows: Ints, epoch: int) -> Ints:
        block = self.input.fetch(np.arange(self.input.cardinality), epoch)
        return np.cumsum(rows.take(np.fromiter(block.elements(), np.int64, block.size)), dtype=np.int64)

    @property
    def cardinality(self) -> int:
        ends = self._ends(0) if self.format.states_cardinality else None
        if ends is None:
            return UNKNOWN
        return int(ends[-1]) if len(ends) else 0

    def count_elements(self) -> int:
        n = self.input.count_elements()
        if self.rows is None or n == UNKNOWN:
            return UNKNOWN
        if 0 <= n < len(self.rows):  # some of the parts
            ends = self._ends(0)
            return UNKNOWN if ends is None else int(ends[-1]) if n else 0
        # Other ops over the numbers give all of them, once or again and again.
        total = int(self.rows.sum())
        return total and INFINITE if n == INFINITE else total * (n // max(1, len(self.rows)))

    def start_at(self, row: int, epoch: int) -> State | None:
        ends = self._ends(epoch)
        if ends is None:
            return None
        index = int(np.searchsorted(ends, row, "right"))
        at = self.input.start_at(index, epoch)
        if at is None or index == len(ends):
            return None if at is None else {"input": at, "skip": 0, "position": None}
        number = int(next(iter(self.input.fetch(np.array([index]), epoch).elements())))
        over = row - (int(ends[index - 1]) if index else 0)
        position = None
        if over:
            position = self.format.seek(self.fragments.path(number), int(self.fragments.start[number]) + over)
            if position is None:
                return None
        return {"input": at, "skip": 0, "position": position}

    def place_of(self, state: State, ahead: int) -> dict[str, Any] | None:
        position = state["position"]
        with Run() as run:
            queue = RowQueue(self.input.open(state["input"], run), state)
            while queue.fill(1):
                fragment = self.fragments.fragment(int(queue.take(1).row(0)), self.format)
                start = position or fragment.start
                if "row" not in fragment.start:  # rows are counted from the beginning of the fragment
                    return {"file": fragment.path, "row": None}
                stop = (fragment.stop or {}).get("row")  # a part of a text file ends at a byte
                ended = any(start.get(unit, -1) >= place for unit, place in (fragment.stop or {}).items())
                over = partial(_ended, self.format, fragment, start)
                row = start["row"] + ahead
                if ahead < 0:
                    return {"file": fragment.path, "row": row} if row >= 0 else None
                if not (ended or self._over.of(str((fragment, start)), over)):
                    if stop is not None and row >= stop:
                        ahead -= stop - start["row"]
                    elif stop is None and ahead and not self._within(fragment.path, row):
                        return None
                    else:
                        return {"file": fragment.path, "row": row}
                position = None
        return None

    def _within(self, path: str, row: int) -> bool:
        """Whether a file is known to have that record."""
        try:
            rows = self.format.rows(path) if self.format.counts_rows else None
        except (*DAMAGE, OSError):
            return False
        return rows is not None and row < rows

    _over = once(Latest[str, bool])

    def _places(self, state: State, run: Run) -> Iterator[tuple[Mark, ReadingPlace]]:
        """The mark of each number, and where to begin in its fragment; checks that the file is as it was listed."""

        def opened(value: Any, position: Position | None) -> ReadingPlace:
            number = int(value)
            fragment = self.fragments.fragment(number, self.format)
            self.fragments.files.check(int(self.fragments.file[number]))
            place: ReadingPlace = {"path": fragment.path, "position": position or fragment.start, "fragment": fragment}
            place["stated_rows"] = self.format.stated_rows
            run.reading = partial("{path} at {position}".format_map, place)
            self.format.check_spec(fragment.path, self.spec)
            return place

        return places(RowQueue(self.input.open(state["input"], run), state), state, run, opened)

    def _blocks(self, run: Run) -> Callable[[ReadingPlace], PlacedBlocks]:
        return lambda place: begun_within(run.room, self.format.read_fragment(place["fragment"], place["position"]))

    def _portions(self, run: Run) -> Callable[[ReadingPlace], Iterator[Portion]]:
        portions = self.format.portions
        return lambda place: begun_within(
            run.room, portions(place["path"], place["position"], place["fragment"].stop, 1, 0)
        )


def _ended(format: Format, fragment: Fragment, position: Position) -> bool:
    """Whether no record of a fragment follows a position."""
    return fragment.stop is None and format.ends_at(fragment.path, position)
