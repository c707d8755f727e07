# SPDX-License-Identifier: Apache-2.0
"""Functions and classes of `tf.data` and its `experimental` that are no steps: sources, files, iterators, shards."""

import json
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic, Self

import numpy as np

from distinput.arrow.adopt import adopt, kept
from distinput.arrow.tabular import Reading
from distinput.columns.block import Block
from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator, Optional, T_co
from distinput.errors import InvalidArgumentError, NotFoundError, OutOfRangeError, StateError, UnimplementedError
from distinput.files.manifest import load_manifest, save_manifest
from distinput.formats.row_schema import RowSchema
from distinput.formats.sql_query import SqlQuery
from distinput.formats.tfrecord import TFRecordWriter as RecordWriter
from distinput.names.lazy import dataclass
from distinput.ops.range import Random
from distinput.ops.reader import FileNames
from distinput.ops.slices import slices_of
from distinput.ops.sql import Sql
from distinput.plan.check import at_least
from distinput.plan.options import AutoShardPolicy, Policy
from distinput.sharding.own_rows import rebatch_for
from distinput.sharding.planning import shard_plan as _shard_plan
from distinput.sharding.policies import auto_shard
from distinput.sharding.shard_plan import ShardPlan
from distinput.streaming.by_position import is_integer
from distinput.values.leaves import STRING, as_eager_leaf
from distinput.values.nest import Structure, map_leaves, structure_of
from distinput.values.spec import TensorSpec

# ----------------------------------------------------------------------------
# Manifests: lists of files that are made once, with their sizes and versions.
# ----------------------------------------------------------------------------


def read_manifest(path: str) -> Dataset:
    """The names of the files in a manifest, for `TFRecordDataset` and the like, which refuse files that have changed.

    Args:
      path: the path of the manifest.

    Raises:
      NotFoundError: the manifest does not exist.
      DataLossError: the file is not a manifest, or is damaged; at iteration, a file is not the one that was listed.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("one")
    >>> _ = di.data.experimental.write_manifest("files.json", "*.txt")
    >>> di.data.TextLineDataset(di.data.experimental.read_manifest("files.json")).to_list()
    [b'one']
    """
    return Dataset(FileNames.of(load_manifest(path)))


def write_manifest(path: str, file_pattern: Any, dataset: Callable[[str], Dataset] | None = None) -> Dataset:
    """List files once and save their names, sizes and versions, so that workers need not list them.

    Args:
      path: the path of the manifest: JSON, or Parquet if it ends with ".parquet", which is smaller for very many files.
      file_pattern: as for `Dataset.list_files`.
      dataset: reads one file, to count its records and save their number, too; None: they are not counted.

    Returns:
      The dataset that `read_manifest` will return.

    Raises:
      NotFoundError: no file matches.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("one")
    >>> di.data.experimental.write_manifest("files.json", "*.txt", di.data.TextLineDataset).to_list()
    [b'a.txt']
    """

    def count(name: str) -> int:
        assert dataset is not None
        with dataset(name).iter_blocks() as blocks:
            return sum(block.size for block in blocks)

    return Dataset(FileNames.of(save_manifest(path, file_pattern, None if dataset is None else count)))


# ----------------------------------------------------------------------------
# What is known about a dataset, and its elements one at a time: the functions of `tf.data.experimental` for that.
# ----------------------------------------------------------------------------


