# SPDX-License-Identifier: Apache-2.0
"""Distributed datasets: iterables of steps with a part for every replica; the state of their iterators can be saved."""

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, NoReturn, Self

from distinput.columns.state import State, is_count
from distinput.data.dataset import Dataset
from distinput.data.iterator import Optional
from distinput.distribute.core.contexts import in_replica_of, modes
from distinput.distribute.core.replicas import part
from distinput.distribute.core.values import row_counts
from distinput.distribute.input.dealing import END
from distinput.distribute.input.delivery import Delivery
from distinput.distribute.input.sources import CutBatches, DealtElements, OwnPiecesSource, Steps, StepSource
from distinput.errors import InvalidArgumentError, OutOfRangeError, StateError
from distinput.names.lazy import later, library
from distinput.plan.check import at_least, integer
from distinput.plan.node import INFINITE, Latest
from distinput.run.run import Run
from distinput.run.threads import Closing

if TYPE_CHECKING:
    from distinput.data import seal
    from distinput.distribute.input import comparison, lanes
    from distinput.distribute.input import located as places
    from distinput.distribute.input.located import Located, Ranges, Seen
    from distinput.names import words
    from distinput.plan import text as texts
else:
    comparison = later("distinput.distribute.input.comparison")  # for several workers
    # Few iterators are saved, and fewer are asked where their records come from.
    seal = later("distinput.data.seal")
    lanes, places = later("distinput.distribute.input.lanes"), later("distinput.distribute.input.located")
    texts, words = later("distinput.plan.text"), later("distinput.names.words")  # for those who print them

json = library("json")

# ----------------------------------------------------------------------------
# The iterator of a distributed dataset, whose state can be saved between any two steps.
# ----------------------------------------------------------------------------


# ---- Saved states of distributed iterators

_ALONE: Mapping[str, Any] = {"replicas": 1, "workers": 1, "cut": "per_worker"}
"""What states say of a lone replica whose policy was not DATA, if an older release saved them; it has global batches."""


def sealed_state(layout: Mapping[str, Any], step: int, ended: bool, seen: Any, inputs: Sequence[State]) -> State:
    """The state of an iteration.

    Args:
      layout: the facts that must be equal for the state to fit.
      step: how many steps were delivered.
      ended: True if there are no more.
      seen: the shapes of the last element, if placeholders need them.
      inputs: the states of the input pipelines.
    """
    return seal.sealed(
        {"kind": "distributed", **layout, "step": step, "ended": ended, "seen": seen, "inputs": list(inputs)}
    )


def opened_state(state: Any, layout: Mapping[str, Any], inputs: int) -> State:
    """Check a state from `sealed_state` and return its contents.

    Args:
      state: the state that the user passed.
      layout: the layout that the state must have been taken with.
      inputs: how many input pipelines there are.

    Raises:
      StateError: it belongs to another dataset or distribution, or was modified.
    """
    content = seal.opened(state, "DistributedDataset.restore", {"step", "ended", "seen", "inputs"}, "distributed")
    if _is_of(content, _ALONE) and layout.get("cut") == "batches":
        layout = _ALONE
    for key, want in sorted(layout.items()):  # the cut first, which decides whether there are others
        if content.get(key) != want:
            raise StateError(
                f"DistributedDataset.restore: the state was taken with {key}={content.get(key)!r}, this dataset has "
                f"{key}={want!r}; give restore a list of the states of all workers of that job, by their rank, as a checkpoint "
                "does, or distribute with the same strategy and options as the job that saved it"
            )
    seen = content["seen"]
    shapes = seen is None or (isinstance(seen, list) and all(_is_shape(shape) for shape in seen))
    several = isinstance(content["inputs"], list) and len(content["inputs"]) == inputs
    if not (is_count(content["step"]) and type(content["ended"]) is bool and shapes and several):
        raise StateError(
            "DistributedDataset.restore: the state is damaged: 'step', 'ended', 'seen' or 'inputs' is not as it was saved; it "
            "must be what iterator.state() gave"
        )
    return content


