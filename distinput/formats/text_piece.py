# SPDX-License-Identifier: Apache-2.0
"""What is known of a part of a text file: where it lies, and how many records it has."""

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MARK", "Bytes", "Head", "TextPiece"]

MARK = b"\xef\xbb\xbf"
"""The byte order mark, which some programs write in front of UTF-8."""

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Head:
    """Where the records of a file begin, and the names of its columns.

    Args:
      byte: the offset behind a byte order mark and a header.
      lines: how many lines come before.
      names: of the columns in the file's order; empty where each record names its own.
    """

    byte: int = 0
    lines: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Whole records of a file.

    Args:
      path: the file.
      data: the bytes; the last record ends with a newline.
      byte: the offset of the first one in the (decompressed) file.
      row: the number of the first record.
      count: how many records there are.
      line: the number of the first line, from 1; 0 if unknown.
      end: bytes read so far: the last record may have been given a newline.
    """

    path: str
    data: Bytes
    byte: int
    row: int
    count: int
    line: int
    end: int
