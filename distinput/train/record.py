# SPDX-License-Identifier: Apache-2.0
"""The record of the checkpoints in a folder: a JSON file named `checkpoint`."""

import json
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from distinput.core.json_values import MalformedJson, items_of, json_value, member
from distinput.errors import DataLossError, DistinputError, FailedPreconditionError, InputWarning, NotFoundError
from distinput.files.folder import join_path, names_in, split_path
from distinput.files.inside import leads_out, open_inside, plain_name
from distinput.files.sink import Sink
from distinput.files.source import stamp_of
from distinput.train.checkpoint_file import SUFFIX, CheckpointFile, file_of

__all__ = ["CheckpointIndex", "is_whole", "latest_checkpoint", "latest_name", "note_whole"]

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
                found = json_value(file.read())
            if member(found, "format") != _FORMAT:
                raise MalformedJson("it is no record of checkpoints")
            pairs = [items_of(each, "a checkpoint with its time", 2) for each in member(found, "managed", list)]
            latest, preserved = member(found, "latest"), member(found, "preserved")
            return cls(
                folder,
                None if latest is None else plain_name(latest),
                {plain_name(name): _time(when) for name, when in pairs},
                [plain_name(name) for name in member(found, "others", list)],
                None if preserved is None else _time(preserved),
                [plain_name(name) for name in items_of(found.get("removed", []), "'removed'")],
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
    return _whole.get(file_of(path)) == stamp_of(file_of(path))


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