def at(dataset: Dataset[Any], index: int) -> Any:
    """The element at a position, from 0 on; `dataset[index]` also takes negative positions, slices and lists.

    Args:
      dataset: a dataset whose elements can be reached by position; see `Dataset.__getitem__`.
      index: the position.

    Raises:
      OutOfRangeError: there is no such element.
      UnimplementedError: a step of the dataset can only be iterated; the message names it, and the cure.
      TypeError: `index` is not an integer.

    >>> import distinput as di
    >>> di.data.experimental.at(di.data.Dataset.range(5).map(lambda x: x * x), 3)
    np.int64(9)

    Source: `tf.data.experimental.at`.
    """
    if not is_integer(index):
        raise TypeError(f"at: index must be an integer, got {index!r}")
    if int(index) < 0:
        raise OutOfRangeError(f"at: index must be from 0 on, got {int(index)}; dataset[index] counts from the end")
    try:
        dataset._by_position()
    except TypeError as error:
        raise UnimplementedError(f"at: {error}") from error
    try:
        return dataset[index]
    except IndexError as error:
        raise OutOfRangeError(f"at: {error}") from error


def cardinality(dataset: Dataset[Any]) -> int:
    """`dataset.cardinality()`, under its older name.

    >>> import distinput as di
    >>> di.data.experimental.cardinality(di.data.Dataset.range(3))
    3

    Source: `tf.data.experimental.cardinality`.
    """
    return dataset.cardinality()


def get_next_as_optional(iterator: DatasetIterator[Any]) -> Optional[Any]:
    """`iterator.get_next_as_optional()`, under its older name.

    >>> import distinput as di
    >>> di.data.experimental.get_next_as_optional(iter(di.data.Dataset.range(1)))
    Optional(np.int64(0))

    Source: `tf.data.experimental.get_next_as_optional`.
    """
    return iterator.get_next_as_optional()


def get_single_element(dataset: Dataset[Any]) -> Any:
    """`dataset.get_single_element()`, under its older name.

    >>> import distinput as di
    >>> di.data.experimental.get_single_element(di.data.Dataset.range(1))
    np.int64(0)

    Source: `tf.data.experimental.get_single_element`.
    """
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """The `element_spec` of a dataset or an iterator.

    Raises:
      TypeError: it is neither.

    >>> import distinput as di
    >>> di.data.experimental.get_structure(di.data.Dataset.range(3))
    TensorSpec(shape=(), dtype=int64)

    Source: `tf.data.experimental.get_structure`.
    """
    if not hasattr(dataset_or_iterator, "element_spec"):
        raise TypeError(f"get_structure: expected a dataset or an iterator, got {dataset_or_iterator!r}")
    return dataset_or_iterator.element_spec


# ----------------------------------------------------------------------------
# `save`, `load` and `snapshot` as functions.
# ----------------------------------------------------------------------------


def save(
    dataset: Dataset[Any],
    path: Any,
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
    checkpoint_args: Mapping[str, Any] | None = None,
) -> None:
    """`dataset.save(...)`, under its older name.

    Args:
      dataset: what is saved.
      path: a folder.
      compression: as for `Dataset.save`.
      shard_func: as for `Dataset.save`.
      checkpoint_args: as for `Dataset.save`.

    >>> import distinput as di
    >>> di.data.experimental.save(di.data.Dataset.range(2), "numbers")
    >>> di.data.experimental.load("numbers").to_list()
    [0, 1]

    Source: `tf.data.experimental.save`.
    """
    dataset.save(path, compression, shard_func, checkpoint_args)


def load(
    path: Any,
    element_spec: Any = None,
    compression: str | None = None,
    reader_func: Callable[[Dataset[Any]], Dataset[Any]] | None = None,
) -> Dataset[Any]:
    """`Dataset.load(...)`, under its older name.

    Args:
      path: the folder.
      element_spec: as for `Dataset.load`.
      compression: as for `Dataset.load`.
      reader_func: as for `Dataset.load`.

    >>> import distinput as di
    >>> _ = di.data.Dataset.range(2).save("numbers")
    >>> di.data.experimental.load("numbers").to_list()
    [0, 1]

    Source: `tf.data.experimental.load`.
    """
    return Dataset.load(path, element_spec, compression, reader_func)


