# SPDX-License-Identifier: Apache-2.0
"""Paths and patterns: what users hand in becomes a list of plain strings."""

import os
from collections.abc import Iterable
from glob import glob, has_magic
from typing import Any

from distinput.errors import InvalidArgumentError, NoMatchError

__all__ = ["UNFINISHED", "as_paths", "file_system", "list_matching", "local_path"]

UNFINISHED = ".distinput-unfinished"
"""How the hidden names of files end that are still being written, or were left behind by a writer that was ended."""

Paths = str | bytes | os.PathLike[Any] | Iterable[Any]

_LOCAL = ("file://", "local://")


def as_paths(paths: Any) -> list[str]:
    """One or many paths as strings, in the order given.

    Args:
      paths: str, bytes, a path object, or any nest of lists, tuples and arrays of them.

    Raises:
      TypeError: something in it is no path.

    >>> from pathlib import PurePosixPath
    >>> as_paths(["a.txt", b"b.txt", PurePosixPath("c/d.txt")])
    ['a.txt', 'b.txt', 'c/d.txt']
    """
    if isinstance(paths, str | bytes | os.PathLike):
        return [str(os.fsdecode(paths))]
    if hasattr(paths, "tolist"):  # an array of names
        return as_paths(paths.tolist())
    if not isinstance(paths, Iterable):
        raise TypeError(f"a path must be str, bytes or a path object, got a {type(paths).__name__}")
    return [name for path in paths for name in as_paths(path)]


def local_path(path: str) -> str | None:
    """The path for the operating system, or None for a file that fsspec must open.

    >>> local_path("file:///tmp/a.txt"), local_path("a.txt"), local_path("s3://bucket/a.txt")
    ('/tmp/a.txt', 'a.txt', None)
    """
    if path.startswith(_LOCAL) and "::" not in path:
        return path.split("://", 1)[1]
    return None if "://" in path else path


def file_system(path: str) -> tuple[Any, str]:
    """What fsspec opens a URL with, and the name that the file has there.

    Raises:
      InvalidArgumentError: nothing is known that opens such URLs.
    """
    from fsspec.core import url_to_fs

    try:
        system, name = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise InvalidArgumentError(f"cannot open {path!r}: {error}") from error
    return system, name


def list_matching(patterns: Paths) -> list[str]:
    """All files that match any of the patterns, sorted, each one once.

    Local files come as plain paths, others with their protocol. `*`, `?` and `[...]` stay within one folder, hidden
    files match too, as in TensorFlow; `**` stands for any number of folders. Files that a writer has not finished never
    match.

    Args:
      patterns: one or many patterns or plain paths, local or URLs.

    Raises:
      NoMatchError: a list of patterns of which none matches anything.
    """
    wanted = as_paths(patterns)
    found = {path for pattern in wanted for path in _matches(pattern) if not _is_unfinished(path)}
    if not found:
        raise NoMatchError(f"No files matched pattern: {', '.join(wanted)}")
    return sorted(found)


def _matches(pattern: str) -> list[str]:
    local = local_path(pattern)
    if local is not None:
        if not has_magic(local) or os.path.lexists(local):  # a file may be called `a[1].txt`
            return [local] if os.path.lexists(local) else []
        return glob(local, recursive=True, include_hidden=True)
    system, name = file_system(pattern)
    if not has_magic(name):
        return [pattern] if system.exists(name) else []
    return [_as_written(pattern, path) for path in system.glob(name)]


def _is_unfinished(path: str) -> bool:
    return path.partition("::")[0].endswith(UNFINISHED)


def _as_written(pattern: str, path: str) -> str:
    """A file that fsspec found, in the manner in which the pattern was written."""
    if "://" in path:
        return path
    head, chained, rest = pattern.partition("::")
    protocol, _, wanted = head.partition("://")
    return f"{protocol}://{path if wanted.startswith('/') else path.lstrip('/')}{chained}{rest}"
