# SPDX-License-Identifier: Apache-2.0
"""Distributed data sets: what each replica gets in each step."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from distinput.core.nest import map_leaves
from distinput.core.random import fresh_seed
from distinput.core.spec import LeafSpec, Spec, TensorSpec
from distinput.core.state import VERSION, State
from distinput.data.dataset import Dataset
from distinput.data.experimental import auto_shard_dataset, rebatch_for_worker
from distinput.distribute.context import in_replica_of, modes
from distinput.distribute.dealing import Cutter, StandIn, dealer, per_replica_spec
from distinput.distribute.input_context import InputContext
from distinput.distribute.lockstep import Lockstep
from distinput.distribute.optional import Optional
from distinput.distribute.options import InputOptions
from distinput.distribute.peers import Peers
from distinput.distribute.values import PerReplica
from distinput.errors import OutOfRangeError, StateError
from distinput.plan.options import AutoShardPolicy
from distinput.rewrite.autoshard import effective_policy
from distinput.rewrite.shared_seed import with_shared_seed

if TYPE_CHECKING:
    from distinput.distribute.strategy import Strategy

__all__ = ["DistributedDataset", "DistributedDatasetsFromFunction", "DistributedIterator"]

_INFINITE = -1


class InputDataset(Protocol):
    """What is needed of a data set."""

    @property
    def element_spec(self) -> Any: ...
    def cardinality(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def restore(self, state: State) -> Iterator[Any]: ...


def distribute_dataset(strategy: "Strategy", dataset: Any, options: InputOptions) -> "DistributedDataset":
    """Cut a data set of global batches for the replicas; see `Strategy.experimental_distribute_dataset`."""
    _check_dataset(dataset, "experimental_distribute_dataset needs")
    spec = Spec.of(dataset.element_spec)
    peers = strategy._peers
    if peers is not None and peers.size > 1:
        dataset = _with_shared_seed(dataset, peers)
    replicas = strategy.num_replicas_in_sync
    workers, worker = (1, 0) if peers is None else (peers.size, peers.rank)
    splits = strategy.splits_batches and replicas > 1
    if splits:
        _check_batched(spec)
    balanced = splits and options.balanced_split
    equal = peers is None or len(set(peers.replicas)) == 1
    # One replica alone gets the batches as they are; where they would be cut one by one for more, it is at a place in them too.
    whole = strategy.splits_batches and replicas == 1
    by_batch = (splits or whole) and (
        options.balanced_split or effective_policy(dataset.node, workers) == AutoShardPolicy.DATA
    )
    if splits and not balanced and not equal:
        raise ValueError(
            "tf.distribute expects every worker to have the same number of replicas; cut the batches with "
            "InputOptions(balanced_split=True) for workers of different sizes"
        )
    rebatched = (
        rebatch_for_worker(dataset, workers, replicas // workers, worker) if splits and not balanced else dataset
    )
    cutter = None
    if by_batch:
        # Every worker goes through the global batches and takes its own pieces of each, so all have the same steps and a
        # state is the position in the global order, whatever the number of workers.
        mine = _replicas_of(strategy) if balanced else slice(worker, None, workers)
        cutter = None if whole else Cutter(spec, replicas, mine, balanced=balanced)
        source = dataset.prefetch(1)
    else:
        source = auto_shard_dataset(rebatched, workers, worker, replicas)
    ahead = options.experimental_per_replica_buffer_size
    if ahead > 1:
        source = source.prefetch(ahead if by_batch else ahead * replicas)
    part = cutter.spec(spec) if cutter is not None and balanced else Spec.of(rebatched.element_spec)
    return DistributedDataset(
        strategy,
        [source],
        part,
        int(dataset.cardinality()),
        keeps_partial=_keeps_partial(strategy, source, spec),
        cutter=cutter,
        whole=whole and by_batch,
        fetch=options.experimental_fetch_to_device,
    )


def _with_shared_seed(dataset: Any, peers: Peers) -> Any:
    """The same pipeline with one seed of worker 0 behind every shuffle that was given none, so that all workers agree."""
    seed = int(peers.group.broadcast(np.array(fresh_seed() if peers.rank == 0 else 0, np.int64))[()])
    return Dataset(with_shared_seed(dataset.node, seed))


def _replicas_of(strategy: "Strategy") -> slice:
    """This worker's replicas among all."""
    first = strategy._first_replica
    return slice(first, first + strategy._replicas)


