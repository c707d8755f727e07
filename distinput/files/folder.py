# SPDX-License-Identifier: Apache-2.0
"""Folders, local or behind a URL: make one, list its files, remove files; and folders as users name them."""

import contextlib
import os
import re
import stat
from collections.abc import Callable, Collection, Sequence
from io import FileIO
from typing import BinaryIO, cast

from distinput.errors import DataLossError, FailedPreconditionError, NoMatchError, UnimplementedError
from distinput.files.paths import UNFINISHED, below, file_system, list_matching, local_path
from distinput.files.source import naming, open_binary
from distinput.values.spec_json import MalformedJson, json_value, member

# ----------------------------------------------------------------------------
# Folders, local or behind a URL: make one, list its files, remove files; and joining names to paths.
# ----------------------------------------------------------------------------


def make_folder(path: str) -> None:
    """Make a folder and those above it, unless they exist."""
    local = local_path(path)
    if local is not None:
        os.makedirs(local or os.curdir, exist_ok=True)
        return
    system, name = file_system(path)
    with contextlib.suppress(FileExistsError, NotImplementedError):  # stores of objects have no folders
        system.makedirs(name, exist_ok=True)


def names_in(path: str) -> list[str]:
    """The names of the files in a folder, sorted, without unfinished ones; none if there is no such folder."""
    local, names = local_path(path), list[str]()
    if local is not None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            names = os.listdir(local or os.curdir)
    else:
        system, name = file_system(path)
        system.invalidate_cache()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            names = [found.rstrip("/").rpartition("/")[2] for found in system.ls(name, detail=False)]
    return sorted(name for name in names if not name.endswith(UNFINISHED))


def remove_file(path: str) -> None:
    """Remove a file, if it exists."""
    local = local_path(path)
    with contextlib.suppress(FileNotFoundError):
        if local is not None:
            os.unlink(local)
        else:
            system, name = file_system(path)
            try:
                system.rm_file(name)
            except NotImplementedError as error:  # where nothing was written either
                if system.exists(name):
                    raise UnimplementedError(f"{path}: files there can be read, but not removed") from error


def split_path(path: str) -> tuple[str, str]:
    """The folder of a path or URL, and the name in it.

    >>> split_path("models/ckpt-1"), split_path("ckpt-1"), split_path("memory://runs/ckpt-1")
    (('models', 'ckpt-1'), ('', 'ckpt-1'), ('memory://runs', 'ckpt-1'))
    """
    if local_path(path) is not None:
        return os.path.split(path)
    folder, _, name = path.rpartition("/")
    return folder, name


def join_path(folder: str, name: str) -> str:
    """The path of a name in a folder.

    >>> join_path("models", "ckpt-1"), join_path("", "ckpt-1"), join_path("memory://runs", "ckpt-1")
    ('models/ckpt-1', 'ckpt-1', 'memory://runs/ckpt-1')
    >>> join_path("memory://", "ckpt-1"), join_path("memory:///", "ckpt-1")  # the folder of all
    ('memory://ckpt-1', 'memory:///ckpt-1')
    """
    if local_path(folder) is not None:
        return os.path.join(folder, name)
    protocol, _, inside = folder.partition("://")
    return f"{protocol}://{inside.rstrip('/') + '/' if inside else ''}{name}"


# ----------------------------------------------------------------------------
# What belongs to a folder: plain names, and links that stay inside.
#
# A dataset, a cache or a folder of checkpoints may come from a stranger. The files in which it says what is in it name
# files of that folder and of no other, and a symbolic link in it must not lead out of it.
# ----------------------------------------------------------------------------


def plain_name(name: object) -> str:
    """A name that a file gives, if it is that of a file in the same folder.

    Raises:
      MalformedJson: it is not a text, it names a folder, or it leads to another folder.

    >>> plain_name("part-00000.parquet")
    'part-00000.parquet'
    >>> plain_name("../secret")
    Traceback (most recent call last):
    distinput.values.spec_json.MalformedJson: '../secret' is not the name of a file in this folder
    """
    if not isinstance(name, str) or not name or name in (".", "..") or {"/", "\\", "\0"} & set(name):
        raise MalformedJson(f"{name!r} is not the name of a file in this folder")
    if os.path.splitdrive(name)[0] or not is_utf8(name):
        raise MalformedJson(f"{name!r} is not the name of a file in this folder")
    return name


