# SPDX-License-Identifier: Apache-2.0
"""`Located`: the file and the record of every row of a step; `Seen`: where a record is seen; `Records`: known ones."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from distinput.columns.column import Ints
from distinput.names.lazy import dataclass
from distinput.url_secrets import without_secrets

# ---- `Records`: known records of a file, such as bad ones


@dataclass(frozen=True)
class Records:
    """Records of a file, to name them where ranges of steps are taken.

    Args:
      file: as the dataset names it; of a source in memory its op in angle brackets, such as "<range>".
      records: the number of one, from 0 on, or a range of them.
      read: count the records of files that do not tell how many they hold, by reading all files once.

    Raises:
      ValueError: `records` is neither a number from 0 on nor a range of them.

    >>> Records("n-1.txt", 20003).numbers
    range(20003, 20004)
    """

    file: str
    records: int | range
    read: bool = False

    def __post_init__(self) -> None:
        numbers = self.records
        if not (isinstance(numbers, range) or (isinstance(numbers, int) and not isinstance(numbers, bool))) or (
            len(self.numbers) and min(self.numbers) < 0
        ):
            raise ValueError(f"Records: records must be a number from 0 on, or a range of them, got {numbers!r}")

    @property
    def numbers(self) -> range:
        """The records."""
        return self.records if isinstance(self.records, range) else range(self.records, self.records + 1)


# ---- `Located`: the file and the record of every row of a step; `Seen`: where a record is seen

_SHOWN = 8


class Place(NamedTuple):
    """The file and record that one row of a step comes from.

    Args:
      file: the path; of a source in memory its op in angle brackets, such as "<range>".
      record: the record in that file, from 0 on.
      replica: the replica that gets the row, among those of all workers.
      row: the row in the part of that replica.
    """

    file: str
    record: int
    replica: int
    row: int

    def __str__(self) -> str:
        return f"replica {self.replica}, row {self.row}: record {self.record:,} of {self.file}"


class Seen(NamedTuple):
    """A step in which a record is seen.

    Args:
      epoch: in which pass over the dataset.
      step: in which step of it.
      replica: by which replica, among those of all workers.
      row: in which row of the part of that replica.
    """

    epoch: int
    step: int
    replica: int
    row: int


@dataclass(frozen=True, eq=False)
class Located(Sequence[Place]):
    """The file and the record of every row of a step, in the order of replicas and rows.

    A row that was made of several records, as after `zip`, or of batches of batches, stands there once for each of them.

    Args:
      step: which step.
      epoch: of which pass.
      files: the files.
      file: [n] which of them.
      record: [n] the record in that file.
      replica: [n] the replica that gets the row.
      row: [n] the row in the part of that replica.
      assumes: what was taken for granted, since only functions of the user could tell, in words.
    """

    step: int
    epoch: int
    files: Sequence[str]
    file: Ints
    record: Ints
    replica: Ints
    row: Ints
    assumes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.record)

    @overload
    def __getitem__(self, index: int) -> Place: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Place]: ...
    def __getitem__(self, index: int | slice) -> Place | Sequence[Place]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        file = self.files[int(self.file[index])]
        return Place(without_secrets(file), int(self.record[index]), int(self.replica[index]), int(self.row[index]))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = [place._asdict() for place in self]
        return {"step": self.step, "epoch": self.epoch, "rows": rows, "assumes": list(self.assumes)}

    def __str__(self) -> str:
        lines = [f"step {self.step} of epoch {self.epoch}: {len(self)} records", *map(str, self[:_SHOWN])]
        if len(self) > _SHOWN:
            lines.append(f"... and {len(self) - _SHOWN} more")
        return "\n  ".join([*lines, *[f"if {sentence}" for sentence in self.assumes]])

    @classmethod
    def empty(cls, step: int, epoch: int) -> "Located":
        """No rows of a step."""
        none = np.zeros(0, np.int64)
        return cls(step, epoch, (), none, none, none, none)

    @classmethod
    def joined(cls, parts: Sequence["Located"]) -> "Located":
        """The rows of several parts of one step, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        files: dict[str, int] = {}
        numbers = []
        for part in parts:
            index = np.array([files.setdefault(name, len(files)) for name in part.files] or [0], np.int64)
            numbers.append(index.take(part.file))
        return cls(
            step=parts[0].step,
            epoch=parts[0].epoch,
            files=tuple(files),
            file=np.concatenate(numbers),
            record=np.concatenate([part.record for part in parts]),
            replica=np.concatenate([part.replica for part in parts]),
            row=np.concatenate([part.row for part in parts]),
            assumes=tuple(dict.fromkeys([sentence for part in parts for sentence in part.assumes])),
        )


Ranges = range | Records | Iterable[range | Records]
"""One range of steps, or the records whose steps are meant; or several."""


def ranges_of_steps(skip: Iterable[range]) -> tuple[tuple[int, int], ...]:
    """Ranges as pairs, sorted, without empty ones.

    Raises:
      ValueError: one has gaps, or begins before step 0.

    >>> ranges_of_steps([range(7, 9), range(2, 3)]), ranges_of_steps([range(4, 4)])
    (((2, 3), (7, 9)), ())
    """
    given = list(skip)
    for each in given:
        if not isinstance(each, range) or each.step != 1 or (len(each) and each.start < 0):
            raise ValueError(
                f"skip: expected ranges of steps, such as range(7310, 7321), or lineage.Records, got {each!r}"
            )
    return tuple(sorted([(each.start, each.stop) for each in given if len(each)]))
