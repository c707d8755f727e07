# SPDX-License-Identifier: Apache-2.0
"""Damaged bytes with no memory before and behind them: a kernel that looks one byte too far ends the process.

python -m tests.formats.hostile.guarded COUNT
"""

import ctypes
import mmap
import sys
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np

from distinput.columns.column import Strings
from distinput.errors import DistinputError
from distinput.formats.example import parse_examples
from distinput.formats.span_format import Piece, SpanFormat
from distinput.formats.text import TextLines
from distinput.formats.tfrecord import TFRecords
from distinput.kernels import checksums, example_messages, example_values, lines, spans
from tests.formats.hostile.damage import damaged
from tests.formats.hostile.samples import EXAMPLES, FEATURES, RECORDS, unpacked, with_checksums

KERNELS = (
    checksums.crc32c,
    example_messages.locate_features,
    example_values.count_values,
    example_values.fill_bytes_spans,
    example_values.fill_floats,
    example_values.fill_int64s,
    lines.scan_lines,
    spans.gather_spans,
    checksums.scan_records,
)
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

PAGES = 16
_NOTHING = 0  # may be done with a page
TEXT = b"ab\r\n\n" * 20 + b"x" * 70 + b"\r\n"


class Guarded:
    """Memory that ends the process when somebody looks before or behind it."""

    def __init__(self) -> None:
        size = mmap.PAGESIZE
        self._memory = np.frombuffer(mmap.mmap(-1, (PAGES + 2) * size), np.uint8)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for page in (0, PAGES + 1):
            if protect(ctypes.c_void_p(self._memory.ctypes.data + page * size), size, _NOTHING):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._inner = self._memory[size:-size]

    def at_the_end(self, content: bytes) -> Bytes:
        """The content, with nothing behind it."""
        return self._written(self._inner[len(self._inner) - len(content) :], content)

    def at_the_beginning(self, content: bytes) -> Bytes:
        """The content, with nothing before it."""
        return self._written(self._inner[: len(content)], content)

    @staticmethod
    def _written(place: Bytes, content: bytes) -> Bytes:
        place[:] = np.frombuffer(content, np.uint8)
        return place


def _parse(memory: Guarded, random: Random) -> None:
    """A damaged message behind some that are whole, as which the kernel will take it at first."""
    whole = [*EXAMPLES, unpacked()]
    messages = [*[random.choice(whole)] * random.randrange(3), damaged(random.choice(whole), random)]
    sizes = np.array([len(message) for message in messages])
    for place in (memory.at_the_end, memory.at_the_beginning):
        data = place(b"".join(messages))
        with suppress(DistinputError):
            for column in parse_examples(Strings(data, np.cumsum(sizes) - sizes, sizes), FEATURES).values():
                list(column.values())


def _find(memory: Guarded, random: Random, format: SpanFormat, content: bytes) -> None:
    """Records in a piece of a file."""
    for place in (memory.at_the_end, memory.at_the_beginning):
        data = place(content)
        starts, sizes = np.empty((2, 64), np.int64)
        found = format.find(Piece("file", data, 0, 0, 0, random.random() < 0.5, None), starts, sizes)
        starts, sizes = starts[: found.count], sizes[: found.count]
        assert not found.count or min(starts.min(), sizes.min()) >= 0
        assert not found.count or (starts + sizes).max() <= len(data)
        list(Strings(data, starts, sizes).values())


def main() -> None:
    for kernel in KERNELS:
        kernel.compiled()
    memory = Guarded()
    for number in range(int(sys.argv[1])):
        random = Random(number)
        _parse(memory, random)
        _find(memory, random, TFRecords(), with_checksums(damaged(RECORDS, random)))
        _find(memory, random, TextLines(), damaged(TEXT, random))


if __name__ == "__main__":
    main()
