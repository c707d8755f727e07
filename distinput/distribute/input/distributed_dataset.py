# SPDX-License-Identifier: Apache-2.0
"""Distributed datasets: iterables of steps, each of which has a part for every replica."""

from collections.abc import Callable, Collection
from typing import Any

from distinput.core.state import State
from distinput.distribute.input.delivery import Delivery
from distinput.distribute.input.distributed_iterator import DistributedIterator
from distinput.distribute.input.explanation import explanation
from distinput.distribute.input.source import Source

__all__ = ["DistributedDataset", "DistributedDatasetsFromFunction"]


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

    def __init__(self, source: Source, delivery: Delivery) -> None:
        self._source, self._delivery = source, delivery

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

    def restore(self, state: State, may_differ: str | Collection[str] = ()) -> "DistributedIterator":
        """An iterator that continues from a state that `DistributedIterator.state` returned.

        Its first step raises `StateError` on all workers if they were not restored to the same place.

        Args:
          state: the saved state.
          may_differ: as for `Dataset.restore`.

        Raises:
          StateError: the state belongs to another dataset, number of replicas or version, or was modified.
        """
        return DistributedIterator.restored(self._source, self._delivery, state, may_differ)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """Apply `reduce_func(state, step)` over all steps, including those for which some replicas have no element.

        Source: the `reduce` of the distributed datasets of `tf.distribute`.
        """
        state = initial_state
        with iter(self) as iterator:
            while (step := iterator.get_next_as_optional()).has_value():
                state = reduce_func(state, step.get_value())
        return state

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