def distribute_from_function(
    strategy: "Strategy",
    dataset_fn: Callable[[InputContext], Any],
    contexts: Sequence[InputContext],
    options: InputOptions,
) -> "DistributedDatasetsFromFunction":
    """Deal the elements of the user's own data sets; see `Strategy.distribute_datasets_from_function`."""
    datasets = [dataset_fn(context) for context in contexts]
    for dataset in datasets:
        _check_dataset(dataset, "distribute_datasets_from_function: dataset_fn must return")
    first = datasets[0]
    spec = Spec.of(first.element_spec)
    ahead = options.experimental_per_replica_buffer_size
    if ahead > 1:
        each = ahead * strategy.num_replicas_in_sync // len(datasets)
        datasets = [dataset.prefetch(each) for dataset in datasets]
    return DistributedDatasetsFromFunction(
        strategy,
        datasets,
        spec,
        int(first.cardinality()),
        keeps_partial=_keeps_partial(strategy, first, spec),
        fetch=options.experimental_fetch_to_device,
    )


def _check_dataset(dataset: Any, what: str) -> None:
    if isinstance(dataset, DistributedDataset):
        raise TypeError(f"{what} a data set, got one that is distributed already")
    if not all(hasattr(dataset, name) for name in ("element_spec", "cardinality", "restore")):
        raise TypeError(f"{what} a data set, got a {type(dataset).__name__}")


def _check_batched(spec: Spec) -> None:
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        if isinstance(leaf, TensorSpec) and leaf.shape == ():
            raise ValueError(
                f"experimental_distribute_dataset: component {path or 'of the element'} has no batch axis to be cut "
                "for the "
                "replicas; call .batch(global_batch_size) on the data set first"
            )


def _keeps_partial(strategy: "Strategy", dataset: Any, spec: Spec) -> bool:
    """True when `next` delivers a last step for which some replicas have no element."""
    if not strategy.keeps_partial_steps or int(dataset.cardinality()) == _INFINITE:
        return False
    if strategy._peers is not None and strategy._peers.size > 1:
        return True
    return any(isinstance(leaf, TensorSpec) and (leaf.shape is None or None in leaf.shape) for leaf in spec.leaves)


class DistributedDataset:
    """Steps of distributed values; `Strategy.experimental_distribute_dataset` makes it.

    It can be iterated again and again, each time from the start. Transform the data set before you distribute it.

    Args:
      strategy: whose replicas it feeds.
      sources: the input pipelines, one for all replicas or one for each.
      spec: of one replica's part.
      cardinality: of the data set as it was given.
      keeps_partial: deliver a last step in which some replicas have no element.
      cutter: for a pipeline that gives global batches, how they are cut; None: it gives one element per replica.
      whole: the pipeline gives global batches, for one replica, which are not cut.
      fetch: put the parts on the devices.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(3).batch(2))
    >>> [strategy.reduce("SUM", step, axis=0).item() for step in dataset]
    [1, 2]

    Source: `tf.distribute.DistributedDataset`.
    """

    _cuts = True
    """True when elements are pieces of global batches, which have rows."""

    def __init__(
        self,
        strategy: "Strategy",
        sources: Sequence[Any],
        spec: Spec,
        cardinality: int,
        *,
        keeps_partial: bool = True,
        cutter: Cutter | None = None,
        whole: bool = False,
        fetch: bool = True,
    ) -> None:
        self._strategy = strategy
        self._sources: list[InputDataset] = list(sources)
        self._replicas = strategy._replicas
        self._wraps = strategy._wraps
        self._cutter = cutter
        self._global = whole or cutter is not None
        self._spec = spec
        self._cardinality = cardinality
        self._keeps_partial = keeps_partial
        self._puts = fetch and not strategy._devices.host_memory

    @property
    def element_spec(self) -> Any:
        """The nest of specs of a step: `PerReplicaSpec` leaves, or plain ones for a single replica.

        Source: `tf.distribute.DistributedDataset.element_spec`.
        """
        if not self._wraps:
            return self._spec.nest
        several = self._strategy._peers is not None and self._strategy._peers.size > 1
        spec = self._spec.map(_open_rows) if several and self._keeps_partial else self._spec
        return per_replica_spec(spec, self._replicas)

    @property
    def cardinality(self) -> int:
        """How many elements the data set had that was distributed: global batches; -1 infinite, -2 unknown.

        Source: the `cardinality` of the distributed data sets of `tf.distribute`.
        """
        return self._cardinality

    def __iter__(self) -> "DistributedIterator":
        return DistributedIterator(self, [iter(source) for source in self._sources])

    def restore(self, state: State) -> "DistributedIterator":
        """An iterator that goes on where `DistributedIterator.state` was taken.

        Raises:
          StateError: the state belongs to another data set, number of replicas, or version.
        """
        states = _check_state(state, self._layout())
        seen = state.get("seen")
        iterators = [source.restore(s) for source, s in zip(self._sources, states, strict=True)]
        return DistributedIterator(self, iterators, seen, bool(state["ended"]))

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """`reduce_func(state, step)` over all steps, those for which some replicas have no element included.

        Source: the `reduce` of the distributed data sets of `tf.distribute`.
        """
        state = initial_state
        with iter(self) as iterator:
            while (step := iterator.get_next_as_optional()).has_value():
                state = reduce_func(state, step.get_value())
        return state

    def _control(self) -> Any:
        """The channel on which workers agree on each step; None where every worker knows the steps by itself."""
        peers = self._strategy._peers
        if peers is None or peers.size == 1 or self._cardinality == _INFINITE:
            return None
        if self._cutter is not None and self._cardinality >= 0:
            return None  # all go through the same global batches, whose number is known
        return self._strategy._control

    def _layout(self) -> dict[str, Any]:
        """What must be the same for a state to fit."""
        if self._global:  # a position in the global batches, which any number of replicas can go on from
            return {"cut": "batches"}
        peers = self._strategy._peers
        cut = "per_replica" if len(self._sources) > 1 else "per_worker"
        return {
            "replicas": self._strategy.num_replicas_in_sync,
            "workers": 1 if peers is None else peers.size,
            "cut": cut,
        }

    def __getattr__(self, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if not name.startswith("_"):
            message += "; a distributed data set can only be iterated: transform the data set before you distribute it"
        raise AttributeError(message)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} element_spec={self.element_spec} cardinality={self._cardinality}>"


