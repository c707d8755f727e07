# SPDX-License-Identifier: Apache-2.0
"""The iterator of a distributed dataset, whose state can be saved between any two steps."""

from collections.abc import Collection
from threading import RLock
from types import TracebackType
from typing import Any, Self

from distinput.core.state import State
from distinput.data.optional import Optional
from distinput.distribute.input.comparison import Beginning, compare_beginnings
from distinput.distribute.input.delivery import Delivery
from distinput.distribute.input.drawing import END
from distinput.distribute.input.saved import opened_state, sealed_state
from distinput.distribute.input.source import Source, Steps
from distinput.distribute.input.terms import INFINITE
from distinput.distribute.modes import in_replica_of, modes
from distinput.errors import OutOfRangeError

__all__ = ["DistributedIterator"]


class DistributedIterator:
    """Returns one step at a time: a nest of `PerReplica` leaves, or of plain ones for a single replica.

    Args:
      source: where the steps come from.
      delivery: how they are delivered.
      steps: the iteration over `source`.
      step: how many steps were delivered before.
      ended: True if a restored iteration was at its end.
      restored: True if it continues from a saved state.

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
        source: Source,
        delivery: Delivery,
        steps: Steps,
        step: int = 0,
        *,
        ended: bool = False,
        restored: bool = False,
    ) -> None:
        self._source, self._delivery, self._steps = source, delivery, steps
        self._strategy, self._peers = delivery.consumer.strategy, source.terms.replicas.peers
        self._keeps_partial = source.terms.keeps_partial
        self._finished = delivery.finished if delivery.changes else None
        self._given_out = step  # steps, from the first one of the pass
        self._ended = ended
        self._restored = restored
        self._compared = source.terms.replicas.workers == 1  # compared with the other workers before the first step
        self._lock = RLock()

    @classmethod
    def restored(cls, source: Source, delivery: Delivery, state: State, may_differ: str | Collection[str] = ()) -> Self:
        """An iterator that continues from `state`; see `DistributedDataset.restore`."""
        found = opened_state(state, source.layout, source.pipelines)
        step = found["step"]
        steps = source.restore(found["inputs"], step, found["seen"], may_differ)
        return cls(source, delivery, steps, step, ended=found["ended"], restored=True)

    @property
    def element_spec(self) -> Any:
        """The nest of specs of a step.

        Source: `tf.distribute.DistributedIterator.element_spec`.
        """
        return self._delivery.element_spec(self._source)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        step = self._step(self._keeps_partial)
        if step is END:
            raise StopIteration
        return step

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
        step = self._step(True)
        return Optional(element_spec=self.element_spec) if step is END else Optional(step, self.element_spec)

    def _step(self, keeps_partial: bool) -> Any:
        if modes.stack and in_replica_of(self._strategy):
            raise ValueError(
                "next(iterator) should be called from outside of replica_fn: a step is for all replicas; take it "
                "first and "
                "give it to run as an argument"
            )
        with self._lock:
            if not self._compared:
                self._compare()
            if self._ended:
                return END
            try:
                step = self._steps.next(keeps_partial)
                if step is not END and self._finished is not None:
                    step = self._finished(step)
            except Exception as error:
                self._tell(error)
                raise
            if step is END:
                self._ended = True
            else:
                self._given_out += 1
                if self._peers is not None:
                    self._peers.reached(self._given_out)
            return step

    def _compare(self) -> None:
        """Check that all workers begin at the same place."""
        assert self._peers is not None
        number, seeds = self._steps.beginning
        compare_beginnings(self._peers, Beginning(self._given_out, self._ended, self._restored, number, seeds))
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
            inputs = self._steps.inputs(self._given_out)
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
        self._steps, self._given_out, self._ended = other._steps, other._given_out, other._ended
        self._restored, self._compared = True, other._compared

    # ---- end

    def close(self) -> None:
        """End the iteration and its background work. Closing again does nothing."""
        self._ended = self._compared = True
        self._steps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
