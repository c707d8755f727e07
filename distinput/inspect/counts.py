# SPDX-License-Identifier: Apache-2.0
"""How many records files have."""

from contextlib import closing
from typing import Any

from distinput.files.source import size_of
from distinput.inspect.files import Files, open_files
from distinput.names.lazy import dataclass
from distinput.url_secrets import without_secrets


@dataclass(frozen=True)
class Count:
    """The records of a file.

    Attributes:
      file: its path.
      records: how many.
      bytes: the size of the file.
      read: whether the file had to be read for it, because neither its format nor an index says how many there are.
    """

    file: str
    records: int
    bytes: int
    read: bool


def count(filenames: Any, format: str | None = None, **options: Any) -> list[Count]:
    r"""Count the records of each of several files.

    Formats that say it are asked (Parquet, Arrow, npy, npz, ArrayRecord); files of others are read, without decoding values.

    Args:
      filenames: a path, pattern or directory, a list of them, or what `open_files` found.
      format: the name of their format; None: it is recognised.
      **options: as `open_files` takes them.

    Raises:
      NotFoundError: a file is not there.
      DataLossError: a file is damaged.

    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("one\ntwo\n")
    >>> count("a.txt")
    [Count(file='a.txt', records=2, bytes=8, read=True)]
    """
    files = open_files(filenames, format, **options)
    return [Count(without_secrets(path), *records_in(files, path)) for path in files.paths]


def records_in(files: Files, path: str) -> tuple[int, int, bool]:
    """The records of a file, its bytes, and whether it was read."""
    made, size = files.format, size_of(path)
    known = made.rows(path) if made.counts_rows else None
    if known is not None:
        return known, size, False
    if made.in_portions:  # whose rows are known before they are decoded
        with closing(made.portions(path, None, None, 1, 0)) as portions:  # type: ignore[type-var]  # a generator
            return sum(portion.rows for portion in portions), size, True
    with closing(made.read(path)) as blocks:  # type: ignore[type-var]  # a generator
        return sum(block.size for block, _ in blocks), size, True
