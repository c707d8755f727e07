# SPDX-License-Identifier: Apache-2.0
"""Where compiled kernels are kept on disk, and by which names. Loaded with the first call of a kernel."""

import contextlib
import functools
import hashlib
import os
import sys
from pathlib import Path
from types import FunctionType

from distinput.kernels.kernel import INLINED

__all__ = ["holds", "place"]


def place(name: str, source: FunctionType) -> tuple[str, list[Path]]:
    """The beginning of a kernel's file names in the cache, which tells the source, and the folders to look in."""
    stamp = _stamp(source)
    full = f"{name}.py{sys.version_info.major}{sys.version_info.minor}-{stamp}"
    return full, _folders(Path(source.__code__.co_filename).parent) if stamp else []


def holds(name: str, folders: list[Path]) -> bool:
    """Whether a kernel of that name may be there, so that it is worth importing numba while the caller waits."""
    try:
        return any(next(folder.glob(f"{name}-*.nbc"), None) is not None for folder in folders)
    except OSError:
        return False


def _stamp(source: FunctionType) -> str:
    """A name for the text of a kernel and of all it calls, empty where that cannot be read."""
    functions, files = [source], {str(Path(__file__).with_name(name)) for name in ("compiler.py", "machine.py")}
    for function in functions:
        files.add(function.__code__.co_filename)
        reached = [function.__globals__.get(name) for name in function.__code__.co_names]
        for each in reached:
            if isinstance(each, FunctionType) and each in INLINED and each not in functions:
                functions.append(each)
    try:
        return hashlib.sha256("".join(_digest(file) for file in sorted(files)).encode()).hexdigest()[:16]
    except OSError:  # imported from an archive
        return ""


@functools.cache
def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _folders(beside: Path) -> list[Path]:
    """Where compiled kernels are looked for, and left where the first can be written."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen) / "distinput"]
    folders = [beside / "__pycache__"]
    # Never a folder that others may write: what is in there is executed.
    with contextlib.suppress(RuntimeError):  # a user without a home
        if sys.platform == "win32":
            user = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            user = Path.home() / "Library" / "Caches"
        else:
            user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folders.append(Path(user) / "distinput" / "kernels")
    return folders
