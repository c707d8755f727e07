# SPDX-License-Identifier: Apache-2.0
"""`Handle`: a pipeline, what is known about it, and its elements."""

import copy
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, SupportsIndex, TypeAlias, TypeVar, overload

import numpy as np

from distinput import ops
from distinput.core.html import HTML
from distinput.core.nest import map_leaves
from distinput.core.run import Counter, Run
from distinput.core.state import State
from distinput.data.element import T_co
from distinput.data.iterator import BlockIterator, DatasetIterator, resumed
from distinput.data.passes import Passes
from distinput.errors import InvalidArgumentError
from distinput.plan.check import at_least, callable_argument
from distinput.plan.node import INFINITE, Node
from distinput.rewrite import Running

if TYPE_CHECKING:
    from os import PathLike
    from typing import TextIO

    from distinput.data.progress import ShownPass
    from distinput.data.recording.recording import Recording
    from distinput.data.stats import Stats
    from distinput.plan.options import AutoShardPolicy, Options
    from distinput.plan.policy import Policy
    from distinput.streaming.by_position import Positions
    from distinput.writers.manifest import WrittenFiles

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
    _make_run: Callable[..., Run] = Run

    def __init__(self, node: Node, passes: Passes | None = None) -> None:
        if not hasattr(node, "origin"):  # faster than checking for a Node
            raise TypeError(
                f"Dataset: a dataset is not made by its class, got {_short(node)}; use Dataset.from_tensor_slices for the rows "
                "of arrays and lists, Dataset.from_generator for what a function yields"
            )
        self._node = node
        self._passes = passes or Passes()
        self._running: Running | None = None
        self._positions: Positions | None = None
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
        from distinput.plan.bounds import cardinality_bounds

        return cardinality_bounds(self._node)

    def __len__(self) -> int:
        n = self.cardinality()
        if n >= 0:
            return n
        from distinput.data.loader import advice

        raise TypeError(("The dataset is infinite." if n == INFINITE else "The dataset length is unknown.") + advice())

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
        from distinput.data.by_position import is_integer, row_of, rows_of

        found = self._by_position()
        if is_integer(key):
            return next(found.fetch(np.array((row_of(key, found.size),))).elements())
        rows = rows_of(key, found.size)
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
        from distinput.streaming.by_position import positions_of

        if self._positions is None:
            from distinput.data.loader import look_at_positions

            look_at_positions(self._node)
            self._positions = positions_of(self._node)
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
        from distinput.plan.fingerprint import fingerprint_number

        return np.uint64(fingerprint_number(self._node))

    def options(self) -> "Options":
        """The options of this pipeline: those of its inputs, overridden by later ones.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).options()
        Options()

        Source: `tf.data.Dataset.options`.
        """
        from distinput.plan.options import options_of

        return options_of(self._node)

    def explain(
        self,
        num_workers: int | None = None,
        replicas_per_worker: int = 1,
        policy: "AutoShardPolicy | Policy | None" = None,
    ) -> str:
        """Explain the pipeline: as described, the rules that changed it, as it runs, and notes on how its functions are called.

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
        from distinput.data.explanation import explanation_of

        return str(explanation_of(self, num_workers, replicas_per_worker, policy))

    def __repr__(self) -> str:
        from distinput.plan.summary import summary

        return f"<{type(self).__name__} {summary(self._node)}>"

    def _repr_html_(self) -> str:
        """What notebooks show: the graph of the pipeline."""
        return HTML.find("dataset")(self)

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
        from distinput.data.seal import place_in

        return self._goes_on(*place_in(self._node, self._runs(), state, may_differ))

    def _goes_on(self, place: State, running: Running) -> DatasetIterator[T_co]:
        """An iterator that begins at a position in this tree."""
        plan, running = resumed(self._node, running, place)
        self._passes.goes_on(place["epoch"])
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

    def to_list(self) -> list[Any]:
        """All elements, with arrays as lists and NumPy scalars as Python numbers, to inspect small data.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).batch(2).to_list()
        [[0, 1], [2, 3]]
        """
        return [map_leaves(_plain, element, lists=False) for element in self]

    def to_arrow(self, text: bool | Collection[str] = False) -> Any:
        """All elements as a pyarrow Table, a row each; not copied where Arrow holds them the same way.

        A dict, namedtuple or dataclass becomes columns with the names of its items, a tuple columns "0", "1", ..., a bare
        array or scalar the column "value", and what is nested below a struct. Dimensions of known size become fixed-size
        lists, others lists. Byte strings are binary. `from_arrow` is the way back.

        Args:
          text: columns whose byte strings are UTF-8 and become strings: True for all of them, or a list of names.

        Raises:
          InvalidArgumentError: a component has no Arrow type, such as a dataset, a complex number, or an array of unknown rank;
            byte strings of a column in `text` are not UTF-8; the dataset is infinite.

        >>> import distinput as di
        >>> ds = di.data.Dataset.from_tensor_slices({"x": [1, 2], "name": ["Ada", "Alan"]})
        >>> ds.to_arrow(text=["name"]).to_pylist()
        [{'x': 1, 'name': 'Ada'}, {'x': 2, 'name': 'Alan'}]
        """
        from distinput.data.export import arrow_table

        return arrow_table(self, text, "to_arrow")

    def write(
        self,
        directory: Any,
        format: str,
        shards: int | None = None,
        *,
        shard_bytes: int | None = None,
        shard_rows: int | None = None,
        prefix: str = "part",
        overwrite: bool = False,
        num_workers: int = 1,
        index: int = 0,
        job: str | None = None,
        **options: Any,
    ) -> "WrittenFiles":
        """Write a pass as files of a format, with a manifest of their names, rows, sizes and checksums.

        The files get their names together, when all are complete: a writer that is interrupted or killed leaves what was there
        before, or the whole dataset. Calling it again with the same pipeline goes on after the last complete file.

        Args:
          directory: the folder, local or a URL; it may hold other files.
          format: "arrow", "csv", "jsonl", "npy", "parquet", "tar", "text", "tfrecord", or "elements", which holds every
            structure and dtype.
          shards: so many files. If the elements are counted, each holds a range of them, else they take turns.
          shard_bytes: begin a new file at so many bytes; 256 MiB if nothing is said.
          shard_rows: so many elements a file.
          prefix: of the names of the files.
          overwrite: replace a dataset that is there, once this one is complete.
          num_workers: how many workers write into the folder, each its part of the dataset; the last one writes the manifest.
          index: which of them this is.
          job: with several workers, a word that is the same on all of them and another in each run.
          **options: of the format: `compression`, and those of its writer.

        Returns:
          The files; `complete` is False while other workers still write.

        Raises:
          InvalidArgumentError: the elements do not fit the format, the dataset is infinite, or arguments contradict each other.
          FailedPreconditionError: the folder holds a dataset, or files of these names; another process writes there.
          OSError: the files could not be written. What is complete stays in the hidden stage, to go on from.

        >>> import distinput as di
        >>> di.data.Dataset.range(10).write("numbers", "parquet", shards=2).rows
        10
        >>> di.data.ParquetDataset(["numbers/part-00000-of-00002.parquet"]).take(1).to_list()
        [{'value': 0}]
        """
        from distinput.data.writing import request_of, write

        cut = {"shards": shards, "shard_bytes": shard_bytes, "shard_rows": shard_rows}
        workers = {"num_workers": num_workers, "index": index, "name": job}
        return write(self, request_of(directory, format, cut, workers, prefix, overwrite, options))

    def save(
        self,
        path: Any,
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Mapping[str, Any] | None = None,
    ) -> "WrittenFiles":
        """Save a pass: every structure, dtype and shape, exactly, for `Dataset.load`.

        The elements are kept in Arrow IPC files of about 256 MiB with a manifest of their rows, sizes and checksums, in the
        place of what was saved there before: until all is complete, the older dataset stays, also if the process is killed.
        Calling it again with the same pipeline then goes on after the last complete file.

        Args:
          path: a folder, local or a URL.
          compression: None, "LZ4" or "ZSTD"; "SNAPPY" and "GZIP" stand for these two, and "AUTO" for None. Only what is not
            compressed is mapped into memory.
          shard_func: element -> the number of its file, an integer from 0 on. The order of the files is that of their numbers.
            Large ones are several files, which `load(reader_func=)` takes as one.
          checkpoint_args: accepted as TensorFlow's; every save can go on after an interruption.

        Returns:
          The files.

        Raises:
          InvalidArgumentError: a component is a dataset, the dataset is infinite, or the compression is unknown.
          FailedPreconditionError: another process saves there.
          OSError: the files could not be written; what was saved before stays.

        >>> import distinput as di
        >>> _ = di.data.Dataset.range(5).map(lambda x: {"x": x, "y": (x * x, None)}).save("squares")
        >>> di.data.Dataset.load("squares").skip(4).to_list()
        [{'x': 4, 'y': (16, None)}]

        Source: `tf.data.Dataset.save`.
        """
        from distinput.data.saving import save

        return save(self, path, compression, shard_func, checkpoint_args)

    def to_pandas(self, text: bool | Collection[str] = False) -> Any:
        """All elements as a pandas DataFrame, a row each; columns as for `to_arrow`.

        Args:
          text: columns whose byte strings are UTF-8 and become `str`; others are bytes.

        Raises:
          EngineMissing: pandas is not installed.
          InvalidArgumentError: as for `to_arrow`.

        >>> import distinput as di
        >>> di.data.Dataset.range(3).map(lambda x: {"x": x, "square": x * x}).to_pandas()
           x  square
        0  0       0
        1  1       1
        2  2       4
        """
        from distinput.data.export import pandas_frame

        return pandas_frame(self, text)

    def to_polars(self, text: bool | Collection[str] = False) -> Any:
        """All elements as a polars DataFrame, a row each; columns as for `to_arrow`.

        Args:
          text: columns whose byte strings are UTF-8 and become `String`; others are `Binary`.

        Raises:
          EngineMissing: polars is not installed.
          InvalidArgumentError: as for `to_arrow`.

        >>> import distinput as di
        >>> di.data.Dataset.range(3).map(lambda x: {"x": x, "square": x * x}).to_polars().shape
        (3, 2)
        """
        from distinput.data.export import polars_frame

        return polars_frame(self, text)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A pass as a stream of Arrow, for libraries that take one: `pa.table(ds)`, `polars.DataFrame(ds)`, DuckDB's queries.

        Batches are made when they are asked for; columns are as for `to_arrow`.

        Source: the Arrow PyCapsule interface.
        """
        from distinput.data.export import arrow_reader

        return arrow_reader(self).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        """The schema of the stream, without a pass.

        Source: the Arrow PyCapsule interface.
        """
        from distinput.core.record_batches import arrow_schema

        return arrow_schema(self._node.spec).__arrow_c_schema__()

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
        with self.__iter__() as elements:
            found = []
            for element in elements:
                found.append(element)
                if len(found) > 1:
                    raise InvalidArgumentError("get_single_element: Dataset had more than one element.")
        if not found:
            raise InvalidArgumentError("get_single_element: Dataset was empty.")
        return found[0]

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
        from distinput.data.stats import stats_of

        return stats_of(*self._counted)

    def report(
        self,
        path: "str | PathLike[str]",
        *,
        seconds: float | None = 10.0,
        elements: int | None = None,
        num_workers: int = 4,
    ) -> "Recording":
        """Make a pass, and write a page of HTML about it: one file, which needs nothing from elsewhere.

        It shows the graph with the time, elements and bytes of each step, the step that the others wait for, a timeline of
        threads, buffers and waits, memory, how far rows travel in shuffles beside a perfect shuffle, and how the data would be
        divided among workers. Only this pass is measured so closely; others cost nothing more. To record a loop of your own,
        such as one that trains a model, iterate a `distinput.reports.Recording` of the dataset.

        Args:
          path: of the file.
          seconds: when the pass is broken off; None: it goes on to the end.
          elements: after how many elements it is broken off.
          num_workers: show how the data would be divided among so many workers; 1 leaves that out.

        Returns:
          The recording, which has the same numbers, and writes the timeline for Perfetto.

        Raises:
          InvalidArgumentError: the dataset has no end, and neither `seconds` nor `elements` gives one.
          OSError: the file cannot be written.

        >>> import distinput as di
        >>> recording = di.data.Dataset.range(1000).shuffle(100).batch(32).report("report.html")
        >>> recording.delivered
        32
        """
        from distinput.data.recording.recording import recorded

        recording = recorded(self, seconds, elements)
        recording.write_report(path, num_workers)
        return recording

    def progress(
        self, what: str = "", *, unit: str = "elements", kind: str = "auto", stream: "TextIO | None" = None
    ) -> "ShownPass[T_co]":
        """The elements of a pass, with a bar that shows how far it is.

        The bar knows how many elements there are, or between which bounds, also where `cardinality()` does not
        (`cardinality_bounds`). It is drawn by tqdm where that is installed, else by rich, else as a line of text, and only
        where somebody watches: on a terminal or in a notebook.

        Args:
          what: a name for the pass.
          unit: what the elements are called.
          kind: "auto", "tqdm", "rich" or "plain".
          stream: where a terminal's bar is drawn; None: standard error.

        Returns:
          An iterator, with the `state` of the pass, and a context manager.

        Raises:
          EngineMissing: `kind` names a package that is not installed.
          InvalidArgumentError: `kind` is none of these.

        >>> import distinput as di
        >>> sum(x for x in di.data.Dataset.range(10).progress("adding"))
        np.int64(45)
        """
        from distinput.data.progress import ShownPass
        from distinput.data.progress_bar import ProgressBar

        low, high = self.cardinality_bounds()
        bar = ProgressBar(low, high, what, unit, kind, stream)
        return ShownPass(self.__iter__(), bar)

    def _run_by(self, make_run: Callable[..., Run]) -> Self:
        """The same dataset, whose passes are counted with this one's, and run by what `make_run` makes.

        Args:
          make_run: of the steps, and `run_ahead`; see `DatasetIterator`.
        """
        made = copy.copy(self)
        made._make_run = make_run
        return made

    def _watched(self, make_run: Callable[..., Run]) -> "tuple[Handle[Any], Self, int]":
        """What of it is recorded: the dataset whose steps are, what is iterated, and how many replicas get rows (none)."""
        made = self._run_by(make_run)
        return made, made, 0

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