def snapshot(
    path: Any,
    compression: str | None = "AUTO",
    reader_func: Callable[[Dataset[Any]], Dataset[Any]] | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> Callable[[Dataset[Any]], Dataset[Any]]:
    """`Dataset.snapshot`, for `apply`.

    Args:
      path: the folder of the snapshots.
      compression: as for `Dataset.snapshot`.
      reader_func: as for `Dataset.snapshot`.
      shard_func: as for `Dataset.snapshot`.

    >>> import distinput as di
    >>> di.data.Dataset.range(2).apply(di.data.experimental.snapshot("numbers")).to_list()
    [0, 1]

    Source: `tf.data.experimental.snapshot`.
    """
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


# ----------------------------------------------------------------------------
# What each worker of a job reads: explained, and done without a strategy.
# ----------------------------------------------------------------------------


def auto_shard_dataset(dataset: Dataset, num_workers: int, index: int, num_replicas: int | None = None) -> Dataset:
    """The part of `dataset` that one worker reads, by the policy in its options.

    Args:
      dataset: any pipeline, cut by `rebatch_for_worker` or not.
      num_workers: W.
      index: which worker, from 0.
      num_replicas: replicas of all workers; needed where DATA replaces the cut of a global batch.

    Raises:
      NotFoundError: policy FILE, and a source does not read files.
      InvalidArgumentError: fewer files than workers, no worker, or an `index` below 0.

    >>> import distinput as di
    >>> di.data.experimental.auto_shard_dataset(di.data.Dataset.range(5), 2, 1).to_list()
    [1, 3]

    Source: `auto_shard_dataset` of tensorflow/python/distribute/input_ops.py.
    """
    num_workers = at_least("auto_shard_dataset", "num_workers", num_workers, 1)
    index = at_least("auto_shard_dataset", "index", index, 0)
    return Dataset(auto_shard(dataset.node, num_workers, index, num_replicas))


def rebatch_for_worker(dataset: Dataset, num_workers: int, replicas_per_worker: int, worker: int) -> Dataset:
    """The global batches of `dataset` cut into per-replica batches, for the replicas of one worker.

    Args:
      dataset: batches of the global batch size.
      num_workers: W.
      replicas_per_worker: R; nothing is cut when W * R is 1.
      worker: which worker, from 0.

    Raises:
      InvalidArgumentError: elements have no batch axis.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(7).batch(7)
    >>> di.data.experimental.rebatch_for_worker(ds, 1, 3, 0).to_list()
    [[0, 1, 2], [3, 4], [5, 6]]

    Source: `_make_rebatch_fn` of tensorflow/python/distribute/input_lib.py.
    """
    return Dataset(rebatch_for(dataset.node, num_workers, replicas_per_worker, worker))


def shard_plan(
    dataset: Dataset, num_workers: int, replicas_per_worker: int = 1, policy: AutoShardPolicy | Policy | None = None
) -> ShardPlan:
    """Explain which worker would read what of `dataset`, and why, from file names, sizes and footers if possible.

    Args:
      dataset: batches of the global batch size.
      num_workers: W.
      replicas_per_worker: R.
      policy: the policy to explain; None for the one in the options of `dataset`.

    Raises:
      InvalidArgumentError: fewer than one worker or replica; with policy FILE, fewer files than workers.
      NotFoundError: a file does not exist, or the policy does not work for this pipeline.

    >>> import distinput as di
    >>> print(di.data.experimental.shard_plan(di.data.Dataset.range(10).batch(4), num_workers=2))
    shards: 2 workers with 1 replica each, policy DATA
      why:   pieces of each global batch, piece i to worker i modulo the number of workers; not FILE, since
        range reads no files
      steps: 3 on every worker, known beforehand
      tail:  each batch is cut on its own into equal pieces, rounded up; of a short one, the last replicas may get no rows
      worker  files  rows  bytes  steps  reads
           0      0     5      0      3
           1      0     5      0      3
    """
    return _shard_plan(dataset.node, num_workers, replicas_per_worker, policy)


# ----------------------------------------------------------------------------
# Datasets that read no file, under the names of `tf.data.experimental`.
# ----------------------------------------------------------------------------


def Counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64) -> Dataset[Any]:  # noqa: N802 - TensorFlow's name
    """`Dataset.counter`, under its older name.

    Args:
      start: the first number.
      step: the distance between numbers.
      dtype: their dtype.

    >>> import distinput as di
    >>> di.data.experimental.Counter(start=1, step=2).take(3).to_list()
    [1, 3, 5]

    Source: `tf.data.experimental.Counter`.
    """
    return Dataset.counter(start, step, dtype)


