# SPDX-License-Identifier: Apache-2.0
"""Files of a store that match a pattern, or are below a folder: all of them, or an error.

fsspec leaves out a folder that cannot be listed, whatever the reason, so a request that fails would be files that nobody
misses.
"""

import re
from typing import Any

__all__ = ["below", "globbed"]

_MAGIC = re.compile(r"[*?\[]")


def globbed(system: Any, pattern: str, *, folders: bool = True) -> list[str]:
    """What `system.glob(pattern)` returns.

    Args:
      system: a file system of fsspec.
      pattern: with `*`, `?`, `[...]` or `**`.
      folders: whether folders that match are among it.

    Raises:
      OSError: a folder cannot be listed; one that is not there has no files.
    """
    from fsspec.utils import glob_translate

    if not _plain(system, "glob") or ("**" in pattern and not _plain(system, "find")):
        found = system.glob(pattern, detail=True)
        if not isinstance(found, dict):  # a file system that does not tell
            return list(found)
        return [name for name, described in found.items() if folders or described.get("type") != "directory"]
    name = str(system._strip_protocol(pattern))
    magic = _MAGIC.search(name)
    root = name[: name.rfind("/", 0, magic.start()) + 1] if magic else name
    depth = None if "**" in name else name[len(root) :].count("/") + 1
    matches = re.compile(glob_translate(name)).match
    files, below_it = _walked(system, root, depth)
    if not folders:
        return sorted(filter(matches, files))
    if root.strip("/") and (files or below_it):
        below_it.add(root.rstrip("/"))
    slash = "/" if name.endswith("/**") else ""  # `a/**` matches the folder a too
    return sorted([*filter(matches, files), *(folder for folder in below_it if matches(folder + slash))])


def below(system: Any, folder: str) -> list[str]:
    """What `system.find(folder)` returns: the files below a folder.

    Raises:
      OSError: a folder cannot be listed; one that is not there has no files.
    """
    if not _plain(system, "find"):
        return list(system.find(folder))
    name = str(system._strip_protocol(folder))
    return sorted(_walked(system, name, None)[0]) or list(system.find(folder))


def _plain(system: Any, name: str) -> bool:
    """True if the method of a file system is the one that all share, which walks through folders."""
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractFileSystem

    kind = type(system)
    if isinstance(system, AsyncFileSystem):
        return getattr(kind, f"_{name}") is getattr(AsyncFileSystem, f"_{name}")
    return getattr(kind, name) is getattr(AbstractFileSystem, name)


def _walked(system: Any, root: str, depth: int | None) -> tuple[set[str], set[str]]:
    """The names of files, and those of folders, down to a depth.

    `walk` of fsspec has an `on_error`, but does not hand it on to the folders below the first one: they are listed here.
    """
    files, folders, waiting = set[str](), set[str](), [(root, 1)]
    while waiting:
        folder, level = waiting.pop()
        try:
            listed = system.ls(folder, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            continue
        for each in listed:
            name = each["name"].rstrip("/")
            if each["type"] != "directory":
                files.add(name)
            elif name != folder.rstrip("/"):
                folders.add(name)
                if depth is None or level < depth:
                    waiting.append((name, level + 1))
    return files, folders