class DistributedDatasetsFromFunction(DistributedDataset):
    """Steps dealt from the user's own data sets; `Strategy.distribute_datasets_from_function` makes it.

    Element k of a worker's data set goes to replica k mod R in step k div R; in PER_REPLICA mode every replica has a
    data set, and an end, of its own.

    Source: the data sets of `tf.distribute.Strategy.distribute_datasets_from_function`.
    """

    _cuts = False


class DistributedIterator:
    """Gives a step at a time: a nest of `PerReplica` leaves, or of plain ones for a single replica.

    Args:
      dataset: what is iterated.
      iterators: of its input pipelines.
      seen: the shapes of the last element of a restored iteration.
      ended: True when a restored iteration was at its end.

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
        dataset: DistributedDataset,
        iterators: Sequence[Iterator[Any]],
        seen: list[list[int]] | None = None,
        ended: bool = False,
    ) -> None:
        self._dataset = dataset
        self._strategy = dataset._strategy
        self._replicas = dataset._replicas
        self._iterators = list(iterators)
        self._cutter = dataset._cutter
        self._keeps_partial = dataset._keeps_partial
        self._deal = dealer(dataset._spec.structure, self._replicas)
        self._stand_in = StandIn(dataset._spec)
        self._watches = self._stand_in.watches
        self._pending: list[Any] = []  # drawn for a step that an error kept from being completed
        self._last: Any = None
        self._seen = seen
        self._ended = ended
        self._lockstep: Lockstep | None = None
        control = dataset._control()
        if control is not None:
            before = self._iterators[0].state()  # type: ignore[attr-defined]
            self._lockstep = Lockstep(control, self._draw, before, self._rows if dataset._cuts else None)

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
          OutOfRangeError: a data set that said it was infinite ended.

        Source: `tf.distribute.DistributedIterator.get_next_as_optional`.
        """
        if self._dataset._cardinality == _INFINITE:
            return Optional(self.get_next(), self.element_spec)
        step = self._step(True)
        return Optional(element_spec=self.element_spec) if step is _END else Optional(step, self.element_spec)

    def _step(self, keeps_partial: bool) -> Any:
        if modes.stack and in_replica_of(self._strategy):
            raise ValueError(
                "next(iterator) should be called from outside of replica_fn: a step is for all replicas; take it "
                "first and "
                "give it to run as an argument"
            )
        if self._ended:
            return _END
        replicas = self._replicas
        if self._lockstep is not None and (keeps_partial or self._cutter is not None):
            drawn = self._lockstep.next()
            if drawn is None:
                self._ended = True
                return _END
            return self._given(drawn, replicas - len(drawn))
        if self._cutter is not None:
            batch = next(self._iterators[0], _END)
            if batch is _END:
                self._ended = True
                return _END
            return self._put(self._cutter(batch))
        parts = self._pending
        if len(self._iterators) == 1:
            parts.extend(islice(self._iterators[0], replicas - len(parts)))
            missing = replicas - len(parts)
        else:
            parts.extend([next(iterator, _END) for iterator in self._iterators[len(parts) :]])
            missing = sum([part is _END for part in parts])
        if missing and (missing == replicas or not keeps_partial):
            self._ended = True
            parts.clear()
            return _END
        self._pending = []
        return self._given(parts, missing)

    def _given(self, parts: list[Any], missing: int) -> Any:
        """A step of these elements, those of replicas that have none made up."""
        if self._cutter is not None and parts:
            return self._put(self._cutter(parts[0]))
        if missing:
            self._fill(parts)
        if self._watches:
            self._last = parts[-1]
        return self._put(self._deal(*parts) if self._dataset._wraps else parts[0])

    def _rows(self, parts: list[Any]) -> int:
        """How many rows elements have."""
        structure = self._dataset._spec.structure
        return sum([len(structure.flatten(part)[0]) for part in parts])

    def _draw(self) -> tuple[list[Any], State]:
        """The elements of one step, and the input's state after them; for lockstep."""
        parts = list(islice(self._iterators[0], 1 if self._cutter is not None else self._replicas))
        return parts, self._iterators[0].state()  # type: ignore[attr-defined]

    def _fill(self, parts: list[Any]) -> None:
        """Elements without rows where there are none."""
        there = [part for part in parts if part is not _END]
        if there and self._watches:
            self._seen = self._stand_in.shapes(there[-1])
        empty = self._stand_in.element(self._seen if self._watches else None)
        for i, part in enumerate(parts):
            if part is _END:
                parts[i] = empty
        parts.extend([empty] * (self._replicas - len(parts)))

    def _put(self, step: Any) -> Any:
        return _put_step(self._strategy, step) if self._dataset._puts else step

    # ---- state

    def state(self) -> State:
        """Where the iteration stands, as a small value that JSON can hold.

        Raises:
          StateError: the last step failed half-way; the state taken before it is the one to restart from.
        """
        if self._pending:
            raise StateError(
                "DistributedIterator.state: the last step failed when some replicas had their element already; go on "
                "with next, "
                "or restart from a state taken before"
            )
        if self._last is not None:
            self._seen, self._last = self._stand_in.shapes(self._last), None
        iterators: list[Any] = self._iterators
        inputs = [self._lockstep.state] if self._lockstep is not None else [it.state() for it in iterators]
        layout = self._dataset._layout()
        return {
            "version": VERSION,
            "kind": "distributed",
            **layout,
            "ended": self._ended,
            "seen": self._seen,
            "inputs": inputs,
        }

    def state_dict(self) -> State:
        """The same as `state`, under the name that PyTorch's tools look for."""
        return self.state()

    def load_state_dict(self, state: State) -> None:
        """Go on where `state` was taken, which may be of another iterator of an equal data set.

        Raises:
          StateError: the state belongs to another data set, number of replicas, or version.
        """
        other = self._dataset.restore(state)
        self.close()
        self._iterators, self._pending = other._iterators, []
        self._seen, self._last, self._ended = other._seen, None, other._ended
        self._lockstep = other._lockstep
        if self._lockstep is not None:
            self._lockstep._draw = self._draw

    # ---- end

    def close(self) -> None:
        """End the iteration and what it runs in the background. Closing again does nothing."""
        self._ended = True
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


