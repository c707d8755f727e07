# SPDX-License-Identifier: Apache-2.0
"""The files that a pass writes on its way, block by block: for a cache or a snapshot, or to go on from if it is interrupted."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.sizes import rows_within
from distinput.core.spec import Spec
from distinput.errors import InvalidArgumentError
from distinput.functions.convention import calling
from distinput.writers.cut import SHARD_BYTES
from distinput.writers.manifest import WrittenFile
from distinput.writers.open_file import OpenFile
from distinput.writers.stage import Stage
from distinput.writers.writer import Writer

__all__ = ["KEPT", "KeptFiles", "file_numbers"]

KEPT = re.compile(r"elements-[0-9a-f]{8}-\d{5}\.arrow")
"""The names of the files."""

_MOST_OPEN = 512
_MOST_OF_A_BLOCK = 2
"""How many times too large a file must be to end within a block: files that end with one can be gone on after."""


class KeptFiles:
    """Files under way.

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
        self._stage, self._writer, self._spec, self._shard_func = stage, writer, spec, shard_func
        self._word = word
        self._done = list(done)
        self._open: dict[int, OpenFile] = {}

    @property
    def size(self) -> int:
        """Bytes so far, about."""
        return sum(file.bytes for file in self._done) + self._held

    @property
    def _held(self) -> int:
        """Bytes in open files, about."""
        return sum(file.size for file in self._open.values())

    def write(self, block: Block) -> None:
        """Append elements."""
        step = rows_within(block.size, block.nbytes)
        for begin in range(0, block.size, step):
            part = block.rows(begin, begin + step)
            if self._shard_func is None:
                if begin and self._held >= _MOST_OF_A_BLOCK * SHARD_BYTES:
                    self.end()
                self._append(len(self._done), part)
                continue
            numbers = file_numbers(self._shard_func, part)
            for number in np.unique(numbers).tolist():
                self._append(number, part.take(np.flatnonzero(numbers == number)))

    def cut(self) -> tuple[WrittenFile, ...] | None:
        """End the open file if it is large enough; then all files, of all blocks so far. Where a function deals: None."""
        if self._shard_func is not None or self._held < SHARD_BYTES:
            return None
        return self.end()

    def end(self) -> tuple[WrittenFile, ...]:
        """Complete all files, at least one."""
        if not self._done and not self._open:
            self._file(0)
        self._done += [self._open[number].end() for number in sorted(self._open)]
        self._open.clear()
        return tuple(self._done)

    def discard(self) -> None:
        """Leave nothing of the files that are not complete; may be called again."""
        for file in self._open.values():
            file.discard()
        self._open.clear()

    def _append(self, number: int, part: Block) -> None:
        (self._open.get(number) or self._file(number)).write(part)

    def _file(self, number: int) -> OpenFile:
        if len(self._open) >= _MOST_OPEN:
            raise InvalidArgumentError(f"shard_func may name {_MOST_OPEN} files, which are all open; it named more")
        name = f"{self._word}-{self._stage.run}-{number:05d}{self._writer.ending}"
        self._open[number] = OpenFile(self._stage, self._writer, self._spec, name, 0)
        return self._open[number]


def file_numbers(shard_func: Callable[..., Any], block: Block) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The numbers of the files that elements go to.

    Raises:
      InvalidArgumentError: one of them is none.
    """
    call = calling(shard_func)
    found = [call(element) for element in block.elements()]
    for value in found:
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < 0:
            raise InvalidArgumentError(
                f"shard_func must return the number of a file, an integer from 0 on, got {value!r}"
            )
    return np.array(found, np.int64)
