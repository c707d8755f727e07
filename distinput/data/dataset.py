# SPDX-License-Identifier: Apache-2.0
"""`Dataset`: the handle by which users build and iterate a pipeline, with the names of `tf.data.Dataset`.

One class, in the order in which it is used: the makers, the ops, what is known of a pipeline, passes and their iterators,
elements by position, whole passes in another form, and what the library itself needs. What each of them does stands in files
of its own, most of which are loaded when they are first needed.
"""

import copy
import dataclasses
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, Never, Self, SupportsIndex, TypeAlias, TypeVar, overload

import numpy as np

from distinput import ops
from distinput.arrow.adopt import is_stream, is_table
from distinput.columns.state import State
from distinput.data.iterator import BlockIterator, DatasetIterator, Passes, T_co, resumed
from distinput.errors import InputWarning, InvalidArgumentError
from distinput.names.lazy import failures, init_is_later, later, load_extensions
from distinput.ops.slices import from_tensor_slices, from_tensors
from distinput.plan.check import at_least, callable_argument, integer, taken
from distinput.plan.node import INFINITE, Node, allow_depth, cardinality_bounds, describe, walk
from distinput.rewrite import Running
from distinput.run.run import OpCounters, Run, called_once
from distinput.values.leaves import as_python
from distinput.values.nest import map_leaves, structure_of
from distinput.values.spec import DatasetSpec

if TYPE_CHECKING:
    from os import PathLike
    from typing import TextIO

    from numpy.typing import NDArray

    from distinput.arrow import record_batches
    from distinput.data import explanation, export, loader, progress, seal, writing
    from distinput.data import recording as recordings
    from distinput.data import stats as statistics
    from distinput.data.progress import ShownPass
    from distinput.data.recording import Recording
    from distinput.data.stats import Stats

    # Its stub is written by docs/make_stub.py; there is no such class.
    from distinput.data.transformations import Transformations
    from distinput.files import folder as folders
    from distinput.files import mounts, paths
    from distinput.names import absent, words
    from distinput.plan import fingerprint as fingerprints
    from distinput.plan import options as plan_options
    from distinput.plan import text as texts
    from distinput.plan.options import AutoShardPolicy, Options, Policy
    from distinput.streaming import by_position
    from distinput.streaming.by_position import Positions
    from distinput.writers.manifest import WrittenFiles

    RowsLike = NDArray[Any] | Sequence[float | str | bytes] | Sequence[Sequence[float | str | bytes]]
else:
    Transformations = Generic  # what type checkers read in a stub, `transformations.pyi`, is said by the ops below
    record_batches = later("distinput.arrow.record_batches")  # tables are for those who ask for them
    export = later("distinput.data.export")  # the same
    folders = later("distinput.files.folder")  # paths and their patterns are for those who read files
    mounts = later("distinput.files.mounts")  # the same
    paths = later("distinput.files.paths")  # the same
    writing = later("distinput.data.writing")  # what writes files is for those who write them
    recordings = later("distinput.data.recording")  # reports are for those who ask for them
    progress = later("distinput.data.progress")  # the same
    explanation = later("distinput.data.explanation")  # it looks through all ops, and so loads them
    statistics = later("distinput.data.stats")  # for those who ask for them
    loader = later("distinput.data.loader")  # what a DataLoader of PyTorch is told is for those who use one
    # Keys and positions are for those who reach for single elements.
    by_position = later("distinput.streaming.by_position")
    fingerprints = later("distinput.plan.fingerprint")  # for those who ask for it
    plan_options = later("distinput.plan.options")  # few pipelines have some
    seal = later("distinput.data.seal")  # what makes and reads states is for those who save them
    texts = later("distinput.plan.text")  # lines about a step are for those who read them
    absent = later("distinput.names.absent")  # what is said of a name that is not there
    words = later("distinput.names.words")  # the same


Python: TypeAlias = bool | int | float | complex | str | bytes | list[Any] | tuple[Any, ...] | Mapping[Any, Any]
Whole: TypeAlias = int | np.integer[Any]
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
Made = TypeVar("Made", bound="Dataset[Any]")
Number = TypeVar("Number", bound=np.number[Any] | np.bool_)
Numbers = TypeVar("Numbers", bound=np.generic | np.ndarray[Any, Any])
Scalar = TypeVar("Scalar", bound=np.generic)
Value = TypeVar("Value", bound=np.generic | np.ndarray[Any, Any] | bytes)
Value2 = TypeVar("Value2", bound=np.generic | np.ndarray[Any, Any] | bytes)
Value3 = TypeVar("Value3", bound=np.generic | np.ndarray[Any, Any] | bytes)


# ----------------------------------------------------------------------------
# The arguments of methods that add an op: which ones users may pass, and the errors for wrong ones.
# ----------------------------------------------------------------------------


_NODE = (Node, "Node")
"""Annotations of fields that are further inputs; strings, where annotations are not evaluated."""

_NUMBER = (int, int | None, "int", "int | None")
"""Those of fields that are whole numbers."""