class _End:
    def __repr__(self) -> str:
        return "<end>"


_END = _End()


def _open_rows(leaf: LeafSpec) -> LeafSpec:
    """A worker that has run out gets no rows, so their number is not known."""
    return leaf.with_shape((None, *leaf.shape[1:])) if isinstance(leaf, TensorSpec) and leaf.shape else leaf


def _put_step(strategy: "Strategy", step: Any) -> Any:
    put = strategy._devices.put

    def leaf(value: Any) -> Any:
        if isinstance(value, PerReplica):
            return PerReplica([put(part, i, owned=True) for i, part in enumerate(value.values)])
        return put(value, 0, owned=True)

    return map_leaves(leaf, step, lists=True)


def _check_state(state: State, layout: dict[str, Any]) -> list[Any]:
    if not isinstance(state, dict) or state.get("kind") != "distributed":
        raise StateError(
            "DistributedDataset.restore: this is no state of a distributed iterator; take it with iterator.state()"
        )
    if state.get("version") != VERSION:
        raise StateError(
            f"DistributedDataset.restore: the state has version {state.get('version')!r}, known is {VERSION}"
        )
    for key, want in layout.items():
        if state.get(key) != want:
            raise StateError(
                f"DistributedDataset.restore: the state was taken with {key}={state.get(key)!r}, this data set has "
                f"{key}={want!r}; "
                "distribute with the same strategy and options, or use policy DATA or balanced_split, whose states go on on "
                "any number of workers and replicas"
            )
    inputs: list[Any] = state["inputs"]
    return inputs
