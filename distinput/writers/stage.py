# SPDX-License-Identifier: Apache-2.0
"""A stage: the hidden folder in which files are written, by one or several workers, until all are complete."""

import contextlib
import json
import os
import stat
import time
import uuid
import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from distinput.errors import DistinputError, FailedPreconditionError, InvalidArgumentError
from distinput.files.folder import join_path, make_folder, open_inside, remove_file
from distinput.files.paths import UNFINISHED, FileLock, local_path
from distinput.files.sink import Sink
from distinput.formats.indexed import ENDING
from distinput.names.lazy import dataclass
from distinput.plan.check import at_least, integer, normalized
from distinput.writers.manifest import Journal, WrittenFile, WrittenFiles, with_beside

# ----------------------------------------------------------------------------
# A stage: the hidden folder in which files are written, until all of them are complete and get their names together.
#
# It lies in the folder of the dataset, so that giving a file its name is a rename. It holds a lock, which the system
# releases when the writer ends, however it ends, and a journal that says which files are complete, and where the pipeline
# stood then. The next writer goes on from there, or removes what is of another pipeline.
#
# Stores of objects have no renames and no locks. There, files are written under their names, which no other writing has,
# and the manifest, written last, makes them a dataset.
# ----------------------------------------------------------------------------


_JOURNAL = "journal.json"
_LOCK = "lock"