def _going_on(source: StepSource, state: Any) -> tuple[StepSource, Any]:
    """The source that continues with a state, and the state that it takes.

    Args:
      source: of the dataset as it is distributed now.
      state: what a user hands in: one state, or a list of those of all workers of a job.

    Raises:
      StateError: the states are not those of all workers of one job.
    """
    replicas, layout = source.terms.replicas, source.layout
    alone = not isinstance(state, list | tuple)
    states = [state] if alone else list(state)
    if not states or not all(isinstance(each, dict) and each.get("kind") == "distributed" for each in states):
        return source, states[0] if states else state
    first = states[0]
    if _is_of(first, layout) and (alone or len(states) == replicas.workers):
        return source, states[0 if alone else replicas.rank]
    if source.terms.earlier is None or (layout.get("cut") == "batches" and _is_of(first, _ALONE)):
        return source, states[min(replicas.rank, len(states) - 1)]
    is_all = first.get("workers") == 1 or not alone
    state = lanes.joined(states) if first.get("cut") == "per_worker" and is_all else first
    content = seal.opened(state, "DistributedDataset.restore", {"inputs"}, "distributed")
    if content.get("cut") == "lanes" and not (lanes.is_layout(content) and lanes.has_lanes(content)):
        return source, state
    return source.terms.earlier(content) or source, state


def _take_over(source: StepSource, state: State) -> None:
    """Have later passes go on with what steps have drawn, and caches keep, in an earlier job of another layout.

    Args:
      source: of the dataset as it is distributed now.
      state: of the input of that job; of lanes, the state of each.
    """
    states = state.get("lanes", [state])
    places = [{key: each[key] for key in ("seeds", "kept", "decided") if key in each} for each in states]
    # Inputs of functions have each drawn their own, or have other steps.
    if all(place.get("seeds") == places[0].get("seeds") for place in places):
        with suppress(StateError):
            source.take_over(places[0])


def _is_of(state: State, layout: Mapping[str, Any]) -> bool:
    return all(state.get(key) == value for key, value in layout.items())


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_count, value))


# ---- `DistributedIterator`

_NONE = object()


