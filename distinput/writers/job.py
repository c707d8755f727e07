# SPDX-License-Identifier: Apache-2.0
"""Workers that write one dataset together: each its own files, and the last of them the manifest."""

import contextlib
import os
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from distinput.errors import InvalidArgumentError
from distinput.files.folder import join_path
from distinput.files.lock import FileLock
from distinput.files.paths import UNFINISHED
from distinput.plan.check import at_least
from distinput.writers.journal import Journal
from distinput.writers.stage import Stage

__all__ = ["WriteJob", "merging", "parts_of", "tidy"]

_PAUSE = 0.01


@dataclass(frozen=True)
class WriteJob:
    """Which of several workers this is.

    Args:
      num_workers: how many write.
      index: this one, from 0.
      name: the same on all workers, and another for each run of the job; needed where there are several.

    Raises:
      InvalidArgumentError: `index` is none of the workers, or there is no name.
    """

    num_workers: int = 1
    index: int = 0
    name: str | None = None

    def __post_init__(self) -> None:
        at_least("write", "num_workers", self.num_workers, 1)
        if not 0 <= self.index < self.num_workers:
            raise InvalidArgumentError(f"write: index must be from 0 to {self.num_workers - 1}, got {self.index}")
        if self.num_workers > 1 and not self.name:
            raise InvalidArgumentError(
                "write: several workers need job=, a word that is the same on all of them and another in each run, such as the "
                "id of the job: so that files of an earlier run are never taken for those of a worker of this one"
            )

    def word(self, index: int | None = None) -> str:
        """The word of a worker's stage."""
        if self.num_workers == 1:
            return "writing"
        return f"worker-{self.index if index is None else index:05d}-of-{self.num_workers:05d}"

    def prefix(self, prefix: str) -> str:
        """What the names of this worker's files begin with."""
        return prefix if self.num_workers == 1 else f"{prefix}-{self.index:05d}-of-{self.num_workers:05d}"

    @property
    def run(self) -> str | None:
        """The word for the writing, which all workers derive from the name; None: each writing draws its own."""
        return None if self.name is None else f"{zlib.crc32(self.name.encode()):08x}"


def parts_of(job: WriteJob, directory: str, key: Sequence[object]) -> list[tuple[Stage, Journal]] | None:
    """What each worker has written, in order; None: not all of them have."""
    found = []
    for index in range(job.num_workers):
        stage = Stage(directory, job.word(index))
        journal = Journal.of_json(stage.journal())
        if journal is None or not journal.done or journal.key != list(key) or journal.run != job.run:
            return None
        found.append((stage, journal))
    return found


def tidy(job: WriteJob, directory: str) -> None:
    """Remove what a worker has left that was killed after it had published."""
    for index in range(job.num_workers):
        Stage(directory, job.word(index)).tidy()
    if os.path.exists(_lock_of(directory)):
        with merging(directory):
            pass


@contextlib.contextmanager
def merging(directory: str):  # type: ignore[no-untyped-def]
    """One worker at a time is inside."""
    lock = FileLock(_lock_of(directory))
    while lock.take() is False:
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(lock.path)
        lock.release()


def _lock_of(directory: str) -> str:
    return join_path(directory, f".merging{UNFINISHED}")
