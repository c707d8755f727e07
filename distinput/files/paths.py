# SPDX-License-Identifier: Apache-2.0
"""Paths and patterns: whatever users pass in becomes a list of plain strings."""

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from glob import glob, has_magic
from typing import Any

from distinput.errors import EngineMissing, InvalidArgumentError, NoMatchError
from distinput.files.braces import expand_braces
from distinput.files.forked import check_not_forked
from distinput.files.listing import globbed
from distinput.files.mounts import mounted, object_store
from distinput.files.retries import DEFAULT, persistently
from distinput.url_secrets import cut_from_logs

__all__ = ["UNFINISHED", "as_paths", "file_system", "list_matching", "local_path"]

UNFINISHED = ".distinput-unfinished"
"""Suffix of the hidden names of files and folders that are being written, or were left behind by a writer that was killed."""

Paths = str | bytes | os.PathLike[Any] | Iterable[Any]

_LOCAL = ("file://", "local://")
_BRACES = re.compile(r"\{[^{}/]*\}")
_LISTED = 4  # so many files are rather listed than asked for one by one


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
      FailedPreconditionError: obstore opens them, and this process was forked from one that had used it.
    """
    if "?" in path or "@" in path:
        cut_from_logs()
    system, name = _opened(path)
    check_not_forked(system, path)
    return system, name


def _opened(path: str) -> tuple[Any, str]:
    own = mounted(path)
    try:
        if own is not None:
            return own.opened(path)
        from fsspec.core import url_to_fs

        system, name = url_to_fs(path)
    except (ImportError, ValueError) as error:
        if own is None and isinstance(error, ImportError) and (system := _of_obstore(_bucket(path))) is not None:
            return system, path[len(_bucket(path)) :]
        # A package that is not installed is no bad file: no policy leaves the file out.
        kind = EngineMissing if isinstance(error, ImportError) else InvalidArgumentError
        raise kind(
            f"cannot open {path!r}: {error}; distinput.io.mount gives a prefix of URLs a file system, in each process"
        ) from error
    return system, name


def _bucket(path: str) -> str:
    protocol, _, rest = path.partition("://")
    return f"{protocol}://{rest.partition('/')[0]}/"


@lru_cache(maxsize=64)
def _of_obstore(bucket: str) -> Any:
    """The store of obstore for URLs that fsspec has no package for; None if obstore is not installed, or has none either."""
    try:
        return object_store(bucket, {})
    except (ImportError, ValueError):
        return None


def list_matching(patterns: Paths, *, folders: bool = True) -> list[str]:
    """All files that match the patterns, sorted; a file is there once for each pattern that it matches, as in TensorFlow.

    Local files are returned as plain paths, others with their protocol. `*`, `?` and `[...]` match within one folder;
    hidden files match too, as in TensorFlow; `**` matches any number of folders. Unfinished files never match. `{a,b}` and
    `{000..127}` stand for several names or patterns; a file that braces name without any of the above must exist.

    Args:
      patterns: one or many patterns or plain paths, local or URLs.
      folders: whether folders that match a pattern are among it.

    Raises:
      NoMatchError: none of the patterns matches any file, or a file that braces name is missing.
      OSError: a store cannot be asked.
    """
    wanted = as_paths(patterns)
    found = [path for pattern in wanted for path in set(_found(pattern, folders)) if not _is_unfinished(path)]
    if not found:
        raise NoMatchError(f"No files matched pattern: {', '.join(wanted)}")
    return sorted(found)


def _found(pattern: str, folders: bool) -> list[str]:
    """The files that match a pattern or, if it has braces, each of those that it stands for."""
    names = expand_braces(pattern)
    if len(names) == 1:
        return _matches(pattern, folders)
    if local_path(pattern) is not None and (literally := _matches(pattern, folders)):
        return literally
    if any(map(has_magic, names)):
        return [path for name in names for path in _matches(name, folders)]
    # Files of a store are listed once, not asked for one by one.
    listed = (
        None
        if local_path(pattern) is not None or len(names) < _LISTED
        else set(_matches(_BRACES.sub("*", pattern), folders))
    )
    missing = [name for name in names if (not _matches(name, folders) if listed is None else name not in listed)]
    if missing:
        raise NoMatchError(f"No files matched pattern: {missing[0]}, one of {len(missing)} missing of {pattern}")
    return names


def _matches(pattern: str, folders: bool) -> list[str]:
    local = local_path(pattern)
    if local is not None:
        if not has_magic(local) or os.path.lexists(local):  # a file may be named `a[1].txt`
            return [local] if os.path.lexists(local) else []
        found = glob(local, recursive=True, include_hidden=True)
        return found if folders else [path for path in found if os.path.isfile(path) or not os.path.exists(path)]
    system, name = file_system(pattern)
    if not has_magic(name) or ("*" not in name and "?" not in name and _exists(pattern, system, name)):
        return [pattern] if _exists(pattern, system, name) else []
    return [_as_written(pattern, path) for path in globbed(system, name, folders=folders)]


def _exists(path: str, system: Any, name: str) -> bool:
    """Whether a file is there; not what fsspec's `exists` says, for which one that cannot be asked for is not there."""
    own = mounted(path)
    try:
        persistently(lambda: system.info(name), path, DEFAULT if own is None else own.retries)
    except FileNotFoundError:
        return False
    return True


def _is_unfinished(path: str) -> bool:
    own = path.partition("::")[0]
    return own.endswith(UNFINISHED) or f"{UNFINISHED}/" in own or f"{UNFINISHED}{os.sep}" in own


def _as_written(pattern: str, path: str) -> str:
    """The URL of a file that fsspec found, in the same form as the pattern."""
    if "://" in path:
        return path
    own = mounted(pattern)
    if own is not None and own.system is not None:
        # Some file systems put a slash before every name, whether the pattern has it or not.
        short = path.removeprefix("/").removeprefix(own.root.lstrip("/"))
        as_asked = pattern.startswith(own.prefix + "/") or (not own.root and own.system._strip_protocol(short) != path)
        return own.prefix + (path if as_asked else short)
    head, chained, rest = pattern.partition("::")
    protocol, _, wanted = head.partition("://")
    return f"{protocol}://{path if wanted.startswith('/') else path.lstrip('/')}{chained}{rest}"
