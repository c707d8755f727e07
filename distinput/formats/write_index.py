# SPDX-License-Identifier: Apache-2.0
"""Write the indices of files before they are needed."""

from typing import Any

from distinput.core.cores import cores
from distinput.core.pool import mapped
from distinput.files.paths import as_paths
from distinput.formats.named import format_named

__all__ = ["write_index"]


def write_index(filenames: Any, format: str, *, folder: str | None = None, **options: Any) -> int:
    r"""Write the indices of files, so that nobody has to wait for them: one that there is already is kept if it is still right.

    Reading with `index=True` (or `index=folder`) does the same for each file when its records are first counted. Do it ahead
    where many workers read the same files, since each of them would read all files to count them. Files are read in parallel.

    Args:
      filenames: a path or a list of paths, local or of any fsspec URL.
      format: the name of their format, such as "text".
      folder: where to keep the indices; None: beside each file, under a hidden name.
      **options: the options with which the files will be read; others may mean other records.

    Returns:
      The number of records in all files.

    Raises:
      ValueError: an unknown format, or one without index.
      NotFoundError: a file is not there.
      DataLossError: a file is damaged.
      OSError: an index cannot be written.

    >>> import pathlib
    >>> import distinput as di
    >>> _ = pathlib.Path("a.txt").write_text("one\ntwo\n")
    >>> di.io.write_index("a.txt", "text")
    2
    >>> len(di.data.TextLineDataset("a.txt", index=True))
    2
    """
    made = format_named(format, True if folder is None else folder, **options)
    return sum(rows or 0 for rows in mapped(made.rows, as_paths(filenames), cores(), "distinput-index"))
