# SPDX-License-Identifier: Apache-2.0
"""The records that known loaders are tried with: in memory, in uneven text files, in uneven tar files."""

import atexit
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from functools import cache
from itertools import accumulate, pairwise, starmap
from pathlib import Path

from distinput.names.lazy import dataclass

_VARIABLE = "DISTINPUT_JUDGE_FILES"
_SHARES = (41, 7, 23, 2, 30)
FILES = len(_SHARES)
"""How many files there are."""


@dataclass(frozen=True)
class NumberedRecords:
    """The records 0, 1, 2, ... as a dataset that is read by position."""

    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < self.count:
            raise IndexError(index)
        return int(index)


def spans(records: int) -> list[range]:
    """The records of each file; some have many, some few.

    >>> [len(span) for span in spans(103)], sum(map(len, spans(17)))
    ([41, 7, 23, 2, 30], 17)
    """
    return list(starmap(range, pairwise([records * end // sum(_SHARES) for end in accumulate(_SHARES, initial=0)])))


@cache
def files() -> str:
    """A folder that is removed when the process ends that made it; the processes that it starts use the same one."""
    if not os.path.isdir(os.environ.get(_VARIABLE, "")):
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="distinput-judge-")
        atexit.register(_remove, os.environ[_VARIABLE], os.getpid())
    return os.environ[_VARIABLE]


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not one that was forked from it
        shutil.rmtree(folder, ignore_errors=True)


def once(name: str, write: Callable[[Path], None]) -> Path:
    """A folder of files that are written by the first process that asks for it, and found whole by all others.

    Args:
      name: of the folder.
      write: writes the files into an empty folder.
    """
    place = Path(files(), name)
    if not place.exists():
        draft = Path(tempfile.mkdtemp(dir=files()))
        write(draft)
        try:
            draft.rename(place)
        except OSError:  # another process of the same job was faster
            shutil.rmtree(draft)
    return place


@cache
def text_files(records: int) -> tuple[str, ...]:
    """Text files of one record a line."""

    def write(folder: Path) -> None:
        for number, span in enumerate(spans(records)):
            Path(folder, f"{number}.txt").write_text("".join([f"{record}\n" for record in span]), encoding="utf-8")

    return _paths(once(f"text-{records}", write))


@cache
def tar_files(records: int) -> tuple[str, ...]:
    """Tar files with a member of JSON for each record."""

    def write(folder: Path) -> None:
        for number, span in enumerate(spans(records)):
            with tarfile.open(folder / f"{number}.tar", "w") as archive:
                for record in span:
                    said = json.dumps(record).encode()
                    member = tarfile.TarInfo(f"{record:06}.json")
                    member.size = len(said)
                    archive.addfile(member, io.BytesIO(said))

    return _paths(once(f"tar-{records}", write))


def _paths(folder: Path) -> tuple[str, ...]:
    return tuple(map(str, sorted(folder.iterdir())))
