# SPDX-License-Identifier: Apache-2.0
"""`Ledger`: which records a model has seen, written beside its checkpoints a few bytes a step."""

import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedIterator
from distinput.distribute.input.located import Located
from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.files.paths import local_path
from distinput.lineage.history import History, LedgerFile, LedgerView, beginning, entries_of, places

__all__ = ["Ledger"]


class Ledger:
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
      DataLossError: a file in it is no ledger, or is damaged before its end.

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
        self._files: dict[int, LedgerFile] = {}
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
                f"got {type(iterator).__name__}; a strategy of one device distributes a dataset as it is"
            )
        told = beginning(iterator)
        file = self._file(told["rank"]) if told["writes"] else None
        if file is not None:
            file.begin(told)
        before, kept = told["step"], told["inputs"]
        for step in iterator:
            if file is not None:
                if iterator.step != before + 1:  # steps were left out
                    here = iterator.step - 1
                    file.begin(
                        {**beginning(iterator), "step": here, "at": before, "inputs": kept, "keeps": told["keeps"]}
                    )
                now = places(iterator) if told["keeps"] else None
                file.step(now)
                before, kept = iterator.step, kept if now is None else now
            yield step

    def _file(self, rank: int) -> LedgerFile:
        if rank not in self._files:
            os.makedirs(self._folder, exist_ok=True)
            self._files[rank] = LedgerFile(self._name(rank))
        return self._files[rank]

    def _name(self, rank: int) -> str:
        return os.path.join(self._folder, f"worker-{rank}.ledger")

    def close(self) -> None:
        """Close the files; may be called again. What was written is safe without it."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
            with open(name, "rb") as file:
                data = file.read()
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

        Where they do not follow from positions, as behind `filter`, the step is read again from the state before it on, and
        records are counted on the way.

        Args:
          dataset: the distributed dataset that the job had, built anew.
          number: of the step among all that it has seen, from 0 on; negative: from the last one.
          replica: as for `DistributedDataset.locate`.
          read: as there.

        Raises:
          IndexError: there is no such step.
          StateError: the job had another pipeline or distribution.
          UnimplementedError: the records are not known; `replay` gives the rows. Or they are those of a worker with data of its
            own, whose ledger knows them.
        """
        return self._looked_at(dataset).locate(number, replica, read=read)

    def seen(
        self, dataset: DistributedDataset, first: int = 0, stop: int | None = None, *, read: bool = False
    ) -> Iterator[Located]:
        """What the model has seen, step by step, in order: from step `first` to before step `stop`; None: to the end."""
        view = self._looked_at(dataset)
        for number in range(*slice(first, stop).indices(len(view))):
            yield view.locate(number, None, read=read)

    def replay(self, dataset: DistributedDataset, number: int) -> Any:
        """The very step again that the model has seen, also of pipelines whose positions cannot be computed.

        Args:
          dataset: as for `locate`.
          number: as for `locate`.

        Raises:
          IndexError: there is no such step.
          StateError: the job had another pipeline or distribution.
        """
        return self._looked_at(dataset).replay(number)

    def _looked_at(self, dataset: DistributedDataset) -> LedgerView:
        rank = dataset._source.terms.replicas.rank
        if not os.path.exists(self._name(rank)):
            rank = 0
        size = os.path.getsize(self._name(rank)) if os.path.exists(self._name(rank)) else -1
        key = dataset, rank, size
        if self._view is None or self._view[0] != key:
            self._view = key, LedgerView(dataset, self.history(rank))
        return self._view[1]
