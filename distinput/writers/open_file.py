# SPDX-License-Identifier: Apache-2.0
"""Files that elements are written to: where they end, the open one, and those that a pass keeps or deals to."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from distinput.columns.block import MOST_ROWS, Block, balanced_slice, concat_blocks, rows_within
from distinput.errors import InvalidArgumentError
from distinput.files.sink import Sink
from distinput.functions.chain import calling
from distinput.names.lazy import dataclass
from distinput.plan.check import at_least, normalized
from distinput.run.run import called_once, note_element
from distinput.values.spec import Spec
from distinput.writers.manifest import WrittenFile
from distinput.writers.stage import Stage
from distinput.writers.writer import Writer

# ----------------------------------------------------------------------------
# Where files end: how many elements go into each.
# ----------------------------------------------------------------------------


SHARD_BYTES = 256 << 20
"""The size at which a file ends, if nothing else was asked for."""


MOST_SHARDS = 1 << 20
"""The most files that are asked for by their number: each is made, also the empty ones."""


@dataclass(frozen=True)
class Cut:
    """How elements are cut into files.

    Args:
      shards: so many files, of as many elements each; None: as many as are needed.
      shard_bytes: about so many bytes a file; None: `SHARD_BYTES`, or no limit where one of the others is given.
      shard_rows: so many elements a file.

    Raises:
      InvalidArgumentError: more than one of them is given, one is less than 1, or there are more than `MOST_SHARDS` files.
    """

    shards: int | None = None
    shard_bytes: int | None = None
    shard_rows: int | None = None

    def __post_init__(self) -> None:
        given = {name: value for name, value in vars(self).items() if value is not None}
        if len(given) > 1:
            raise InvalidArgumentError(f"write: give one of {' and '.join(given)}, since each says where files end")
        for name, value in given.items():
            normalized(self, name, at_least("write", name, value, 1))
        if self.shards is not None and self.shards > MOST_SHARDS:
            raise InvalidArgumentError(
                f"write: shards must be at most {MOST_SHARDS:,}, got {self.shards:,}: a file is made for each; give fewer, or "
                "the size of a file with shard_rows= or shard_bytes="
            )

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
        return int(part.stop - part.start)

    @property
    def bytes(self) -> int:
        """At how many bytes a file ends, where rows do not decide."""
        return self.shard_bytes or SHARD_BYTES


# ----------------------------------------------------------------------------
# A file that elements are written to, until it is complete; small blocks are joined first.
# ----------------------------------------------------------------------------


_TOGETHER_BYTES = 1 << 20
"""Blocks are joined up to so many bytes: each one that is written costs some Python, and some of the file."""


class OpenFile:
    """One file under way.

    Args:
      stage: where it is written.
      writer: of its format.
      spec: of the elements.
      name: of the file.
      first: how many elements come before it.
    """

    def __init__(self, stage: Stage, writer: Writer, spec: Spec, name: str, first: int) -> None:
        self.name, self.rows = name, 0
        self._stage, self._writer = stage, writer
        self._blocks: list[Block] = []
        self._waiting = self._waiting_rows = 0
        self._sink = Sink(stage.path(name), writer.compression, checksum=True, own=True)
        try:
            self._file = writer.open(self._sink, spec, first)
        except BaseException:
            self._sink.discard()
            raise

    @property
    def size(self) -> int:
        """Bytes so far, about."""
        return self._sink.size + self._file.held + self._waiting

    def write(self, block: Block) -> None:
        """Append elements. After an error, discard the file."""
        if not block.size:
            return
        self._blocks.append(block)
        self._waiting += block.nbytes
        self._waiting_rows += block.size
        self.rows += block.size
        if self._waiting >= _TOGETHER_BYTES or self._waiting_rows >= MOST_ROWS:
            self._put()

    def end(self) -> WrittenFile:
        """Complete the file, and the one beside it, and give them their names."""
        if self._blocks:
            self._put()
        self._file.finish()
        self._sink.close()
        beside = None
        if self._writer.beside:
            name = self.name.removesuffix(self._writer.ending) + self._writer.beside
            with Sink(self._stage.path(name), checksum=True, own=True) as sink:
                sink.write(self._file.beside())
            beside = _written(name, 0, sink)
        return _written(self.name, self.rows, self._sink, beside)

    def discard(self) -> None:
        """Leave nothing of it; may be called again, and does nothing after `end`."""
        self._blocks.clear()
        self._file.discard()
        self._sink.discard()

    def _put(self) -> None:
        blocks, self._blocks = self._blocks, []
        self._waiting = self._waiting_rows = 0
        self._file.write(concat_blocks(blocks))


def _written(name: str, rows: int, sink: Sink, beside: WrittenFile | None = None) -> WrittenFile:
    assert sink.crc32 is not None
    return WrittenFile(name, rows, sink.size, sink.crc32, beside)


# ----------------------------------------------------------------------------
# The files that a pass writes on its way, block by block: for a cache or a snapshot, or to go on from if it is interrupted.
# ----------------------------------------------------------------------------


_MOST_OPEN = 512
"""Files that may be open at a time."""


class NumberedFiles(ABC):
    """Files under way, each with a number.

    Args:
      who: the method, for error messages.
    """

    def __init__(self, who: str = "") -> None:
        self._who = who
        self._open: dict[int, OpenFile] = {}

    @abstractmethod
    def _begin(self, number: int) -> OpenFile:
        """A file of this number."""

    @property
    def _held(self) -> int:
        """Bytes in open files, about."""
        return sum(file.size for file in self._open.values())

    def file(self, number: int) -> OpenFile:
        """The open file of this number.

        Raises:
          InvalidArgumentError: too many are open.
        """
        if number not in self._open:
            if len(self._open) >= _MOST_OPEN:
                raise InvalidArgumentError(
                    f"{self._who}shard_func may name {_MOST_OPEN} files, which are open at once; it named more"
                )
            self._open[number] = self._begin(number)
        return self._open[number]

    def deal(self, shard_func: Callable[..., Any], block: Block) -> None:
        """Append each element to the file that a function names."""
        numbers = file_numbers(shard_func, block)
        for number in np.unique(numbers).tolist():
            self.file(number).write(block.take(np.flatnonzero(numbers == number)))

    def discard(self) -> None:
        """Leave nothing of the files that are not complete; may be called again."""
        for file in self._open.values():
            file.discard()
        self._open.clear()


KEPT = re.compile(r"elements-[0-9a-f]{8}-\d{5}\.arrow")
"""The names of the files."""

_MOST_OF_A_BLOCK = 2
"""How many times too large a file must be to end within a block: files that end with one can be gone on after."""


class KeptFiles(NumberedFiles):
    """Files that hold the elements of a pass so far.

    Args:
      stage: where they are written.
      writer: of exact elements.
      spec: of the elements.
      shard_func: element -> the number of its file; None: one file after the other, of 256 MiB.
      done: complete files of an interrupted pass, after which this one goes on.
      word: what the names of the files begin with.
    """

    def __init__(
        self,
        stage: Stage,
        writer: Writer,
        spec: Spec,
        shard_func: Callable[..., Any] | None = None,
        done: Iterable[WrittenFile] = (),
        word: str = "elements",
    ) -> None:
        super().__init__()
        self._stage, self._writer, self._spec, self._shard_func = stage, writer, spec, shard_func
        self._word = word
        self._done = list(done)

    @property
    def size(self) -> int:
        """Bytes so far, about."""
        return sum(file.bytes for file in self._done) + self._held

    def write(self, block: Block) -> None:
        """Append elements."""
        step = rows_within(block.size, block.nbytes)
        for begin in range(0, block.size, step):
            part = block.rows(begin, begin + step)
            if self._shard_func is None:
                if begin and self._held >= _MOST_OF_A_BLOCK * SHARD_BYTES:
                    self.end()
                self.file(len(self._done)).write(part)
                continue
            self.deal(self._shard_func, part)

    def cut(self) -> tuple[WrittenFile, ...] | None:
        """End the open file if it is large enough; then all files, of all blocks so far. Where a function deals: None."""
        if self._shard_func is not None or self._held < SHARD_BYTES:
            return None
        return self.end()

    def end(self) -> tuple[WrittenFile, ...]:
        """Complete all files, at least one."""
        if not self._done and not self._open:
            self.file(0)
        self._done += [self._open[number].end() for number in sorted(self._open)]
        self._open.clear()
        return tuple(self._done)

    def _begin(self, number: int) -> OpenFile:
        name = f"{self._word}-{self._stage.run}-{number:05d}{self._writer.ending}"
        return OpenFile(self._stage, self._writer, self._spec, name, 0)


def file_numbers(shard_func: Callable[..., Any], block: Block) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The numbers of the files that elements go to.

    Raises:
      InvalidArgumentError: one of them is none.
    """
    call, numbers = calling(shard_func), np.empty(block.size, np.int64)
    for place, element in enumerate(block.elements()):
        try:
            value = called_once(call, element)
            if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 0:
                raise InvalidArgumentError(
                    f"shard_func must return the number of a file, an integer from 0 on, got {value!r}"
                )
        except Exception as error:
            note_element(error, element)
            raise
        numbers[place] = value
    return numbers


