# SPDX-License-Identifier: Apache-2.0
"""Distributed datasets: iterables of steps, each of which has a part for every replica."""

import copy
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Self

from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.distribute.core.parts import part
from distinput.distribute.core.values import row_counts
from distinput.distribute.input.cut_batches import CutBatches
from distinput.distribute.input.dealt_elements import DealtElements
from distinput.distribute.input.delivery import Delivery
from distinput.distribute.input.distributed_iterator import DistributedIterator
from distinput.distribute.input.located import Located, Ranges, Seen
from distinput.distribute.input.own_pieces import OwnPiecesSource
from distinput.distribute.input.source import INFINITE, StepSource
from distinput.errors import InvalidArgumentError
from distinput.names.words import html
from distinput.run.run import Run

__all__ = ["DistributedDataset", "DistributedDatasetsFromFunction", "explanation", "watched"]

# ---- The text of `DistributedDataset.explain`

_TAILS = {
    "drop": "a step that is not full is left out",
    "error": "a step that is not full is an error",
    "pad": "every part is filled up with zeros; a mask says which rows are data",
    "partial": "a step is delivered with what there is; replicas without data get no rows",
}


def explanation(source: StepSource) -> str:
    """The text of `DistributedDataset.explain`."""
    replicas, tail = source.terms.replicas, source.terms.tail
    mine = ", ".join(map(str, range(replicas.first, replicas.first + replicas.count)))
    where = f"worker {replicas.rank} of {replicas.workers}" if replicas.workers > 1 else "one worker"
    facts = {
        "replicas": f"{mine} of {replicas.total}, on {where}",
        "cut": source.cut,
        "reads": source.reads if replicas.workers > 1 else "everything",
        "end": _end(source),
        "tail": f"{tail}: {_TAILS[tail]}",
    }
    lines = ["distributed:", *[f"  {name + ':':<9} {text}" for name, text in facts.items()]]
    if source.plan is not None:
        lines += ["input of this worker:", *["  " + line for line in source.plan.splitlines()]]
    return "\n".join(lines)


def _end(source: StepSource) -> str:
    steps = source.num_steps
    if steps >= 0:
        return f"known beforehand: {steps} steps"
    if steps == INFINITE:
        return "none"
    if source.agrees:
        return "workers agree on it while they use earlier steps"
    return "where the input ends"


# ---- The same steps from input pipelines whose runs are made by somebody else, such as a recording that takes notes


def watched(source: StepSource, make_run: Callable[..., Run]) -> tuple[StepSource, list[Dataset[Any]]]:
    """The source, and the datasets that this worker reads for it; those of other packages are not watched.

    Args:
      source: of the steps.
      make_run: makes the runs of the datasets; see `DatasetIterator`.
    """
    handles: list[Dataset[Any]] = []

    def same(dataset: Any) -> Any:
        if not isinstance(dataset, Dataset):
            return dataset
        handles.append(dataset._run_by(make_run))
        return handles[-1]

    match source:
        case CutBatches():
            return replace(source, dataset=same(source.dataset)), handles
        case DealtElements():
            return replace(source, datasets=[same(dataset) for dataset in source.datasets]), handles
        case OwnPiecesSource():
            batches = copy.copy(source.batches)
            batches.pieces = same(batches.pieces)
            return replace(source, batches=batches), handles
    return source, handles


# ---- Distributed datasets: iterables of steps, each of which has a part for every replica


