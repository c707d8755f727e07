# SPDX-License-Identifier: Apache-2.0
"""Describes how the file lists of two workers differ, even if their machines keep the files in different folders."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from distinput.core.digest import common_folder
from distinput.files.facts import NamesFingerprint
from distinput.files.paths import local_path

__all__ = ["NameList", "names_said"]

MOST = 10_000
"""The most names that a worker sends to the others."""
_SHOWN = 3
_TRIED = 20


@dataclass(frozen=True)
class NameList:
    """The names of files and their sizes, -1 if unknown.

    Args:
      paths: the first `MOST` of them.
      sizes: the size of each in bytes.
      count: the number of all files.
    """

    paths: list[str]
    sizes: list[int]
    count: int

    @classmethod
    def of(cls, names: NamesFingerprint) -> Self:
        """The list of the files named by a step."""
        count = int(names.words["files"])
        paths = [names.path(i) for i in range(min(count, MOST))]
        return cls(paths, [_size(path) for path in paths], count)

    def as_json(self) -> list[Any]:
        """The fields as JSON, for `NameList(*json)`."""
        return [self.paths, self.sizes, self.count]


def _size(path: str) -> int:
    local = local_path(path)
    try:
        return -1 if local is None else os.stat(local).st_size
    except OSError:
        return -1


def names_said(here: NameList, there: NameList, whom: str) -> Iterator[str]:
    """The differences between the files of one worker and those of another, `whom`."""
    mine, theirs = _aligned(here.paths, there.paths)
    missing, extra = [n for n in theirs if n not in set(mine)], [n for n in mine if n not in set(theirs)]
    if missing or extra or here.count != there.count:
        which = [f"{_some(missing)} missing"] * bool(missing) + [f"{_some(extra)} not there on {whom}"] * bool(extra)
        yield f"{_count(here.count)}, {whom}: {_count(there.count)}" + (": " + ", ".join(which) if which else "")
        return
    if mine != theirs:
        at = next(i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b)
        yield (
            f"the same {_count(here.count)} in another order: file {at + 1} is {mine[at]}, {whom}: {theirs[at]}; "
            "sort them on every worker"
        )
        return
    for name, a, b in zip(mine, here.sizes, there.sizes, strict=True):
        if a != b:
            yield f"{name} {_bytes(a)}, {whom}: {_bytes(b)}"
            return
    yield f"its files are others than those of {whom}, or are being written"


def _aligned(here: Sequence[str], there: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names without the folders in which the two workers keep them, as far as these can be recognised.

    >>> _aligned(["/a/x/1", "/a/x/2"], ["/b/c/x/1", "/b/c/y/3"])
    (['x/1', 'x/2'], ['x/1', 'y/3'])
    """
    mine, theirs = _below(here, _folder(here)), _below(there, _folder(there))
    most = len(set(mine) & set(theirs))
    for path in here[:_TRIED]:
        for other in [one for one in there if os.path.basename(one) == os.path.basename(path)][:_TRIED]:
            folders = _before_the_same(path, other)
            if all(one.startswith(folders[0]) for one in here) and all(one.startswith(folders[1]) for one in there):
                cut = _below(here, folders[0]), _below(there, folders[1])
                equal = len(set(cut[0]) & set(cut[1]))
                if equal > most:
                    (mine, theirs), most = cut, equal
    folder = _folder([*mine, *theirs])
    return _below(mine, folder), _below(theirs, folder)


def _before_the_same(a: str, b: str) -> tuple[str, str]:
    """Two paths without their common ending."""
    left, right = a.split("/"), b.split("/")
    while left and right and left[-1] == right[-1]:
        left.pop()
        right.pop()
    return tuple("/".join([*parts, ""]) if parts else "" for parts in (left, right))  # type: ignore[return-value]


def _folder(paths: Sequence[str]) -> str:
    return os.fsdecode(common_folder([os.fsencode(path) for path in paths]))


def _below(paths: Sequence[str], folder: str) -> list[str]:
    return [path[len(folder) :] for path in paths]


def _count(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"


def _bytes(size: int) -> str:
    return "cannot be read" if size < 0 else f"has {size} bytes"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return f"{shown} {'is' if len(names) == 1 else 'are'}"
