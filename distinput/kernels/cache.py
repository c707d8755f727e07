# SPDX-License-Identifier: Apache-2.0
"""The locations and file names of compiled kernels on disk, in folders that are this user's own."""

import _imp
import contextlib
import functools
import os
import stat
import sys
import warnings
from collections.abc import Collection
from types import FunctionType

# ----------------------------------------------------------------------------
# Whether a folder is this user's own: what is cached in it is believed, or even executed.
# ----------------------------------------------------------------------------


_ROOT = 0


def is_own(folder: str, also: Collection[int] = ()) -> bool:
    """True if nobody else can change what is in a folder, or put another one in its place.

    It belongs to this user or to the system, and so do all folders above it; nobody else may write to it, nor to those above,
    unless these are sticky, as `/tmp` is. Links are followed: both where they are and where they lead to are looked at. If the
    folder is not there yet, those above it count. On Windows, where other rules hold, it is always true.

    Args:
      folder: its path.
      also: the numbers of other users that count as this one.

    >>> is_own("no such folder in this one") == is_own(".")
    True
    """
    if not hasattr(os, "geteuid"):
        return True
    path = os.path.abspath(folder)
    owners = {os.geteuid(), _ROOT, *also}
    return all(_are_safe(each, owners) for each in {path, os.path.realpath(path)})


def is_own_file(path: str, also: Collection[int] = ()) -> bool:
    """True if this is a file that nobody else can write to, and no link; false if it is not there."""
    if not hasattr(os, "geteuid"):
        return True
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid in {os.geteuid(), _ROOT, *also} and not _others_write(status)


def _are_safe(path: str, owners: Collection[int]) -> bool:
    """Whether a folder and those above it are safe, as far as they are there."""
    above = False
    while True:
        with contextlib.suppress(OSError):  # it is not there, or is no folder that anything can be in
            status = os.lstat(path)
            if status.st_uid not in owners:
                return False
            sticky = above and status.st_mode & stat.S_ISVTX
            if stat.S_ISDIR(status.st_mode) and _others_write(status) and not sticky:
                return False
        parent = os.path.dirname(path)
        if parent == path:
            return True
        path, above = parent, True


def _others_write(status: os.stat_result) -> bool:
    """True if others may write; a group that has nobody but this user in it is not others."""
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _is_private(status.st_gid)


def _is_private(group: int) -> bool:
    if sys.platform == "win32" or group == _ROOT:
        return True
    try:
        import grp
        import pwd

        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except (ImportError, KeyError):
        return False
    return group == user.pw_gid and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


# ----------------------------------------------------------------------------
# The locations and file names of compiled kernels on disk.
#
# Programs that call no kernel import this module as well, so slow imports are made inside the functions.
# ----------------------------------------------------------------------------


CacheSlot = tuple[str, list[str]]
"""The prefix of a kernel's file names, which identifies its source, and the folders to search."""


def place(name: str, source: FunctionType, inlined: Collection[FunctionType]) -> CacheSlot:
    """The cache location of a kernel; without folders if its source cannot be read.

    Args:
      name: of the kernel.
      source: the function that is compiled.
      inlined: functions that kernels may call; a change in one invalidates the kernels that call it.
    """
    stamp = _stamp(source, inlined)
    full = f"{name}.py{sys.version_info.major}{sys.version_info.minor}-{stamp}"
    return full, _folders(os.path.dirname(source.__code__.co_filename)) if stamp else []


def holds(name: str, folders: list[str]) -> bool:
    """True if a kernel of that name may be cached, so that importing numba while the caller waits is worthwhile."""
    for folder in folders:
        try:
            found = os.listdir(folder)
        except OSError:  # it does not exist or is not readable
            continue
        if any(file.startswith(f"{name}-") and file.endswith(".nbc") for file in found):
            return True
    return False


def _stamp(source: FunctionType, inlined: Collection[FunctionType]) -> str:
    """A hash of the source of a kernel and of all functions it calls; empty if the source cannot be read."""
    here = os.path.dirname(__file__)
    functions, files = [source], {os.path.join(here, name) for name in ("compiler.py", "machine.py")}
    for function in functions:
        files.add(function.__code__.co_filename)
        reached = [function.__globals__.get(name) for name in function.__code__.co_names]
        for each in reached:
            if isinstance(each, FunctionType) and each in inlined and each not in functions:
                functions.append(each)
    try:
        return digest("".join(_digest(file) for file in sorted(files)).encode()).hex()
    except OSError:  # imported from an archive
        return ""


def digest(data: bytes) -> bytes:
    """The eight bytes by which Python compares sources with its own cache; for others it loads a library, or is slow."""
    return _imp.source_hash(0, data)


@functools.cache
def _digest(file: str) -> str:
    with open(file, "rb") as opened:
        return digest(opened.read()).hex()


def _folders(beside: str) -> list[str]:
    """The folders that are searched for compiled kernels; new ones are written to the first that is writable.

    Never one that others may write to: its contents are executed.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        folder = os.path.join(chosen, "distinput")
        if is_own(folder):
            return [folder]
        _tell_of(chosen)
    folders = [os.path.join(beside, "__pycache__")]
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        user = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        user = os.path.join(home, "Library", "Caches")
    else:
        user = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    if not user.startswith("~"):  # a user without a home has none
        folders.append(os.path.join(user, "distinput", "kernels"))
    return [folder for folder in folders if may_hold(folder)]


def may_hold(folder: str) -> bool:
    """True if kernels in a folder may be executed: nobody can write there who could not change the source of this library."""
    return is_own(folder, _owners())


@functools.cache
def _owners() -> frozenset[int]:
    """Who could change the source."""
    with contextlib.suppress(OSError):  # imported from an archive
        return frozenset({os.stat(__file__).st_uid})
    return frozenset()


@functools.cache
def _tell_of(folder: str) -> None:
    warnings.warn(
        f"NUMBA_CACHE_DIR={folder} is not used for compiled kernels: it must belong to you, and others must not be able to "
        "write to it or to a folder above it, since what is in it is executed; `chmod go-w` it, or name another folder",
        RuntimeWarning,
        stacklevel=2,
    )
