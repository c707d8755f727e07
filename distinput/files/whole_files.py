# SPDX-License-Identifier: Apache-2.0
"""Whole files at once: `read_file`, `write_file` and `matching_files`; and files mapped into memory."""

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError, NoMatchError
from distinput.files.paths import as_paths, list_matching, local_path
from distinput.files.sink import Sink
from distinput.files.source import EMPTY, naming, read_whole, stamp_of
from distinput.values.buffers import Bytes

# ----------------------------------------------------------------------------
# Whole files at once: `read_file`, `write_file` and `matching_files`.
# ----------------------------------------------------------------------------


def read_file(filename: Any, name: str | None = None) -> bytes:
    """The content of a file.

    Args:
      filename: a local path or a URL; bytes, as elements are, or text.
      name: ignored.

    Raises:
      NotFoundError: it is not there.

    >>> write_file("a.txt", "hello")
    >>> read_file(b"a.txt")
    b'hello'

    Source: `tf.io.read_file`.
    """
    del name
    return read_whole(_one("read_file", filename))


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write a whole file; it appears under its name once it is complete. A local folder is made if it is not there.

    Args:
      filename: a local path or a URL; bytes or text.
      contents: bytes or text.
      name: ignored.

    Raises:
      InvalidArgumentError: `contents` is neither bytes nor text.

    >>> write_file("new/a.txt", "hello")
    >>> matching_files("new/*").tolist()
    [b'new/a.txt']

    Source: `tf.io.write_file`.
    """
    del name
    if not isinstance(contents, bytes | bytearray | memoryview | str):
        raise InvalidArgumentError(f"write_file: contents must be bytes or text, got {type(contents).__name__}")
    path = _one("write_file", filename)
    local = local_path(path)
    if local is not None and os.path.dirname(local):
        Path(local).parent.mkdir(parents=True, exist_ok=True)
    with Sink(path) as sink:
        sink.write(contents.encode() if isinstance(contents, str) else bytes(contents))


def matching_files(pattern: Any, name: str | None = None) -> np.ndarray[Any, np.dtype[Any]]:
    """The names of the files that match, sorted [n], once for each pattern that they match; none is no error.

    Args:
      pattern: a glob pattern, or a list of them; any fsspec URL.
      name: ignored.

    >>> matching_files("*.none").tolist()
    []

    Source: `tf.io.matching_files`.
    """
    del name
    found: list[str] = []
    for each in as_paths(pattern):
        try:
            found.extend(list_matching(each))
        except NoMatchError:
            continue
    return np.array([os.fsencode(path) for path in sorted(found)], object)


def _one(op: str, filename: Any) -> str:
    if isinstance(filename, np.ndarray) and filename.shape == ():
        filename = filename[()]
    paths = as_paths(filename)
    if len(paths) != 1:
        raise InvalidArgumentError(f"{op}: filename must be one path, got {filename!r:.80}")
    return paths[0]


# ----------------------------------------------------------------------------
# Local files mapped into memory: only the pages that are accessed are read from disk.
#
# A mapping shows the current contents of the file. Replacing a file by another one (as renaming does) leaves mappings of
# the old one intact; truncating a file in place while it is mapped kills the process on the next access to the missing
# part. Therefore `check_unchanged` or `stamp_of` must be called before every use; a truncation between that call and the
# use goes undetected.
# ----------------------------------------------------------------------------


def mapped(path: str) -> Bytes:
    """The bytes of a local file as a read-only array; no file descriptor stays open.

    Args:
      path: a path of the operating system, not a URL.

    Raises:
      NotFoundError: it is not there.
    """
    return _mapped(path, stamp_of(path))


@lru_cache(maxsize=1024)
def _mapped(path: str, stamp: str) -> Bytes:
    del stamp  # only part of the cache key: it identifies the version of the file
    import pyarrow as pa

    with naming(path):
        file: Any = pa.memory_map(os.fsencode(path), "r")
    with file:  # the mapping lives as long as it is referenced; Python's mmap would keep the file open too
        return np.frombuffer(file.read_buffer(), np.uint8) if file.size() else EMPTY
