# SPDX-License-Identifier: Apache-2.0
"""`Dataset`: the handle by which users build and iterate a pipeline, with the names of `tf.data.Dataset`."""

import dataclasses
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from distinput import ops
from distinput.core.nest import map_leaves, structure_of
from distinput.core.run import Counter
from distinput.core.state import State
from distinput.data.iterator import BlockIterator, DatasetIterator, resumed
from distinput.data.passes import Passes
from distinput.data.seal import place_in
from distinput.data.stats import Stats, stats_of
from distinput.data.transformation import transformation
from distinput.errors import InvalidArgumentError
from distinput.ops.slices import from_tensor_slices, from_tensors
from distinput.plan.check import at_least, callable_argument, integer
from distinput.plan.node import INFINITE, UNKNOWN, Node
from distinput.plan.options import AutoShardPolicy, Options, options_of
from distinput.rewrite import Running, rewrite

__all__ = ["Dataset"]


class Dataset:
    """A lazy pipeline of elements; the counterpart of `tf.data.Dataset`.

    Nothing is read before the dataset is iterated, and each `iter()` starts over. Elements are nests of NumPy arrays, NumPy
    scalars and bytes.

    Args:
      node: the tree that describes the pipeline.

    >>> import distinput as di
    >>> for batch in di.data.Dataset.range(5).map(lambda x: x * 2).batch(3):
    ...     print(batch)
    [0 2 4]
    [6 8]
    """

    nest_leaf = True

    def __init__(self, node: Node, passes: Passes | None = None) -> None:
        if not hasattr(node, "origin"):  # quicker than to ask whether it is a Node
            raise TypeError(
                f"Dataset: a dataset is not made by its class, got {_short(node)}; use Dataset.from_tensor_slices for the rows "
                "of arrays and lists, Dataset.from_generator for what a function yields"
            )
        self._node = node
        self._passes = passes or Passes()
        self._running: Running | None = None
        self._counted: tuple[Node, Mapping[Hashable, Counter]] = (node, {})

    # --- sources

    @staticmethod
    def range(*args: int, output_type: Any = np.int64, name: str | None = None) -> "Dataset":
        """Whole numbers: `range(stop)`, `range(start, stop)` or `range(start, stop, step)`.

        Shapes: scalars of `output_type`.

        Args:
          *args: as for Python's `range`.
          output_type: their dtype.
          name: a label.

        Raises:
          InvalidArgumentError: `step` is 0.
          TypeError: not one to three whole numbers are given.

        >>> import distinput as di
        >>> di.data.Dataset.range(2, 8, 3).to_list()
        [2, 5]

        Source: `tf.data.Dataset.range`.
        """
        if not 1 <= len(args) <= 3:
            raise TypeError(f"range: expected 1 to 3 numbers, got {len(args)}")
        numbers = [_whole(a) for a in args]
        first, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
        return Dataset(ops.range.Range(first, stop, step, output_type, name=name))

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> "Dataset":
        return Dataset(_named(from_tensors(tensors), name))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> "Dataset":
        return Dataset(_named(from_tensor_slices(tensors), name))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> "Dataset":
        """The elements of `generator(*args)`, which is called anew for each pass.

        Values are cast to the dtypes of the signature and must fit its shapes. A restart from a saved state runs the
        generator again and passes over what was given before.

        Args:
          generator: returns an iterable of elements.
          output_types: a nest of dtypes; the older way to give the signature.
          output_shapes: a nest of shapes that goes with it.
          args: arguments for `generator`, which it gets as arrays, NumPy scalars and bytes.
          output_signature: a nest of `TensorSpec`.
          name: a label.

        Raises:
          TypeError: `generator` cannot be called, or there is no signature; at iteration, an element does not fit it.

        >>> import distinput as di
        >>> spec = di.TensorSpec([], "int64")
        >>> di.data.Dataset.from_generator(lambda: iter([1, 2]), output_signature=spec).to_list()
        [1, 2]

        Source: `tf.data.Dataset.from_generator`.
        """
        node = ops.generator.from_generator(generator, output_types, output_shapes, args, output_signature)
        return Dataset(_named(node, name))

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
    ) -> "Dataset":
        """The names of all files that match, sorted, then shuffled unless `shuffle=False`.

        Args:
          file_pattern: a glob pattern or a list of them; any fsspec URL.
          shuffle: True when None.
          seed: of the shuffle.
          name: a label.

        Raises:
          NoMatchError: no file matches; an InvalidArgumentError, as TensorFlow's is, and a FileNotFoundError.

        >>> import distinput as di
        >>> import pathlib
        >>> _ = pathlib.Path("a.txt").write_text("hello")
        >>> di.data.Dataset.list_files("*.txt", shuffle=False).to_list()
        [b'a.txt']

        Source: `tf.data.Dataset.list_files`.
        """
        from distinput.files.paths import list_matching

        names = list_matching(file_pattern)
        node: Node = from_tensor_slices(np.array([path.encode() for path in names], dtype=object))
        return Dataset(_named(node if shuffle is False else ops.shuffle.Shuffle(node, len(names), seed), name))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> "Dataset":
        """Elements of several datasets side by side, nested as the datasets are; ends with the shortest.

        Args:
          *args: datasets, or one nest of them.
          datasets: one nest of datasets.
          name: a label.

        Raises:
          TypeError: something is no dataset.

        >>> import distinput as di
        >>> a = di.data.Dataset.range(3)
        >>> di.data.Dataset.zip(a, a.skip(1)).to_list()
        [(0, 1), (1, 2)]

        Source: `tf.data.Dataset.zip`.
        """
        if not args and datasets is None:
            raise TypeError("zip: Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("zip: Both `*args` and `datasets` cannot be set.")
        nest = datasets if not args else args[0] if len(args) == 1 else tuple(args)
        if isinstance(nest, list):
            raise TypeError("zip: the datasets must be nested in tuples or dicts, got a list")
        structure = structure_of(nest)
        sources = [_node("zip", leaf) for leaf in structure.flatten(nest)]
        if not sources:
            raise TypeError("zip: Must pass at least one dataset to `zip`.")
        return Dataset(ops.zip.Zip(structure, tuple(sources), name=name))

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence["Dataset"], choice_dataset: "Dataset", stop_on_empty_dataset: bool = True
    ) -> "Dataset":
        """For each number of `choice_dataset`, the next element of that dataset.

        Args:
          datasets: at least one; same structure and dtypes.
          choice_dataset: int64 scalars.
          stop_on_empty_dataset: end at the first dataset that has run out, rather than passing over its numbers.

        Raises:
          InvalidArgumentError: there is no dataset; at iteration, a number is out of range.
          TypeError: the numbers are not int64 scalars, or the datasets differ in structure or dtype.

        >>> import distinput as di
        >>> ds = di.data.Dataset
        >>> ds.choose_from_datasets([ds.range(3), ds.range(10, 13)], ds.range(4).map(lambda i: i % 2)).to_list()
        [0, 10, 1, 11]

        Source: `tf.data.Dataset.choose_from_datasets`.
        """
        nodes = [_node("choose_from_datasets", d) for d in datasets]
        choice = _node("choose_from_datasets", choice_dataset)
        return Dataset(ops.choose.choose_from_datasets(nodes, choice, stop_on_empty_dataset))

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence["Dataset"],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> "Dataset":
        """Elements of datasets drawn at random by weight.

        Args:
          datasets: at least one; same structure and dtypes.
          weights: one for each; equal when None; a dataset of weight 0 is left out. Or a dataset of vectors of weights: each
            draw takes the next one.
          seed: any whole number; None draws one, which a saved state remembers.
          stop_on_empty_dataset: end at the first dataset that has run out, rather than passing over it.
          rerandomize_each_iteration: True draws anew in each pass; otherwise all passes draw the same.

        Raises:
          InvalidArgumentError: there is no dataset, or not one weight for each.
          TypeError: the datasets differ in structure or dtype.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(3)
        >>> di.data.Dataset.sample_from_datasets([ds, ds], weights=[1.0, 0.0]).to_list()
        [0, 1, 2]

        Source: `tf.data.Dataset.sample_from_datasets`.
        """
        nodes = [_node("sample_from_datasets", d) for d in datasets]
        shares = weights.node if isinstance(weights, Dataset) else weights
        made = ops.choose.sample_from_datasets(nodes, shares, seed, stop_on_empty_dataset, rerandomize_each_iteration)
        if made is None:
            return Dataset(ops.take.Take(nodes[0], 0))
        for dataset in datasets:
            if made is dataset.node:
                return dataset
        return Dataset(made)

    # --- transformations, one line each

    batch = transformation(lambda: ops.batch.Batch)
    bucket_by_sequence_length = transformation(lambda: ops.bucket_by_sequence_length.BucketBySequenceLength)
    cache = transformation(lambda: ops.cache.Cache)
    concatenate = transformation(lambda: ops.concatenate.Concatenate)
    copied = transformation(lambda: ops.copied.Copied)
    filter = transformation(lambda: ops.filter.Filter)
    flat_map = transformation(lambda: ops.interleave.FlatMap)
    global_shuffle = transformation(lambda: ops.global_shuffle.GlobalShuffle, reshuffles=True)
    group_by_window = transformation(lambda: ops.group_by_window.GroupByWindow)
    ignore_errors = transformation(lambda: ops.ignore_errors.IgnoreErrors)
    interleave = transformation(lambda: ops.interleave.Interleave)
    map = transformation(lambda: ops.map.Map)
    map_rows = transformation(lambda: ops.map_rows.MapRows)
    padded_batch = transformation(lambda: ops.padded_batch.PaddedBatch)
    parse_example = transformation(lambda: ops.parse_example.ParseExample)
    prefetch = transformation(lambda: ops.prefetch.Prefetch)
    rebatch = transformation(lambda: ops.rebatch.Rebatch)
    repeat = transformation(lambda: ops.repeat.Repeat)
    scan = transformation(lambda: ops.scan.Scan)
    shard = transformation(lambda: ops.shard.Shard)
    shard_batches = transformation(lambda: ops.shard_batches.ShardBatches)
    shuffle = transformation(lambda: ops.shuffle.Shuffle, reshuffles=True)
    skip = transformation(lambda: ops.take.Skip)
    take = transformation(lambda: ops.take.Take)
    take_while = transformation(lambda: ops.filter.TakeWhile)
    unbatch = transformation(lambda: ops.unbatch.Unbatch)
    unique = transformation(lambda: ops.unique.Unique)
    window = transformation(lambda: ops.window.Window)
    with_options = transformation(lambda: ops.identity.WithOptions)

    def enumerate(self, start: int = 0, name: str | None = None) -> "Dataset":
        """Each element with its number before it.

        Args:
          start: the first number.
          name: a label.

        >>> import distinput as di
        >>> di.data.Dataset.from_tensor_slices(["a", "b"]).enumerate(start=5).to_list()
        [(5, b'a'), (6, b'b')]

        Source: `tf.data.Dataset.enumerate`.
        """
        numbers = ops.range.Range(integer("enumerate", "start", start), np.iinfo(np.int64).max)
        nest = structure_of((numbers, self.node), is_leaf=lambda x: isinstance(x, Node))
        return self._followed_by(ops.zip.Zip(nest, (numbers, self.node), name=name))

    def apply(self, transformation_func: Callable[["Dataset"], Any]) -> Any:
        """`transformation_func(self)`, for chaining functions that are no methods.

        Args:
          transformation_func: dataset -> dataset.

        Raises:
          TypeError: it returns something else.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).apply(lambda ds: ds.skip(2)).to_list()
        [2, 3]

        Source: `tf.data.Dataset.apply`.
        """
        callable_argument("apply", "transformation_func", transformation_func)
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise TypeError(f"apply: transformation_func must return a Dataset, got {type(made).__name__}")
        return made

    # --- what is known

    @property
    def node(self) -> Node:
        """The tree that describes the pipeline."""
        return self._node

    @property
    def element_spec(self) -> Any:
        """The nest of `TensorSpec` that every element fits.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).batch(3).element_spec
        TensorSpec(shape=(None,), dtype=int64)

        Source: `tf.data.Dataset.element_spec`.
        """
        return self._node.element_spec

    def cardinality(self) -> int:
        """How many elements: a count, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY.

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
        """The options that hold for this pipeline: those of its inputs, and later ones over them.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).options()
        Options()

        Source: `tf.data.Dataset.options`.
        """
        return options_of(self._node)

    def explain(
        self, num_workers: int | None = None, replicas_per_worker: int = 1, policy: AutoShardPolicy | None = None
    ) -> str:
        """The pipeline as described, the rules that changed it, and the pipeline as it runs.

        Args:
          num_workers: say also what each of so many workers would read when the dataset is distributed.
          replicas_per_worker: how many replicas each of them has.
          policy: how it would be sharded; None: as the options say.

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

    # --- iteration

    def __iter__(self) -> DatasetIterator:
        return self._pass(self._passes.begin(self._node))

    def iter_pass(self, number: int) -> DatasetIterator:
        """An iterator over a certain pass, for programs that count passes themselves.

        `iter` takes the passes of a process one after the other, from 0, and steps that reshuffle give each another order. A
        process that reads only one of them has to be told which: the workers that PyTorch's DataLoader starts anew for each
        epoch, for example. The pass after it is the next one.

        Args:
          number: of the pass, from 0.

        Raises:
          InvalidArgumentError: `number` is negative.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(5).shuffle(5, seed=1)
        >>> passes = [list(ds) for _ in range(3)]
        >>> list(ds.iter_pass(1)) == passes[1], list(ds) == passes[2]
        (True, True)
        """
        return self._pass(self._passes.begin(self._node, at_least("iter_pass", "number", number, 0)))

    def _pass(self, epoch: int) -> DatasetIterator:
        running = self._runs()
        place = {"at": running.node.start(epoch), "epoch": epoch, "skip": 0}
        made = DatasetIterator(self._node, running, place, self._passes)
        self._counted = made.counted
        return made

    def stats(self) -> Stats:
        """What each step did in the pass begun last, what AUTOTUNE chose, and which step the others wait for.

        Passes over datasets that were made of this one are counted there. `DatasetIterator.stats` is the same for one
        iterator.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(6).batch(2)
        >>> ds.stats().bottleneck
        'No element was asked for yet.'
        >>> _ = [batch for batch in ds]
        >>> {step: told["rows"] for step, told in ds.stats().items()}
        {'0:range': 6, '1:batch': 3}
        """
        return stats_of(*self._counted)

    def restore(self, state: State, may_differ: str | Collection[str] = ()) -> DatasetIterator:
        """An iterator over exactly the elements that would have followed a saved state.

        Args:
          state: what `iterator.state()` gave, in this process or another.
          may_differ: what need not be as it was when the state was saved, one or several of "functions" (what they do and
            read), "root" (the folder that all files lie in, and their times), "sizes" (of files, and their times) and
            "times".

        Raises:
          StateError: the state is of another pipeline, or of an unknown version.
          InvalidArgumentError: something in `may_differ` is not known.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(5).shuffle(5, seed=3)
        >>> it = iter(ds)
        >>> seen = [next(it), next(it)]
        >>> sorted(seen + list(ds.restore(it.state())))
        [np.int64(0), np.int64(1), np.int64(2), np.int64(3), np.int64(4)]
        """
        return self._goes_on(*place_in(self._node, self._runs(), state, may_differ))

    def _goes_on(self, place: State, running: Running) -> DatasetIterator:
        """An iterator from a place on, of which it is known that it is one of this tree."""
        plan, running = resumed(self._node, running, place)
        self._passes.goes_on(place["epoch"])
        made = DatasetIterator(plan, running, place, self._passes)
        self._counted = made.counted
        return made

    def iter_blocks(self) -> BlockIterator:
        """Blocks of many elements as the pipeline makes them, columns by leaf, without conversion to elements.

        >>> import distinput as di
        >>> with di.data.Dataset.range(5).iter_blocks() as blocks:
        ...     [block.columns[0].array for block in blocks]
        [array([0, 1, 2, 3, 4])]
        """
        running = self._runs().node
        return BlockIterator(running, running.start(self._passes.begin(self._node)))

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements; they are NumPy values already.

        >>> import distinput as di
        >>> list(di.data.Dataset.range(2).as_numpy_iterator())
        [np.int64(0), np.int64(1)]

        Source: `tf.data.Dataset.as_numpy_iterator`.
        """
        return iter(self)

    def to_list(self) -> list[Any]:
        """All elements with arrays as lists and NumPy scalars as Python numbers, for a look at small data.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).batch(2).to_list()
        [[0, 1], [2, 3]]
        """
        return [map_leaves(_plain, element, lists=False) for element in self]

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
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

    def get_single_element(self, name: str | None = None) -> Any:
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

    def _followed_by(self, node: Node, reshuffles: bool = False) -> "Dataset":
        """The dataset of a tree with this one's as an input; passes are counted together unless each reshuffles."""
        return Dataset(node, None if reshuffles else self._passes)

    def _runs(self) -> Running:
        if self._running is None:
            self._running = Running.of(self._node)
        return self._running

    def to_user(self) -> Self:
        """Itself: a dataset inside an element is shown as it is."""
        return self

    @property
    def leaf_spec(self) -> Any:
        """The spec of this dataset as a leaf of an element."""
        return self._node.leaf_spec


for _name in ("from_tensors", "from_tensor_slices"):
    getattr(Dataset, _name).__doc__ = {"from_tensors": from_tensors, "from_tensor_slices": from_tensor_slices}[
        _name
    ].__doc__
Node.handle = staticmethod(Dataset)  # a node inside an element is shown to users as its dataset


def _whole(number: Any) -> int:
    """A number of `range`: an integer, or a float that is one.

    Raises:
      TypeError: it is no integer.
    """
    value = number.item() if isinstance(number, np.generic | np.ndarray) and np.ndim(number) == 0 else number
    return integer("range", "each number", int(value) if isinstance(value, float) and value.is_integer() else value)


def _named(node: Node, name: str | None) -> Node:
    return node if name is None else dataclasses.replace(node, name=name)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _node(op: str, value: Any) -> Node:
    if not isinstance(value, Dataset):
        raise TypeError(f"{op}: expected a dataset, got {value!r}")
    return value.node


def _plain(leaf: Any) -> Any:
    if isinstance(leaf, Dataset):
        return leaf.to_list()
    return leaf if isinstance(leaf, bytes) else leaf.tolist()


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
