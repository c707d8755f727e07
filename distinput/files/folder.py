# SPDX-License-Identifier: Apache-2.0
"""Folders, local or behind a URL: make one, list its files, remove files; names and links that stay inside."""

import contextlib
import os
import stat
from collections.abc import Collection
from io import FileIO
from typing import BinaryIO, cast

from distinput.errors import DataLossError, FailedPreconditionError
from distinput.files.paths import UNFINISHED, file_system, local_path
from distinput.files.source import naming, open_binary
from distinput.values.json_values import MalformedJson

__all__ = [
    "check_inside",
    "join_path",
    "leads_out",
    "make_folder",
    "names_in",
    "open_inside",
    "plain_name",
    "remove_file",
    "split_path",
]


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
    local = local_path(path)
    if local is not None:
        try:
            names = os.listdir(local or os.curdir)
        except (FileNotFoundError, NotADirectoryError):
            names = []
    else:
        system, name = file_system(path)
        system.invalidate_cache()
        try:
            names = [found.rstrip("/").rpartition("/")[2] for found in system.ls(name, detail=False)]
        except (FileNotFoundError, NotADirectoryError):
            names = []
    return sorted(name for name in names if not name.endswith(UNFINISHED))


def remove_file(path: str) -> None:
    """Remove a file, if it exists."""
    local = local_path(path)
    with contextlib.suppress(FileNotFoundError):
        if local is not None:
            os.unlink(local)
        else:
            system, name = file_system(path)
            system.rm_file(name)


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
# A dataset, a cache or a folder of checkpoints may come from a stranger. The files in which it says what is in it name files
# of
# that folder and of no other, and a symbolic link in it must not lead out of it.
# ----------------------------------------------------------------------------


def plain_name(name: object) -> str:
    """A name that a file gives, if it is that of a file in the same folder.

    Raises:
      MalformedJson: it is no text, it names a folder, or it leads to another folder.

    >>> plain_name("part-00000.parquet")
    'part-00000.parquet'
    >>> plain_name("../secret")
    Traceback (most recent call last):
    distinput.values.json_values.MalformedJson: '../secret' is no name of a file in this folder
    """
    if not isinstance(name, str) or not name or name in (".", "..") or {"/", "\\", "\0"} & set(name):
        raise MalformedJson(f"{name!r} is no name of a file in this folder")
    if os.path.splitdrive(name)[0] or not _encodes(name):
        raise MalformedJson(f"{name!r} is no name of a file in this folder")
    return name


def _encodes(name: str) -> bool:
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
      DataLossError: it is a pipe or a device, on which reading could wait for ever.
    """
    path = join_path(folder, name)
    local = local_path(path)
    if local is None:
        return open_binary(path)
    if leads_out(path):
        raise _leads_out(path)
    with naming(path):
        file = cast(BinaryIO, FileIO(local, "rb", opener=_without_waiting))
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):
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
