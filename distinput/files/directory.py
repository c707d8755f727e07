# SPDX-License-Identifier: Apache-2.0
"""Names of files as constructors take them: paths, patterns, and directories, which stand for the files in them."""

import os
import re
from collections.abc import Callable, Sequence

from distinput.errors import DataLossError, NoMatchError
from distinput.files.folder import check_inside, join_path, names_in, open_inside, plain_name
from distinput.files.paths import UNFINISHED, below, file_system, list_matching, local_path
from distinput.files.source import naming
from distinput.values.json_values import MalformedJson, json_value, member

__all__ = ["MANIFEST", "list_files", "named_files", "without_notes"]

MANIFEST = "distinput-manifest.json"
"""In a directory that was written as a whole: which files are in it, in order."""

_NOTES = re.compile(
    r"(?i)(?:(?:readme|licen[cs]e|copying|notice|authors|changelog|citation)(?:[._-].*)?"
    r"|(?:md5|sha1|sha256|sha512|checks?)sums?(?:\.txt)?|thumbs\.db|desktop\.ini|.*\.(?:crc|md5|sha1|sha256|sha512|asc|sig))"
)
"""Names of what lies beside data, of whatever format that is."""

_PATTERN = re.compile(r"[*?\[{]")


def named_files(names: Sequence[str], chosen: Callable[[list[str]], list[str]] = list) -> list[str]:
    """The files that some names stand for, in the order of the names.

    A name with `*`, `?`, `[...]` or braces is a pattern, unless there is a local file or directory of this name. A name that
    ends with `/`, and a single name of a local directory, stands for the files below it, sorted, without pipes, and without
    those whose name, or a folder of it, begins with `.` or `_`; if the directory has a manifest, for the files that it lists.
    Any other name is not looked up: reading it fails if it is not there.

    Args:
      names: paths, patterns and directories.
      chosen: which of the files below a directory without a manifest are meant.

    Raises:
      NoMatchError: no file matches a pattern, or a directory has no files.
      DataLossError: the manifest of a directory is damaged.
    """
    if len(names) == 1 and _is_directory(names[0]):
        return _below(names[0], chosen)
    together = "\0".join(names)
    if not _PATTERN.search(together) and "/\0" not in together + "\0":
        return list(names)
    return [path for name in names for path in _found(name, chosen)]


def without_notes(paths: list[str]) -> list[str]:
    """Files without those that tell of the others by their names: a README, a license, checksums; all, if no other is there.

    >>> without_notes(["a/README.md", "a/b.txt", "a/b.txt.md5"])
    ['a/b.txt']
    """
    return [path for path in paths if not _NOTES.fullmatch(path.rpartition("/")[2])] or paths


def list_files(patterns: Sequence[str]) -> list[str]:
    """All files that match the patterns, as `list_matching` finds them, or are below a directory, sorted.

    Raises:
      NoMatchError: no file matches.
    """
    folders = [pattern for pattern in patterns if pattern.endswith("/")]
    if not folders:
        return list_matching(patterns)
    others = [pattern for pattern in patterns if not pattern.endswith("/")]
    return sorted(
        [*(list_matching(others) if others else []), *(path for each in folders for path in _below(each, list))]
    )


def _found(name: str, chosen: Callable[[list[str]], list[str]]) -> list[str]:
    if name.endswith("/"):
        return _below(name, chosen)
    local = local_path(name)
    if not _PATTERN.search(name) or (local is not None and os.path.lexists(local)):
        return [name]
    return list_matching(name, folders=False)


def _is_directory(name: str) -> bool:
    local = local_path(name)
    return local is not None and os.path.isdir(local)


def _below(directory: str, chosen: Callable[[list[str]], list[str]]) -> list[str]:
    listed = MANIFEST in names_in(directory) and _listed(directory)
    found = listed or chosen([join_path(directory, name) for name in _names_below(directory)])
    if not found:
        raise NoMatchError(f"{directory}: no files are in this directory")
    return found


def _names_below(directory: str) -> list[str]:
    local = local_path(directory)
    if local is not None:
        walked = (os.path.join(folder, name) for folder, _, _ in os.walk(local) for name in _files_of(folder))
        names = [os.path.relpath(path, local).replace(os.sep, "/") for path in walked]
    else:
        system, inside = file_system(directory)
        start = str(system._strip_protocol(inside)).rstrip("/") + "/"
        names = [_inside(str(path), start) for path in below(system, inside.rstrip("/"))]
    shown = [name for name in names if not any(part.startswith((".", "_")) for part in name.split("/"))]
    return sorted(name for name in shown if not name.endswith(UNFINISHED) and name != MANIFEST)


def _files_of(folder: str) -> list[str]:
    """The names of the files in a folder, and of links, which may lead nowhere; pipes, sockets and devices are none."""
    with os.scandir(folder) as entries:
        return [
            entry.name
            for entry in entries
            if entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path))
        ]


def _inside(path: str, folder: str) -> str:
    """The name of a file in a folder; some file systems put a slash before every name, and some before none."""
    short, start = path.lstrip("/"), folder.lstrip("/")
    return short.removeprefix(start) if short.startswith(start) else path.partition(folder)[2]


def _listed(directory: str) -> list[str]:
    path = join_path(directory, MANIFEST)
    with naming(path), open_inside(directory, MANIFEST) as file:
        text = file.read()
    try:
        names = [plain_name(member(each, "name")) for each in member(json_value(text), "files", list)]
    except MalformedJson as error:
        raise DataLossError(f"{path}: not a manifest of written files, or damaged: {error}") from error
    check_inside(directory, names)
    return [join_path(directory, name) for name in names]
