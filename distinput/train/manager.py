# SPDX-License-Identifier: Apache-2.0
"""The manager of the checkpoints of a folder, their record, and what is in one without its program."""

import json
import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, Protocol

from distinput.errors import DataLossError, DistinputError, FailedPreconditionError, InputWarning, NotFoundError
from distinput.files.folder import join_path, leads_out, names_in, open_inside, plain_name, remove_file, split_path
from distinput.files.sink import Sink
from distinput.files.source import stamp_of
from distinput.names.lazy import dataclass
from distinput.plan.check import integer
from distinput.train.checkpoint_file import SUFFIX, CheckpointFile, file_of
from distinput.train.coding import checked_entries, decoded
from distinput.url_secrets import without_secrets
from distinput.values.spec_json import MalformedJson, items_of, json_value, member

# ----------------------------------------------------------------------------
# The record of the checkpoints in a folder: a JSON file named `checkpoint`.
# ----------------------------------------------------------------------------


_NAME = "checkpoint"
_FORMAT = "distinput.checkpoints"
_NUMBERED = re.compile(rf"(.*-(\d+)){re.escape(SUFFIX)}", re.DOTALL)

_LAST = 1e300
"""No time is as late."""

_whole: dict[str, str] = {}
"""The stamps of checkpoint files that were verified, or written by this process."""


@dataclass
class CheckpointIndex:
    """The checkpoints of a folder.

    Args:
      folder: a path or URL.
      latest: the name of the latest one.
      managed: the names of those that a manager may remove, with the times when they were saved, oldest first.
      others: the names of those that `Checkpoint.save` wrote, oldest first.
      preserved: the time of the last one that a manager keeps for good.
      removed: the names of those whose files are about to be removed; a process that ends before leaves them to the next save.
    """

    folder: str
    latest: str | None = None
    managed: dict[str, float] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    preserved: float | None = None
    removed: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: str) -> "CheckpointIndex":
        """Read the record of a folder; if there is none, or it is damaged, make one from the names of the files."""
        try:
            with open_inside(folder, _NAME) as file:
                record = json_value(file.read())
            if member(record, "format") != _FORMAT:
                raise MalformedJson("it is not a record of checkpoints")
            pairs = [items_of(each, "a checkpoint with its time", 2) for each in member(record, "managed", list)]
            latest, preserved = member(record, "latest"), member(record, "preserved")
            return cls(
                folder,
                None if latest is None else plain_name(latest),
                {plain_name(name): _time(when) for name, when in pairs},
                [plain_name(name) for name in member(record, "others", list)],
                None if preserved is None else _time(preserved),
                [plain_name(name) for name in items_of(record.get("removed", []), "'removed'")],
            )
        except NotFoundError:
            pass
        except (DistinputError, MalformedJson) as error:
            path = join_path(folder, _NAME)
            warnings.warn(
                f"{path}: the record of checkpoints is damaged ({error}); the numbers in the names of the files are taken",
                InputWarning,
                stacklevel=2,
            )
        numbered = [match for match in map(_NUMBERED.fullmatch, names_in(folder)) if match]
        names = [match[1] for match in sorted(numbered, key=lambda match: int(match[2]))]
        return cls(folder, names[-1] if names else None, {}, names)

    def write(self) -> None:
        """Write the record; it replaces the one before when it is complete."""
        record = {
            "format": _FORMAT, "latest": self.latest, "managed": list(self.managed.items()), "others": self.others,
            "preserved": self.preserved, "removed": self.removed,
        }  # fmt: skip
        with Sink(join_path(self.folder, _NAME), durable=True, own=True) as sink:
            sink.write(json.dumps(record, indent=1).encode())

    @classmethod
    def note(cls, path: str) -> None:
        """Record a checkpoint that was saved without a manager as the latest of its folder."""
        folder, name = split_path(file_of(path))
        record = cls.read(folder)
        record.latest = name.removesuffix(SUFFIX)
        record.removed = [other for other in record.removed if other != record.latest]  # it is another one of this name
        if record.latest not in record.managed:
            record.others = [other for other in record.others if other != record.latest] + [record.latest]
        record.write()
        note_whole(path)

    def newest_first(self) -> Iterator[str]:
        """The names, the latest first."""
        names = [self.latest, *reversed(self.managed), *reversed(self.others)]
        yield from dict.fromkeys(name for name in names if name is not None)


def _time(value: Any) -> float:
    """A time.

    Raises:
      MalformedJson: it is none.
    """
    if type(value) not in (int, float) or not -_LAST <= value <= _LAST:
        raise MalformedJson(f"{value!r:.60} is no time")
    return float(value)


def note_whole(path: str) -> None:
    """Remember that a checkpoint was just written, so that it need not be verified."""
    _whole[file_of(path)] = stamp_of(file_of(path))


def is_whole(path: str) -> bool:
    """True if a checkpoint was verified or written by this process, and has not changed since."""
    known = _whole.get(file_of(path))
    return known is not None and known == stamp_of(file_of(path))