class DistributedIterator(Closing):
    """Returns one step at a time: a nest of `PerReplica` leaves, or of plain ones for a single replica.

    Args:
      source: where the steps come from.
      delivery: how they are delivered.
      steps: the iteration over `source`.
      step: how many steps were delivered before.
      ended: True if a restored iteration was at its end.
      restored: True if it continues from a saved state.
      skip: ranges of steps of the pass that are left out.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(4).batch(2))
    >>> with iter(dataset) as iterator:
    ...     _ = next(iterator)
    ...     state = iterator.state()
    >>> next(dataset.restore(state))
    PerReplica:{
      0: array([2]),
      1: array([3])
    }

    Source: `tf.distribute.DistributedIterator`.
    """

    def __init__(
        self,
        source: StepSource,
        delivery: Delivery,
        steps: Steps,
        step: int = 0,
        *,
        ended: bool = False,
        restored: bool = False,
        skip: Iterable[range] = (),
    ) -> None:
        self._source, self._delivery, self._steps = source, delivery, delivery.steps(source, steps)
        self._strategy, self._peers = delivery.consumer.strategy, source.terms.replicas.peers
        self._keeps_partial = source.terms.keeps_partial
        self._given_out = step  # steps, from the first one of the pass
        self._ready: Any = _NONE  # a step that was made and not delivered
        self._ended = ended  # there is no further step
        self._closed = False  # none is asked for any more
        self._restored = restored
        self._skip = places.ranges_of_steps(skip) if skip else ()
        self._compared = source.terms.replicas.workers == 1  # compared with the other workers before the first step
        self._lock = RLock()
        self._records: Latest[tuple[str, bool], Any] = Latest()

    @classmethod
    def restored(
        cls,
        source: StepSource,
        delivery: Delivery,
        state: State,
        may_differ: str | Collection[str] = (),
        skip: "Ranges" = (),
    ) -> Self:
        """An iterator that continues from `state`; see `DistributedDataset.restore`."""
        own, (source, state) = source, _going_on(source, state)
        found = opened_state(state, source.layout, source.pipelines)
        step = found["step"]
        steps = source.restore(found["inputs"], step, found["seen"], may_differ)
        if source is not own:
            _take_over(own, found["inputs"][0])
        given: list[Any] = [skip] if isinstance(skip, range | places.Records) else list(skip)
        if any(isinstance(each, places.Records) for each in given):
            given = part("steps_left_out")(given, source, found["inputs"])
        return cls(source, delivery, steps, step, ended=found["ended"], restored=True, skip=given)

    @property
    def element_spec(self) -> Any:
        """The nest of specs of a step.

        Source: `tf.distribute.DistributedIterator.element_spec`.
        """
        return self._delivery.element_spec(self._source)

    @property
    def step(self) -> int:
        """The number of steps of the pass that were delivered."""
        return self._given_out

    @property
    def epoch(self) -> int:
        """The number of the pass; 0 for datasets of other packages, which do not count them."""
        with self._lock:
            return int(self._steps.places()[0].get("epoch", 0))

    def locate(self, step: int | None = None, replica: int | None = None, *, read: bool = False) -> "Located":
        """The file and the record of every row of a step of this pass; see `DistributedDataset.locate`.

        Args:
          step: the step; None: the last one delivered.
          replica: as there.
          read: as there.

        Raises:
          IndexError: there is no such step, or none was delivered.

        >>> import distinput as di
        >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(100).shuffle(9).batch(4))
        >>> with iter(dataset) as iterator:
        ...     step = next(iterator)
        ...     located = iterator.locate()
        >>> [place.record for place in located] == [int(x) for part in step.values for x in part]
        True
        """
        with self._lock:
            seeds = [place.get("seeds", []) for place in self._steps.places()]
            epoch = self.epoch
        if step is None:
            if not self._given_out:
                raise IndexError("locate: no step was delivered yet; pass step=")
            step = self._given_out - 1
        step = integer("locate", "step", step)
        replica = None if replica is None else integer("locate", "replica", replica)
        key = repr(seeds), read
        records = self._records.of(key, lambda: part("StepRecords").with_seeds(self._source, seeds, read=read))
        located: Located = records.locate(step, replica, epoch)
        return located

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        step = self._step(self._keeps_partial)
        if step is END:
            raise StopIteration
        return step

    def __length_hint__(self) -> int:
        """The number of steps left, if it is known."""
        steps = self._source.num_steps
        if self._ended or self._closed:
            return 0
        left_out = sum(max(0, min(stop, steps) - max(first, self._given_out)) for first, stop in self._skip)
        return NotImplemented if steps < 0 else max(0, steps - self._given_out - left_out)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a DistributedIterator cannot be copied or sent to another process, since its threads and workers stay here; save "
            "the result of state(), and call restore(state) of the distributed dataset there"
        )

    def get_next(self) -> Any:
        """The next step.

        Raises:
          OutOfRangeError: there is none.
          ValueError: called inside `run`.
          RuntimeError: inside another strategy's scope.

        Source: `tf.distribute.DistributedIterator.get_next`.
        """
        step = self._step(self._keeps_partial)
        if step is END:
            raise OutOfRangeError("End of sequence")
        return step

    def get_next_as_optional(self) -> Optional:
        """The next step if there is one; a last step for which some replicas have no element is always delivered.

        Raises:
          OutOfRangeError: a dataset that was declared infinite ended.

        Source: `tf.distribute.DistributedIterator.get_next_as_optional`.
        """
        if self._source.terms.cardinality == INFINITE:
            return Optional(self.get_next(), self.element_spec)
        spec = self.element_spec
        step = self._step(True)
        try:
            return Optional(element_spec=spec) if step is END else Optional(step, spec)
        except BaseException:
            if step is not END:
                self._ready, self._given_out = step, self._given_out - 1
            raise

    def _step(self, keeps_partial: bool) -> Any:
        if modes.stack and in_replica_of(self._strategy):
            raise ValueError(
                "next(iterator) should be called from outside of replica_fn: a step is for all replicas; take it first and "
                "give it to run as an argument"
            )
        while self._ready is _NONE:
            with self._lock:
                if self._ready is _NONE and not self._made_ready(keeps_partial):
                    return END
        # No interrupt, and no other thread, comes between these: no function is called.
        step, self._ready, self._given_out = self._ready, _NONE, self._given_out + 1
        return step

    def _made_ready(self, keeps_partial: bool) -> bool:
        """Make the next step that is delivered; False at the end."""
        if not self._compared:
            self._compare()
        while not (self._ended or self._closed):
            left_out = bool(self._skip) and any(first <= self._given_out < stop for first, stop in self._skip)
            try:
                step = self._steps.next(keeps_partial)
            except Exception as error:
                self._tell(error)
                raise
            if step is END:
                self._ended = not self._steps.failed  # else the state stays before the step that failed
                self._closed = self._closed or self._steps.failed
                return False
            if left_out:
                self._given_out += 1
            else:
                self._ready = step
            if self._peers is not None:
                self._peers.reached(self._given_out + (not left_out))
            if not left_out:
                return True
        return False

    def _compare(self) -> None:
        """Check that all workers begin at the same place."""
        assert self._peers is not None
        number, seeds = self._steps.beginning
        comparison.compare_beginnings(
            self._peers, comparison.Beginning(self._given_out, self._ended, self._restored, number, seeds, self._skip)
        )
        self._compared = True

    def _tell(self, error: Exception) -> None:
        """Tell the other workers that this one's input failed, if they would not learn of it otherwise."""
        peers, source = self._peers, self._source
        if peers is not None and peers.size > 1 and source.fails_alone and not source.agrees:
            reason = f"{type(error).__name__}: {error}"
            peers.group.abort(f"the input of worker {peers.rank} failed in step {self._given_out}: {reason}")

    # ---- state

    def state(self) -> State:
        """The position of the iteration, as a small JSON value.

        Raises:
          StateError: the last step failed half-way; restart from a state taken before it.
        """
        with self._lock:
            places = self._steps.places(self._ready is not _NONE)
            inputs = self._steps.inputs(self._given_out, places)
            return sealed_state(self._source.layout, self._given_out, self._ended, self._steps.seen, inputs)

    def state_dict(self) -> State:
        """The same as `state`, under the name that PyTorch's tools expect."""
        return self.state()

    def load_state_dict(self, state: State, may_differ: str | Collection[str] = ()) -> None:
        """Continue from `state`, which may have been taken from another iterator of an equal dataset.

        Args:
          state: a result of `state_dict`.
          may_differ: as for `Dataset.restore`.

        Raises:
          StateError: the state belongs to another dataset, number of replicas, or version.
        """
        other = type(self).restored(self._source, self._delivery, state, may_differ)
        self.close()
        self._steps, self._given_out, self._ended, self._ready = other._steps, other._given_out, other._ended, _NONE
        self._source, self._restored, self._compared, self._skip = other._source, True, other._compared, ()
        self._records = other._records
        self._closed = False

    def get_state(self) -> bytes:
        """The same as `state()`, as the JSON text that Grain's tools expect."""
        text: str = json.dumps(self.state(), sort_keys=True)
        return text.encode()

    def set_state(self, state: bytes | State) -> None:
        """The same as `load_state_dict`, of a result of `get_state` or `state`."""
        self.load_state_dict(seal.of_text(state, "set_state", "get_state()"))

    def start_prefetch(self) -> None:
        """Do nothing; Grain's tools call it after `set_state`. What is read ahead begins with the first element."""

    # ---- end

    def close(self) -> None:
        """End the iteration and its background work; `state` is where it was. Closing again does nothing."""
        self._closed = self._compared = True
        self._ready = _NONE
        self._steps.close()


