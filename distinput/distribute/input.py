# SPDX-License-Identifier: Apache-2.0
"""Distributed data sets: what each replica gets in each step."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from distinput.core.nest import map_leaves
from distinput.core.spec import Spec, TensorSpec
from distinput.core.state import VERSION, State
from distinput.data.experimental import auto_shard_dataset, rebatch_for_worker
from distinput.distribute.context import in_replica_of, modes
from distinput.distribute.dealing import Cutter, StandIn, dealer, per_replica_spec
from distinput.distribute.input_context import InputContext
from distinput.distribute.optional import Optional
from distinput.distribute.options import InputOptions
from distinput.distribute.values import PerReplica
from distinput.errors import OutOfRangeError, StateError

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
    replicas = strategy.num_replicas_in_sync
    splits = strategy.splits_batches and replicas > 1
    if splits:
        _check_batched(spec)
    balanced = splits and options.balanced_split
    rebatched = _rebatch(dataset, replicas) if splits and not balanced else dataset
    source = _auto_shard(rebatched, replicas)
    ahead = options.experimental_per_replica_buffer_size
    if ahead > 1:
        source = source.prefetch(ahead if balanced else ahead * replicas)
    return DistributedDataset(
        strategy,
        [source],
        Spec.of(rebatched.element_spec),
        int(dataset.cardinality()),
        keeps_partial=_keeps_partial(strategy, dataset, spec),
        balanced=balanced,
        fetch=options.experimental_fetch_to_device,
    )


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


def _rebatch(dataset: Any, replicas: int) -> Any:
    return rebatch_for_worker(dataset, 1, replicas, 0)


def _auto_shard(dataset: Any, replicas: int) -> Any:
    return auto_shard_dataset(dataset, 1, 0, replicas)


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
    return any(isinstance(leaf, TensorSpec) and (leaf.shape is None or None in leaf.shape) for leaf in spec.leaves)


class DistributedDataset:
    """Steps of distributed values; `Strategy.experimental_distribute_dataset` makes it.

    It can be iterated again and again, each time from the start. Transform the data set before you distribute it.

    Args:
      strategy: whose replicas it feeds.
      sources: the input pipelines, one for all replicas or one for each.
      spec: of one replica's part, before a balanced cut.
      cardinality: of the data set as it was given.
      keeps_partial: deliver a last step in which some replicas have no element.
      balanced: the pipeline gives global batches, which are cut evenly.
      fetch: put the parts on the devices.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(3).batch(2))
    >>> [strategy.reduce("SUM", step, axis=0).item() for step in dataset]
    [1, 2]

    Source: `tf.distribute.DistributedDataset`.
    """

    def __init__(
        self,
        strategy: "Strategy",
        sources: Sequence[Any],
        spec: Spec,
        cardinality: int,
        *,
        keeps_partial: bool = True,
        balanced: bool = False,
        fetch: bool = True,
    ) -> None:
        self._strategy = strategy
        self._sources: list[InputDataset] = list(sources)
        self._replicas = strategy.num_replicas_in_sync
        self._cutter = Cutter(spec, self._replicas) if balanced else None
        self._spec = self._cutter.spec(spec) if self._cutter else spec
        self._cardinality = cardinality
        self._keeps_partial = keeps_partial
        self._puts = fetch and not strategy._devices.host_memory

    @property
    def element_spec(self) -> Any:
        """The nest of specs of a step: `PerReplicaSpec` leaves, or plain ones for a single replica.

        Source: `tf.distribute.DistributedDataset.element_spec`.
        """
        return self._spec.nest if self._replicas == 1 else per_replica_spec(self._spec, self._replicas)

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

    def _layout(self) -> dict[str, Any]:
        """What must be the same for a state to fit."""
        cut = "balanced" if self._cutter else ("per_replica" if len(self._sources) > 1 else "per_worker")
        return {"replicas": self._replicas, "cut": cut}

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
        if missing:
            if missing == replicas or not keeps_partial:
                self._ended = True
                parts.clear()
                return _END
            self._fill(parts)
        self._pending = []
        if self._watches:
            self._last = parts[-1]
        return self._put(self._deal(*parts) if replicas > 1 else parts[0])

    def _fill(self, parts: list[Any]) -> None:
        """Elements without rows where there are none."""
        there = [part for part in parts if part is not _END]
        empty = self._stand_in.element(self._stand_in.shapes(there[-1]) if self._watches else None)
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
        inputs = [iterator.state() for iterator in self._iterators]  # type: ignore[attr-defined]
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

    # ---- end

    def close(self) -> None:
        """End the iteration and what it runs in the background. Closing again does nothing."""
        self._ended = True
        self._pending = []
        self._last = None
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
                "distribute with the same strategy and options"
            )
    inputs: list[Any] = state["inputs"]
    return inputs
