# SPDX-License-Identifier: Apache-2.0
"""The records that known loaders are tried with: in memory, in uneven text files, in uneven tar files."""

import atexit
import io
import json
import os
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["FILES", "Numbers", "spans", "tar_files", "text_files"]

FILES = 5
"""How many files there are."""

_VARIABLE = "DISTINPUT_JUDGE_FILES"
_SHARES = (41, 7, 23, 2, 30)


class Numbers:
    """The records 0, 1, 2, ... as a dataset that is read by position."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < self._count:
            raise IndexError(index)
        return int(index)


def spans(records: int) -> list[range]:
    """The records of each file; some have many, some few.

    >>> [len(span) for span in spans(103)], sum(map(len, spans(17)))
    ([41, 7, 23, 2, 30], 17)
    """
    ends = [records * sum(_SHARES[: index + 1]) // sum(_SHARES) for index in range(FILES)]
    return [range(first, end) for first, end in zip([0, *ends], ends, strict=False)]


@cache
def _folder() -> str:
    """A folder that is removed when the process ends that made it; the processes that it starts use the same one."""
    if not os.path.isdir(os.environ.get(_VARIABLE, "")):
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="distinput-judge-")
        atexit.register(_remove, os.environ[_VARIABLE], os.getpid())
    return os.environ[_VARIABLE]


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not one that was forked from it
        shutil.rmtree(folder, ignore_errors=True)


@cache
def text_files(records: int) -> tuple[str, ...]:
    """Text files of one record a line."""
    paths = [Path(_folder(), f"{records}-{number}.txt") for number in range(FILES)]
    for path, span in zip(paths, spans(records), strict=True):
        if not path.exists():  # else another process of the same job has written it
            path.write_text("".join([f"{record}\n" for record in span]), encoding="utf-8")
    return tuple(map(str, paths))


@cache
def tar_files(records: int) -> tuple[str, ...]:
    """Tar files with a member of JSON for each record."""
    paths = [Path(_folder(), f"{records}-{number}.tar") for number in range(FILES)]
    for path, span in zip(paths, spans(records), strict=True):
        if path.exists():
            continue
        with tarfile.open(path, "w") as archive:
            for record in span:
                said = json.dumps(record).encode()
                member = tarfile.TarInfo(f"{record:06}.json")
                member.size = len(said)
                archive.addfile(member, io.BytesIO(said))
    return tuple(map(str, paths))
