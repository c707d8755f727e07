# SPDX-License-Identifier: Apache-2.0
"""`Dataset`: the handle by which users build and iterate a pipeline, with the names of `tf.data.Dataset`."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never, TypeAlias, TypeVar, overload

import numpy as np

from distinput import ops
from distinput.arrow.tabular import is_stream, is_table
from distinput.data.element import T_co
from distinput.data.transformations import Transformations
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import later, placed
from distinput.ops.slices import from_tensor_slices, from_tensors
from distinput.plan.check import callable_argument, integer, taken
from distinput.plan.node import Node
from distinput.values.nest import structure_of
from distinput.values.spec import DatasetSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    RowsLike = NDArray[Any] | Sequence[float | str | bytes] | Sequence[Sequence[float | str | bytes]]
    from distinput.data import saving
    from distinput.files import directory, mounts, paths
else:
    directory = later("distinput.files.directory")  # paths and their patterns are for those who read files
    mounts = later("distinput.files.mounts")  # the same
    paths = later("distinput.files.paths")  # the same
    saving = later("distinput.data.saving")  # the same

__all__ = ["Dataset"]

Whole: TypeAlias = int | np.integer[Any]
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
Made = TypeVar("Made", bound="Dataset[Any]")
Number = TypeVar("Number", bound=np.number[Any] | np.bool_)
Scalar = TypeVar("Scalar", bound=np.generic)
Value = TypeVar("Value", bound=np.generic | np.ndarray[Any, Any] | bytes)
Value2 = TypeVar("Value2", bound=np.generic | np.ndarray[Any, Any] | bytes)
Value3 = TypeVar("Value3", bound=np.generic | np.ndarray[Any, Any] | bytes)


class Dataset(Transformations[T_co]):
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

    @overload
    @staticmethod
    def range(*args: Whole, name: str | None = None) -> "Dataset[np.int64]": ...

    @overload
    @staticmethod
    def range(
        *args: Whole, output_type: "type[Scalar] | np.dtype[Scalar]", name: str | None = None
    ) -> "Dataset[Scalar]": ...

    @overload
    @staticmethod
    def range(*args: Whole, output_type: Any, name: str | None = None) -> "Dataset[Any]": ...

    @staticmethod
    def range(*args: Whole, output_type: Any = np.int64, name: str | None = None) -> "Dataset[Any]":
        """Integers: `range(stop)`, `range(start, stop)` or `range(start, stop, step)`.

        Shapes: scalars of `output_type`.

        Args:
          *args: as for Python's `range`.
          output_type: their dtype.
          name: a label.

        Raises:
          InvalidArgumentError: `step` is 0, or a number does not fit into int64.
          TypeError: an argument is no integer, or `output_type` no dtype of integers or floats.
          ValueError: the arguments are not one to three.

        >>> import distinput as di
        >>> di.data.Dataset.range(2, 8, 3).to_list()
        [2, 5]

        Source: `tf.data.Dataset.range`.
        """
        if not 1 <= len(args) <= 3:
            raise ValueError(f"range: expected 1 to 3 numbers, got {len(args)}")
        numbers = [_whole(a) for a in args]
        first, stop, step = (0, numbers[0], 1) if len(numbers) == 1 else (*numbers, 1)[:3]
        return Dataset(ops.range.Range(first, stop, step, output_type, name=name))

    @staticmethod
    def counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64, name: str | None = None) -> "Dataset[Any]":
        """The numbers `start`, `start + step`, `start + 2 * step`, ..., without an end.

        Integers wrap around at the end of their dtype. Floats are computed from their position, so that errors of rounding do
        not add up, as they do in TensorFlow.

        Shapes: scalars of `dtype`.

        Args:
          start: the first number.
          step: the distance between numbers.
          dtype: their dtype.
          name: a label.

        Raises:
          TypeError: `dtype` is no dtype of numbers, or a float is given where it is one of integers.

        >>> import distinput as di
        >>> di.data.Dataset.counter(start=5, step=-2).take(4).to_list()
        [5, 3, 1, -1]

        Source: `tf.data.Dataset.counter`.
        """
        return Dataset(ops.range.Counter(start, step, dtype, name=name))

    @staticmethod
    def random(
        seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> "Dataset[np.int64]":
        """Random integers from 0 to 2 ** 32 - 1, each equally likely, without an end.

        Each number is a function of the seed, the pass and its position. They are not TensorFlow's numbers for that seed.

        Shapes: int64 scalars.

        Args:
          seed: any integer; None draws one, which a saved state remembers, and gives other numbers in each pass.
          rerandomize_each_iteration: True: other numbers in each pass, with a seed too.
          name: a label.

        Raises:
          TypeError: `seed` is no integer.

        >>> import distinput as di
        >>> ds = di.data.Dataset.random(seed=4).take(3)
        >>> ds.to_list() == ds.to_list()
        True

        Source: `tf.data.Dataset.random`.
        """
        return Dataset(ops.random.Random(seed, rerandomize_each_iteration, name=name))

    @overload
    @staticmethod
    def from_tensors(tensors: Value, name: str | None = None) -> "Dataset[Value]": ...

    @overload
    @staticmethod
    def from_tensors(tensors: tuple[Value, Value2], name: str | None = None) -> "Dataset[tuple[Value, Value2]]": ...

    @overload
    @staticmethod
    def from_tensors(
        tensors: tuple[Value, Value2, Value3], name: str | None = None
    ) -> "Dataset[tuple[Value, Value2, Value3]]": ...

    @overload
    @staticmethod
    def from_tensors(tensors: Mapping[str, Value], name: str | None = None) -> "Dataset[dict[str, Value]]": ...

    @overload
    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> "Dataset[Any]": ...

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> "Dataset[Any]":
        """One element: `tensors` itself.

        Args:
          tensors: a nest of arrays, numbers, text or lists (a list becomes an array), datasets or lists of datasets.
          name: a label.

        >>> import distinput as di
        >>> list(di.data.Dataset.from_tensors({"a": [1, 2]}))
        [{'a': array([1, 2], dtype=int32)}]

        Source: `tf.data.Dataset.from_tensors`.
        """
        return Dataset(_named(from_tensors(tensors), name))

    @overload
    @staticmethod
    def from_tensor_slices(tensors: "np.ndarray[tuple[Never], Any]", name: str | None = None) -> "Dataset[Any]": ...

    @overload
    @staticmethod
    def from_tensor_slices(
        tensors: "np.ndarray[tuple[int], np.dtype[Number]]", name: str | None = None
    ) -> "Dataset[Number]": ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: "NDArray[Number]", name: str | None = None) -> "Dataset[NDArray[Number]]": ...

    @overload
    @staticmethod
    def from_tensor_slices(
        tensors: "tuple[RowsLike, RowsLike]", name: str | None = None
    ) -> "Dataset[tuple[Any, Any]]": ...

    @overload
    @staticmethod
    def from_tensor_slices(
        tensors: "tuple[RowsLike, RowsLike, RowsLike]", name: str | None = None
    ) -> "Dataset[tuple[Any, Any, Any]]": ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: "Mapping[str, RowsLike]", name: str | None = None) -> "Dataset[dict[str, Any]]": ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> "Dataset[Any]": ...

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> "Dataset[Any]":
        """One element for each index of the first axis that all arrays share.

        Args:
          tensors: a nest of arrays of equal first dimension; [n, ...] gives n elements [...]. A `RaggedTensor` gives its
            rows, and an Arrow array may hold lists of several lengths; their values are not copied. A table (a
            DataFrame, for example) is a dict of its columns; alone it is read as `from_arrow` does. A list of n datasets
            gives each of them as an element.
          name: a label.

        Raises:
          InvalidArgumentError: an array is a scalar, or the first dimensions differ; an Arrow array holds nulls that
            have no replacement (see `from_arrow`); the elements of datasets in a list differ in structure or dtype.

        >>> import distinput as di
        >>> list(di.data.Dataset.from_tensor_slices((np.array([1, 2]), ["a", "b"])))
        [(np.int64(1), b'a'), (np.int64(2), b'b')]
        >>> import pyarrow as pa
        >>> di.data.Dataset.from_tensor_slices(pa.array([[1, 2], [], [3]])).padded_batch(3).to_list()
        [[[1, 2], [0, 0], [3, 0]]]

        Source: `tf.data.Dataset.from_tensor_slices`.
        """
        if is_table(tensors) or (is_stream(tensors) and not isinstance(tensors, Dataset)):
            return Dataset(_named(ops.tables.from_arrow(tensors, who="from_tensor_slices"), name))
        return Dataset(_named(from_tensor_slices(tensors), name))

    @staticmethod
    def from_arrow(
        source: Any,
        *,
        nulls: Mapping[str, Any] | None = None,
        valid: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """The rows of a table or an Arrow stream, as dicts from column name to value.

        Columns are not copied where NumPy holds them as Arrow does: numbers, dates and times, the bytes of text, the values of
        lists. Text becomes UTF-8 bytes, lists of several lengths and fixed-size lists become arrays, lists of lists ragged
        tensors, structs dicts, dictionaries (categories) their values, times UTC. The index of a pandas DataFrame is left out.

        Tables in memory have random access: they are counted, shuffled globally, sharded and restored by row. A stream (a
        `RecordBatchReader`, a DuckDB relation, anything else with `__arrow_c_stream__` whose rows are not in memory) is opened
        in each pass, and a batch of it is in memory at a time; its rows are not counted, and must come in the same order
        when it is opened again. A `RecordBatchReader` can be opened once: give a function that opens it, to read it again.

        Args:
          source: a table of pyarrow, pandas, polars, DuckDB or Hugging Face, anything with `__arrow_c_stream__` or
            `__arrow_c_array__`, a dict of columns (arrays, Series, lists), a single such column, whose values are the
            elements then, or a function that opens a stream.
          nulls: what to put in the place of nulls, by column; a null list becomes an empty one. Nulls of other columns become
            NaN among floats and NaT among dates and times, and are errors in columns of any other type.
          valid: by column, the name of a further column of truth values that says which rows are not null; nulls of these
            columns then become 0, False or b"" unless `nulls` says otherwise.
          name: a label.

        Raises:
          InvalidArgumentError: nothing of the above; a column that no array can hold; nulls that have no replacement, while
            the dataset is made, or at iteration if it is a stream; a stream that can be read once is read again.

        >>> import distinput as di
        >>> import pyarrow as pa
        >>> di.data.Dataset.from_arrow(pa.table({"x": [1, 2], "t": ["a", "b"]})).to_list()
        [{'x': 1, 't': b'a'}, {'x': 2, 't': b'b'}]
        >>> table = pa.table({"age": [30, None]})
        >>> di.data.Dataset.from_arrow(table, valid={"age": "age_known"}).to_list()
        [{'age': 30, 'age_known': True}, {'age': 0, 'age_known': False}]

        Source: the Arrow PyCapsule interface; TensorFlow has no counterpart.
        """
        return Dataset(_named(ops.tables.from_arrow(source, nulls, valid), name))

    @staticmethod
    def from_sql(
        query: str,
        connect: Callable[[], Any],
        *,
        schema: Any = None,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        order_by: str | None = None,
        nulls: Mapping[str, Any] | None = None,
        valid: Mapping[str, str] | None = None,
        paramstyle: str | None = None,
        fetch_size: int | None = None,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """The rows of a query through any DB-API connection, as dicts from column name to value.

        The query is run in each pass, through a connection of its own, and some rows of it are fetched at a time. Types of
        columns are stated by `schema`, or inferred from the first 1,024 rows; then they hold for all rows, and a value that
        does not fit is an error with row and column. Rows are not counted: say how many there are with `assert_cardinality`.

        A restart with `order_by` asks the database for the rows from the last key on. Without it the query is run again and
        the rows before are dropped, so they must come in the same order: end the query with ORDER BY.

        Args:
          query: a SELECT.
          connect: a function without arguments that returns a connection, which threads other than its own may use.
          schema: types by column, as a dict or a pyarrow Schema: dtypes or their names, `TensorSpec`, pyarrow types.
          parameters: values for the placeholders of the query.
          order_by: the name of a column of integers or text without NULL, in which each value is there once. Rows come in its
            order, whatever order the query has.
          nulls: what to put in the place of NULL, by column; see `from_arrow`.
          valid: by column, the name of a further column of truth values that says which rows are not NULL; see `from_arrow`.
          paramstyle: how the driver writes placeholders, as in the DB-API; that of its module when None.
          fetch_size: rows that are fetched at a time; when None 1,024, and then up to 32,768 by their size.
          name: a label.

        Raises:
          InvalidArgumentError: an argument is invalid; the query fails, or gives other columns; at iteration, a value does not
            fit, or a key is there twice.
          UnavailableError: `connect` fails.
          DataLossError: at iteration, rows cannot be read, or are not there any more after a restart.

        >>> import distinput as di
        >>> import sqlite3
        >>> with sqlite3.connect("a.db") as connection:
        ...     _ = connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
        ...     _ = connection.execute("INSERT INTO people VALUES (1, 'Ada'), (2, 'Alan')")
        >>> connection.close()
        >>> di.data.Dataset.from_sql("SELECT * FROM people", lambda: sqlite3.connect("a.db"), order_by="id").to_list()
        [{'id': 1, 'name': b'Ada'}, {'id': 2, 'name': b'Alan'}]

        Source: PEP 249, the Python database API; `di.data.experimental.SqlDataset` is TensorFlow's.
        """
        node = ops.sql.from_sql(query, connect, schema, parameters, order_by, nulls, valid, paramstyle, fetch_size)
        return Dataset(_named(node, name))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] | None = None,
        output_signature: Any = None,
        name: str | None = None,
        *,
        copy: bool = True,
    ) -> "Dataset[Any]":
        """The elements of `generator(*args)`, which is called again for each pass.

        Values are cast to the dtypes of the signature and must fit its shapes. A restart from a saved state runs the
        generator again and skips what was delivered before.

        Args:
          generator: returns an iterable of elements.
          output_types: a nest of dtypes, the older form of a signature.
          output_shapes: a nest of shapes, with `output_types`.
          args: arguments of `generator`, converted to arrays, NumPy scalars and bytes.
          output_signature: a nest of `TensorSpec`.
          name: a label.
          copy: True: an array that the generator still refers to when it yields it is copied, since it may be filled again.
            False: it does not change an array after it has yielded it, so large ones are handed on as read-only views.
            For the items of a list or tuple this always holds.

        Raises:
          TypeError: `generator` is not callable, or there is no signature; at iteration, an element does not fit it.
          InvalidArgumentError: at iteration, an array was seen to change despite `copy=False`.

        >>> import distinput as di
        >>> spec = di.TensorSpec([], "int64")
        >>> di.data.Dataset.from_generator(lambda: iter([1, 2]), output_signature=spec).to_list()
        [1, 2]

        Source: `tf.data.Dataset.from_generator`.
        """
        node = ops.generator.from_generator(generator, output_types, output_shapes, args, output_signature, copy=copy)
        return Dataset(_named(node, name))

    @staticmethod
    def from_source(
        source: Any,
        *,
        element_spec: Any = None,
        num_parallel_calls: int | None = None,
        processes: bool = False,
        copy: bool = True,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """The items of an object that has a length and gives them by position, such as a PyTorch map-style dataset.

        The elements are `source[0]`, `source[1]` and so on. They are counted, so they can be shuffled globally, sharded and
        distributed by position, and a restart goes straight to its position. A source with `__getitems__` is called with a
        list of positions, and returns a list of items. What the items look like is found by reading a few of them, and every
        other one is held to it.

        Args:
          source: an object with `__len__` and `__getitem__`: a list, an array, a dataset of PyTorch or Hugging Face, a
            `RandomAccessDataSource` of Grain. Its length must not change while it is read.
          element_spec: a nest of `TensorSpec` for an item, with None for a dimension that varies; integers become as wide as it
            says.
          num_parallel_calls: threads that read, useful when reading waits or releases the GIL; AUTOTUNE measures whether they
            are. The order is kept.
          processes: read in `num_parallel_calls` worker processes (one for each core if that is None or AUTOTUNE) instead of
            threads. The source must be picklable: of a class at the top level of a module, or anything if cloudpickle is
            installed. It is sent to each worker once.
          copy: True: an array that the source still refers to when it gives it is copied, since it may be filled again. False:
            it does not change an array that it has given, so large ones are handed on as read-only views. For a list or tuple
            this always holds.
          name: a label.

        Raises:
          TypeError: `source` has no length or gives no items by position, or cannot be sent to worker processes; at iteration,
            an item does not fit `element_spec`, or is of another kind than the others.
          FailedPreconditionError: at iteration, the source has another length than when the dataset was made.
          InvalidArgumentError: at iteration, an array was seen to change despite `copy=False`.

        >>> import distinput as di
        >>> class Squares:
        ...     def __len__(self):
        ...         return 5
        ...     def __getitem__(self, index):
        ...         return {"root": index, "square": np.full(2, index**2)}
        >>> ds = di.data.Dataset.from_source(Squares())
        >>> ds.skip(3).to_list()
        [{'root': 3, 'square': [9, 9]}, {'root': 4, 'square': [16, 16]}]
        >>> sorted(ds.global_shuffle(seed=1).map(lambda x: x["root"]).to_list())
        [0, 1, 2, 3, 4]

        Source: distinput's own; such an object is a map-style `torch.utils.data.Dataset`, and a data source of Grain.
        """
        node = ops.source.from_source(source, element_spec, num_parallel_calls, processes=processes, copy=copy)
        return Dataset(_named(node, name))

    @staticmethod
    def list_files(
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
    ) -> "Dataset[bytes]":
        """The names of all files that match, sorted, then shuffled unless `shuffle=False`.

        A file is listed once for each pattern that it matches.

        Args:
          file_pattern: a glob pattern or a list of them; any URL of fsspec or obstore. One that ends with `/` stands for all
            files below this directory.
          shuffle: True when None.
          seed: the seed of the shuffle.
          name: a label.
          storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
          filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.

        Raises:
          NoMatchError: no file matches; an InvalidArgumentError, as TensorFlow's is, and a FileNotFoundError.

        >>> import distinput as di
        >>> import pathlib
        >>> _ = pathlib.Path("a.txt").write_text("hello")
        >>> di.data.Dataset.list_files("*.txt", shuffle=False).to_list()
        [b'a.txt']

        Source: `tf.data.Dataset.list_files`.
        """
        patterns, storage = mounts.stored(paths.as_paths(file_pattern), storage_options, filesystem)
        names = directory.list_files(patterns)
        found = from_tensor_slices(np.array([path.encode() for path in names], dtype=object))
        node: Node = found if storage is None else dataclasses.replace(found, storage=storage)
        return Dataset(_named(node if shuffle is False else ops.shuffle.Shuffle(node, len(names), seed), name))

    @staticmethod
    def load(
        path: Any,
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: "Callable[[Dataset[Any]], Dataset[Any]] | None" = None,
        wait: bool = False,
    ) -> "Dataset[Any]":
        """The elements that `save` kept in a folder, in their order.

        They are counted, shuffled globally, sharded and restored by row; numbers are views of the mapped files. Nothing that is
        read is executed.

        Args:
          path: the folder.
          element_spec: the spec of the elements, to check it or to leave sizes open; needed for dataclasses. None: as they were
            saved.
          compression: that of `save`, if it is to be checked.
          reader_func: a dataset with a dataset for each file -> the dataset to read; None: one file after the other, where
            TensorFlow reads as many in turns as the machine has cores.
          wait: wait until another process has saved the dataset.

        Raises:
          NotFoundError: there is no complete dataset, or a file of it is gone.
          InvalidArgumentError: the elements are not as `element_spec` says; `write` wrote the folder in another format.
          DataLossError: the manifest is damaged, or a file has another size than when it was saved.

        >>> import distinput as di
        >>> _ = di.data.Dataset.range(5).save("numbers", shard_func=lambda x: x % 2)
        >>> di.data.Dataset.load("numbers").to_list()
        [0, 2, 4, 1, 3]
        >>> in_turn = di.data.Dataset.load("numbers", reader_func=lambda files: files.interleave(lambda file: file, 2))
        >>> in_turn.to_list()
        [0, 1, 2, 3, 4]

        Source: `tf.data.Dataset.load`.
        """
        return Dataset(saving.load(path, element_spec, compression, reader_func, wait))

    @overload
    @staticmethod
    def zip(a: "Dataset[A]", b: "Dataset[B]", /, *, name: str | None = None) -> "Dataset[tuple[A, B]]": ...

    @overload
    @staticmethod
    def zip(
        a: "Dataset[A]", b: "Dataset[B]", c: "Dataset[C]", /, *, name: str | None = None
    ) -> "Dataset[tuple[A, B, C]]": ...

    @overload
    @staticmethod
    def zip(
        a: "Dataset[A]", b: "Dataset[B]", c: "Dataset[C]", d: "Dataset[D]", /, *, name: str | None = None
    ) -> "Dataset[tuple[A, B, C, D]]": ...

    @overload
    @staticmethod
    def zip(*args: "Dataset[Any]", name: str | None = None) -> "Dataset[Any]": ...

    @overload
    @staticmethod
    def zip(datasets: "tuple[Dataset[A], Dataset[B]]", *, name: str | None = None) -> "Dataset[tuple[A, B]]": ...

    @overload
    @staticmethod
    def zip(
        datasets: "tuple[Dataset[A], Dataset[B], Dataset[C]]", *, name: str | None = None
    ) -> "Dataset[tuple[A, B, C]]": ...

    @overload
    @staticmethod
    def zip(datasets: "Mapping[str, Dataset[A]]", *, name: str | None = None) -> "Dataset[dict[str, A]]": ...

    @overload
    @staticmethod
    def zip(datasets: tuple[Any, ...] | Mapping[Any, Any], *, name: str | None = None) -> "Dataset[Any]": ...

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> "Dataset[Any]":
        """Elements of several datasets side by side, nested as the datasets are; ends with the shortest.

        Args:
          *args: datasets, or one nest of them.
          datasets: one nest of datasets.
          name: a label.

        Raises:
          TypeError: something is not a dataset.

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
        datasets: "Sequence[Dataset[A]]", choice_dataset: "Dataset[Any]", stop_on_empty_dataset: bool = True
    ) -> "Dataset[A]":
        """For each number of `choice_dataset`, the next element of that dataset.

        Args:
          datasets: at least one; same structure and dtypes.
          choice_dataset: int64 scalars.
          stop_on_empty_dataset: True to end at the first exhausted dataset; False to skip its numbers.

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
        datasets: "Sequence[Dataset[A]]",
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
        *,
        balanced: bool = False,
        on_end: str | None = None,
    ) -> "Dataset[A]":
        """Elements of datasets mixed by weight: drawn at random, or in turns.

        Args:
          datasets: at least one; same structure and dtypes.
          weights: one for each dataset; equal if None; a dataset of weight 0 is left out. Or a dataset of vectors of weights,
            one for each draw.
          seed: any integer; None draws one, which a saved state remembers.
          stop_on_empty_dataset: True to end at the first exhausted dataset; False to skip it.
          rerandomize_each_iteration: True draws differently in each pass; otherwise all passes draw the same.
          balanced: take turns instead of drawing: after any number of elements, the count of each of k datasets differs from
            the sum of its shares so far by at most 1 - 1 / (2k - 2). Weights may change by the step, which is the number of
            elements before: `{0: [0.9, 0.1], 10_000: [0.5, 0.5]}` has the second ones from step 10,000 on.
          on_end: what happens when a dataset has no element for its turn. "stop": the sample ends, as with
            `stop_on_empty_dataset`. "skip", the default: the others go on. With `balanced`, also "repeat": it begins its next
            pass, and the sample ends when every dataset that still has a weight has ended once.

        Raises:
          InvalidArgumentError: there is no dataset, or the number of weights is wrong; `balanced` with a seed, which it has no
            use for; `on_end` is none of these, or contradicts `stop_on_empty_dataset`.
          TypeError: the datasets differ in structure or dtype.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(3)
        >>> di.data.Dataset.sample_from_datasets([ds, ds], weights=[1.0, 0.0]).to_list()
        [0, 1, 2]
        >>> tens = di.data.Dataset.range(10, 20)
        >>> di.data.Dataset.sample_from_datasets([ds, tens], weights=[1, 2], balanced=True, on_end="stop").to_list()
        [10, 0, 11, 12, 1, 13, 14, 2, 15, 16]

        Source: `tf.data.Dataset.sample_from_datasets`.
        """
        nodes = [_node("sample_from_datasets", d) for d in datasets]
        shares = weights.node if isinstance(weights, Dataset) else weights
        made = ops.balanced_sample.sample(
            nodes, shares, seed, stop_on_empty_dataset, rerandomize_each_iteration, balanced=balanced, on_end=on_end
        )
        if made is None:
            return Dataset(ops.take.Take(nodes[0], 0))
        for dataset in datasets:
            if made is dataset.node:
                return dataset
        return Dataset(made)

    def enumerate(self, start: int = 0, name: str | None = None) -> "Dataset[tuple[np.int64, T_co]]":
        """Each element with its number.

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

    def apply(self, transformation_func: "Callable[[Dataset[T_co]], Made]") -> Made:
        """`transformation_func(self)`, to chain functions that are not methods.

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

    def _followed_by(self, node: Node, reshuffles: bool = False) -> "Dataset[Any]":
        """The dataset of a tree that has this one's as an input; both count passes together unless `reshuffles`."""
        return Dataset(node, None if reshuffles else self._passes)

    if not TYPE_CHECKING:  # a type checker that saw this would accept every name

        def __getattr__(self, name: str) -> Any:
            """The method of an op that the extension of an installed package adds; see `distinput.extend`."""
            return placed("distinput.data.registration:method_of_an_extension")(self, name)


DatasetSpec.value_type = Dataset
Node.handle = staticmethod(Dataset)  # users see a node inside an element as its dataset


def _whole(number: Any) -> int:
    """A number of `range`: an integer, or a float with an integral value.

    Raises:
      TypeError: it is not an integer.
      InvalidArgumentError: it does not fit into int64.
    """
    value = taken(number)
    value = value.item() if isinstance(value, np.generic) else value
    whole = integer("range", "each number", int(value) if isinstance(value, float) and value.is_integer() else value)
    if not -(2**63) <= whole < 2**63:
        raise InvalidArgumentError(f"range: each number must fit into int64, got {whole}")
    return whole


def _named(node: Node, name: str | None) -> Node:
    return node if name is None else dataclasses.replace(node, name=name)


def _node(op: str, value: Any) -> Node:
    if not isinstance(value, Dataset):
        raise TypeError(f"{op}: expected a dataset, got {value!r}")
    return value.node
