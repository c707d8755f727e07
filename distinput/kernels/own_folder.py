# SPDX-License-Identifier: Apache-2.0
"""Whether a folder is this user's own: what is cached in it is believed, or even executed."""

import contextlib
import os
import stat
import sys
from collections.abc import Collection

__all__ = ["is_own", "is_own_file"]

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