class DistributedDataset:
    """A dataset of steps of distributed values; `Strategy.experimental_distribute_dataset` makes it.

    It can be iterated any number of times, each time from the start. Transform the dataset before you distribute it.

    Args:
      source: where the steps come from.
      delivery: how they are handed over.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(3).batch(2))
    >>> [strategy.reduce("SUM", step, axis=0).item() for step in dataset]
    [1, 2]

    Source: `tf.distribute.DistributedDataset`.
    """

    def __init__(self, source: StepSource, delivery: Delivery) -> None:
        self._source, self._delivery = source, delivery
        self._made_records: dict[bool, Any] = {}

    @property
    def element_spec(self) -> Any:
        """The nest of specs of a step: `PerReplicaSpec` leaves, or plain ones for a single replica.

        Source: `tf.distribute.DistributedDataset.element_spec`.
        """
        return self._delivery.element_spec(self._source)

    @property
    def cardinality(self) -> int:
        """The number of elements, such as global batches, of the dataset that was distributed; -1 infinite, -2 unknown.

        Source: the `cardinality` of the distributed datasets of `tf.distribute`.
        """
        return self._source.terms.cardinality

    @property
    def num_steps(self) -> int:
        """The number of steps that every worker takes; -1 infinite, -2 if it is known only at the end."""
        return self._source.num_steps

    def __len__(self) -> int:
        """The number of steps.

        Raises:
          TypeError: there are infinitely many, or it is known only at the end.
        """
        if self.num_steps < 0:
            told = "infinite" if self.num_steps == INFINITE else "known only at the end"
            raise TypeError(f"The number of steps of this distributed dataset is {told}.")
        return self.num_steps

    def __bool__(self) -> bool:
        return True  # as a dataset, also if it has no steps

    def explain(self) -> str:
        r"""Explain how the dataset is distributed: the cut, who reads what, how the end is known, and the tail.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> distributed = strategy.experimental_distribute_dataset(di.data.Dataset.range(3).batch(2))
        >>> print(*distributed.explain().splitlines()[:6], sep="\n")
        distributed:
          replicas: 0, 1 of 2, on one worker
          cut:      each global batch on its own, into equal parts, rounded up; the last ones may be short or empty
          reads:    everything
          end:      known beforehand: 2 steps
          tail:     partial: a step is delivered with what there is; replicas without data get no rows
        """
        return explanation(self._source)

    def __iter__(self) -> "DistributedIterator":
        return DistributedIterator(self._source, self._delivery, self._source.begin())

    def restore(
        self, state: State, may_differ: str | Collection[str] = (), *, skip: Ranges = ()
    ) -> "DistributedIterator":
        """An iterator that continues from a state that `DistributedIterator.state` returned.

        Its first step raises `StateError` on all workers if they were not restored to the same place.

        Args:
          state: the saved state.
          may_differ: as for `Dataset.restore`.
          skip: a range of steps of this pass that are left out, such as those before which the loss jumped, or several; the
            same on all workers. `lineage.Records(file, records)` stands for the whole steps that hold these records. The other
            steps keep their numbers, and the records in them.

        Raises:
          StateError: the state belongs to another dataset, number of replicas or version, or was modified.
          ValueError: `skip` is no range of steps; or it names a file that is not read, or a record that is not there.
          UnimplementedError: it names records that cannot be located, as after `filter`.

        >>> import distinput as di
        >>> strategy = di.distribute.OneDeviceStrategy("CPU:0")
        >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(10).batch(2))
        >>> [int(step[0]) for step in dataset.restore(iter(dataset).state(), skip=range(1, 4))]
        [0, 8]
        """
        return DistributedIterator.restored(self._source, self._delivery, state, may_differ, skip)

    def locate(self, step: int, replica: int | None = None, *, epoch: int = 0, read: bool = False) -> Located:
        """The file and the record of every row of a step, computed from positions: nothing is read.

        Args:
          step: the step of the pass, from 0 on.
          replica: only the rows of this one, among the replicas of all workers; None: of all replicas.
          epoch: the pass over the dataset, from 0 on, which decides how it is shuffled.
          read: count the records of files that do not tell how many they hold, by reading all files once.

        Returns:
          A sequence of `Place(file, record, replica, row)`, with arrays of them all; `assumes` says what only the functions
          of the pipeline could tell.

        Raises:
          UnimplementedError: records do not follow from positions, as after `filter`; the message names the op.
          IndexError: there is no such step or replica.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(7).global_shuffle(seed=1).batch(4))
        >>> print(dataset.locate(1, replica=0))
        step 1 of epoch 0: 2 records
          replica 0, row 0: record 4 of <range>
          replica 0, row 1: record 3 of <range>
        """
        located: Located = self._records(read).locate(step, replica, epoch)
        return located

    def when(
        self, file: str, record: int, *, epoch: int = 0, steps: range | None = None, read: bool = False
    ) -> tuple[Seen, ...]:
        """The steps of a pass in which a record is seen: the inverse of `locate`.

        Args:
          file: the file, named as the dataset names it.
          record: the record in it, from 0 on.
          epoch: the pass.
          steps: those to look at; None: all.
          read: as for `locate`.

        Returns:
          Of each time a `Seen(epoch, step, replica, row)`; none if the record is left out.

        Raises:
          UnimplementedError: as for `locate`.
          ValueError: no such file is read, or there is no last step to look at.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(7).global_shuffle(seed=1).batch(4))
        >>> dataset.when("<range>", 6)
        (Seen(epoch=0, step=0, replica=0, row=0),)
        """
        seen: tuple[Seen, ...] = self._records(read).when(file, record, epoch, steps)
        return seen

    def replay(self, step: int, *, epoch: int = 0) -> Any:
        """The very step again, as the iteration delivered it, without the steps before it where rows can be counted.

        Args:
          step: the step of the pass, from 0 on.
          epoch: the pass.

        Raises:
          IndexError: there is no such step.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(7).global_shuffle(seed=1).batch(4))
        >>> dataset.replay(1)
        PerReplica:{
          0: array([4, 3]),
          1: array([5])
        }
        """
        return part("replayed")(self._source, self._delivery, step, epoch)

    def _records(self, read: bool) -> Any:
        if read not in self._made_records:
            self._made_records[read] = part("StepRecords")(self._source, read=read)
        return self._made_records[read]

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """Apply `reduce_func(state, step)` over all steps, including those for which some replicas have no element.

        Source: the `reduce` of the distributed datasets of `tf.distribute`.
        """
        state = initial_state
        with iter(self) as iterator:
            while (step := iterator.get_next_as_optional()).has_value():
                state = reduce_func(state, step.get_value())
        return state

    def _watched(self, make_run: Callable[..., Run]) -> tuple[Dataset[Any], Self, int]:
        """What of it is recorded: the dataset whose steps are, what is iterated, and how many replicas get rows."""
        source, inputs = watched(self._source, make_run)
        if not inputs:
            raise InvalidArgumentError("Recording: the input of the distributed dataset must be a distinput Dataset")
        return inputs[0], type(self)(source, self._delivery), source.terms.replicas.count

    def _row_counts(self, step: Any) -> tuple[int, ...]:
        """The rows that each replica of this process got in a step; what a recording counts."""
        return row_counts(step, self._source.terms.replicas.count)

    def _repr_html_(self) -> str:
        """What notebooks show: how the dataset is distributed, and the shape of a step."""
        return html("distributed", self)

    def __getattr__(self, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if not name.startswith("_"):
            message += "; a distributed dataset can only be iterated: transform the dataset before you distribute it"
        raise AttributeError(message)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} element_spec={self.element_spec} cardinality={self.cardinality}>"


class DistributedDatasetsFromFunction(DistributedDataset):
    """A dataset of steps dealt from the user's own datasets; `Strategy.distribute_datasets_from_function` makes it.

    Element k of a worker's dataset goes to replica k mod R in step k div R; in PER_REPLICA mode every replica has a
    dataset, and an end, of its own.

    Source: the datasets of `tf.distribute.Strategy.distribute_datasets_from_function`.
    """