# ----------------------------------------------------------------------------
# Files that a function deals elements to, all open at a time; now and then all of them end together and others begin.
#
# What has ended needs not be written again after an interruption, so that a dataset is not lost at its last element.
# ----------------------------------------------------------------------------


_MOST_SMALL = 16
"""How many times smaller than a file by itself a piece may be in the mean."""


class Pieces(NumberedFiles):
    """The pieces of numbered files.

    Args:
      who: the method, for error messages.
      begin: the number of a file and that of its piece -> the piece, open.
      most_bytes: about so many bytes are in pieces that end together, and more if there are many.
      ended: complete pieces, in the order in which they ended.
      numbers: the number of the file of each of these.
    """

    def __init__(
        self,
        who: str,
        begin: Callable[[int, int], OpenFile],
        most_bytes: int,
        ended: Iterable[WrittenFile] = (),
        numbers: Iterable[int] = (),
    ) -> None:
        super().__init__(f"{who}: ")
        self._piece, self._most = begin, most_bytes
        self.ended, self.numbers = list(ended), list(numbers)
        self._counts = Counter(self.numbers)

    @property
    def full(self) -> bool:
        """Whether the open pieces are worth ending."""
        most = self._most * max(1, len(self._open) / _MOST_SMALL)
        return bool(self._open) and self._held >= most

    def end(self) -> None:
        """Complete the open pieces; there is at least one in the end."""
        if not self._open and not self.ended:
            self.file(0)
        for number in sorted(self._open):
            self.ended.append(self._open[number].end())
            self.numbers.append(number)
            self._counts[number] += 1
        self._open.clear()

    def in_order(self) -> tuple[list[WrittenFile], list[int]]:
        """The complete pieces by the numbers of their files, and how many each file has."""
        order = sorted(range(len(self.ended)), key=self.numbers.__getitem__)
        return [self.ended[index] for index in order], [self._counts[number] for number in sorted(self._counts)]

    def _begin(self, number: int) -> OpenFile:
        return self._piece(number, self._counts[number])
