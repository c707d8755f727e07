# SPDX-License-Identifier: Apache-2.0
"""`Ledger`: which records a model has seen, and with which losses, written beside its checkpoints a few bytes a step."""

import heapq
import os
from collections.abc import Iterator, Sequence
from glob import escape, glob
from pathlib import Path
from typing import Any

import numpy as np

from distinput.distribute.core.values import DistributedValues
from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedIterator
from distinput.distribute.input.located import Located, Records
from distinput.errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from distinput.files.paths import local_path
from distinput.lineage.history import LOSSES, History, LedgerFile, LedgerView, Losses, beginning, entries_of, places
from distinput.names.lazy import dataclass
from distinput.plan.check import at_least, integer
from distinput.run.threads import Closing
from distinput.url_secrets import without_secrets

_USUAL = 100
"""Steps before a spike whose losses say what is usual."""

_AS_IT_IS = "a strategy of one device distributes a dataset as it is"

_FAR = 6.0
"""How many median deviations above the median a loss stands out."""


@dataclass(frozen=True)
class NotedRow:
    """A row of a step that a model has seen, and the loss that was noted of it.

    Args:
      loss: of this row.
      number: of the step among all that the model has seen, as `Ledger.locate` and `replay` take it.
      epoch: in which pass it was.
      step: in which step of that pass.
      replica: the replica of the job that got the row.
      row: in the part of that replica.
      records: what the row was made of; `distributed.restore(state, skip=row.records)` leaves them out.
    """

    loss: float
    number: int
    epoch: int
    step: int
    replica: int
    row: int
    records: tuple[Records, ...]

    def __str__(self) -> str:
        made_of = " and ".join([f"record {each.records:,} of {without_secrets(each.file)}" for each in self.records])
        return f"loss {self.loss:.6g}: {made_of}, in step {self.step:,} of epoch {self.epoch}"


