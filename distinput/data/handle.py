# SPDX-License-Identifier: Apache-2.0
"""`Handle`: a pipeline, what is known about it, and its elements."""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import Any, Generic, Self, TypeAlias, TypeVar, overload

import numpy as np

from distinput import ops
from distinput.core.nest import map_leaves
from distinput.core.run import Counter
from distinput.core.state import State
from distinput.data.element import T_co
from distinput.data.iterator import BlockIterator, DatasetIterator, resumed
from distinput.data.passes import Passes
from distinput.data.seal import place_in
from distinput.data.stats import Stats, stats_of
from distinput.errors import InvalidArgumentError
from distinput.plan.check import at_least, callable_argument
from distinput.plan.node import INFINITE, UNKNOWN, Node
from distinput.plan.options import AutoShardPolicy, Options, options_of
from distinput.plan.policy import Policy
from distinput.rewrite import Running, rewrite

__all__ = ["Handle"]

Python: TypeAlias = bool | int | float | complex | str | bytes | list[Any] | tuple[Any, ...] | Mapping[Any, Any]
Numbers = TypeVar("Numbers", bound=np.generic | np.ndarray[Any, Any])


class Handle(Generic[T_co]):
    """The base of datasets; `Dataset` adds sources and transformations.

    Args:
      node: the tree that describes the pipeline.
      passes: the counter of its passes; None for a new one.
    """

    nest_leaf = True

    def __init__(self, node: Node, passes: Passes | None = None) -> None:
        if not hasattr(node, "origin"):  # faster than checking for a Node
            raise TypeError(
                f"Dataset: a dataset is not made by its class, got {_short(node)}; use Dataset.from_tensor_slices for the rows "
                "of arrays and lists, Dataset.from_generator for what a function yields"
            )
        self._node = node
        self._passes = passes or Passes()
        self._running: Running | None = None
        self._counted: tuple[Node, Mapping[Hashable, Counter]] = (node, {})

    @property
    def node(self) -> Node:
        """The tree that describes the pipeline."""
        return self._node

    @property
    def element_spec(self) -> Any:
        """The nest of `TensorSpec` that describes every element.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).batch(3).element_spec
        TensorSpec(shape=(None,), dtype=int64)

        Source: `tf.data.Dataset.element_spec`.
        """
        return self._node.element_spec

    def cardinality(self) -> int:
        """The number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).batch(3).cardinality()
        2

        Source: `tf.data.Dataset.cardinality`.
        """
        return self._node.cardinality

    def __len__(self) -> int:
        n = self.cardinality()
        if n == INFINITE:
            raise TypeError("The dataset is infinite.")
        if n == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return n

    def __bool__(self) -> bool:
        return True

    def options(self) -> Options:
        """The options of this pipeline: those of its inputs, overridden by later ones.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).options()
        Options()

        Source: `tf.data.Dataset.options`.
        """
        return options_of(self._node)

    def explain(
        self,
        num_workers: int | None = None,
        replicas_per_worker: int = 1,
        policy: AutoShardPolicy | Policy | None = None,
    ) -> str:
        """Explain the pipeline: as described, the rules that changed it, and as it runs.

        Args:
          num_workers: also show what each of this many workers would read if the dataset were distributed.
          replicas_per_worker: replicas of each worker.
          policy: the sharding policy to show; None for the one in the options.

        >>> import distinput as di
        >>> print(di.data.Dataset.range(9).repeat(2).take(5).take(3).explain())
        described:
          take(count=3)  int64  x3
            take(count=5)  int64  x5
              repeat(count=2)  int64  x18
                range(first=0, stop=9)  int64  x9
        rules: take_of_take
        runs:
          take(count=3)  int64  x3
            repeat(count=2)  int64  x18
              range(first=0, stop=9)  int64  x9
        """
        from distinput.plan.render import render
        from distinput.sharding.planning import shard_plan

        running, fired = rewrite(self._node)
        lines = ["described:", *_indented(render(self._node)), f"rules: {', '.join(fired) or 'none'}"]
        if fired:
            lines += ["runs:", *_indented(render(running))]
        if num_workers is not None:
            lines += str(shard_plan(self._node, num_workers, replicas_per_worker, policy)).splitlines()
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._node}>"

    def __iter__(self) -> DatasetIterator[T_co]:
        return self._pass(self._passes.begin(self._node))

    def iter_pass(self, number: int) -> DatasetIterator[T_co]:
        """An iterator over the pass with this number, for programs that count passes themselves.

        `iter` numbers the passes of a process from 0, and steps that reshuffle give each pass another order. A process that
        reads only one of them, such as a worker that PyTorch's DataLoader starts for each epoch, has to be told which.
        The next pass is the one after it.

        Args:
          number: the number of the pass, from 0.

        Raises:
          InvalidArgumentError: `number` is negative.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(5).shuffle(5, seed=1)
        >>> passes = [list(ds) for _ in range(3)]
        >>> list(ds.iter_pass(1)) == passes[1], list(ds) == passes[2]
        (True, True)
        """
        return self._pass(self._passes.begin(self._node, at_least("iter_pass", "number", number, 0)))

    def _pass(self, epoch: int) -> DatasetIterator[T_co]:
        running = self._runs()
        place = {"at": running.node.start(epoch), "epoch": epoch, "skip": 0}
        made: DatasetIterator[T_co] = DatasetIterator(self._node, running, place, self._passes)
        self._counted = made.counted
        return made

    def restore(self, state: State, may_differ: str | Collection[str] = ()) -> DatasetIterator[T_co]:
        """An iterator over exactly the elements that would have followed when the state was saved.

        Args:
          state: the result of `iterator.state()`, from this process or another.
          may_differ: what may have changed since the state was saved: one or several of "functions" (what they do and
            read), "root" (the folder of all files, and their times), "sizes" (of files, and their times) and "times".

        Raises:
          StateError: the state is of another pipeline, or of an unknown version.
          InvalidArgumentError: `may_differ` has an unknown name.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(5).shuffle(5, seed=3)
        >>> it = iter(ds)
        >>> seen = [next(it), next(it)]
        >>> sorted(seen + list(ds.restore(it.state())))
        [np.int64(0), np.int64(1), np.int64(2), np.int64(3), np.int64(4)]
        """
        return self._goes_on(*place_in(self._node, self._runs(), state, may_differ))

    def _goes_on(self, place: State, running: Running) -> DatasetIterator[T_co]:
        """An iterator that begins at a position in this tree."""
        plan, running = resumed(self._node, running, place)
        self._passes.goes_on(place["epoch"])
        made: DatasetIterator[T_co] = DatasetIterator(plan, running, place, self._passes)
        self._counted = made.counted
        return made

    def iter_blocks(self) -> BlockIterator:
        """The blocks of the pipeline, one column per leaf, without conversion to elements.

        >>> import distinput as di
        >>> with di.data.Dataset.range(5).iter_blocks() as blocks:
        ...     [block.columns[0].array for block in blocks]
        [array([0, 1, 2, 3, 4])]
        """
        running = self._runs().node
        return BlockIterator(running, running.start(self._passes.begin(self._node)))

    def as_numpy_iterator(self) -> Iterator[T_co]:
        """The elements; they are NumPy values already.

        >>> import distinput as di
        >>> list(di.data.Dataset.range(2).as_numpy_iterator())
        [np.int64(0), np.int64(1)]

        Source: `tf.data.Dataset.as_numpy_iterator`.
        """
        return iter(self)

    def to_list(self) -> list[Any]:
        """All elements, with arrays as lists and NumPy scalars as Python numbers, to inspect small data.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).batch(2).to_list()
        [[0, 1], [2, 3]]
        """
        return [map_leaves(_plain, element, lists=False) for element in self]

    @overload
    def reduce(
        self, initial_state: Numbers, reduce_func: Callable[[Numbers, T_co], Any], name: str | None = None
    ) -> Numbers: ...

    @overload
    def reduce(
        self, initial_state: Python, reduce_func: Callable[[Any, T_co], Any], name: str | None = None
    ) -> Any: ...

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, T_co], Any], name: str | None = None) -> Any:
        """The last state of `reduce_func(state, element) -> state` over all elements.

        Args:
          initial_state: any nest.
          reduce_func: a tuple element is one argument.
          name: a label.

        Raises:
          TypeError: the state changes its structure or a dtype.

        >>> import distinput as di
        >>> import numpy as np
        >>> di.data.Dataset.range(5).reduce(np.int64(0), lambda s, x: s + x)
        np.int64(10)

        Source: `tf.data.Dataset.reduce`.
        """
        callable_argument("reduce", "reduce_func", reduce_func)
        carry = ops.scan.Carry("reduce", initial_state)
        value = carry.initial
        with iter(self) as elements:
            for element in elements:
                value = carry.checked(reduce_func(value, element))
        return value

    def get_single_element(self, name: str | None = None) -> T_co:
        """The only element.

        Raises:
          InvalidArgumentError: there is none, or more than one.

        >>> import distinput as di
        >>> di.data.Dataset.range(5).batch(5).get_single_element()
        array([0, 1, 2, 3, 4])

        Source: `tf.data.Dataset.get_single_element`.
        """
        with iter(self) as elements:
            found = []
            for element in elements:
                found.append(element)
                if len(found) > 1:
                    raise InvalidArgumentError("get_single_element: Dataset had more than one element.")
        if not found:
            raise InvalidArgumentError("get_single_element: Dataset was empty.")
        return found[0]

    def stats(self) -> Stats:
        """Statistics of each step in the latest pass, the choices of AUTOTUNE, and the step that the others wait for.

        Passes over datasets derived from this one count for those. For one iterator, see `DatasetIterator.stats`.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(6).batch(2)
        >>> ds.stats().bottleneck
        'No element was asked for yet.'
        >>> _ = [batch for batch in ds]
        >>> {step: told["rows"] for step, told in ds.stats().items()}
        {'0:range': 6, '1:batch': 3}
        """
        return stats_of(*self._counted)

    def _runs(self) -> Running:
        if self._running is None:
            self._running = Running.of(self._node)
        return self._running

    def to_user(self) -> Self:
        """This dataset: a dataset inside an element is shown as it is."""
        return self

    @property
    def leaf_spec(self) -> Any:
        """The spec of this dataset as a leaf of an element."""
        return self._node.leaf_spec


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _plain(leaf: Any) -> Any:
    if isinstance(leaf, Handle):
        return leaf.to_list()
    return leaf if isinstance(leaf, bytes) else leaf.tolist()


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
