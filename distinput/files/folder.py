# SPDX-License-Identifier: Apache-2.0
"""Folders, local or behind a URL: make one, list its files, remove files; and joining names to paths."""

import contextlib
import os

from distinput.files.paths import UNFINISHED, file_system, local_path

__all__ = ["join_path", "make_folder", "names_in", "remove_file", "split_path"]


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