def is_utf8(name: str) -> bool:
    """Whether the name of a file is UTF-8; other names have bytes that stand for themselves."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def leads_out(path: str) -> bool:
    """True if a local file or folder is a symbolic link out of the folder that it is in."""
    local = local_path(path)
    if local is None or not os.path.islink(local):
        return False
    folder = os.path.join(os.path.realpath(os.path.dirname(local) or os.curdir), "")
    return not os.path.realpath(local).startswith(folder)


def check_inside(folder: str, names: Collection[str]) -> None:
    """Refuse files of a folder that are symbolic links out of it.

    Raises:
      FailedPreconditionError: one of them is.
    """
    local = local_path(folder)
    if local is None:
        return
    with os.scandir(local or os.curdir) as entries:
        links = {entry.name for entry in entries if entry.is_symlink()}
    for name in sorted(links.intersection(names)):
        if leads_out(join_path(folder, name)):
            raise _leads_out(join_path(folder, name))


def open_inside(folder: str, name: str) -> BinaryIO:
    """Open a file in which a folder says what is in it.

    Raises:
      NotFoundError: it is not there.
      FailedPreconditionError: it is a symbolic link out of the folder.
      DataLossError: it is a pipe or a device, on which reading could wait forever.
    """
    path = join_path(folder, name)
    local = local_path(path)
    if local is None:
        return open_binary(path)
    if leads_out(path):
        raise _leads_out(path)
    with naming(path):
        file = cast(BinaryIO, FileIO(local, "rb", opener=_without_waiting))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise DataLossError(f"{path}: is a pipe or a device, and must be a file")
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _leads_out(path: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{path}: is a symbolic link out of its folder, to {os.path.realpath(local_path(path) or path)}; what a folder says of "
        "itself is about files in it, so put a copy in the place of the link, or name the files yourself"
    )


# ----------------------------------------------------------------------------
# Names of files as constructors take them: paths, patterns, and directories, which stand for the files in them.
# ----------------------------------------------------------------------------


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

    A name with `*`, `?`, `[...]` or braces is a pattern, unless there is a file or a local directory of this name. A name that
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
    if len(names) == 1 and (local := local_path(names[0])) is not None and os.path.isdir(local):
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


def _below(directory: str, chosen: Callable[[list[str]], list[str]]) -> list[str]:
    listed = MANIFEST in names_in(directory) and _listed(directory)
    found = listed or chosen([join_path(directory, name) for name in _names_below(directory)])
    if not found:
        raise NoMatchError(f"{directory}: this directory has no files")
    return found


def _names_below(directory: str) -> list[str]:
    names = all_names_below(directory)
    shown = [name for name in names if not any(part.startswith((".", "_")) for part in name.split("/"))]
    return sorted(name for name in shown if not name.endswith(UNFINISHED) and name != MANIFEST)


def all_names_below(directory: str) -> list[str]:
    """The names of the files in a folder and those below it, behind it, in any order; none if it is not there.

    Raises:
      OSError: a folder cannot be listed.
    """
    local = local_path(directory)
    if local is not None:
        walked = (
            os.path.join(folder, name) for folder, *_ in os.walk(local, onerror=unlisted) for name in _files_of(folder)
        )
        return [os.path.relpath(path, local).replace(os.sep, "/") for path in walked]
    system, inside = file_system(directory)
    start = str(system._strip_protocol(inside)).rstrip("/") + "/"
    return [_inside(str(path), start) for path in below(system, inside.rstrip("/"))]


def unlisted(error: OSError) -> None:
    """For `os.walk`, which else passes over folders that cannot be listed: their files would be missing without a word.

    Raises:
      OSError: the error, unless the folder is gone.
    """
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


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


def damaged_manifest(path: str, why: str) -> DataLossError:
    """That the manifest of a folder is none."""
    return DataLossError(f"{path}: not a manifest of written files, or damaged: {why}")


def _listed(directory: str) -> list[str]:
    path = join_path(directory, MANIFEST)
    with naming(path), open_inside(directory, MANIFEST) as file:
        text = file.read()
    try:
        names = [plain_name(member(each, "name")) for each in member(json_value(text), "files", list)]
    except MalformedJson as error:
        raise damaged_manifest(path, str(error)) from error
    check_inside(directory, names)
    return [join_path(directory, name) for name in names]
