# SPDX-License-Identifier: Apache-2.0
"""The locations and file names of compiled kernels on disk.

Programs that call no kernel import this module as well, so slow imports are made inside the functions.
"""

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Collection
from types import FunctionType
from typing import TYPE_CHECKING

from distinput.names.lazy import later

if TYPE_CHECKING:
    from distinput.kernels import own_folder
else:
    own_folder = later("distinput.kernels.own_folder")  # whose a folder is, is looked at when a kernel is compiled

__all__ = ["CacheSlot", "holds", "may_hold", "place"]

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
    from hashlib import sha256

    here = os.path.dirname(__file__)
    functions, files = [source], {os.path.join(here, name) for name in ("compiler.py", "machine.py")}
    for function in functions:
        files.add(function.__code__.co_filename)
        reached = [function.__globals__.get(name) for name in function.__code__.co_names]
        for each in reached:
            if isinstance(each, FunctionType) and each in inlined and each not in functions:
                functions.append(each)
    try:
        return sha256("".join(_digest(file) for file in sorted(files)).encode()).hexdigest()[:16]
    except OSError:  # imported from an archive
        return ""


@functools.cache
def _digest(file: str) -> str:
    from hashlib import sha256

    with open(file, "rb") as opened:
        return sha256(opened.read()).hexdigest()


def _folders(beside: str) -> list[str]:
    """The folders that are searched for compiled kernels; new ones are written to the first that is writable.

    Never one that others may write to: its contents are executed.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        folder = os.path.join(chosen, "distinput")
        if own_folder.is_own(folder):
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
    return own_folder.is_own(folder, _owners())


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
