# SPDX-License-Identifier: Apache-2.0
"""WorkerLanes: the inputs of the workers of an earlier job, which other numbers of workers and replicas go on with."""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Self, final

from distinput.columns.block import Block, concat_blocks
from distinput.columns.column import StackError
from distinput.columns.state import State, is_count
from distinput.data.dataset import Dataset
from distinput.data.seal import opened, sealed
from distinput.distribute.input.dealing import mark_of, place_of
from distinput.distribute.input.sources import close_input, resumed_input, sealed_place
from distinput.errors import FailedPreconditionError, InvalidArgumentError, StateError
from distinput.ops.slices import from_tensor_slices

# ----------------------------------------------------------------------------
# A job of W workers under policy FILE, BALANCED, OFF or HINT has W inputs, each with a place of its own. Another job goes on
# with these W inputs as lanes: in each step it takes from each lane what the worker would have taken, puts the rows
# together in the order of the replicas, and cuts this global batch for its own replicas. So the global batches of the rest of
# the pass are those that the earlier job would have made. The next pass is planned for the new job.
# ----------------------------------------------------------------------------


def layout_of_lanes(workers: int, replicas: int) -> Mapping[str, Any]:
    """What a state says of an iteration over lanes.

    Args:
      workers: how many there were when the pass began.
      replicas: how many, of all workers together.
    """
    return {"cut": "lanes", "workers": workers, "replicas": replicas}


def joined(states: Sequence[State]) -> State:
    """One state, of lanes, made of the states of all workers of a job.

    Args:
      states: what `DistributedIterator.state` gave on each worker, by their rank, after the same step.

    Raises:
      StateError: one is missing or damaged, or they were not taken after the same step of one job.
    """
    keys = {"step", "ended", "seen", "inputs"}
    found = [opened(state, "DistributedDataset.restore", keys, "distributed") for state in states]
    first = found[0]
    if first.get("cut") != "per_worker":
        return states[0]  # it holds the whole position; those of the other workers are equal
    if not (is_layout(first) and all(isinstance(each["inputs"], list) for each in found)):
        raise StateError(
            "DistributedDataset.restore: the state is damaged: 'workers', 'replicas' or 'inputs' is not as it was saved; it "
            "must be what iterator.state() gave"
        )
    if len(found) != first["workers"]:
        raise StateError(
            f"DistributedDataset.restore: the job had {first['workers']} workers, and here are the states of {len(found)}; "
            "give those of all workers, by their rank"
        )
    for rank, each in enumerate(found):
        for key in ("cut", "workers", "replicas", "step"):
            if each.get(key) != first[key]:
                raise StateError(
                    f"DistributedDataset.restore: the state of worker {rank} has {key}={each.get(key)!r}, that of worker 0 "
                    f"{first[key]!r}; give the states of all workers of one job, taken after the same step"
                )
    lanes = [state for each in found for state in each["inputs"]]
    seen = next((each["seen"] for each in found if each["seen"] is not None), None)
    return sealed(
        {
            "kind": "distributed", **layout_of_lanes(first["workers"], first["replicas"]), "step": first["step"],
            "ended": all(each["ended"] for each in found), "seen": seen, "inputs": [{"lanes": lanes}],
        }
    )  # fmt: skip


@final
class WorkerLanes:
    """The global batches that the workers of an earlier job would have made from their inputs.

    Args:
      datasets: the input of each of its workers, by rank.
      each: how many elements each of them takes for a step: one for each of its replicas.
    """

    def __init__(self, datasets: Sequence[Dataset[Any]], each: int) -> None:
        self._datasets, self._each = datasets, each

    def explain(self) -> str:
        """The pipelines of the lanes, as they run."""
        return "\n".join(f"lane {lane}:\n{dataset.explain()}" for lane, dataset in enumerate(self._datasets))

    def restore(self, state: State, may_differ: str | Collection[str] = ()) -> "WorkerLanesIterator":
        """An iterator that continues at a place in each lane.

        Args:
          state: what `WorkerLanesIterator.sealed` or `joined` made.
          may_differ: as for `Dataset.restore`.

        Raises:
          StateError: there are more or fewer places than lanes, or one belongs to another pipeline.
        """
        places = state.get("lanes") if isinstance(state, dict) else None
        if not isinstance(places, list) or len(places) != len(self._datasets):
            raise StateError(
                f"DistributedDataset.restore: the state must hold a place in each of {len(self._datasets)} inputs; it must be "
                "what iterator.state() gave"
            )
        iterators = []
        for rank, (dataset, place) in enumerate(zip(self._datasets, places, strict=True)):
            try:
                iterators.append(resumed_input(dataset, place, may_differ))
            except StateError as error:
                error.add_note(f"in the state of worker {rank} of the earlier job")
                raise
        return WorkerLanesIterator(iterators, self._each)


