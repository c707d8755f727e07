# SPDX-License-Identifier: Apache-2.0
"""`Dataset`: the handle by which users build and iterate a pipeline, with the names of `tf.data.Dataset`."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never, TypeAlias, TypeVar, overload

import numpy as np

from distinput import ops
from distinput.core.nest import structure_of
from distinput.data.element import T_co
from distinput.data.extension import method_of_an_extension
from distinput.data.transformations import Transformations
from distinput.ops.slices import from_tensor_slices, from_tensors
from distinput.plan.check import callable_argument, integer
from distinput.plan.node import Node

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[Any] | Sequence[float | str | bytes] | Sequence[Sequence[float | str | bytes]]

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
          InvalidArgumentError: `step` is 0.
          TypeError: the arguments are not one to three integers.

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
    def from_tensor_slices(tensors: "tuple[Rows, Rows]", name: str | None = None) -> "Dataset[tuple[Any, Any]]": ...

    @overload
    @staticmethod
    def from_tensor_slices(
        tensors: "tuple[Rows, Rows, Rows]", name: str | None = None
    ) -> "Dataset[tuple[Any, Any, Any]]": ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: "Mapping[str, Rows]", name: str | None = None) -> "Dataset[dict[str, Any]]": ...

    @overload
    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> "Dataset[Any]": ...

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> "Dataset[Any]":
        """One element for each index of the first axis that all arrays share.

        Args:
          tensors: a nest of arrays of equal first dimension; [n, ...] gives n elements [...]. An array of pyarrow may hold
            lists of several lengths; its values are not copied. A list of n datasets gives each of them as an element.
          name: a label.

        Raises:
          InvalidArgumentError: an array is a scalar, or the first dimensions differ; an array of pyarrow holds nulls; the
            elements of datasets in a list differ in structure or dtype.

        >>> import distinput as di
        >>> list(di.data.Dataset.from_tensor_slices((np.array([1, 2]), ["a", "b"])))
        [(np.int64(1), b'a'), (np.int64(2), b'b')]
        >>> import pyarrow as pa
        >>> di.data.Dataset.from_tensor_slices(pa.array([[1, 2], [], [3]])).padded_batch(3).to_list()
        [[[1, 2], [0, 0], [3, 0]]]

        Source: `tf.data.Dataset.from_tensor_slices`; TensorFlow's takes a `tf.RaggedTensor` for lists of several lengths.
        """
        return Dataset(_named(from_tensor_slices(tensors), name))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] | None = None,
        output_signature: Any = None,
        name: str | None = None,
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

        Raises:
          TypeError: `generator` is not callable, or there is no signature; at iteration, an element does not fit it.

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
    ) -> "Dataset[bytes]":
        """The names of all files that match, sorted, then shuffled unless `shuffle=False`.

        Args:
          file_pattern: a glob pattern or a list of them; any fsspec URL.
          shuffle: True when None.
          seed: the seed of the shuffle.
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
    ) -> "Dataset[A]":
        """Elements of datasets drawn at random by weight.

        Args:
          datasets: at least one; same structure and dtypes.
          weights: one for each dataset; equal if None; a dataset of weight 0 is left out. Or a dataset of vectors of weights,
            one for each draw.
          seed: any integer; None draws one, which a saved state remembers.
          stop_on_empty_dataset: True to end at the first exhausted dataset; False to skip it.
          rerandomize_each_iteration: True draws differently in each pass; otherwise all passes draw the same.

        Raises:
          InvalidArgumentError: there is no dataset, or the number of weights is wrong.
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
            return method_of_an_extension(self, name)


Node.handle = staticmethod(Dataset)  # users see a node inside an element as its dataset


def _whole(number: Any) -> int:
    """A number of `range`: an integer, or a float with an integral value.

    Raises:
      TypeError: it is not an integer.
    """
    value = number.item() if isinstance(number, np.generic | np.ndarray) and np.ndim(number) == 0 else number
    return integer("range", "each number", int(value) if isinstance(value, float) and value.is_integer() else value)


def _named(node: Node, name: str | None) -> Node:
    return node if name is None else dataclasses.replace(node, name=name)


def _node(op: str, value: Any) -> Node:
    if not isinstance(value, Dataset):
        raise TypeError(f"{op}: expected a dataset, got {value!r}")
    return value.node
