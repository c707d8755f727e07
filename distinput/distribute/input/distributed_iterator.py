# SPDX-License-Identifier: Apache-2.0
"""The steps of a distributed dataset, one after the other, and a place between any two of them."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from distinput.core.nest import Structure, map_leaves
from distinput.core.seal import sealed
from distinput.core.spec import TensorSpec
from distinput.core.state import State
from distinput.data.optional import Optional
from distinput.distribute.devices.devices import Devices
from distinput.distribute.input.comparison import Place, compare_places
from distinput.distribute.input.dealing import StandIn, dealer
from distinput.distribute.input.lockstep import Lockstep
from distinput.distribute.input.own_batches import OwnBatches
from distinput.distribute.input.tail import short
from distinput.distribute.modes import in_replica_of, modes
from distinput.distribute.values import PartialPerReplica, PerReplica
from distinput.errors import OutOfRangeError, StateError

if TYPE_CHECKING:
    from distinput.distribute.input.distributed_dataset import DistributedDataset

__all__ = ["DistributedIterator"]

_INFINITE = -1


class DistributedIterator:
    """Gives a step at a time: a nest of `PerReplica` leaves, or of plain ones for a single replica.

    Args:
      dataset: what is iterated.
      iterators: of its input pipelines.
      step: how many steps were given out before.
      seen: the shapes of the last element of a restored iteration.
      ended: True when a restored iteration was at its end.
      own: what a restored iteration of own rows reads from; None: the feed's.
      restored: it goes on from a saved state.

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
        dataset: "DistributedDataset",
        iterators: Sequence[Iterator[Any]],
        step: int = 0,
        seen: list[list[int]] | None = None,
        ended: bool = False,
        own: OwnBatches | None = None,
        *,
        restored: bool = False,
    ) -> None:
        feed = dataset._feed
        self._dataset, self._feed = dataset, feed
        self._consumer = dataset._consumer
        self._peers = dataset._replicas.peers
        self._replicas = dataset._replicas.count
        self._iterators = list(iterators)
        self._own = own or feed.own
        self._keeps_partial = dataset._keeps_partial
        self._deal = dealer(feed.spec.structure, self._replicas)
        self._stand_in = StandIn(feed.spec)
        self._watches = self._stand_in.watches
        self._given_out = step  # steps, from the first one of the pass
        self._left = None if feed.steps is None else feed.steps - step
        self._pending: list[Any] = []  # drawn for a step that an error kept from being completed
        self._last: Any = None
        self._seen = seen
        self._ended = ended
        self._restored = restored
        self._compared = dataset._replicas.workers == 1  # with the other workers, before the first step
        self._lockstep: Lockstep | None = None
        self._lock = RLock()
        self._rows = partial(_rows, feed.spec.structure)
        control = dataset._control()
        if control is not None and self._peers is not None:
            before = _place_of(self._iterators[0])
            # Neither refers to this iterator, which would keep it from being dropped.
            draw = partial(_drawn, self._iterators[0], self._replicas if feed.cutter is None else 1)
            rows_of = self._rows if dataset._cuts else None
            alike = feed.alike and feed.cutter is not None  # otherwise each reads a part of its own
            self._lockstep = Lockstep(
                control, draw, before, rows_of, about=self._peers.next_iteration, alike=alike, hints=feed.hints
            )

    @property
    def element_spec(self) -> Any:
        """The nest of specs of a step.

        Source: `tf.distribute.DistributedIterator.element_spec`.
        """
        return self._dataset.element_spec

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        step = self._step(self._keeps_partial)
        if step is _END:
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
        if step is _END:
            raise OutOfRangeError("End of sequence")
        return step

    def get_next_as_optional(self) -> Optional:
        """The next step if there is one; a last step for which some replicas have no element is always delivered.

        Raises:
          OutOfRangeError: a dataset that said it was infinite ended.

        Source: `tf.distribute.DistributedIterator.get_next_as_optional`.
        """
        if self._feed.cardinality == _INFINITE:
            return Optional(self.get_next(), self.element_spec)
        step = self._step(True)
        return Optional(element_spec=self.element_spec) if step is _END else Optional(step, self.element_spec)

    def _step(self, keeps_partial: bool) -> Any:
        if modes.stack and in_replica_of(self._consumer.strategy):
            raise ValueError(
                "next(iterator) should be called from outside of replica_fn: a step is for all replicas; take it "
                "first and "
                "give it to run as an argument"
            )
        with self._lock:
            if not self._compared:
                self._compare()
            if self._ended:
                return _END
            try:
                step = self._next(keeps_partial)
            except Exception as error:
                self._dataset._failed(error, self._given_out)
                raise
            if step is _END:
                self._ended = True
            else:
                self._given_out += 1
                if self._peers is not None:
                    self._peers.reached(self._given_out)
            return step

    def _compare(self) -> None:
        """Go on only where the other workers are."""
        iterator: Any = self._iterators[0]
        number = iterator.epoch if self._feed.alike else None
        seeds = iterator.seeds if self._feed.alike and self._feed.is_global else None
        place = Place(self._given_out, self._ended, self._restored, number, seeds)
        assert self._peers is not None
        compare_places(self._peers, place)
        self._compared = True

    def _next(self, keeps_partial: bool) -> Any:
        cutter, full, replicas = self._feed.cutter, self._feed.full_rows, self._replicas
        if self._lockstep is not None and (keeps_partial or cutter is not None):
            drawn = self._lockstep.next()
            if drawn is None:
                return _END
            if full and self._is_last(self._rows(drawn) if cutter is not None else self._lockstep.rows):
                return _END
            return self._given(drawn, replicas - len(drawn))
        if cutter is not None:
            batch = next(self._iterators[0], _END)
            if batch is _END or (full and self._is_last(self._rows([batch]))):
                return _END
            return self._finished(cutter(batch))
        if self._left is not None:
            if not self._left:
                return _END
            self._left -= 1
        parts = self._pending
        if len(self._iterators) == 1:
            parts.extend(islice(self._iterators[0], replicas - len(parts)))
            missing = replicas - len(parts)
        else:
            parts.extend([next(iterator, _END) for iterator in self._iterators[len(parts) :]])
            missing = sum([part is _END for part in parts])
        if missing and self._left is None and (missing == replicas or not keeps_partial):
            parts.clear()
            return _END
        self._pending = []
        if full and self._is_last(self._rows(parts)):
            return _END
        return self._given(parts, missing)

    def _is_last(self, rows: int) -> bool:
        """True for a step that is not full, where such a step is left out.

        Raises:
          InvalidArgumentError: the step is not full, and that is an error.
        """
        if rows >= self._feed.full_rows:
            return False
        if self._feed.tail == "error":
            raise short(rows, self._feed.full_rows)
        if self._lockstep is not None:
            self._lockstep.close()
        return True

    def _given(self, parts: list[Any], missing: int) -> Any:
        """A step of these elements, those of replicas that have none made up."""
        if self._feed.cutter is not None and parts:
            return self._finished(self._feed.cutter(parts[0]))
        present = self._fill(parts) if missing else None
        if self._watches:
            self._last = parts[-1]
        step = self._deal(*parts) if self._dataset._replicas.wraps else parts[0]
        return self._finished(step if present is None else self._marked(step, present))

    def _marked(self, step: Any, present: Sequence[bool]) -> Any:
        """The step, in which leaves that have no rows to leave out say where there is no data."""
        spec = self._feed.spec
        leaves = [
            PartialPerReplica(value.values, present)
            if isinstance(value, PerReplica) and isinstance(leaf, TensorSpec) and leaf.shape == ()
            else value
            for value, leaf in zip(spec.structure.flatten(step), spec.leaves, strict=True)
        ]
        return spec.structure.build(leaves)

    def _fill(self, parts: list[Any]) -> list[bool]:
        """Elements without rows where there are none; tells which are data."""
        present = [part is not _END for part in parts] + [False] * (self._replicas - len(parts))
        there = [part for part in parts if part is not _END]
        if there and self._watches:
            self._seen = self._stand_in.shapes(there[-1])
        empty = self._stand_in.element(self._seen if self._watches else None)
        for i, part in enumerate(parts):
            if part is _END:
                parts[i] = empty
        parts.extend([empty] * (self._replicas - len(parts)))
        return present

    def _finished(self, step: Any) -> Any:
        if self._feed.padding is not None:
            step = self._feed.padding(step)
        return _put_step(self._consumer.replicas.devices, step) if self._dataset._puts else step

    # ---- state

    def state(self) -> State:
        """Where the iteration stands, as a small value that JSON can hold.

        Raises:
          StateError: the last step failed half-way; the state taken before it is the one to restart from.
        """
        with self._lock:
            return self._state()

    def _state(self) -> State:
        if self._pending:
            raise StateError(
                "DistributedIterator.state: the last step failed when some replicas had their element already; go on with "
                "next, or restart from a state taken before"
            )
        if self._last is not None:
            self._seen, self._last = self._stand_in.shapes(self._last), None
        layout = self._dataset._layout()
        return sealed(
            {
                "kind": "distributed",
                **layout,
                "step": self._given_out,
                "ended": self._ended,
                "seen": self._seen,
                "inputs": self._inputs(),
            }
        )

    def _inputs(self) -> list[State]:
        iterators: list[Any] = self._iterators
        if self._lockstep is not None:
            seal = getattr(iterators[0], "sealed", None)
            return [self._lockstep.state if seal is None else seal(self._lockstep.state)]
        if self._own is not None:
            return [self._own.state(iterators[0], self._given_out)]
        return [iterator.state() for iterator in iterators]

    def state_dict(self) -> State:
        """The same as `state`, under the name that PyTorch's tools look for."""
        return self.state()

    def load_state_dict(self, state: State, may_differ: str | Collection[str] = ()) -> None:
        """Go on where `state` was taken, which may be of another iterator of an equal dataset.

        Args:
          state: what `state_dict` gave.
          may_differ: as for `Dataset.restore`.

        Raises:
          StateError: the state belongs to another dataset, number of replicas, or version.
        """
        other = self._dataset.restore(state, may_differ)
        self.close()
        self._iterators, self._pending = other._iterators, []
        self._given_out, self._left, self._own = other._given_out, other._left, other._own
        self._seen, self._last, self._ended = other._seen, None, other._ended
        self._restored, self._compared = True, other._compared
        self._lockstep = other._lockstep

    # ---- end

    def close(self) -> None:
        """End the iteration and what it runs in the background. Closing again does nothing."""
        self._ended = self._compared = True
        self._pending = []
        self._last = None
        if self._lockstep is not None:
            self._lockstep.close()
        for iterator in self._iterators:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _drawn(iterator: Any, count: int) -> tuple[list[Any], State]:
    """The next elements of a worker's input, at most `count`, and the input's state after them."""
    return list(islice(iterator, count)), _place_of(iterator)


def _place_of(iterator: Any) -> State:
    """Where an input stands; sealed when it is asked for."""
    place: State = (getattr(iterator, "place", None) or iterator.state)()
    return place


def _rows(structure: Structure, parts: list[Any]) -> int:
    """How many rows elements have."""
    return sum([len(structure.flatten(part)[0]) for part in parts if part is not _END])


class _End:
    def __repr__(self) -> str:
        return "<end>"


_END = _End()


def _put_step(devices: Devices, step: Any) -> Any:
    put = devices.put

    def leaf(value: Any) -> Any:
        if isinstance(value, PerReplica):
            return PerReplica([put(part, i, owned=True) for i, part in enumerate(value.values)])
        return put(value, 0, owned=True)

    return map_leaves(leaf, step, lists=True)
