# SPDX-License-Identifier: Apache-2.0
"""Text files: an element on each line."""

from typing import ClassVar

from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.files.sink import Sink
from distinput.values.leaves import STRING
from distinput.values.spec import Spec, TensorSpec
from distinput.writers.writer import CompressedWriter, ShardFile, refuse_nulls


class TextWriter(CompressedWriter):
    r"""Lines of text files: elements that are byte strings, each followed by "\n".

    A line with a line end in it, or with "\r" at its end, would be read as another one, and is refused.

    Args:
      compression: of the whole file: None, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4" or "SNAPPY".

    Raises:
      InvalidArgumentError: the compression is unknown.
    """

    name: ClassVar[str] = "text"
    suffix: ClassVar[str] = ".txt"

    def check(self, spec: Spec) -> None:
        refuse_nulls("text", spec.structure)
        if not spec.structure.is_leaf or spec.leaves[0] != TensorSpec((), STRING):
            raise InvalidArgumentError(
                f"write: a line of text is one byte string, got elements like {spec.nest}; map them to one, or write another "
                "format"
            )

    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        return _File(sink, first)


class _File(ShardFile):
    def __init__(self, sink: Sink, first: int) -> None:
        self._sink, self._row = sink, first

    def write(self, block: Block) -> None:
        lines = list(block.kept.elements())
        text = b"\n".join([*lines, b""])
        if text.count(b"\n") != len(lines) or b"\r\n" in text:
            wrong = next(place for place, line in enumerate(lines) if b"\n" in line or line.endswith(b"\r"))
            raise InvalidArgumentError(
                f"write: element {self._row + wrong} contains a line end, so it would be read as several lines: "
                f"{lines[wrong]!r:.60}; write another format, such as tfrecord"
            )
        self._sink.write(text)
        self._row += len(lines)
