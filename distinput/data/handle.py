# SPDX-License-Identifier: Apache-2.0
"""`DatasetHandle`: a pipeline, what is known about it, and iterators over its elements."""

import copy
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, SupportsIndex, overload

import numpy as np

from distinput.columns.state import State
from distinput.data.element import T_co
from distinput.data.iterator import BlockIterator, DatasetIterator, Passes, resumed
from distinput.names.lazy import later
from distinput.names.words import html
from distinput.plan.check import at_least
from distinput.plan.node import INFINITE, Node, allow_depth, cardinality_bounds
from distinput.rewrite import Running
from distinput.run.run import OpCounters, Run

if TYPE_CHECKING:
    from distinput.data import by_position, loader, seal, stats
    from distinput.data.stats import Stats
    from distinput.plan import fingerprint as fingerprints
    from distinput.plan import options as plan_options
    from distinput.plan import text as texts
    from distinput.plan.options import Options
    from distinput.streaming import by_position as positions
    from distinput.streaming.by_position import Positions
else:
    texts = later("distinput.plan.text")  # lines about a step are for those who read them
    loader = later("distinput.data.loader")  # what a DataLoader of PyTorch is told is for those who use one
    by_position = later("distinput.data.by_position")  # keys and positions are for those who reach for single elements
    positions = later("distinput.streaming.by_position")  # the same
    fingerprints = later("distinput.plan.fingerprint")  # for those who ask for it
    plan_options = later("distinput.plan.options")  # few pipelines have some
    seal = later("distinput.data.seal")  # what makes and reads states is for those who save them
    stats = later("distinput.data.stats")  # for those who ask for them

__all__ = ["DatasetHandle"]


