# SPDX-License-Identifier: Apache-2.0
"""What the tests of all formats share: reading a file whole, the law of positions, and every way to damage a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distinput.formats import span_format
from distinput.formats.format import Format, Position


def plain(value: Any) -> Any:
    """An element in Python's own types, so that it can be compared."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def records(format: Format, path: str | Path, position: Position | None = None) -> list[Any]:
    return [plain(element) for block, _ in format.read(str(path), position) for element in block.elements()]


def records_until_error(format: Format, path: str | Path) -> tuple[list[Any], Exception | None]:
    found: list[Any] = []
    try:
        for block, _ in format.read(str(path)):
            found += map(plain, block.elements())
    except Exception as error:  # noqa: BLE001  # whatever it is, a test looks at it
        return found, error
    return found, None


def check_positions(format: Format, path: str | Path, want: list[Any]) -> None:
    """Everything is there, and whoever starts again at any position gets exactly the rest."""
    path = str(path)
    assert records(format, path) == want
    done = 0
    for block, position in format.read(path):
        done += block.size
        assert position["row"] == done
        assert records(format, path, position) == want[done:]
    assert done == len(want)
    for row in (0, 1, len(want) // 2, len(want)):
        position_of_row = format.seek(path, row) if row <= len(want) else None
        if position_of_row is not None:
            assert records(format, path, position_of_row) == want[row:]
    assert format.rows(path) in (None, len(want))
    fragments = format.fragments(path)
    assert fragments[0].start == format.start()
    for a, b in pairwise(fragments):
        assert a.stop == b.start
    for fragment in fragments:
        rest = want[fragment.start["row"] :]
        assert records(format, path, fragment.start) == rest
    if all(fragment.rows is not None for fragment in fragments):
        assert sum(fragment.rows or 0 for fragment in fragments) == len(want)


@contextmanager
def small_pieces(chunk: int = 16, rows: int = 3) -> Iterator[None]:
    """Chunks and blocks so small that a short file has many borders."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(span_format, "FIRST_BYTES", chunk)
        patch.setattr(span_format, "CHUNK_BYTES", chunk)
        patch.setattr(span_format, "BLOCK_ROWS", rows)
        yield


def cut_short(content: bytes) -> Iterator[bytes]:
    return (content[:size] for size in range(len(content)))


def flipped(content: bytes) -> Iterator[bytes]:
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)


def check_groups(format: Format, path: str | Path, want: list[Any], size: int, given: int) -> None:
    """Reading in groups gives the same records, in blocks that end where groups do wherever the format can do that."""
    found: list[Any] = []
    ends = []
    for block, position in format.read_groups(str(path), None, size, given):
        found += map(plain, block.elements())
        assert position["row"] == len(found)
        ends.append((given + len(found)) % size)
    assert found == want
    # Rows decoded apart are not put together, so a block may also end where they do.
    assert all(end == 0 for end in ends[:-1]) or len(format.fragments(str(path))) > 1
