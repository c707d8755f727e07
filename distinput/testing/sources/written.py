# SPDX-License-Identifier: Apache-2.0
"""Small files, written once for each process, and the order in which their records are read."""

import atexit
import gzip
import hashlib
import json
import shutil
import tempfile
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from distinput.files.compression import Deflater, as_compression
from distinput.testing.pipeline import DrawFrom
from distinput.testing.turns import interleaved

__all__ = ["COMPRESSION", "FILES", "READS", "by_file", "draw_files", "new_folder", "read_order", "squeezed", "written"]


@cache
def _folder() -> Path:
    made = tempfile.mkdtemp(prefix="distinput-testing-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def new_folder() -> str:
    """The path of a folder that does not exist yet, and that goes away with the process."""
    return str(_folder() / uuid.uuid4().hex)


def written(arguments: dict[str, Any], write: Callable[[Path, list[int]], None]) -> list[str]:
    """Paths of the files that arguments describe: `rows` in each; written once for each process."""
    word = hashlib.blake2s(json.dumps(arguments, sort_keys=True).encode(), digest_size=8).hexdigest()
    folder = _folder() / word
    paths = [folder / f"part-{index}" for index in range(len(arguments["rows"]))]
    if not folder.exists():
        folder.mkdir()
        before = 0
        for path, rows in zip(paths, arguments["rows"], strict=True):
            write(path, list(range(before, before + rows)))
            before += rows
    return [str(path) for path in paths]


FILES = st.lists(st.sampled_from([3, 1, 5, 0, 2, 6]), min_size=1, max_size=4)
READS = st.sampled_from([None, None, 1, 2, 3])
COMPRESSION = st.sampled_from(["", "", "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY", "AUTO"])


def read_order(lists: list[list[Any]], reads: int | None) -> list[Any]:
    """The records of several files in the order in which a dataset gives them."""
    return [row for rows in lists for row in rows] if reads is None else interleaved(lists, reads, 1)


def by_file(a: dict[str, Any], record: Callable[[int], Any]) -> list[list[Any]]:
    """The records of each file."""
    lists, before = [], 0
    for rows in a["rows"]:
        lists.append([record(i) for i in range(before, before + rows)])
        before += rows
    return lists


def squeezed(data: bytes, compression: str) -> bytes:
    """Bytes as a file with this compression holds them."""
    if compression in ("", "AUTO"):  # these files have suffixes of no codec
        return data
    if compression == "GZIP":
        return gzip.compress(data)
    deflater = Deflater(as_compression(compression))
    return deflater.deflate(data) + deflater.finish()


def draw_files(draw: DrawFrom, _: Any) -> dict[str, Any]:
    """Arguments of a source that reads small files."""
    return {"rows": draw(FILES), "reads": draw(READS), "compression": draw(COMPRESSION)}
