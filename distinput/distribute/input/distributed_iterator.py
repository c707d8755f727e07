# SPDX-License-Identifier: Apache-2.0
"""The iterator of a distributed dataset, whose state can be saved between any two steps."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from threading import RLock
from types import TracebackType
from typing import Any, NoReturn, Self

from distinput.columns.state import State, opened, sealed
from distinput.data.optional import Optional
from distinput.distribute.core.modes import in_replica_of, modes
from distinput.distribute.core.parts import part
from distinput.distribute.input.comparison import Beginning, compare_beginnings
from distinput.distribute.input.dealing import END
from distinput.distribute.input.delivery import Delivery
from distinput.distribute.input.located import Located, Ranges, Records, ranges_of_steps
from distinput.distribute.input.source import INFINITE, Steps, StepSource
from distinput.errors import OutOfRangeError, StateError
from distinput.plan.fingerprint import is_count
from distinput.plan.node import Latest

__all__ = ["DistributedIterator", "opened_state", "sealed_state"]

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
    return sealed({"kind": "distributed", **layout, "step": step, "ended": ended, "seen": seen, "inputs": list(inputs)})


def opened_state(state: Any, layout: Mapping[str, Any], inputs: int) -> State:
    """Check a state from `sealed_state` and return its contents.

    Args:
      state: the state that the user passed.
      layout: the layout that the state must have been taken with.
      inputs: how many input pipelines there are.

    Raises:
      StateError: it belongs to another dataset or distribution, or was modified.
    """
    if isinstance(state, dict) and "version" in state and state.get("kind") != "distributed":
        raise StateError(
            "DistributedDataset.restore: this is no state of a distributed iterator; take it with iterator.state()"
        )
    content = opened(state, "DistributedDataset.restore", {"step", "ended", "seen", "inputs"})
    if all(content.get(key) == value for key, value in _ALONE.items()) and layout.get("cut") == "batches":
        layout = _ALONE
    for key, want in sorted(layout.items()):  # the cut first, which decides whether there are others
        if content.get(key) != want:
            raise StateError(
                f"DistributedDataset.restore: the state was taken with {key}={content.get(key)!r}, this dataset has "
                f"{key}={want!r}; distribute with the same strategy and options as the job that saved it, or have jobs use "
                "policy DATA or balanced_split from their beginning, whose states go on on any number of workers and replicas"
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


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_count, value))


# ---- The iterator of a distributed dataset, whose state can be saved between any two steps

_NONE = object()


class DistributedIterator:
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
        self._ended = ended
        self._restored = restored
        self._skip = ranges_of_steps(skip) if skip else ()
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
        skip: Ranges = (),
    ) -> Self:
        """An iterator that continues from `state`; see `DistributedDataset.restore`."""
        found = opened_state(state, source.layout, source.pipelines)
        step = found["step"]
        steps = source.restore(found["inputs"], step, found["seen"], may_differ)
        given: list[Any] = [skip] if isinstance(skip, range | Records) else list(skip)
        if any(isinstance(each, Records) for each in given):
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

    def locate(self, step: int | None = None, replica: int | None = None, *, read: bool = False) -> Located:
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
        if self._ended:
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
                "next(iterator) should be called from outside of replica_fn: a step is for all replicas; take it "
                "first and "
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
        while not self._ended:
            left_out = any(first <= self._given_out < stop for first, stop in self._skip)
            try:
                step = self._steps.next(keeps_partial)
            except Exception as error:
                self._tell(error)
                raise
            if step is END:
                self._ended = True
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
        compare_beginnings(
            self._peers, Beginning(self._given_out, self._ended, self._restored, number, seeds, self._skip)
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
        self._restored, self._compared, self._skip = True, other._compared, ()

    def get_state(self) -> bytes:
        """The same as `state()`, as the JSON text that Grain's tools expect."""
        return json.dumps(self.state(), sort_keys=True).encode()

    def set_state(self, state: bytes | State) -> None:
        """The same as `load_state_dict`, of a result of `get_state` or `state`."""
        self.load_state_dict(json.loads(state) if isinstance(state, bytes | str) else state)

    def start_prefetch(self) -> None:
        """Do nothing; Grain's tools call it after `set_state`. What is read ahead begins with the first element."""

    # ---- end

    def close(self) -> None:
        """End the iteration and its background work. Closing again does nothing."""
        self._ended = self._compared = True
        self._ready = _NONE
        self._steps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