class RandomDataset(Dataset[np.int64]):
    """`Dataset.random`, under its older name.

    Args:
      seed: any integer; None draws one, and gives other numbers in each pass.
      rerandomize_each_iteration: True: other numbers in each pass, with a seed too.
      name: a label.

    >>> import distinput as di
    >>> di.data.experimental.RandomDataset(seed=4).take(3).to_list() == di.data.Dataset.random(seed=4).take(3).to_list()
    True

    Source: `tf.data.experimental.RandomDataset`.
    """

    def __init__(
        self, seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> None:
        super().__init__(Random(seed, rerandomize_each_iteration, name=name))


def choose_from_datasets(
    datasets: Sequence[Dataset[Any]], choice_dataset: Dataset[Any], stop_on_empty_dataset: bool = False
) -> Dataset[Any]:
    """`Dataset.choose_from_datasets`, which by default skips datasets that have run out.

    Args:
      datasets: at least one; same structure and dtypes.
      choice_dataset: int64 scalars.
      stop_on_empty_dataset: True to end at the first exhausted dataset; False to skip its numbers.

    >>> import distinput as di
    >>> a, choices = di.data.Dataset.range(2), di.data.Dataset.from_tensor_slices(np.array([0, 0, 0, 1]))
    >>> di.data.experimental.choose_from_datasets([a, a], choices).to_list()
    [0, 1, 0]

    Source: `tf.data.experimental.choose_from_datasets`.
    """
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def from_list(elements: list[Any], name: str | None = None) -> Dataset[Any]:
    """The items of a list, which may differ in shape.

    A list inside of an item becomes an array, a tuple or dict is part of its structure.

    Args:
      elements: at least one; same structure and dtypes.
      name: a label.

    Raises:
      InvalidArgumentError: it is empty, or no list.
      TypeError: the items differ in structure or dtype.

    >>> import distinput as di
    >>> ds = di.data.experimental.from_list([(1, "a"), (2, "b")])
    >>> ds.to_list(), di.data.experimental.from_list([[1], [2, 3]]).to_list()
    ([(1, b'a'), (2, b'b')], [[1], [2, 3]])

    Source: `tf.data.experimental.from_list`.
    """
    if not isinstance(elements, list):
        raise InvalidArgumentError(f"from_list: elements must be a list, got {type(elements).__name__}")
    if not elements:
        raise InvalidArgumentError("from_list: elements must not be empty; for an empty dataset use Dataset.range(0)")
    if isinstance(elements[0], Dataset):
        return Dataset.from_tensor_slices(elements, name)
    items = [kept(map_leaves(_leaf, adopt(element), lists=False)) for element in elements]
    try:
        block = Block.of_elements(structure_of(items[0]), items)
        return Dataset(slices_of(block, f"{len(items)} items", name=name))
    except TypeError as error:
        raise TypeError(f"from_list: the items must be alike: {error}") from error


def _leaf(value: Any) -> Any:
    return as_eager_leaf(getattr(value, "node", value))


def sample_from_datasets(
    datasets: Sequence[Dataset[Any]], weights: Any = None, seed: int | None = None, stop_on_empty_dataset: bool = False
) -> Dataset[Any]:
    """`Dataset.sample_from_datasets`, under its older name.

    Args:
      datasets: at least one; same structure and dtypes.
      weights: one for each dataset; equal if None. Or a dataset of vectors of weights, one for each draw.
      seed: any integer; None draws one, which a saved state remembers.
      stop_on_empty_dataset: True to end at the first exhausted dataset; False to skip it.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(3)
    >>> di.data.experimental.sample_from_datasets([ds, ds], weights=[1.0, 0.0]).to_list()
    [0, 1, 2]

    Source: `tf.data.experimental.sample_from_datasets`.
    """
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


# ----------------------------------------------------------------------------
# `SqlDataset`: the rows of a query to an SQLite file, as tuples or other nests.
# ----------------------------------------------------------------------------


class SqlDataset(Dataset[Any]):
    """The rows of a query to an SQLite file, as tuples or in another structure.

    Values must fit the types: text is no number, 1.5 no integer, and NULL is NaN in a column of floats and otherwise an error;
    TensorFlow makes zeros of all these. Other databases, and restarts that need not read all rows before:
    `Dataset.from_sql`.

    Args:
      driver_name: "sqlite".
      data_source_name: the path of the file, which is opened for reading alone.
      query: a SELECT. End it with ORDER BY if a job is to be restarted: rows must come in the same order.
      output_types: a dtype for each column: a tuple, a dict or any nest of them, which elements have the structure of; one
        dtype for the only column.

    Raises:
      InvalidArgumentError: another driver; at iteration, the query fails, has another number of columns, or a value does not
        fit.
      NotFoundError: at iteration, the file is not there.

    >>> import distinput as di
    >>> with sqlite3.connect("b.db") as connection:
    ...     _ = connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
    ...     _ = connection.execute("INSERT INTO people VALUES (1, 'Ada'), (2, 'Alan')")
    >>> connection.close()
    >>> query = "SELECT name, id FROM people ORDER BY id"
    >>> di.data.experimental.SqlDataset("sqlite", "b.db", query, (di.string, di.int32)).to_list()
    [(b'Ada', 1), (b'Alan', 2)]

    Source: `tf.data.experimental.SqlDataset`.
    """

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> None:
        driver, path, text = map(_text, (driver_name, data_source_name, query))
        if driver != "sqlite":
            raise InvalidArgumentError(
                f"SqlDataset: driver_name must be 'sqlite', got {driver_name!r}; read other databases with Dataset.from_sql"
            )
        wanted = tuple(output_types) if isinstance(output_types, list) else output_types
        structure = structure_of(wanted)
        types = structure.flatten(wanted)
        if not types:
            raise InvalidArgumentError(
                f"SqlDataset: output_types must have a dtype for each column, in a tuple for example, got {output_types!r}"
            )
        named = {str(place): one for place, one in enumerate(types)}
        schema = RowSchema.of("SqlDataset", named)
        assert schema is not None
        node = Sql(SqlQuery(text, _Sqlite(path), who="SqlDataset"), schema, Reading(who="SqlDataset"), tuples=True)
        node.check()
        if structure.is_flat_tuple:
            super().__init__(node)
            return
        columns: Any = node.spec.nest
        signature = structure.build(list(columns))
        super().__init__(Dataset(node).map(partial(_arranged, structure), output_signature=signature).node)


def _arranged(structure: Structure, *row: Any) -> Any:
    """A row in the structure of `output_types`."""
    return structure.build(row)


@dataclass(frozen=True)
class _Sqlite:
    """Opens a file for reading, also in another process."""

    path: str

    def __call__(self) -> sqlite3.Connection:
        where = Path(self.path).absolute()
        if not where.is_file():
            raise NotFoundError(
                f"SqlDataset: there is no file {self.path!r}; data_source_name is the path of an SQLite file"
            )
        return sqlite3.connect(f"{where.as_uri()}?mode=ro", uri=True, check_same_thread=False)


def _text(given: Any) -> Any:
    """Text as users of TensorFlow have it, which may be bytes or an array."""
    found = given.item() if isinstance(given, np.ndarray | np.generic) and np.ndim(given) == 0 else given
    return found.decode() if isinstance(found, bytes) else found


# ----------------------------------------------------------------------------
# `TFRecordWriter` of `tf.data.experimental`: writes a whole dataset of byte strings.
# ----------------------------------------------------------------------------


class TFRecordWriter:
    """Writes the elements of a dataset to a TFRecord file; `io.TFRecordWriter` writes records one by one.

    The file appears under its name once it is complete.

    Args:
      filename: where to write, a local path or a URL.
      compression_type: "" or None, "GZIP" or "ZLIB".

    Raises:
      InvalidArgumentError: the compression is unknown.

    >>> import distinput as di
    >>> di.data.experimental.TFRecordWriter("a.tfrecord").write(di.data.Dataset.from_tensor_slices(["one", "two"]))
    >>> di.data.TFRecordDataset("a.tfrecord").to_list()
    [b'one', b'two']

    Source: `tf.data.experimental.TFRecordWriter`.
    """

    def __init__(self, filename: str | os.PathLike[str], compression_type: str | None = None) -> None:
        self.filename, self.compression_type = filename, compression_type

    def write(self, dataset: Dataset[Any]) -> None:
        """Write all elements.

        Args:
          dataset: byte strings.

        Raises:
          TypeError: it is not a dataset, or its elements are no byte strings.
          NotFoundError: the folder does not exist.
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"TFRecordWriter: write takes a dataset, got {dataset!r}")
        spec = dataset.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype != STRING or spec.shape not in (None, ()):
            raise TypeError(f"TFRecordWriter: elements must be byte strings, got {spec}; make them one with map")
        with RecordWriter(self.filename, self.compression_type) as writer, iter(dataset) as elements:
            for element in elements:
                writer.write(element)


# ----------------------------------------------------------------------------
# `tf.data.NumpyIterator`: an iterator of a dataset, made by its class, whose position can be saved as bytes.
# ----------------------------------------------------------------------------


class NumpyIterator(Generic[T_co]):
    """An iterator over a dataset, the same as `dataset.as_numpy_iterator()` and `iter(dataset)`.

    Args:
      dataset: what to iterate.

    Raises:
      TypeError: `dataset` is not a dataset.

    >>> import distinput as di
    >>> it = di.data.NumpyIterator(di.data.Dataset.range(4))
    >>> _ = next(it)
    >>> saved = it.save()
    >>> it.next(), it.next()
    (np.int64(1), np.int64(2))
    >>> it.restore(saved)
    >>> list(it)
    [np.int64(1), np.int64(2), np.int64(3)]

    Source: `tf.data.NumpyIterator`.
    """

    def __init__(self, dataset: Dataset[T_co]) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"NumpyIterator: expected a dataset, got {dataset!r}")
        self._elements: DatasetIterator[T_co] = iter(dataset)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        for element in self._elements:  # an interrupt may come behind a call of `next`
            return element
        raise StopIteration

    @property
    def element_spec(self) -> Any:
        """The spec of an element."""
        return self._elements.element_spec

    def next(self) -> T_co:
        """The next element.

        Raises:
          StopIteration: there is none.
        """
        return self.__next__()

    def save(self) -> bytes:
        """The position, as bytes for `restore`."""
        return json.dumps(self._elements.state()).encode()

    def restore(self, state: bytes) -> None:
        """Go to a position that was saved.

        Args:
          state: what `save` returned, in this process or another.

        Raises:
          StateError: it is no such state, or that of another pipeline.
        """
        try:
            read: Any = json.loads(state)
        except (TypeError, ValueError, RecursionError) as error:
            raise StateError(f"NumpyIterator: the state must be bytes that save returned, got {state!r:.60}") from error
        self._elements.load_state_dict(read)