# ----------------------------------------------------------------------------
# Distributed datasets: iterables of steps, each of which has a part for every replica.
# ----------------------------------------------------------------------------


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
        "elastic": _elastic(source),
    }
    lines = ["distributed:", *[f"  {name + ':':<9} {text}" for name, text in facts.items()]]
    if source.plan is not None:
        lines += ["input of this worker:", *["  " + line for line in source.plan.splitlines()]]
    return "\n".join(lines)


def _elastic(source: StepSource) -> str:
    """Whether a job of other numbers of workers and replicas can go on, in words."""
    if source.layout.get("cut") in ("batches", "lanes"):
        return "yes: a state goes on on any number of workers and replicas"
    if source.layout.get("cut") == "per_replica":
        return "no: each replica has a dataset of its own"
    if source.terms.earlier is None:
        return "no: elements have no axis of rows, so those of all replicas cannot be put together and cut anew"
    workers = source.terms.replicas.workers
    whose = "the states of all workers go" if workers > 1 else "a state goes"
    return f"yes: {whose} on on any number of workers and replicas, with the same global batches"


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
            source = replace(source, dataset=same(source.dataset))
        case DealtElements():
            source = replace(source, datasets=[same(dataset) for dataset in source.datasets])
        case OwnPiecesSource():
            batches = copy.copy(source.batches)
            batches.pieces = same(batches.pieces)
            source = replace(source, batches=batches)
    return source, handles