class Stage:
    """Where the files of one writing are, until they are published.

    Args:
      directory: the folder of the dataset, which is made.
      word: tells apart writings that may continue at the same time.

    Attributes:
      run: a word for the writing, different each time; that of the writing that goes on.
    """

    def __init__(self, directory: str, word: str) -> None:
        self.directory = directory
        self.run = uuid.uuid4().hex[:8]
        self.local = local_path(directory) is not None
        self.folder = join_path(directory, f".{word}{UNFINISHED}") if self.local else directory
        self._lock: FileLock | None = None
        self._names: list[str] = []  # of remote files, to be removed again
        self._process = os.getpid()

    @property
    def mine(self) -> bool:
        """Whether this process writes here; a child that was forked meanwhile has the stage too, and leaves it alone."""
        return self._process == os.getpid()

    def take(self, who: str = "write") -> bool:
        """Begin to write here, unless another process does: then False.

        Args:
          who: the op, for errors.

        Raises:
          InvalidArgumentError: there is a file where a folder must be.
          FailedPreconditionError: the stage is a symbolic link: what is in a stage is removed.
        """
        try:
            make_folder(self.directory)
        except (FileExistsError, NotADirectoryError) as error:
            raise InvalidArgumentError(f"{who}: {self.directory} is a file, or below one; name a folder") from error
        if not self.local:
            return True
        while True:
            if os.path.islink(self.folder):
                raise FailedPreconditionError(
                    f"{self.folder}: is a symbolic link, to {os.path.realpath(self.folder)}; a writer removes what is in this "
                    "folder, so it must be one of its own: remove the link"
                )
            make_folder(self.folder)
            lock = FileLock(os.path.join(self.folder, _LOCK))
            try:
                got = lock.take()
            except FileNotFoundError:  # the last writer has just removed the folder
                continue
            if got is None:  # no locks here: a folder of its own, of which nobody else knows
                self.folder = join_path(self.directory, f".{self.run}{UNFINISHED}")
                make_folder(self.folder)
                return True
            self._lock = lock if got else None
            return got

    def taken_by(self) -> str:
        """Who writes here, as far as is known."""
        return FileLock(os.path.join(self.folder, _LOCK)).holder()

    def path(self, name: str) -> str:
        """Where to write a file."""
        if not self.local:
            self._names.append(name)
        return join_path(self.folder, name)

    def journal(self) -> dict[str, Any] | None:
        """What the last writer recorded; None if there was none, or if it is unreadable."""
        if not self.local or os.path.islink(self.folder):
            return None
        try:
            with open_inside(self.folder, _JOURNAL) as file:
                found = json.loads(file.read())
        except (DistinputError, OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def record(self, journal: dict[str, Any]) -> None:
        """Keep a journal; it takes the place of the last one at once."""
        if self.local:
            with Sink(os.path.join(self.folder, _JOURNAL), own=True) as sink:
                sink.write(json.dumps(journal).encode())

    def has(self, file: WrittenFile) -> bool:
        """True if a complete file, and the one beside it, are here, or were published already."""

        def complete(name: str, size: int) -> bool:
            for folder in (self.folder, self.directory):
                with contextlib.suppress(OSError):
                    status = os.lstat(os.path.join(folder, name))
                    if stat.S_ISREG(status.st_mode) and status.st_size == size:
                        return True
            return False

        return all(complete(each.name, each.bytes) for each in with_beside([file]))

    def clear(self, all_but: Sequence[WrittenFile] | None = None) -> None:
        """Remove all that a writer left here, or all but these files and the journal that names them."""
        kept = {_LOCK} if all_but is None else {_LOCK, _JOURNAL, *[file.name for file in with_beside(all_but)]}
        for name in os.listdir(self.folder) if self.local else ():
            if name not in kept:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.folder, name))

    def publish(self, files: Sequence[WrittenFile]) -> None:
        """Give files their names; those that have them already are left alone.

        Raises:
          FailedPreconditionError: a file is gone.
        """
        for file in with_beside(files) if self.local else ():
            try:
                os.replace(os.path.join(self.folder, file.name), os.path.join(self.directory, file.name))
            except FileNotFoundError:  # it was published before
                if not os.path.exists(os.path.join(self.directory, file.name)):
                    raise FailedPreconditionError(
                        f"write: {file.name} was removed from {self.folder} before it was complete; write again"
                    ) from None

    def remove(self) -> None:
        """Remove the stage itself, at the end; may be called again."""
        self._names.clear()
        if self.local and self.mine:
            with contextlib.suppress(OSError):
                self.clear()
                remove_file(os.path.join(self.folder, _LOCK))
                os.rmdir(self.folder)  # unless the next writer has begun here
        self.release()

    def tidy(self) -> None:
        """Remove what a writer has left that was killed after it had published."""
        if self.local and os.path.isdir(self.folder) and not os.path.islink(self.folder) and self.take():
            self.remove()

    def discard(self) -> None:
        """Remove all that was written, and the stage."""
        if not self.local and self.mine:
            for name in self._names:
                with contextlib.suppress(OSError):
                    remove_file(join_path(self.directory, name))
        self.remove()

    def release(self) -> None:
        """Leave the stage to the next writer, as it is; may be called again."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


def publish(
    stages: Sequence[tuple[Stage, Sequence[WrittenFile]]], made: WrittenFiles, old: WrittenFiles | None
) -> WrittenFiles:
    """Publish the files of stages, and the manifest that makes them a dataset; remove those of an older one, and the stages.

    A process that is killed in between leaves the older dataset or this one, and the next writer finishes what it began.
    """
    for stage, files in stages:
        stage.publish(files)
    made.save()
    remove_old(made, old)
    for stage, _ in stages:
        stage.remove()
    return made


def remove_old(made: WrittenFiles, old: WrittenFiles | None) -> None:
    """Remove the files of an older dataset that are not those of the one in its place."""
    kept = {file.name for file in with_beside(made.files)}
    remove_data(made.directory, {file.name for file in with_beside(old.files)} - kept if old is not None else set())


def remove_data(directory: str, names: Collection[str]) -> None:
    """Remove files of a dataset, and before them the indices that readers have built beside them."""
    local = local_path(directory)
    for found in os.listdir(local or os.curdir) if local is not None and names else ():
        if found.startswith(".") and found.endswith(ENDING) and found[1 : -len(ENDING)].rpartition(".")[0] in names:
            remove_file(join_path(directory, found))
    for name in sorted(names):
        remove_file(join_path(directory, name))


# ----------------------------------------------------------------------------
# Workers that write one dataset together: each its own files, and the last of them the manifest.
# ----------------------------------------------------------------------------


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
        normalized(self, "num_workers", at_least("write", "num_workers", self.num_workers, 1))
        normalized(self, "index", integer("write", "index", self.index))
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
def merging(directory: str) -> Iterator[None]:
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