def latest_name(folder: str) -> str | None:
    """The name of the latest checkpoint in a folder that is not damaged; None if there is none at all.

    Raises:
      DataLossError: all checkpoints are damaged.
    """
    damage: list[str] = []
    for name in CheckpointIndex.read(folder).newest_first():
        path = join_path(folder, name)
        try:
            if leads_out(file_of(path)):
                raise FailedPreconditionError(f"{file_of(path)}: is a symbolic link out of its folder")
            if not is_whole(path):
                CheckpointFile(path).close()
                note_whole(path)
        except NotFoundError:
            damage.append(f"{file_of(path)}: is not there")
        except (DataLossError, FailedPreconditionError) as error:
            damage.append(str(error))
        else:
            if damage:
                warnings.warn(f"{'; '.join(damage)}; so {path} is taken", InputWarning, stacklevel=2)
            return name
    if any(not told.endswith("is not there") for told in damage):
        raise DataLossError(f"{folder}: no checkpoint in this folder can be read: {'; '.join(damage)}")
    return None


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """The path of the latest checkpoint in a folder, for `Checkpoint.restore`; None if there is none.

    A checkpoint that is damaged or gone is passed over with an `InputWarning`. The file is read once to know.

    Args:
      checkpoint_dir: a path or URL.
      latest_filename: not supported; None.

    Raises:
      DataLossError: there are checkpoints, and all of them are damaged.
      ValueError: `latest_filename` was given.

    >>> import tempfile
    >>> import distinput as di
    >>> latest_checkpoint(tempfile.mkdtemp()) is None
    True

    Source: `tf.train.latest_checkpoint`.
    """
    if latest_filename not in (None, _NAME):
        raise ValueError(
            f"latest_checkpoint: the record is always named {_NAME!r}, got latest_filename={latest_filename!r}"
        )
    folder = os.fspath(checkpoint_dir)
    name = latest_name(folder)
    return None if name is None else join_path(folder, name)


# ----------------------------------------------------------------------------
# The manager of the checkpoints of a folder: it numbers them, keeps the latest ones and removes the others.
# ----------------------------------------------------------------------------


_STALE_SECONDS = 5.0
"""How long a worker waits to see what the first worker sees: shared folders may show new files late."""

_HOUR = 3600.0


class CheckpointLike(Protocol):
    """What a manager asks of a checkpoint."""

    @property
    def save_counter(self) -> Any:
        """A variable that counts how often it was saved."""

    def restore(self, save_path: str | os.PathLike[str] | None) -> Any:
        """Bring back what was saved."""

    def _write(self, path: str, then: Callable[[], Any]) -> Any: ...

    def _crew_now(self) -> Any: ...


if TYPE_CHECKING:
    from typing_extensions import TypeVar  # comes with every type checker

    C = TypeVar("C", bound=CheckpointLike, default=Any)
    """The class of the checkpoint; Any where a program says `CheckpointManager` alone."""
else:
    from typing import TypeVar

    C = TypeVar("C", bound=CheckpointLike)


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
      TypeError: `max_to_keep` is not an integer.
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
        if self._latest is not None and not self._checkpoint._crew_now().is_chief:
            return join_path(self._directory, self._latest)
        return latest_checkpoint(self._directory)

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

    def _step(self) -> int | None:
        counter = self._step_counter
        if self._interval is None:
            return None
        return int(counter() if callable(counter) and not hasattr(counter, "_saved") else counter)


# ----------------------------------------------------------------------------
# What is in a checkpoint, without the program that saved it.
# ----------------------------------------------------------------------------


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """The paths of all variables and arrays in a checkpoint, with their shapes; numbers, text and states have none.

    Args:
      ckpt_dir_or_file: a checkpoint, or a folder whose latest one is meant.

    Raises:
      NotFoundError: there is none.
      DataLossError: it is damaged.

    >>> import tempfile
    >>> import numpy as np
    >>> import distinput as di
    >>> path = di.train.Checkpoint(model={"w": np.zeros((2, 3))}, step=7).save(f"{tempfile.mkdtemp()}/ckpt")
    >>> list_variables(path)
    [('model/w', [2, 3]), ('step', [])]

    Source: `tf.train.list_variables`.
    """
    with _opened(ckpt_dir_or_file) as file:
        return [
            (path, [] if entry["kind"] == "iterator" else _shape(entry.get("value")))
            for path, entry in sorted(checked_entries(file.header, file.path).items())
        ]


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> Any:
    """A value in a checkpoint: an array of a variable, or what else was saved there.

    Args:
      ckpt_dir_or_file: a checkpoint, or a folder whose latest one is meant.
      name: its path. Where each worker saved its own, there is a list of them.

    Raises:
      NotFoundError: there is no such checkpoint.
      KeyError: it has nothing of this name.
      DataLossError: it is damaged.

    Source: `tf.train.load_variable`.
    """
    with _opened(ckpt_dir_or_file) as file:
        entries = checked_entries(file.header, file.path)
        if name not in entries:
            raise KeyError(
                f"load_variable: {without_secrets(file.path)} has no {name!r}; it has {', '.join(sorted(entries))}"
            )
        entry = entries[name]
        if entry["kind"] == "iterator":
            return entry.get("value", entry.get("values"))
        if "value" in entry:
            return decoded(entry["value"], file.array)
        return [decoded(value, file.array) for value in entry["values"]]


def _opened(given: str | os.PathLike[str]) -> CheckpointFile:
    path = os.fspath(given)
    try:
        return CheckpointFile(path)
    except NotFoundError:
        latest = latest_checkpoint(path)
        if latest is None:
            raise
    return CheckpointFile(latest)


def _shape(saved: Any) -> list[int]:
    while isinstance(saved, dict):
        if "shape" in saved:
            return [int(size) for size in saved["shape"]]
        saved = next(iter(saved.values()), None) if {*saved} & {"jax", "scalar"} else saved.get("of")
    return []