class Arguments:
    """The arguments of an op as users give them: those of TensorFlow also by position, ours only by name.

    A keyword-only field of the op that its `repr` leaves out belongs to the library, and is no argument of the method.

    Args:
      op: the method's name.
      node: the op.
    """

    def __init__(self, op: str, node: Callable[..., Node]) -> None:
        fields = getattr(node, "__dataclass_fields__", {})
        first, *rest = _parameters(node)
        shown = [p for p in rest if p.name == "name" or not (p.kind is p.KEYWORD_ONLY and _is_hidden(fields, p.name))]
        shown = [p.replace(annotation="Dataset") if p.annotation in _NODE else p for p in shown]
        shown = [p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) if p.name == "name" else p for p in shown]
        shown.sort(key=lambda p: p.kind)  # stable: `name` comes after the others that have a position
        self.op = op
        self.datasets = {p.name for p in rest if p.annotation in _NODE}
        self.known = [p.name for p in shown]
        self.positional = [p.name for p in shown if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        self.required = {p.name for p in shown if p.default is inspect.Parameter.empty}
        myself = inspect.Parameter("self", first.kind)
        self.signature = inspect.Signature([myself, *shown], return_annotation="Dataset")
        self.numbers = {p.name for p in rest if p.annotation in _NUMBER}

    def by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments given, by name, with datasets replaced by their nodes.

        Raises:
          TypeError: an argument is unknown, missing, given twice or one too many, or must be a dataset and is not.
        """
        if len(args) > len(self.positional):
            taken = f"{', '.join(self.positional)} by position" if self.positional else "none"
            raise TypeError(f"{self.op}: too many arguments, it takes {taken}; got {len(args)}")
        arguments = dict(zip(self.positional, args, strict=False))
        for name, value in kwargs.items():
            if name in arguments:
                raise TypeError(f"{self.op}: argument {name!r} was given twice, by position and by name")
            if name not in self.known:
                raise TypeError(f"{self.op}: unexpected argument {name!r}, {words.likely(name, self.known)}")
            arguments[name] = value
        missing = self.required - arguments.keys()
        if missing:
            names = [name for name in self.known if name in missing]
            raise TypeError(f"{self.op}: needs {' and '.join(names)}")
        for name in self.datasets:
            if name in arguments:
                arguments[name] = self._node(name, arguments[name])
        return arguments

    def taken(self, name: str, value: Any) -> Any:
        """An argument as it is now; a whole number as one of Python, in which none that is computed from it overflows."""
        value = taken(value)
        return int(value) if name in self.numbers and isinstance(value, np.integer) else value

    def _node(self, name: str, value: Any) -> Node:
        if not isinstance(value, DatasetSpec.value_type):
            raise TypeError(
                f"{self.op}: {name} must be a Dataset, got {value!r}; Dataset.from_tensors and Dataset.from_tensor_slices "
                "make one of values"
            )
        node: Node = value.node
        return node


def _parameters(op: Callable[..., Node]) -> list[inspect.Parameter]:
    """Of an op, its input first; those of a dataclass of ours are its fields, for which no `__init__` has to be made."""
    if not init_is_later(op):
        return list(inspect.signature(op).parameters.values())
    fields = [each for each in dataclasses.fields(op) if each.init]  # type: ignore[arg-type]
    return [_parameter(each) for each in sorted(fields, key=lambda each: bool(each.kw_only))]


def _parameter(field: "dataclasses.Field[Any]") -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY if field.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = [each for each in (field.default, field.default_factory) if each is not dataclasses.MISSING]
    default = defaults[0] if defaults else inspect.Parameter.empty
    return inspect.Parameter(field.name, kind, default=default, annotation=field.type)


def _is_hidden(fields: dict[str, Any], name: str) -> bool:
    return name in fields and not fields[name].repr


# ----------------------------------------------------------------------------
# Methods that are made of ops when they are first named.
# ----------------------------------------------------------------------------


def transformation(load: Callable[[], Callable[..., Node]], *, reshuffles: bool = False) -> Any:
    """The method that adds an op to a pipeline; name, arguments and documentation are those of the op.

    Args:
      load: imports and returns the op; called when the method is first named.
      reshuffles: True if each pass has another order, so that passes over the result get their own numbers.
    """
    return _Transformation(load, reshuffles)


def adds_an_op(method: Any) -> bool:
    """Whether a method, as it stands in its class, is one that `transformation` made."""
    return isinstance(method, _Transformation) or hasattr(method, "op")


def method_of(name: str, op: Callable[..., Node], *, reshuffles: bool = False) -> Callable[..., Any]:
    """A function that can be set as a method of `Dataset`.

    Args:
      name: the method's name.
      op: a subclass of `Node` whose first field is its input.
      reshuffles: True if each pass has another order, so that passes over the result get their own numbers.
    """
    arguments = Arguments(name, op)

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        given = {name: arguments.taken(name, value) for name, value in arguments.by_name(args, kwargs).items()}
        made = op(self.node, **given).with_functions_taken()
        return self._followed_by(made.added(), reshuffles)

    method.__signature__ = arguments.signature  # type: ignore[attr-defined]
    method.__name__, method.__qualname__, method.__doc__ = name, f"Dataset.{name}", op.__doc__
    method.__module__ = "distinput.data.dataset"
    method.op = op  # type: ignore[attr-defined]
    return method


class _Transformation:
    """Takes the place of a method until it is first named."""

    def __init__(self, load: Callable[[], Callable[..., Node]], reshuffles: bool) -> None:
        self.load, self.reshuffles = load, reshuffles

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, dataset: Any, _: type[Any]) -> Callable[..., Any]:
        try:
            op = self.load()
        except AttributeError as error:  # which would mean that there is no such method
            raise ImportError(
                f"Dataset.{self.name}: its module cannot be loaded: {error}; a signal handler that uses it may have "
                "interrupted that: name the method before"
            ) from error
        made = method_of(self.name, op, reshuffles=self.reshuffles)
        setattr(self.owner, self.name, made)
        return made if dataset is None else MethodType(made, dataset)


# ----------------------------------------------------------------------------
# The handle.
# ----------------------------------------------------------------------------


class _DatasetType(type):
    """The type of `Dataset`, which says what to write for a name of another library's class (`Dataset.from_pandas`)."""

    if not TYPE_CHECKING:  # a type checker that saw this would accept every name

        def __getattr__(cls, name: str) -> Any:
            """The error for a name that the class does not have."""
            said = None if name.startswith("_") else absent.elsewhere(name)
            text = f"type object {cls.__name__!r} has no attribute {name!r}"
            if said:  # without `obj=`, for which Python would add names that look alike
                raise AttributeError(f"{text}; {said}", name=name)
            raise AttributeError(text, name=name, obj=cls)


class Dataset(Transformations[T_co], metaclass=_DatasetType):
    """A lazy pipeline of elements; the counterpart of `tf.data.Dataset`.

    Records are read while the dataset is iterated, and each `iter()` starts over. Before that, readers of tables look at the
    first file, for types and nulls. Elements are nests of NumPy arrays, NumPy scalars and bytes.

    Args:
      node: the tree that describes the pipeline.

    >>> import distinput as di
    >>> for batch in di.data.Dataset.range(5).map(lambda x: x * 2).batch(3):
    ...     print(batch)
    [0 2 4]
    [6 8]
    """

    nest_leaf = True
    _make_run: Callable[..., Run] = Run

    def __init__(self, node: Node | None = None, passes: Passes | None = None) -> None:
        if node is None or not hasattr(node, "origin"):  # faster than checking for a Node
            given = "nothing" if node is None else words.shown(node)
            raise TypeError(
                f"Dataset: a dataset is not made by its class, got {given}; use Dataset.from_tensor_slices for the "
                "rows of arrays and lists, Dataset.from_generator for what a function yields, and Dataset.from_source for an "
                "object of yours with __len__ and __getitem__, whose class derives from no Dataset"
            )
        allow_depth(node)
        self._node = node
        self._passes = passes or Passes()
        self._running: Running | None = None
        self._positions: Positions | None = None
        self._planned: Any = None
        """What `interop.jax.batches` made last: kept here, it ends with the dataset, to which its functions may lead back."""
        self._counted: tuple[Node, Mapping[Hashable, OpCounters]] = (node, {})

    # ------------------------------------------------------------------------
    # Makers: datasets of integers, of what is in memory, in files and elsewhere, and of several datasets.
    # ------------------------------------------------------------------------

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
          TypeError: an argument is not an integer, or `output_type` is not a dtype of integers or floats.
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
          TypeError: `dtype` is not a dtype of numbers, or a float is given where it is one of integers.

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
          TypeError: `seed` is not an integer.

        >>> import distinput as di
        >>> ds = di.data.Dataset.random(seed=4).take(3)
        >>> ds.to_list() == ds.to_list()
        True

        Source: `tf.data.Dataset.random`.
        """
        return Dataset(ops.range.Random(seed, rerandomize_each_iteration, name=name))

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
        nulls: Mapping[str, Any] | str | None = None,
        valid: Mapping[str, str] | Sequence[str] | None = None,
        name: str | None = None,
        text: str = "bytes",
        nested: str = "columns",
        decimals: str = "text",
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
          nulls: what becomes of nulls; among floats they are NaN, among dates and times NaT. None: where a table in memory
            holds others, there stand a value and a mark, see `Nullable`; those of a stream are errors. "error": each is one.
            "valid": a column `x_valid` beside `x` tells them. A dict has what to put in their place, by column; a null list
            becomes an empty one.
          valid: where nulls are told: a list of columns, whose values and marks are a `Nullable`, or a dict from columns to the
            names of their marks. Nulls of these columns become 0, False or b"" unless `nulls` says otherwise. "s.a" is a field
            of a struct, "x[]" are the items of lists.
          name: a label.
          text: "bytes"; or "str": `as_text` behind the table.
          nested: "columns": a list of structs is a dict of lists; "rows": `as_rows` behind the table makes lists of dicts.
          decimals: "text" of their digits; "decimal" objects or "float64": `as_decimal` behind the table.

        Raises:
          InvalidArgumentError: nothing of the above; a column that no array can hold; nulls that are neither told nor replaced,
            while the dataset is made, or at iteration if it is a stream; a stream that can be read once is read again.

        >>> import distinput as di
        >>> import pyarrow as pa
        >>> di.data.Dataset.from_arrow(pa.table({"x": [1, 2], "t": ["a", "b"]})).to_list()
        [{'x': 1, 't': b'a'}, {'x': 2, 't': b'b'}]
        >>> table = pa.table({"age": [30, None]})
        >>> di.data.Dataset.from_arrow(table).to_list()
        [{'age': {'value': 30, 'valid': True}}, {'age': {'value': 0, 'valid': False}}]
        >>> di.data.Dataset.from_arrow(table, valid={"age": "age_known"}).to_list()
        [{'age': 30, 'age_known': True}, {'age': 0, 'age_known': False}]

        Source: the Arrow PyCapsule interface; TensorFlow has no counterpart.
        """
        rows = _named(ops.tables.from_arrow(source, nulls, valid), name)
        if (text, nested, decimals) != ("bytes", "columns", "text"):
            rows = ops.reader.handed_out(rows, text=text, nested=nested, decimals=decimals)
        return Dataset(rows)

    @staticmethod
    def from_sql(
        query: str,
        connect: Callable[[], Any],
        *,
        schema: Any = None,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        order_by: str | None = None,
        nulls: Mapping[str, Any] | None = None,
        valid: Mapping[str, str] | Sequence[str] | None = None,
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
          nulls: what becomes of NULL; see `from_arrow`. Without a schema it is told where the first rows have one.
          valid: where NULL is told; see `from_arrow`.
          paramstyle: how the driver writes placeholders, as in the DB-API; that of its module when None.
          fetch_size: rows that are fetched at a time; when None 1,024, and then up to 2,048 by their size.
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

        A file is listed once for each pattern that it matches. So is a folder.

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
        names = folders.list_files(patterns)
        found = from_tensor_slices(np.array([os.fsencode(path) for path in names], dtype=object))
        node: Node = dataclasses.replace(found, storage=storage)
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
        read is executed. Sizes of files are compared, their checksums are not: `distinput.inspect.verify(path)` does that.

        Args:
          path: the folder.
          element_spec: the spec of the elements, to check it or to leave sizes open; needed for dataclasses. None: as they were
            saved. What `as_text`, `as_rows` and `as_decimal` made of them is made of them again.
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
        return Dataset(writing.load(path, element_spec, compression, reader_func, wait))

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
        if args and datasets is not None:
            raise TypeError("zip: Both `*args` and `datasets` cannot be set.")
        nest = datasets if not args else args[0] if len(args) == 1 else tuple(args)
        if isinstance(nest, list):
            raise TypeError("zip: the datasets must be nested in tuples or dicts, got a list")
        if args and isinstance(nest, Dataset):
            text = "zip: of one dataset it gives the elements of this one alone; two side by side are Dataset.zip(one, other)"
            warnings.warn(text, InputWarning, stacklevel=2)
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
        nodes = _each_node("choose_from_datasets", datasets)
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
            elements before: `{0: [0.9, 0.1], 10_000: [0.5, 0.5]}` has the second ones from step 10,000 on;
            `data.MixtureWeights` are set while the job runs.
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
        nodes = _each_node("sample_from_datasets", datasets)
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

    # ------------------------------------------------------------------------
    # Ops: the methods that add a step, one line each; their arguments and documentation are those of the op.
    # Editors and type checkers read `transformations.pyi` in their place.
    # ------------------------------------------------------------------------

    if not TYPE_CHECKING:
        as_decimal = transformation(lambda: ops.as_python.AsDecimal)
        as_rows = transformation(lambda: ops.as_python.AsRows)
        as_text = transformation(lambda: ops.as_python.AsText)
        as_uint8 = transformation(lambda: ops.as_python.AsUint8)
        batch = transformation(lambda: ops.batch.Batch)
        batch_by_tokens = transformation(lambda: ops.batch_by_tokens.BatchByTokens)
        bucket_by_sequence_length = transformation(lambda: ops.group_by_window.BucketBySequenceLength)
        cache = transformation(lambda: ops.cache.Cache)
        concatenate = transformation(lambda: ops.concatenate.Concatenate)
        copied = transformation(lambda: ops.copied.Copied)
        filter = transformation(lambda: ops.filter.Filter)
        flat_map = transformation(lambda: ops.flat_map.FlatMap)
        global_shuffle = transformation(lambda: ops.global_shuffle.GlobalShuffle, reshuffles=True)
        group_by_window = transformation(lambda: ops.group_by_window.GroupByWindow)
        ignore_errors = transformation(lambda: ops.on_error.IgnoreErrors)
        interleave = transformation(lambda: ops.interleave.Interleave)
        map = transformation(lambda: ops.map.Map)
        map_rows = transformation(lambda: ops.map_rows.MapRows)
        on_workers = transformation(lambda: ops.on_workers.OnWorkers)
        pack = transformation(lambda: ops.pack.Pack)
        padded_batch = transformation(lambda: ops.padded_batch.PaddedBatch)
        parse_example = transformation(lambda: ops.parse_example.ParseExample)
        parse_sequence_example = transformation(lambda: ops.parse_example.ParseSequenceExample)
        prefetch = transformation(lambda: ops.prefetch.Prefetch)
        ragged_batch = transformation(lambda: ops.batch.RaggedBatch)
        rebatch = transformation(lambda: ops.rebatch.Rebatch)
        rejection_resample = transformation(lambda: ops.rejection_resample.RejectionResample, reshuffles=True)
        repeat = transformation(lambda: ops.repeat.Repeat)
        scan = transformation(lambda: ops.scan.Scan)
        select = transformation(lambda: ops.select.Select)
        shard = transformation(lambda: ops.shard.Shard)
        shard_batches = transformation(lambda: ops.shard_batches.ShardBatches)
        shuffle = transformation(lambda: ops.shuffle.Shuffle, reshuffles=True)
        skip = transformation(lambda: ops.take.Skip)
        snapshot = transformation(lambda: ops.snapshot.Snapshot)
        sparse_batch = transformation(lambda: ops.batch.SparseBatch)
        take = transformation(lambda: ops.take.Take)
        take_while = transformation(lambda: ops.filter.TakeWhile)
        unbatch = transformation(lambda: ops.rebatch.Unbatch)
        unique = transformation(lambda: ops.unique.Unique)
        window = transformation(lambda: ops.window.Window)
        with_options = transformation(lambda: ops.identity.WithOptions)

    def enumerate(self, start: int = 0, name: str | None = None) -> "Dataset[tuple[np.int64, T_co]]":
        """Each element with its number.

        Args:
          start: the first number.
          name: a label.

        Raises:
          InvalidArgumentError: `start` does not fit into int64.
          TypeError: it is not an integer.

        >>> import distinput as di
        >>> di.data.Dataset.from_tensor_slices(["a", "b"]).enumerate(start=5).to_list()
        [(5, b'a'), (6, b'b')]

        Source: `tf.data.Dataset.enumerate`.
        """
        numbers = ops.range.Range(at_least("enumerate", "start", start, -(2**63)), np.iinfo(np.int64).max)
        nest = structure_of((numbers, self.node), is_leaf=lambda x: isinstance(x, Node))
        return self._followed_by(ops.zip.Zip(nest, (numbers, self.node), name=name))

    def split(self, *fractions: float, seed: int = 0) -> "tuple[Dataset[T_co], ...]":
        """Parts of these fractions, chosen at random; every element is in exactly one of them.

        The elements are dealt in groups of neighbours, as few as the fractions allow: with 0.8, of each five neighbours four,
        chosen at random, are in the first part. So sizes are exact to less than a group. Each part keeps the order, is counted
        and reached by position where its input is, and holds nothing in memory. Which part an element is in follows from its
        position and the seed alone: parts are the same in every process and pass, and stay when elements are added at the end.

        Args:
          *fractions: at least one, above 0, that sum to at most 1; what is missing to 1 is a part more. Their common
            denominator is at most 10,000.
          seed: any integer; other parts for another one.

        Returns:
          The parts in the order of the fractions.

        Raises:
          InvalidArgumentError: fractions do not fit; or the elements have another order in each pass or process, or are
            repeated, so that a record would be in several parts: split before `shuffle` and `repeat`.
          TypeError: a fraction is not a number, or `seed` is not an integer.

        >>> import distinput as di
        >>> train, test = di.data.Dataset.range(10).split(0.8, seed=1)
        >>> train.to_list(), test.to_list()
        ([0, 1, 2, 3, 5, 6, 7, 9], [4, 8])
        >>> [len(part) for part in di.data.Dataset.range(1000).split(0.7, 0.2)]
        [700, 200, 100]

        Source: distinput's own; TensorFlow has no counterpart.
        """
        return tuple([self._followed_by(part) for part in ops.split.parts(self.node, fractions, seed)])

    def kfold(self, k: int, i: int, *, seed: int = 0) -> "tuple[Dataset[T_co], Dataset[T_co]]":
        """The training set and the test set of fold `i` of a cross-validation with `k` folds.

        Every element is in the test set of exactly one fold and in the training set of all others: of each `k` neighbours every
        fold tests one, chosen at random. So test sets differ by at most one element in size. What `split` says of order,
        positions and added elements holds here too.

        Args:
          k: how many folds, from 2 to 10,000.
          i: which of them, from 0.
          seed: any integer, the same for all folds.

        Returns:
          The training set and the test set.

        Raises:
          InvalidArgumentError: `k` is below 2 or `i` not one of the folds; or elements are shuffled or repeated, see `split`.
          TypeError: an argument is not an integer.

        >>> import distinput as di
        >>> for i in range(3):
        ...     train, test = di.data.Dataset.range(8).kfold(3, i, seed=1)
        ...     print(train.to_list(), test.to_list())
        [0, 1, 4, 5, 7] [2, 3, 6]
        [0, 2, 3, 4, 6] [1, 5, 7]
        [1, 2, 3, 5, 6, 7] [0, 4]

        Source: distinput's own; TensorFlow has no counterpart.
        """
        train, test = ops.split.folds(self.node, k, i, seed)
        return self._followed_by(train), self._followed_by(test)

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
        made = called_once(transformation_func, self)
        if not isinstance(made, Dataset):
            raise TypeError(f"apply: transformation_func must return a Dataset, got {type(made).__name__}")
        return made

    # ------------------------------------------------------------------------
    # What is known of the pipeline.
    # ------------------------------------------------------------------------

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
        advice = loader.advice() if "torch.utils.data" in sys.modules else ""  # `list` asks for the length too
        if n == INFINITE:
            raise TypeError(f"The dataset is infinite.{advice}")
        step = next((each for each in walk(self._node) if each.skips_failures), None)
        why = "" if step is None else texts.leaving_out(step)  # loaded for this alone
        raise TypeError(f"The dataset length is unknown{why}.{advice}")

    def __bool__(self) -> bool:
        return True

    def options(self) -> "Options":
        """The options of this pipeline: those of its inputs, overridden by later ones.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).options()
        Options()

        Source: `tf.data.Dataset.options`.
        """
        return plan_options.options_of(self._node)

    def fingerprint(self) -> np.uint64:
        """A number that identifies this pipeline, computed from its steps and their arguments, functions, arrays and files.

        It is the same in every process that builds the same pipeline over the same files, and another one once a file changes.
        It is not TensorFlow's number.

        >>> import distinput as di
        >>> ds = di.data.Dataset.range(4)
        >>> [int(each.fingerprint()) == int(ds.batch(2).fingerprint()) for each in (ds.batch(2), ds.batch(3))]
        [True, False]

        Source: `tf.data.Dataset.fingerprint`.
        """
        return np.uint64(fingerprints.fingerprint_number(self._node))

    def explain(
        self,
        num_workers: int | None = None,
        replicas_per_worker: int = 1,
        policy: "AutoShardPolicy | Policy | None" = None,
    ) -> str:
        """Explain the pipeline: as described, the rules that changed it, as it runs, and notes on how its functions are called.

        If the latest pass waited a second or more for functions of Python, a note says so, and what would help.

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
        told, runs = self.stats(), self._runs().node
        return str(explanation.explanation_of(self._node, runs, num_workers, replicas_per_worker, policy, told))

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
        return statistics.stats_of(*self._counted)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {texts.summary(self._node)}>"

    def _repr_html_(self) -> str:
        """What notebooks show: the graph of the pipeline."""
        return words.html("dataset", self)

    # ------------------------------------------------------------------------
    # Passes, and iterators over their elements.
    # ------------------------------------------------------------------------

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

    def as_numpy_iterator(self) -> Iterator[T_co]:
        """An iterator over the elements, which are NumPy values already.

        >>> import distinput as di
        >>> list(di.data.Dataset.range(2).as_numpy_iterator())
        [np.int64(0), np.int64(1)]

        Source: `tf.data.Dataset.as_numpy_iterator`.
        """
        return iter(self)

    def iter_blocks(self) -> BlockIterator:
        """The blocks of the pipeline, one column per leaf, without conversion to elements.

        >>> import distinput as di
        >>> with di.data.Dataset.range(5).iter_blocks() as blocks:
        ...     [block.columns[0].array for block in blocks]
        [array([0, 1, 2, 3, 4])]
        """
        running = self._runs().node
        return BlockIterator(running, running.start(self._passes.begin(self._node)))

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

    # ------------------------------------------------------------------------
    # Elements by their positions.
    # ------------------------------------------------------------------------

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
            self._positions = by_position.positions_of(self._node)
        return self._positions

    # ------------------------------------------------------------------------
    # A whole pass in another form: lists, a number, tables, files, a report.
    # ------------------------------------------------------------------------

    def to_list(self) -> list[Any]:
        """All elements, with arrays as lists and NumPy scalars as Python numbers, to inspect small data.

        Times become those of `datetime`; those that it does not have, such as times in nanoseconds, stay as NumPy has them.

        >>> import distinput as di
        >>> di.data.Dataset.range(4).batch(2).to_list()
        [[0, 1], [2, 3]]

        Raises:
          InvalidArgumentError: there is no end.
        """
        elements: list[Any] = []
        for element in self:
            # Only now: what counts as infinite may end, such as repetitions of nothing, and counting may read many files.
            if len(elements) == _FEW and self.cardinality() == INFINITE:
                raise InvalidArgumentError("to_list: the dataset is infinite; take(n) elements of it")
            elements.append(map_leaves(_plain, element, lists=False))
        return elements

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
                try:
                    value = carry.checked(called_once(reduce_func, value, element))
                except Exception as error:
                    elements.annotate(error, element, f"reduce(reduce_func={describe(reduce_func)})")
                    raise
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

    def to_arrow(self, text: bool | Collection[str] = False) -> Any:
        """All elements as a pyarrow Table, a row each; not copied where Arrow holds them the same way.

        A dict, namedtuple or dataclass becomes columns with the names of its items, a tuple columns "0", "1", ..., a bare
        array or scalar the column "value", and what is nested below a struct; rows of `as_rows` are lists of structs.
        Dimensions of known size become fixed-size lists, others lists. Byte strings are binary. `from_arrow` is the way back.

        Args:
          text: columns whose byte strings are UTF-8 and become strings: True for all of them, or a list of names. Those of
            `as_text` become strings in any case, and those of `as_decimal` decimals of the least precision that holds them.

        Raises:
          InvalidArgumentError: a component has no Arrow type, such as a dataset, a complex number, or an array of unknown rank;
            byte strings of a column in `text` are not UTF-8; a decimal is NaN or infinite; the dataset is infinite.

        >>> import distinput as di
        >>> ds = di.data.Dataset.from_tensor_slices({"x": [1, 2], "name": ["Ada", "Alan"]})
        >>> ds.to_arrow(text=["name"]).to_pylist()
        [{'x': 1, 'name': 'Ada'}, {'x': 2, 'name': 'Alan'}]
        """
        return export.arrow_table(self, text, "to_arrow")

    def to_pandas(self, text: bool | Collection[str] = False) -> Any:
        """All elements as a pandas DataFrame, a row each; columns as for `to_arrow`.

        A `Nullable` of whole numbers or truth values is of pandas' `Int64`, `boolean` and so on, where a null is `<NA>`.

        Args:
          text: columns whose byte strings are UTF-8 and become `str`, as those of `as_text` do; others are bytes. Those of
            `as_decimal` become `decimal.Decimal`.

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
          text: columns whose byte strings are UTF-8 and become `String`, as those of `as_text` do; others are `Binary`.
            Those of `as_decimal` become `Decimal`.

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

        Batches are made when they are asked for; columns are as for `to_arrow`. Those of `as_decimal` are text, as types are
        told before the first batch, and nobody knows how many digits will come.

        Source: the Arrow PyCapsule interface.
        """
        return export.arrow_reader(self).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        """The schema of the stream, without a pass.

        Source: the Arrow PyCapsule interface.
        """
        return record_batches.arrow_schema(self._node.spec, as_made=True).__arrow_c_schema__()

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
        before, or the whole dataset. Calling it again with the same pipeline continues after the last complete file.

        Args:
          directory: the folder, local or a URL; it may hold other files.
          format: "arrow", "csv", "jsonl", "megatron", "npy", "parquet", "tar", "text", "tfrecord", or "elements", which holds
            every structure and dtype.
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
          OSError: the files could not be written. What is complete stays in the hidden stage, to continue from.

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
        Calling it again with the same pipeline then continues after the last complete file.

        Args:
          path: a folder, local or a URL.
          compression: None, "LZ4" or "ZSTD"; "SNAPPY" and "GZIP" stand for these two, and "AUTO" for None. Only what is not
            compressed is mapped into memory.
          shard_func: element -> the number of its file, an integer from 0 on. The order of the files is that of their numbers.
            Large ones are several files, which `load(reader_func=)` takes as one.
          checkpoint_args: accepted as TensorFlow's; every save can continue after an interruption.

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
        return writing.save(self, path, compression, shard_func, checkpoint_args)

    def report(
        self,
        path: "str | PathLike[str]",
        *,
        seconds: float | None = 10.0,
        elements: int | None = None,
        num_workers: int = 4,
    ) -> "Recording":
        """Make a pass and write an HTML page about it: one file, which loads nothing from elsewhere.

        It shows the graph with the time, elements and bytes of each step, the step that the others wait for, and a cure.
        Below are a timeline of threads, buffers and waits, memory, how far rows travel in shuffles beside a perfect
        shuffle, and how the data would be divided among workers. Only this pass is measured so closely; others cost nothing
        more. To record a loop of your own, such as one that trains a model, iterate a `distinput.reports.Recording` of the
        dataset.

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

    # ------------------------------------------------------------------------
    # What the library itself needs of a dataset.
    # ------------------------------------------------------------------------

    def _followed_by(self, node: Node, reshuffles: bool = False) -> "Dataset[Any]":
        """The dataset of a tree that has this one's as an input; both count passes together unless `reshuffles`."""
        return Dataset(node, None if reshuffles else self._passes)

    def _pass(self, epoch: int) -> DatasetIterator[T_co]:
        running = self._runs()
        place = {"at": running.node.start(epoch), "epoch": epoch, "skip": 0}
        made: DatasetIterator[T_co] = DatasetIterator(self._node, running, place, self._passes, self._make_run)
        self._counted = made.counted
        return made

    def _goes_on(self, place: State, running: Running) -> DatasetIterator[T_co]:
        """An iterator that begins at a position in this tree."""
        running = self._take_over(place, running)
        self._passes.goes_on(place["epoch"])
        made: DatasetIterator[T_co] = DatasetIterator(self._node, running, place, self._passes, self._make_run)
        self._counted = made.counted
        return made

    def _take_over(self, place: State, running: Running | None = None) -> Running:
        """Have later passes go on with the seeds of a place, and with the passes kept there; the tree that runs.

        Raises:
          StateError: there were other seeds.
        """
        plan, running = resumed(self._node, running or self._runs(), place)
        if plan is not self._node:
            self._node, self._running, self._positions = plan, running, None
        return running

    def _runs(self) -> Running:
        taken = self._passes.taken_over
        if taken is not None and taken[0] is self._node:  # later passes go on with the seeds of the state
            _, self._node, self._running = taken
            self._passes.taken_over = self._positions = None
        self._node.check_captured()
        if self._running is None:
            self._running = Running.of(self._node)
        return self._running

    def _again(self) -> "Dataset[T_co]":
        """Another handle of the same tree, which is not rewritten again; passes are counted together."""
        made: Dataset[T_co] = Dataset(self._node, self._passes)
        made._running = self._running
        return made

    def _run_by(self, make_run: Callable[..., Run]) -> Self:
        """The same dataset, whose passes are counted with this one's, and run by what `make_run` makes.

        Args:
          make_run: of the steps, and `run_ahead`; see `DatasetIterator`.
        """
        made = copy.copy(self)
        made._make_run = make_run
        return made

    def _watched(self, make_run: Callable[..., Run]) -> "tuple[Dataset[Any], Self, int]":
        """What of it is recorded: the dataset whose steps are, what is iterated, and how many replicas get rows (none)."""
        made = self._run_by(make_run)
        return made, made, 0

    def to_user(self) -> Self:
        """This dataset: a dataset inside an element is shown as it is."""
        return self

    @property
    def leaf_spec(self) -> Any:
        """The spec of this dataset as a leaf of an element."""
        return self._node.leaf_spec

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_make_run"}
        return {**kept, "_running": None, "_positions": None, "_planned": None, "_counted": (self._node, {})}

    if not TYPE_CHECKING:  # a type checker that saw this would accept every name

        def __getattr__(self, name: str) -> Any:
            """The method of an op that the extension of an installed package adds; see `distinput.extend`."""
            return _method_of_an_extension(self, name)


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
    """A node with a label.

    Raises:
      TypeError: the label is no text, but probably what belongs to the elements.
    """
    if name is None:
        return node
    if not isinstance(name, str):
        raise TypeError(
            f"{node.op}: name must be the text of a label, got {words.shown(name)}; several components are one argument, a "
            "tuple: from_tensor_slices((x, y))"
        )
    return dataclasses.replace(node, name=name)


def _node(op: str, value: Any) -> Node:
    if not isinstance(value, Dataset):
        raise TypeError(f"{op}: expected a dataset, got {value!r}")
    return value.node


def _each_node(op: str, datasets: Any) -> list[Node]:
    """The nodes of several datasets.

    Raises:
      TypeError: they are no list of datasets.
    """
    if isinstance(datasets, Dataset | Mapping):
        raise TypeError(f"{op}: datasets must be a list of datasets, [one, other], got {words.shown(datasets)}")
    return [_node(op, each) for each in datasets]


def _plain(leaf: Any) -> Any:
    if isinstance(leaf, Dataset):
        return leaf.to_list()
    if isinstance(leaf, np.ndarray | np.generic):
        return as_python(leaf)
    return leaf.tolist() if hasattr(leaf, "tolist") else leaf


_FEW = 10_000
"""So many elements of an infinite dataset are made before `to_list` says that it is infinite."""

_INSIDE = ("leaf_spec", "nest_leaf", "node", "to_user")
"""Members that are there for the library itself."""


def _method_of_an_extension(dataset: Any, name: str) -> Any:
    """Load the extensions and look up an attribute that a dataset lacks.

    Raises:
      AttributeError: it still lacks it.
    """
    kind = type(dataset)
    if name in ("_node", "_passes"):  # a class of a user, with another `__init__`
        Dataset.__init__(dataset)
    if not name.startswith("_"):
        if load_extensions() and hasattr(kind, name):
            return getattr(dataset, name)
        known = sorted(known for known in dir(kind) if not known.startswith("_") and known not in _INSIDE)
        said = absent.elsewhere(name) or words.meant(name, known, "it has")
        raise AttributeError(f"{kind.__name__} has no method {name!r}; {said}{failures()}", name=name)
    raise AttributeError(f"{kind.__name__} has no attribute {name!r}", name=name, obj=dataset)
