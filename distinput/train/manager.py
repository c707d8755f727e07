# SPDX-License-Identifier: Apache-2.0
"""The manager of the checkpoints of a folder: it numbers them, keeps the latest ones and removes the others."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from distinput.errors import FailedPreconditionError
from distinput.files.folder import join_path, remove_file
from distinput.plan.check import integer
from distinput.train.checkpoint_file import file_of
from distinput.train.record import CheckpointIndex, latest_name, note_whole

__all__ = ["CheckpointManager"]

_STALE_SECONDS = 5.0
"""How long a worker waits to see what the first worker sees: shared folders may show new files late."""

_HOUR = 3600.0


class Saved(Protocol):
    """What a manager asks of a checkpoint."""

    @property
    def save_counter(self) -> Any:
        """A variable that counts how often it was saved."""

    def restore(self, save_path: str | os.PathLike[str] | None) -> Any:
        """Bring back what was saved."""

    def _write(self, path: str, then: Callable[[], Any]) -> Any: ...

    def _crew_now(self) -> Any: ...


C = TypeVar("C", bound=Saved)


class CheckpointManager(Generic[C]):
    """Saves checkpoints in a folder, keeps the latest of them, and finds the latest that is not damaged.

    Only one manager at a time may save in a folder. It keeps its list there, in a JSON file named `checkpoint`, with which the
    next manager of the folder continues.

    Args:
      checkpoint: what is saved.
      directory: a path or URL; it is made when needed.
      max_to_keep: how many checkpoints stay; None: all.
      keep_checkpoint_every_n_hours: a checkpoint that would be removed stays for good if it was saved at least so long after
        the last one that stays for good.
      checkpoint_name: the names are this and a number.
      step_counter: a variable that counts steps, or a function that returns their number; needed for `checkpoint_interval`.
      checkpoint_interval: `save` does nothing until so many steps have passed since the last checkpoint.
      init_fn: called by `restore_or_initialize` if there is no checkpoint.
      last_checkpoint_step: the step of the last checkpoint, if it is known.

    Raises:
      TypeError: `max_to_keep` is no integer.
      ValueError: `max_to_keep` is not positive, or `checkpoint_interval` lacks a `step_counter`.

    >>> import tempfile
    >>> import numpy as np
    >>> import distinput as di
    >>> manager = di.train.CheckpointManager(di.train.Checkpoint(step=np.array(0)), tempfile.mkdtemp(), max_to_keep=2)
    >>> paths = [manager.save() for _ in range(3)]
    >>> manager.checkpoints == paths[1:], manager.latest_checkpoint == paths[2]
    (True, True)

    Source: `tf.train.CheckpointManager`.
    """

    def __init__(
        self,
        checkpoint: C,
        directory: str | os.PathLike[str],
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and integer("CheckpointManager", "max_to_keep", max_to_keep) <= 0:
            raise ValueError(f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}.")
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("`step_counter` should be passed if `checkpoint_interval` is not None.")
        if not checkpoint_name or "/" in checkpoint_name or os.sep in checkpoint_name:
            raise ValueError(f"CheckpointManager: checkpoint_name must be the name of a file, got {checkpoint_name!r}")
        self._checkpoint, self._directory, self._name = checkpoint, os.fspath(directory), checkpoint_name
        self._max_to_keep, self._hours = max_to_keep, keep_checkpoint_every_n_hours
        self._step_counter, self._interval, self._init_fn = step_counter, checkpoint_interval, init_fn
        self._last_step = last_checkpoint_step
        self._began = time.time()
        self._names = list(CheckpointIndex.read(self._directory).managed)
        self._latest: str | None = None

    @property
    def checkpoint(self) -> C:
        """What is saved.

        Source: `tf.train.CheckpointManager.checkpoint`.
        """
        return self._checkpoint

    @property
    def directory(self) -> str:
        """The folder.

        Source: `tf.train.CheckpointManager.directory`.
        """
        return self._directory

    @property
    def checkpoint_interval(self) -> int | None:
        """The least number of steps between two checkpoints.

        Source: `tf.train.CheckpointManager.checkpoint_interval`.
        """
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that the manager may remove, oldest first.

        Source: `tf.train.CheckpointManager.checkpoints`.
        """
        return [join_path(self._directory, name) for name in self._names]

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the latest checkpoint that is not damaged; None if there is none.

        Among several workers, one that does not see the folder of the first worker gets None until the first `save`;
        `restore_or_initialize` works on all of them.

        Raises:
          DataLossError: there are checkpoints, and all of them are damaged.

        Source: `tf.train.CheckpointManager.latest_checkpoint`.
        """
        if self._latest is not None and not self._is_chief():
            return join_path(self._directory, self._latest)
        name = latest_name(self._directory)
        return None if name is None else join_path(self._directory, name)

    def save(self, checkpoint_number: Any = None, check_interval: bool = True, options: Any = None) -> str | None:
        """Save a checkpoint, then remove those that are not to be kept.

        Args:
          checkpoint_number: the number in its name, also as a variable; None takes the number of saves.
          check_interval: False to save before `checkpoint_interval` has passed, unless this step was saved already.
          options: ignored.

        Returns:
          Its path; None if `checkpoint_interval` has not passed.

        Raises:
          Exception: see `Checkpoint.save`.

        Source: `tf.train.CheckpointManager.save`.
        """
        del options
        step = self._step()
        if self._interval is not None and self._last_step is not None:
            assert step is not None
            if step == self._last_step or (check_interval and step < self._last_step + self._interval):
                return None
        counter = self._checkpoint.save_counter
        counter.assign_add(1)
        name = f"{self._name}-{int(counter if checkpoint_number is None else checkpoint_number)}"
        path = join_path(self._directory, name)
        try:
            self._names = self._checkpoint._write(path, lambda: self._recorded(name))
        except BaseException:
            counter.assign_sub(1)
            raise
        self._latest, self._last_step = name, step
        return path

    def _recorded(self, name: str) -> list[str]:
        """Record a checkpoint that was written, remove old ones, and return the names that are left."""
        now = time.time()
        note_whole(join_path(self._directory, name))
        record = CheckpointIndex.read(self._directory)
        record.preserved = min(now, self._began - 1.0 if record.preserved is None else record.preserved)
        record.managed.pop(name, None)
        record.managed[name], record.latest = now, name
        record.others = [other for other in record.others if other != name]
        self._remove(other for other in record.removed if other != name)  # a process that was killed may have left them
        removed = []
        while self._max_to_keep is not None and len(record.managed) > self._max_to_keep:
            oldest = next(iter(record.managed))
            when = record.managed.pop(oldest)
            if self._hours and when - self._hours * _HOUR >= record.preserved:
                record.preserved = when
                record.others.append(oldest)
            else:
                removed.append(oldest)
        # The record comes first: whatever it names exists, however this process ends.
        record.removed = removed
        record.write()
        self._remove(removed)
        return list(record.managed)

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            remove_file(file_of(join_path(self._directory, name)))

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint that is not damaged; if there is none, call `init_fn`.

        Of several workers, the first one decides which that is. The others need not see its folder; but if one sees another
        latest checkpoint in its own, that is an error.

        Returns:
          The path of the checkpoint; None if there is none.

        Raises:
          DataLossError: there are checkpoints, and all of them are damaged.
          FailedPreconditionError: a worker sees another latest checkpoint.
          Exception: see `Checkpoint.restore`.

        Source: `tf.train.CheckpointManager.restore_or_initialize`.
        """
        crew = self._checkpoint._crew_now()
        first = crew.exchange("latest", lambda: latest_name(self._directory) if crew.is_chief else None)[0]
        views = crew.exchange("latest here", lambda: first if crew.is_chief else self._view(first))
        for worker, name in enumerate(views):
            if name not in (first, None):
                raise FailedPreconditionError(
                    f"CheckpointManager: the latest checkpoint in {self._directory} is {name} on worker {worker} and {first} "
                    "on worker 0; give all workers the same folder, or the others an empty one"
                )
        if first is None:
            if self._init_fn is not None:
                self._init_fn()
            return None
        path = join_path(self._directory, first)
        self._checkpoint.restore(path)
        self._latest, self._last_step = first, self._step()
        return path

    def _view(self, first: str | None) -> str | None:
        """The latest checkpoint that this worker sees; if it differs from the first worker's, looks again for some seconds."""
        deadline = time.monotonic() + _STALE_SECONDS
        while True:
            name = latest_name(self._directory)
            if name in (first, None) or time.monotonic() > deadline:
                return name
            time.sleep(0.1)

    def sync(self) -> None:
        """Return at once: when `save` returns, the file is complete and on the disk.

        Source: `tf.train.CheckpointManager.sync`.
        """

    def _is_chief(self) -> bool:
        return bool(self._checkpoint._crew_now().is_chief)

    def _step(self) -> int | None:
        counter = self._step_counter
        if self._interval is None:
            return None
        return int(counter() if callable(counter) and not hasattr(counter, "_saved") else counter)
