# SPDX-License-Identifier: Apache-2.0
"""Distributed datasets: what each replica gets in each step, again in every pass."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from distinput.core.seal import opened
from distinput.core.spec import LeafSpec, Spec, TensorSpec
from distinput.core.state import State
from distinput.distribute.input.consumer import Consumer
from distinput.distribute.input.dealing import Cutter, per_replica_spec
from distinput.distribute.input.distributed_iterator import DistributedIterator
from distinput.distribute.input.explanation import explanation
from distinput.distribute.input.own_batches import OwnBatches
from distinput.distribute.input.tail import Padding
from distinput.errors import StateError
from distinput.partition.assignment import Assignment
from distinput.plan.fingerprint import allowances

__all__ = ["DistributedDataset", "DistributedDatasetsFromFunction", "Feed"]

_INFINITE = -1
_UNKNOWN = -2


@dataclass(frozen=True)
class Feed:
    """Where the steps of one worker come from.

    Args:
      sources: its input pipelines, one for all its replicas or one for each.
      spec: of one replica's part.
      cardinality: of the dataset as it was given.
      is_global: a place in it is a place in the global batches, from which any number of replicas can go on.
      assignment: which pieces of the global batches are this worker's; None where batches are not cut one by one.
      cutter: for a pipeline that gives whole global batches: cuts them; None: it gives one element per replica.
      own: the only source, where it gives this worker's pieces and reads no others.
      steps: how many steps all workers take, where they have counted them; None: each sees its end, or they agree on it.
      tail: what happens to a step that is not full.
      full_rows: rows of a full step, where each step has to be looked at; else 0.
      padding: fills each part up.
      alike: all workers have the same pipeline, and begin the same passes.
      hints: what differs between them all the same; a reason if their elements do.
    """

    sources: Sequence[Any]
    spec: Spec
    cardinality: int
    is_global: bool = False
    assignment: Assignment | None = None
    cutter: Cutter | None = None
    own: OwnBatches | None = None
    steps: int | None = None
    tail: str = "partial"
    full_rows: int = 0
    padding: Padding | None = None
    alike: bool = False
    hints: Sequence[str] = ()


class DistributedDataset:
    """Steps of distributed values; `Strategy.experimental_distribute_dataset` makes it.

    It can be iterated again and again, each time from the start. Transform the dataset before you distribute it.

    Args:
      consumer: who takes the steps.
      feed: where the steps come from.
      keeps_partial: deliver a last step in which some replicas have no element.
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

    def __init__(self, consumer: Consumer, feed: Feed, *, keeps_partial: bool = True, fetch: bool = True) -> None:
        self._consumer, self._feed, self._replicas = consumer, feed, consumer.replicas
        self._keeps_partial = keeps_partial
        self._puts = fetch and not consumer.replicas.devices.host_memory

    @property
    def element_spec(self) -> Any:
        """The nest of specs of a step: `PerReplicaSpec` leaves, or plain ones for a single replica.

        Source: `tf.distribute.DistributedDataset.element_spec`.
        """
        spec = self._feed.spec if self._feed.padding is None else self._feed.padding.spec
        if not self._replicas.wraps:
            return spec.nest
        if self._replicas.workers > 1 and self._keeps_partial and self._feed.padding is None:
            spec = spec.map(_open_rows)
        return per_replica_spec(spec, self._replicas.count)

    @property
    def cardinality(self) -> int:
        """How many elements the dataset had that was distributed: global batches; -1 infinite, -2 unknown.

        Source: the `cardinality` of the distributed datasets of `tf.distribute`.
        """
        return self._feed.cardinality

    @property
    def num_steps(self) -> int:
        """How many steps every worker takes; -1 without end, -2 if that is known only at the end."""
        feed = self._feed
        if feed.cardinality == _INFINITE:
            return _INFINITE
        if feed.steps is not None and not feed.full_rows:
            return feed.steps
        if feed.is_global or len(feed.sources) > 1 or self._replicas.workers > 1 or feed.full_rows:
            return _UNKNOWN
        elements = int(feed.sources[0].cardinality())
        if elements < 0:
            return elements
        return -(-elements // self._replicas.count) if self._keeps_partial else elements // self._replicas.count

    def explain(self) -> str:
        r"""How the dataset is distributed: the cut, who reads what, how the end is known, and what happens to the tail.

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
        return explanation(self)

    def __iter__(self) -> "DistributedIterator":
        return DistributedIterator(self, [iter(source) for source in self._feed.sources])

    def restore(self, state: State, may_differ: str | Collection[str] = ()) -> "DistributedIterator":
        """An iterator that goes on where `DistributedIterator.state` was taken.

        Its first step is a `StateError` on all workers if they were not restored to the same place.

        Args:
          state: what that gave.
          may_differ: as for `Dataset.restore`.

        Raises:
          StateError: the state belongs to another dataset, number of replicas, or version, or is not as it was saved.
        """
        found = _opened(state, self._layout())
        step, seen, ended, states = found["step"], found["seen"], found["ended"], found["inputs"]
        if self._feed.own is not None:
            own, iterator = self._feed.own.restore(states[0], step, allowances(may_differ))
            return DistributedIterator(self, [iterator], step, seen, ended, own, restored=True)
        allowed = (may_differ,) if may_differ else ()  # datasets of other packages know of no such argument
        iterators = [source.restore(s, *allowed) for source, s in zip(self._feed.sources, states, strict=True)]
        return DistributedIterator(self, iterators, step, seen, ended, restored=True)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """`reduce_func(state, step)` over all steps, those for which some replicas have no element included.

        Source: the `reduce` of the distributed datasets of `tf.distribute`.
        """
        state = initial_state
        with iter(self) as iterator:
            while (step := iterator.get_next_as_optional()).has_value():
                state = reduce_func(state, step.get_value())
        return state

    def _control(self) -> Any:
        """The channel on which workers agree on each step; None where every worker knows the steps by itself."""
        feed = self._feed
        if (
            self._replicas.workers == 1
            or feed.cardinality == _INFINITE
            or feed.steps is not None
            or feed.own is not None
        ):
            return None
        peers = self._replicas.peers
        return None if peers is None else peers.control

    def _failed(self, error: Exception, step: int) -> None:
        """Tell the other workers that this one's input failed, where they do not see it and do not agree on each step."""
        feed, peers = self._feed, self._replicas.peers
        apart = (
            feed.own is not None or not feed.is_global
        )  # otherwise all workers read the same, and meet the same error
        if peers is not None and peers.size > 1 and apart and self._control() is None:
            peers.group.abort(
                f"the input of worker {peers.rank} failed in step {step}: {type(error).__name__}: {error}"
            )

    def _layout(self) -> dict[str, Any]:
        """What must be the same for a state to fit."""
        if self._feed.is_global:
            return {"cut": "batches"}
        cut = "per_replica" if len(self._feed.sources) > 1 else "per_worker"
        return {"replicas": self._replicas.total, "workers": self._replicas.workers, "cut": cut}

    def __getattr__(self, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if not name.startswith("_"):
            message += "; a distributed dataset can only be iterated: transform the dataset before you distribute it"
        raise AttributeError(message)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} element_spec={self.element_spec} cardinality={self.cardinality}>"


class DistributedDatasetsFromFunction(DistributedDataset):
    """Steps dealt from the user's own datasets; `Strategy.distribute_datasets_from_function` makes it.

    Element k of a worker's dataset goes to replica k mod R in step k div R; in PER_REPLICA mode every replica has a
    dataset, and an end, of its own.

    Source: the datasets of `tf.distribute.Strategy.distribute_datasets_from_function`.
    """

    _cuts = False


def _open_rows(leaf: LeafSpec) -> LeafSpec:
    """A worker that has run out gets no rows, so their number is not known."""
    return leaf.with_shape((None, *leaf.shape[1:])) if isinstance(leaf, TensorSpec) and leaf.shape else leaf


def _opened(state: Any, layout: dict[str, Any]) -> State:
    if isinstance(state, dict) and "version" in state and state.get("kind") != "distributed":
        raise StateError(
            "DistributedDataset.restore: this is no state of a distributed iterator; take it with iterator.state()"
        )
    found = opened(state, "DistributedDataset.restore", {"step", "ended", "seen", "inputs"})
    for key, want in layout.items():
        if found.get(key) != want:
            raise StateError(
                f"DistributedDataset.restore: the state was taken with {key}={found.get(key)!r}, this dataset has "
                f"{key}={want!r}; "
                "distribute with the same strategy and options, or use policy DATA or balanced_split, whose states go on on "
                "any number of workers and replicas"
            )
    return found
