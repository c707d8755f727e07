# SPDX-License-Identifier: Apache-2.0
"""Text files: every line is a record."""

from dataclasses import dataclass
from typing import ClassVar

from distinput.files.compression import as_compression
from distinput.formats.spans import Found, Ints, Piece, SpanFormat
from distinput.kernels.lines import scan_lines

__all__ = ["TextLines"]

_RETURN = 13


@dataclass(frozen=True)
class TextLines(SpanFormat):
    r"""Lines without their "\n", and without one "\r" before it.

    An empty file has no lines, an empty line is an empty string, and what follows the last "\n" is a line as well
    unless it is empty.

    Args:
      compression_type: None or "" for none, "GZIP" or "ZLIB".

    Raises:
      InvalidArgumentError: the compression is unknown.

    Source: the meaning is that of `tf.data.TextLineDataset`.
    """

    name: ClassVar[str] = "text"
    compression_type: str | None = None

    def __post_init__(self) -> None:
        as_compression(self.compression_type)

    def find(self, piece: Piece, starts: Ints, sizes: Ints) -> Found:
        data, end = piece.data, len(piece.data)
        count, after = scan_lines(data, piece.at, end, starts, sizes)
        if piece.ended and after < end and count < len(starts):
            size = end - after - int(data[end - 1] == _RETURN)
            if size:
                starts[count], sizes[count] = after, size
                count += 1
            after = end
        return Found(count, after)