class DatasetHandle(Generic[T_co]):
    """The base of datasets; `Actions` adds what makes a whole pass, `Transformations` the ops, `Dataset` the sources.

    Args:
      node: the tree that describes the pipeline.
      passes: the counter of its passes; None for a new one.
    """

    nest_leaf = True
    _make_run: Callable[..., Run] = Run

    def __init__(self, node: Node, passes: Passes | None = None) -> None:
        if not hasattr(node, "origin"):  # faster than checking for a Node
            raise TypeError(
                f"Dataset: a dataset is not made by its class, got {_short(node)}; use Dataset.from_tensor_slices for the rows "
                "of arrays and lists, Dataset.from_generator for what a function yields"
            )
        allow_depth(node)
        self._node = node
        self._passes = passes or Passes()
        self._running: Running | None = None
        self._positions: Positions | None = None
        self._counted: tuple[Node, Mapping[Hashable, OpCounters]] = (node, {})

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

    def cardinality_bounds(self) -> tuple[int, int | None]:
        """The fewest and the most elements of a pass without errors, for progress bars; no record is read for them.

        Returns:
          Two numbers, equal where the number is known; None in the place of the second one where there is no upper bound, or
          none is known.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(100).filter(lambda x: x % 3 == 0)
        >>> ds.cardinality_bounds(), ds.take(20).batch(8).cardinality_bounds()
        ((0, 100), (0, 3))
        """
        return cardinality_bounds(self._node)

    def __len__(self) -> int:
        n = self.cardinality()
        if n >= 0:
            return n
        raise TypeError(
            ("The dataset is infinite." if n == INFINITE else "The dataset length is unknown.") + loader.advice()
        )

    def __bool__(self) -> bool:
        return True

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_make_run"}
        return {**kept, "_running": None, "_positions": None, "_counted": (self._node, {})}

    @overload
    def __getitem__(self, key: "slice | Sequence[int] | np.ndarray[Any, Any]") -> list[T_co]: ...

    @overload
    def __getitem__(self, key: SupportsIndex) -> T_co: ...

    def __getitem__(self, key: Any) -> Any:
        """Elements by their positions in the first pass: `dataset[i]` is `list(dataset)[i]`.

        An integer, which may be negative, gives an element; a slice, or a list or array of integers, gives a list of elements.
        No more is read than they need: sources, arrays, and files whose records are indexed are read by position, through
        `map`, `batch`, `rebatch`, `unbatch`, `shard`, `take`, `skip`, `repeat`, `zip`, `concatenate`, `shuffle` and
        `global_shuffle`. `cache` makes all its elements at the first request.

        Args:
          key: an integer, a slice, or a sequence of integers.

        Raises:
          IndexError: there is no such element.
          TypeError: a step of the pipeline can only be iterated, such as `filter`; the message names it, and the cure.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(10).map(lambda x: x * x).batch(3)
        >>> ds[1], ds[-1]
        (array([ 9, 16, 25]), array([81]))
        >>> di.data.Dataset.range(100).global_shuffle(seed=1).map(lambda x: x + 1)[[3, 1, 2]]
        [np.int64(76), np.int64(50), np.int64(3)]

        Source: Python's sequences; a dataset is none, since it can be infinite, and differ from pass to pass.
        """
        found = self._by_position()
        if by_position.is_integer(key):
            return next(found.fetch(np.array((by_position.row_of(key, found.size),))).elements())
        rows = by_position.rows_of(key, found.size)
        return list(found.fetch(rows).elements()) if len(rows) else []

    def __getitems__(self, indices: "Sequence[int] | np.ndarray[Any, Any]") -> list[T_co]:
        """The elements at these positions, as `dataset[indices]`: what PyTorch's DataLoader and others call for a batch.

        What several elements need, such as a row group of a Parquet file, is read once.

        Args:
          indices: integers, which may be negative.

        Raises:
          IndexError: there is no such element.
          TypeError: a step of the pipeline can only be iterated; see `dataset[i]`.

        >>> import distinput as di
        >>> di.data.Dataset.range(10).skip(3).__getitems__([0, -1])
        [np.int64(3), np.int64(9)]

        Source: `__getitems__` of PyTorch's map-style datasets.
        """
        return self[indices]

    @property
    def __array_struct__(self) -> Any:
        """Tell NumPy that a dataset is one object. To NumPy anything with `__len__` and `__getitem__` would be a sequence."""
        whole = np.empty((), object)
        whole[()] = self
        return whole.__array_struct__

    def _by_position(self) -> "Positions":
        self._runs()  # which takes over the seeds of a state
        if self._positions is None:
            loader.look_at_positions(self._node)
            self._positions = positions.positions_of(self._node)
        return self._positions

    def fingerprint(self) -> np.uint64:
        """A number that tells this pipeline from others: by its steps and their arguments, functions, arrays and files.

        It is the same in every process that builds the same pipeline over the same files, and another one once a file changes.
        It is not TensorFlow's number.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(4)
        >>> [int(each.fingerprint()) == int(ds.batch(2).fingerprint()) for each in (ds.batch(2), ds.batch(3))]
        [True, False]

        Source: `tf.data.Dataset.fingerprint`.
        """
        return np.uint64(fingerprints.fingerprint_number(self._node))

    def options(self) -> "Options":
        """The options of this pipeline: those of its inputs, overridden by later ones.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).options()
        Options()

        Source: `tf.data.Dataset.options`.
        """
        return plan_options.options_of(self._node)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {texts.summary(self._node)}>"

    def _repr_html_(self) -> str:
        """What notebooks show: the graph of the pipeline."""
        return html("dataset", self)

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
        made: DatasetIterator[T_co] = DatasetIterator(self._node, running, place, self._passes, self._make_run)
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
        return self._goes_on(*seal.place_in(self._node, self._runs(), state, may_differ))

    def _goes_on(self, place: State, running: Running) -> DatasetIterator[T_co]:
        """An iterator that begins at a position in this tree."""
        plan, running = resumed(self._node, running, place)
        self._passes.goes_on(place["epoch"])
        if plan is not self._node:  # later passes go on with the seeds of the state
            self._node, self._running, self._positions = plan, running, None
        made: DatasetIterator[T_co] = DatasetIterator(plan, running, place, self._passes, self._make_run)
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

    def stats(self) -> "Stats":
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
        return stats.stats_of(*self._counted)

    def _run_by(self, make_run: Callable[..., Run]) -> Self:
        """The same dataset, whose passes are counted with this one's, and run by what `make_run` makes.

        Args:
          make_run: of the steps, and `run_ahead`; see `DatasetIterator`.
        """
        made = copy.copy(self)
        made._make_run = make_run
        return made

    def _watched(self, make_run: Callable[..., Run]) -> "tuple[DatasetHandle[Any], Self, int]":
        """What of it is recorded: the dataset whose steps are, what is iterated, and how many replicas get rows (none)."""
        made = self._run_by(make_run)
        return made, made, 0

    def _runs(self) -> Running:
        taken = self._passes.taken_over
        if taken is not None and taken[0] is self._node:  # later passes go on with the seeds of the state
            _, self._node, self._running = taken
            self._passes.taken_over = self._positions = None
        self._node.check_captured()
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