@final
class WorkerLanesIterator:
    """One iteration over `WorkerLanes`.

    Args:
      iterators: of the lanes.
      each: how many elements of each make a step.
    """

    def __init__(self, iterators: Sequence[Any], each: int) -> None:
        self._iterators, self._each = iterators, each
        self._pending: list[list[Any]] = []  # drawn for a batch that an interrupt cut short
        self._before = self._marks()

    @property
    def epoch(self) -> int:
        """The number of the pass."""
        return int(self._iterators[0].epoch)

    @property
    def seeds(self) -> list[int]:
        """The seeds that were drawn by steps without one, lane by lane."""
        return [seed for iterator in self._iterators for seed in iterator.seeds]

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        while True:
            pending = self._pending
            if not pending:
                self._before = self._marks()
            for lane, iterator in enumerate(self._iterators):
                if lane == len(pending):
                    pending.append([])
                if lane == len(pending) - 1:  # the lanes before it have given theirs
                    pending[lane].extend(islice(iterator, self._each - len(pending[lane])))
            parts = [part for lane in pending for part in lane]
            if not parts:
                self._pending = []
                raise StopIteration
            try:
                batch = batch_of(parts)
            finally:
                self._pending = []
            if batch is not None:
                return batch

    def _marks(self) -> list[Any]:
        return [mark_of(iterator) for iterator in self._iterators]

    def mark(self) -> list[Any]:
        """What `place` needs to tell this position later."""
        return self._before if self._pending else self._marks()

    def place(self, mark: list[Any] | None = None) -> State:
        """The place in each lane, now or at a mark."""
        marks = self.mark() if mark is None else mark
        places = [place_of(iterator, at) for iterator, at in zip(self._iterators, marks, strict=True)]
        return {"lanes": places, "epoch": self.epoch}

    def sealed(self, place: State) -> State:
        """The state of a place that this iterator was at."""
        lanes = zip(self._iterators, place["lanes"], strict=True)
        return {"lanes": [sealed_place(iterator, at) for iterator, at in lanes]}

    def close(self) -> None:
        """End the background work of all lanes."""
        self._pending = []
        for iterator in self._iterators:
            close_input(iterator)


def batch_of(parts: Sequence[Any]) -> Any:
    """The rows of all parts as one batch; None if there are none.

    Args:
      parts: nests of arrays, ragged or sparse tensors with a first axis of rows.

    Raises:
      InvalidArgumentError: a part has no axis of rows.
      FailedPreconditionError: rows differ in shape.

    >>> import numpy as np
    >>> batch_of([{"x": np.arange(2)}, {"x": np.arange(0)}, {"x": np.arange(5, 6)}])
    {'x': array([0, 1, 5])}
    """
    try:
        blocks: list[Block] = [from_tensor_slices(part).block for part in parts]
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            "DistributedDataset.restore: with other numbers of workers or replicas, a job continues with the rows of all "
            f"replicas together, so each element needs a first axis of rows; {error}"
        ) from error
    rows = concat_blocks(blocks)
    if not rows.size:
        return None
    try:
        return next(iter(rows.stack(rows.size).elements()))
    except StackError as error:
        raise FailedPreconditionError(
            "DistributedDataset.restore: with other numbers of workers or replicas, a job continues with the rows of all "
            f"replicas together, but they differ in shape: {error}; pad them to one shape, or batch them with ragged_batch"
        ) from error


def has_lanes(content: Mapping[str, Any]) -> bool:
    """Whether a state holds a place for each worker of the job that it says it is of."""
    inputs = content.get("inputs")
    if not (isinstance(inputs, list) and len(inputs) == 1 and isinstance(inputs[0], dict)):
        return False
    lanes = inputs[0].get("lanes")
    return isinstance(lanes, list) and len(lanes) == content.get("workers")


def is_layout(layout: Mapping[str, Any]) -> bool:
    """Whether a state says plainly which job it is of: W workers with equally many replicas each."""
    workers: Any = layout.get("workers")
    replicas: Any = layout.get("replicas")
    return is_count(workers, 1) and is_count(replicas, 1) and replicas % workers == 0
