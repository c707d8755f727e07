# SPDX-License-Identifier: Apache-2.0
"""`Actions`: what makes a pass, and gives its elements another form: lists, tables, files, a number, a report."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

import numpy as np

from distinput import ops
from distinput.data.element import T_co
from distinput.data.handle import DatasetHandle
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import later
from distinput.plan.check import callable_argument
from distinput.values.nest import map_leaves

if TYPE_CHECKING:
    from os import PathLike
    from typing import TextIO

    from distinput.arrow import record_batches
    from distinput.data import export, progress, saving, writing
    from distinput.data import recording as recordings
    from distinput.data.progress import ShownPass
    from distinput.data.recording import Recording
    from distinput.plan.options import AutoShardPolicy, Policy
    from distinput.writers.manifest import WrittenFiles
else:
    export = later("distinput.data.export")  # tables are for those who ask for them
    record_batches = later("distinput.arrow.record_batches")  # the same
    writing = later("distinput.data.writing")  # what writes files is for those who write them
    saving = later("distinput.data.saving")  # the same
    recordings = later("distinput.data.recording")  # reports are for those who ask for them
    progress = later("distinput.data.progress")  # the same

__all__ = ["Actions"]

Python: TypeAlias = bool | int | float | complex | str | bytes | list[Any] | tuple[Any, ...] | Mapping[Any, Any]
Numbers = TypeVar("Numbers", bound=np.generic | np.ndarray[Any, Any])


class Actions(DatasetHandle[T_co]):
    """A dataset whose passes can be taken as a whole."""

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
        return export.arrow_table(self, text, "to_arrow")

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
          overwrite: replace a dataset that is there, once this one is complete. Its files must have the same `prefix`: one that
            another call wrote beside is never replaced.
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
        cut = {"shards": shards, "shard_bytes": shard_bytes, "shard_rows": shard_rows}
        workers = {"num_workers": num_workers, "index": index, "name": job}
        return writing.write(self, writing.request_of(directory, format, cut, workers, prefix, overwrite, options))

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
        return saving.save(self, path, compression, shard_func, checkpoint_args)

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
        return export.pandas_frame(self, text)

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
        return export.polars_frame(self, text)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A pass as a stream of Arrow, for libraries that take one: `pa.table(ds)`, `polars.DataFrame(ds)`, DuckDB's queries.

        Batches are made when they are asked for; columns are as for `to_arrow`.

        Source: the Arrow PyCapsule interface.
        """
        return export.arrow_reader(self).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        """The schema of the stream, without a pass.

        Source: the Arrow PyCapsule interface.
        """
        return record_batches.arrow_schema(self._node.spec).__arrow_c_schema__()

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
        return str(export.explanation_of(self._node, self._runs().node, num_workers, replicas_per_worker, policy))

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
        recording = recordings.recorded(self, seconds, elements)
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
        low, high = self.cardinality_bounds()
        bar = progress.ProgressBar(low, high, what, unit, kind, stream)
        return progress.ShownPass(self.__iter__(), bar)


def _plain(leaf: Any) -> Any:
    if isinstance(leaf, Actions):
        return leaf.to_list()
    return leaf if isinstance(leaf, bytes) else leaf.tolist()