class Ledger(Closing):
    """Which records a model has seen, in which order: a folder beside the checkpoints, to which each step adds a few bytes.

    A step is written before it is handed over, and is in the hands of the operating system then, so a process that is killed
    leaves a ledger with every step that it was given. Steps that a job took after its last checkpoint, and that a restart
    takes again, count once: a part that begins at a step takes the place of what was written from that step on. That holds for
    restarts on another number of workers too where there is one position for all (policy DATA, `balanced_split`).

    Where positions can be computed, an entry is 4 bytes. Elsewhere, as after `filter`, it holds what has changed in the state
    of the pipeline since the step before. Worker 0 writes for all; workers with different states write one file each.

    Args:
      path: a local folder, made if it is missing.

    Raises:
      DataLossError: a file in it is not a ledger, or is damaged before its end.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(10).global_shuffle(seed=3).batch(4))
    >>> with di.train.Ledger("ledger") as ledger, iter(dataset) as iterator:
    ...     steps = [step for step in ledger.follow(iterator)]
    >>> len(ledger)
    3
    >>> [place.record for place in ledger.locate(dataset, 2)]
    [7, 9]
    >>> ledger.replay(dataset, 2)
    PerReplica:{
      0: array([7]),
      1: array([9])
    }
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        local = local_path(self.path)
        if local is None:
            raise InvalidArgumentError(
                f"Ledger: the folder must be on a local or mounted disk, to which files can be appended, got {self.path!r}"
            )
        self._folder = local
        self._files: dict[str, LedgerFile] = {}
        self._followed: tuple[DistributedIterator, list[dict[str, Any]]] | None = None
        self._noted: dict[str, Any] | None = None
        self._view: tuple[object, LedgerView] | None = None

    # ---- while a job runs

    def follow(self, iterator: DistributedIterator) -> Iterator[Any]:
        """The steps of an iterator, each written down before it is handed over.

        Args:
          iterator: of a distributed dataset, new or restored.
        """
        if not isinstance(iterator, DistributedIterator):
            raise TypeError(
                "Ledger.follow takes the iterator of a distributed dataset, iter(distributed) or distributed.restore(state), "
                f"got {type(iterator).__name__}; {_AS_IT_IS}"
            )
        part = beginning(iterator)
        file = self._file(self._name(part["rank"])) if part["writes"] else None
        if file is not None:
            file.begin(part)
        parts = [part]
        self._followed = iterator, parts
        before, inputs = part["step"], part["inputs"]
        for step in iterator:
            if iterator.step != before + 1:  # steps were left out
                here = iterator.step - 1
                part = {**beginning(iterator), "step": here, "at": before, "inputs": inputs, "keeps": part["keeps"]}
                parts.append(part)
                if file is not None:
                    file.begin(part)
            if file is not None and part["keeps"]:
                inputs = places(iterator)
            if file is not None:
                file.step(inputs if part["keeps"] else None)
            before = iterator.step
            yield step

    def note(self, step: int, loss_per_row: Any) -> None:
        """Write down the losses of the rows of a step, so that `worst` and `spike` find their records.

        Every worker notes those of its own replicas. They need not be noted at once: a loop that looks at losses some steps
        later notes them then. A step that is taken again after a restart is noted again, and the last note counts.

        Args:
          step: the number of the step in its pass; `iterator.step - 1` for the one that was handed over last.
          loss_per_row: a number for each row, [rows]: what `strategy.run` returned, or a list with an array for each replica
            of this worker.

        Raises:
          FailedPreconditionError: no iterator is followed.
          InvalidArgumentError: the step was not handed over since the iterator is followed; or losses are not numbers for rows
            of each replica.
        """
        if self._followed is None:
            raise FailedPreconditionError(
                "Ledger.note: no iterator is followed yet; take the steps from ledger.follow(iterator)"
            )
        iterator, parts = self._followed
        step, first = integer("Ledger.note", "step", step), parts[0]["step"]
        if not first <= step < iterator.step:
            possible = f"{first:,} to {iterator.step - 1:,}" if iterator.step > first else "none yet"
            raise InvalidArgumentError(
                f"Ledger.note: step must be one that was handed over: {possible}; got {step}. The last one is iterator.step - 1"
            )
        replicas = iterator._source.terms.replicas
        parts_given = loss_per_row.values if isinstance(loss_per_row, DistributedValues) else loss_per_row
        losses = [
            _as_losses(rows) for rows in (parts_given if isinstance(parts_given, list | tuple) else [parts_given])
        ]
        if len(losses) != replicas.count or any(rows.ndim != 1 or rows.dtype.kind not in "biuf" for rows in losses):
            raise InvalidArgumentError(
                f"Ledger.note: expected for each of the {replicas.count} replicas of this worker an array with a number for "
                f"each row, got {[f'{rows.dtype}{list(rows.shape)}' for rows in losses]}; take means over other axes, not rows"
            )
        part = next(each for each in reversed(parts) if each["step"] <= step)
        notes = self._file(os.path.join(self._folder, f"worker-{part['rank']}{LOSSES}"))
        if self._noted is not part:
            notes.begin({name: part[name] for name in ("epoch", "step", "replicas", "workers")} | {"inputs": []})
            self._noted = part
        for number, rows in enumerate(losses, replicas.first):
            with np.errstate(over="ignore"):  # what float32 cannot hold is infinite, and so above all
                notes.note(step, number, rows.astype(np.float32))

    def _file(self, name: str) -> LedgerFile:
        if name not in self._files:
            os.makedirs(self._folder, exist_ok=True)
            self._files[name] = LedgerFile(name)
        return self._files[name]

    def _name(self, rank: int) -> str:
        return os.path.join(self._folder, f"worker-{rank}.ledger")

    def close(self) -> None:
        """Close the files; may be called again. What was written is safe without it."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._followed = self._noted = None

    # ---- afterwards

    def history(self, worker: int = 0) -> History:
        """The steps that the model has seen, in parts.

        Args:
          worker: whose file to look at; that of worker 0 holds those of all, unless workers have different states.

        Raises:
          NotFoundError: there is no ledger of this worker.
        """
        name = self._name(worker)
        try:
            data = Path(name).read_bytes()
        except FileNotFoundError:
            raise NotFoundError(f"Ledger: there is no {name}; was this folder written by a job?") from None
        return History.of([entry for entry, _ in entries_of(data, name)])

    def __len__(self) -> int:
        """The number of steps that the model has seen, over all passes."""
        return len(self.history())

    def locate(
        self, dataset: DistributedDataset, number: int, replica: int | None = None, *, read: bool = False
    ) -> Located:
        """The file and the record of every row of a step that the model has seen.

        Where they do not follow from positions, as after `filter`, the step is read again from the state before it on, and
        records are counted on the way.

        Args:
          dataset: the distributed dataset that the job had, built again.
          number: of the step among all that it has seen, from 0 on; negative: from the last one.
          replica: as for `DistributedDataset.locate`.
          read: as there.

        Raises:
          IndexError: there is no such step.
          StateError: the job had another pipeline or distribution.
          UnimplementedError: the records are not known; `replay` gives the rows. Or they are those of a worker with data of its
            own, whose ledger knows them.
        """
        number = integer("Ledger.locate", "number", number)
        replica = None if replica is None else integer("Ledger.locate", "replica", replica)
        return self._looked_at(dataset).locate(number, replica, read=read)

    def seen(
        self, dataset: DistributedDataset, first: int = 0, stop: int | None = None, *, read: bool = False
    ) -> Iterator[Located]:
        """What the model has seen, step by step, in order: from step `first` to before step `stop`; None: to the end."""
        view = self._looked_at(dataset)
        for number in range(*slice(first, stop).indices(len(view))):
            yield view.locate(number, None, read=read)

    def worst(self, dataset: DistributedDataset, n: int = 10, *, read: bool = False) -> list[NotedRow]:
        """The rows with the largest losses of all that were noted, largest first.

        What is not a number, or has no end on either side, is larger than any.

        Args:
          dataset: as for `locate`; it may have another number of replicas than the job, where batches are cut for replicas.
          n: how many, at least 1.
          read: as for `locate`.

        Raises:
          InvalidArgumentError: `n` is less than 1.
          DataLossError: a file of losses is damaged, or there are other rows than were noted.
          UnimplementedError: the records are not known, as for `locate`.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(20).shuffle(9, seed=1).batch(4))
        >>> with di.train.Ledger("run") as ledger, iter(dataset) as iterator:
        ...     for step in ledger.follow(iterator):
        ...         ledger.note(iterator.step - 1, strategy.run(lambda x: (x == 13) * 9.0, args=(step,)))
        >>> (worst,) = di.train.Ledger("run").worst(dataset, 1)
        >>> worst.loss, worst.records
        (9.0, (Records(file='<range>', records=13, read=False),))
        >>> skipping = dataset.restore(iter(dataset).state(), skip=worst.records)
        >>> len([step for step in skipping])
        4
        """
        n, view = at_least("Ledger.worst", "n", n, 1), self._looked_at(dataset)
        heights = (
            (losses[row], number, replica, row)
            for number, replica, losses in self._losses(view.history)
            for row in np.argsort(_height(losses))[::-1][:n].tolist()
        )
        largest = heapq.nlargest(n, heights, key=lambda found: (_height(found[0]), -found[1]))
        return self._rows(view, largest, read)

    def spike(self, dataset: DistributedDataset, number: int, *, read: bool = False) -> list[NotedRow]:
        """The rows of a step whose losses stand out from those of the 100 steps before it, largest first.

        A loss stands out that is more than 6 median absolute deviations above the median, or no number. Of the first step the
        rows are compared with each other.

        Args:
          dataset: as for `worst`.
          number: of the step among all that the model has seen; negative: from the last one.
          read: as for `locate`.

        Raises:
          IndexError: there is no such step.
          NotFoundError: nothing was noted of it.
          DataLossError: as for `worst`.
          UnimplementedError: as for `worst`.
        """
        number, view = integer("Ledger.spike", "number", number), self._looked_at(dataset)
        view.history.part_of(number)  # or there is no such step
        number = number + len(view) if number < 0 else number
        here: list[tuple[int, Losses]] = []
        before: list[Losses] = []
        for at, replica, losses in self._losses(view.history):
            if at == number:
                here.append((replica, losses))
            elif number - _USUAL <= at < number:
                before.append(losses)
        if not here:
            raise NotFoundError(f"Ledger.spike: no losses were noted of step {number:,}; call ledger.note in each step")
        usual = np.concatenate(before or [losses for _, losses in here])
        usual = usual[np.isfinite(usual)]
        median = np.median(usual) if len(usual) else 0.0
        most = median + _FAR * np.median(np.abs(usual - median)) if len(usual) else -np.inf
        rows = [
            (losses[row], number, replica, row)
            for replica, losses in here
            for row in np.flatnonzero(_height(losses) > most).tolist()
        ]
        return self._rows(view, sorted(rows, key=lambda row: -_height(row[0])), read)

    def _losses(self, history: History) -> Iterator[tuple[int, int, Losses]]:
        """What was noted of the steps that count: the number of the step among all, the replica, and the losses of its rows."""
        numbers = history.numbers()
        for name in sorted(glob(os.path.join(escape(self._folder), f"worker-*{LOSSES}"))):
            last: dict[tuple[int, int], Losses] = {}
            job: dict[str, int] = {}
            for entry, _ in entries_of(Path(name).read_bytes(), name):
                if entry.begin is not None:
                    job = dict(entry.begin)
                elif entry.note is not None:
                    step, replica, losses = entry.note
                    number = numbers.get((job["epoch"], step, job["step"], job["replicas"], job.get("workers")))
                    if number is not None:
                        last[number, replica] = losses
            yield from ((number, replica, losses) for (number, replica), losses in last.items())

    def _rows(self, view: LedgerView, found: Sequence[tuple[float, int, int, int]], read: bool) -> list[NotedRow]:
        """Rows with their records."""
        located: dict[tuple[int, int], Located] = {}
        rows = []
        for loss, number, replica, row in found:
            if (number, replica) not in located:
                located[number, replica] = view.rows_of(number, replica, read=read)
            step = located[number, replica]
            places = np.flatnonzero(step.row == row).tolist()
            if not places:
                raise DataLossError(
                    f"Ledger: a loss was noted of row {row} of replica {replica} in step {step.step:,} of epoch {step.epoch}, "
                    f"which had {1 + int(step.row.max(initial=-1))} rows; note the losses of rows alone, not of padding"
                )
            records = tuple([Records(step.files[int(step.file[at])], int(step.record[at]), read) for at in places])
            rows.append(NotedRow(float(loss), number, step.epoch, step.step, replica, row, records))
        return rows

    def replay(self, dataset: DistributedDataset, number: int) -> Any:
        """A step that the model has seen, delivered again; also for pipelines whose positions cannot be computed.

        Args:
          dataset: as for `locate`.
          number: as for `locate`.

        Raises:
          IndexError: there is no such step.
          StateError: the job had another pipeline or distribution.
          UnimplementedError: an earlier version wrote it without the decisions about `MixtureWeights` behind a cache.
        """
        return self._looked_at(dataset).replay(integer("Ledger.replay", "number", number))

    def _looked_at(self, dataset: DistributedDataset) -> LedgerView:
        if not isinstance(dataset, DistributedDataset):
            raise TypeError(
                "Ledger: expected the distributed dataset that the job had, built again by "
                f"strategy.experimental_distribute_dataset(dataset), got {type(dataset).__name__}; {_AS_IT_IS}"
            )
        rank = dataset._source.terms.replicas.rank
        if not os.path.exists(self._name(rank)):
            rank = 0
        size = os.path.getsize(self._name(rank)) if os.path.exists(self._name(rank)) else -1
        key = dataset, rank, size
        if self._view is None or self._view[0] != key:
            self._view = key, LedgerView(dataset, self.history(rank))
        return self._view[1]


def _as_losses(rows: Any) -> np.ndarray[Any, Any]:
    """An array; where rows differ in length, one of objects, which holds no losses."""
    try:
        losses = np.asarray(rows)
    except ValueError:
        return np.asarray(rows, object)
    return losses.astype(np.float32) if losses.dtype.isbuiltin == 2 else losses  # of another package, such as bfloat16


def _height(losses: Any) -> Any:
    """Losses by which rows are ordered: what is not a number, or has no end, is above all."""
    return np.where(np.isfinite(losses), losses, np.inf)
