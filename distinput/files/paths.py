# SPDX-License-Identifier: Apache-2.0
"""Paths and patterns: whatever users pass in becomes a list of plain strings."""

import os
from collections.abc import Iterable
from glob import glob, has_magic
from typing import Any

from distinput.errors import InvalidArgumentError, NoMatchError

__all__ = ["UNFINISHED", "as_paths", "file_system", "list_matching", "local_path"]

UNFINISHED = ".distinput-unfinished"
"""Suffix of the hidden names of files that are still being written, or were left behind by a writer that was killed."""

Paths = str | bytes | os.PathLike[Any] | Iterable[Any]

_LOCAL = ("file://", "local://")


def as_paths(paths: Any) -> list[str]:
    """One or many paths as strings, in the order given.

    Args:
      paths: str, bytes, a path object, or lists, tuples and arrays of them, nested to any depth.

    Raises:
      TypeError: an item is not a path.

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
    """The path of a local file for the operating system; None if fsspec must open the file.

    >>> local_path("file:///tmp/a.txt"), local_path("a.txt"), local_path("s3://bucket/a.txt")
    ('/tmp/a.txt', 'a.txt', None)
    """
    if path.startswith(_LOCAL) and "::" not in path:
        return path.split("://", 1)[1]
    return None if "://" in path else path


def file_system(path: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the name of the file in it.

    Raises:
      InvalidArgumentError: no installed file system opens such URLs.
    """
    from fsspec.core import url_to_fs

    try:
        system, name = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise InvalidArgumentError(f"cannot open {path!r}: {error}") from error
    return system, name


def list_matching(patterns: Paths) -> list[str]:
    """All files that match any of the patterns, sorted and without duplicates.

    Local files are returned as plain paths, others with their protocol. `*`, `?` and `[...]` match within one folder;
    hidden files match too, as in TensorFlow; `**` matches any number of folders. Unfinished files never match.

    Args:
      patterns: one or many patterns or plain paths, local or URLs.

    Raises:
      NoMatchError: none of the patterns matches any file.
    """
    wanted = as_paths(patterns)
    found = {path for pattern in wanted for path in _matches(pattern) if not _is_unfinished(path)}
    if not found:
        raise NoMatchError(f"No files matched pattern: {', '.join(wanted)}")
    return sorted(found)


def _matches(pattern: str) -> list[str]:
    local = local_path(pattern)
    if local is not None:
        if not has_magic(local) or os.path.lexists(local):  # a file may be named `a[1].txt`
            return [local] if os.path.lexists(local) else []
        return glob(local, recursive=True, include_hidden=True)
    system, name = file_system(pattern)
    if not has_magic(name):
        return [pattern] if system.exists(name) else []
    return [_as_written(pattern, path) for path in system.glob(name)]


def _is_unfinished(path: str) -> bool:
    return path.partition("::")[0].endswith(UNFINISHED)


def _as_written(pattern: str, path: str) -> str:
    """The URL of a file that fsspec found, in the same form as the pattern."""
    if "://" in path:
        return path
    head, chained, rest = pattern.partition("::")
    protocol, _, wanted = head.partition("://")
    return f"{protocol}://{path if wanted.startswith('/') else path.lstrip('/')}{chained}{rest}"
