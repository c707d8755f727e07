# SPDX-License-Identifier: Apache-2.0
"""A file that elements are written to, until it is complete; small blocks are joined first."""

from distinput.core.block import Block, concat_blocks
from distinput.core.sizes import MOST_ROWS
from distinput.core.spec import Spec
from distinput.files.sink import Sink
from distinput.writers.manifest import WrittenFile
from distinput.writers.stage import Stage
from distinput.writers.writer import Writer

__all__ = ["OpenFile"]

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
        """Complete the file and give it its name."""
        if self._blocks:
            self._put()
        self._file.finish()
        self._sink.close()
        assert self._sink.crc32 is not None
        return WrittenFile(self.name, self.rows, self._sink.size, self._sink.crc32)

    def discard(self) -> None:
        """Leave nothing of it; may be called again, and does nothing after `end`."""
        self._blocks.clear()
        self._file.discard()
        self._sink.discard()

    def _put(self) -> None:
        blocks, self._blocks = self._blocks, []
        self._waiting = self._waiting_rows = 0
        self._file.write(concat_blocks(blocks))