# ---- `DistributedDataset`


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
        self, state: State, may_differ: str | Collection[str] = (), *, skip: "Ranges" = ()
    ) -> "DistributedIterator":
        """An iterator that continues from a state that `DistributedIterator.state` returned.

        Its first step raises `StateError` on all workers if they were not restored to the same place.

        A job of other numbers of workers or replicas continues with the same global batches, cut for its own replicas. Where
        workers read parts of their own (policy FILE, BALANCED, OFF, HINT), it needs the states of all workers.

        Args:
          state: the saved state; or the states of all workers of a job, by their rank.
          may_differ: as for `Dataset.restore`.
          skip: a range of steps of this pass that are left out, such as those before which the loss jumped, or several; the
            same on all workers. `lineage.Records(file, records)` stands for the whole steps that hold these records. The other
            steps keep their numbers, and the records in them.

        Raises:
          StateError: the state belongs to another dataset, number of replicas or version, or was modified.
          ValueError: `skip` is not a range of steps; or it names a file that is not read, or a record that is not there.
          UnimplementedError: it names records that cannot be located, as after `filter`.

        >>> import distinput as di
        >>> strategy = di.distribute.OneDeviceStrategy("CPU:0")
        >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(10).batch(2))
        >>> [int(step[0]) for step in dataset.restore(iter(dataset).state(), skip=range(1, 4))]
        [0, 8]
        """
        return DistributedIterator.restored(self._source, self._delivery, state, may_differ, skip)

    def locate(self, step: int, replica: int | None = None, *, epoch: int = 0, read: bool = False) -> "Located":
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
        step, epoch = integer("locate", "step", step), at_least("locate", "epoch", epoch, 0)
        replica = None if replica is None else integer("locate", "replica", replica)
        located: Located = self._records(read).locate(step, replica, epoch)
        return located

    def when(
        self, file: str, record: int, *, epoch: int = 0, steps: range | None = None, read: bool = False
    ) -> "tuple[Seen, ...]":
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
        record, epoch = integer("when", "record", record), at_least("when", "epoch", epoch, 0)
        seen: tuple[Seen, ...] = self._records(read).when(file, record, epoch, steps)
        return seen

    def replay(self, step: int, *, epoch: int = 0) -> Any:
        """A step, delivered again as in the iteration. Where rows can be counted, no step before it is read.

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
        step, epoch = integer("replay", "step", step), at_least("replay", "epoch", epoch, 0)
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
        return words.html("distributed", self)

    def __getattr__(self, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if not name.startswith("_"):
            message += "; a distributed dataset can only be iterated: transform the dataset before you distribute it"
        raise AttributeError(message)

    def __repr__(self) -> str:
        steps, replicas = self.num_steps, self._source.terms.replicas.count
        number = "endless" if steps == INFINITE else f"{steps:,}" if steps >= 0 else ""
        known = "" if number else ", nobody knows how many"
        where = "one replica" if replicas == 1 else f"each of {replicas} replicas"
        told = f"{number} step{'s' * (steps != 1)}".strip()
        return f"<{type(self).__name__}: {told} of {texts.short_spec_text(self._source.spec)} for {where}{known}>"


class DistributedDatasetsFromFunction(DistributedDataset):
    """A dataset of steps dealt from the user's own datasets; `Strategy.distribute_datasets_from_function` makes it.

    Element k of a worker's dataset goes to replica k mod R in step k div R; in PER_REPLICA mode every replica has a
    dataset, and an end, of its own.

    Source: the datasets of `tf.distribute.Strategy.distribute_datasets_from_function`.
    """
