# SPDX-License-Identifier: Apache-2.0
"""What a leaf looks like that is an array, a ragged or a sparse tensor: its dtype and its shape."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from distinput.core.leaves import STRING, as_dtype, as_leaf, dtype_of, is_ragged, shape_of, zero
from distinput.core.ragged_tensor import RaggedTensor, without_rows
from distinput.core.shape import TensorShape
from distinput.core.type_spec import TypeSpec

__all__ = [
    "DenseShapeSpec",
    "RaggedTensorSpec",
    "Shape",
    "SparseTensorSpec",
    "TensorSpec",
    "array_spec",
    "dense_shape_spec",
    "merge_shapes",
    "no_rows",
    "shape_fits",
]

Shape = tuple[int | None, ...] | None


class TensorSpec(TypeSpec):
    """The dtype and shape of one leaf; the counterpart of `tf.TensorSpec`.

    Args:
      shape: dimensions, None for an unknown one; None or `TensorShape(None)` for an unknown rank. Kept as a `TensorShape`, and
        as None for an unknown rank.
      dtype: a NumPy dtype or its name; `object`, `bytes`, `str` or "string" mean byte strings.
      name: a label, no part of equality.

    >>> import distinput as di
    >>> di.TensorSpec([None, 3], "int64")
    TensorSpec(shape=(None, 3), dtype=int64)
    """

    __slots__ = ("dtype", "name", "shape")
    shape: TensorShape | None
    dtype: np.dtype[Any]
    name: str | None

    def __init__(
        self, shape: Iterable[int | None] | int | None, dtype: Any = np.float32, name: str | None = None
    ) -> None:
        known = TensorShape(shape)
        self.shape = None if known.rank is None else known
        self.dtype = as_dtype(dtype)
        self.name = name

    ragged_rank: ClassVar[int | None] = None
    """How many dimensions differ from row to row; None for arrays."""
    sizes: ClassVar[Shape] = None
    """What the values must be, None for one that may be any; of the shapes of sparse tensors alone."""
    is_sparse: ClassVar[bool] = False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TensorSpec)
            and self.shape == other.shape
            and self.dtype == other.dtype
            and self.ragged_rank == other.ragged_rank
            and self.sizes == other.sizes
            and self.is_sparse == other.is_sparse
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        dtype = "string" if self.dtype == STRING else str(self.dtype)
        return f"TensorSpec(shape={self.shape}, dtype={dtype})"

    def with_shape(self, shape: Shape) -> "TensorSpec":
        """The same dtype with another shape."""
        return TensorSpec(shape, self.dtype, self.name)

    @property
    def size(self) -> int | None:
        """How many numbers or strings the leaf has; None where its shape is not known."""
        return None if self.shape is None else self.shape.num_elements()

    def fits(self, shape: Sequence[int], dtype: np.dtype[Any]) -> bool:
        """True when an array of this shape and dtype is allowed by the spec."""
        return dtype == self.dtype and shape_fits(tuple(shape), self.shape)

    def fits_value(self, value: Any) -> bool:
        """True when an array, a scalar or bytes is allowed by the spec."""
        return not is_ragged(value) and self.fits(shape_of(value), dtype_of(value))

    @property
    def value_type(self) -> type:
        """The class of values: NumPy's arrays; a scalar and bytes are no arrays, and fit all the same."""
        return np.ndarray

    @classmethod
    def from_spec(cls, spec: "TensorSpec", name: str | None = None) -> "TensorSpec":
        """The same shape and dtype under another name.

        Source: `tf.TensorSpec.from_spec`.
        """
        return TensorSpec(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> "TensorSpec":
        """The exact spec of an array, a scalar, a text or a list.

        >>> import distinput as di
        >>> di.TensorSpec.from_tensor([1, 2])
        TensorSpec(shape=(2,), dtype=int32)

        Source: `tf.TensorSpec.from_tensor`.
        """
        leaf = as_leaf(tensor)
        return TensorSpec(shape_of(leaf), dtype_of(leaf), name)

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a value fits, or some value may fit both this spec and another one.

        Source: `tf.TensorSpec.is_compatible_with`.
        """
        return super().is_compatible_with(spec_or_tensor)

    def holds(self, value: Any) -> bool:
        try:
            return self.fits_value(as_leaf(value))
        except TypeError:  # nothing that an array can hold
            return False

    def accepts(self, other: Any) -> bool:
        return isinstance(other, TensorSpec) and self.alike(other) and self._shape.is_compatible_with(other._shape)

    def merged_with(self, other: Any) -> Any:
        if not isinstance(other, TensorSpec) or not self.alike(other):
            return None
        return self.with_shape(merge_shapes(self.shape, other.shape))

    @property
    def _shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def alike(self, other: "TensorSpec") -> bool:
        """Whether values of both are of one kind: of one dtype, and both arrays or ragged in as many dimensions."""
        return self.dtype == other.dtype and self.ragged_rank == other.ragged_rank and self.is_sparse == other.is_sparse


class RaggedTensorSpec(TensorSpec):
    """The spec of a leaf that is a `RaggedTensor`; the counterpart of `tf.RaggedTensorSpec`.

    Args:
      shape: the number of rows, the ragged dimensions (None, or a number if all rows have that length), then the dimensions of
        a value. The rank must be known.
      dtype: a NumPy dtype or its name.
      ragged_rank: how many dimensions after the first are ragged; None: all. 0: elements are arrays, the rows of ragged tensors
        that were taken apart, which `batch` makes ragged again.
      row_splits_dtype: accepted as TensorFlow's; row splits are int64.
      flat_values_spec: must be None: the flat values are arrays.

    Raises:
      ValueError: the rank is unknown, `ragged_rank` is not from 0 to below it, or there is a `flat_values_spec`.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(3).map(lambda n: [n] * n, output_signature=di.TensorSpec([None], "int64"))
    >>> ds.ragged_batch(2).element_spec
    RaggedTensorSpec(shape=(None, None), dtype=int64, ragged_rank=1)

    Source: `tf.RaggedTensorSpec`.
    """

    __slots__ = ("ragged_rank",)
    shape: TensorShape
    ragged_rank: int  # type: ignore[misc]  # of each spec, where that of arrays has none
    row_splits_dtype: ClassVar[np.dtype[Any]] = np.dtype(np.int64)
    flat_values_spec: ClassVar[None] = None

    def __init__(
        self,
        shape: Iterable[int | None] | int | None = None,
        dtype: Any = np.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = np.int64,
        flat_values_spec: None = None,
    ) -> None:
        del row_splits_dtype
        if flat_values_spec is not None:
            raise ValueError(
                f"RaggedTensorSpec: flat_values_spec must be None, got {flat_values_spec!r}; give shape and dtype"
            )
        super().__init__(shape, dtype)
        if self.shape is None:
            raise ValueError("RaggedTensorSpec: the rank must be known, got shape None")
        rank = len(self.shape)
        made = rank - 1 if ragged_rank is None else int(ragged_rank)
        if not 0 <= made < max(rank, 1):
            raise ValueError(
                f"RaggedTensorSpec: ragged_rank must be from 0 to {rank - 1} for the shape {self.shape}, got {ragged_rank}"
            )
        self.ragged_rank = made

    __hash__ = TensorSpec.__hash__

    @property
    def value_type(self) -> type:
        """`RaggedTensor`."""
        return RaggedTensor

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value fits, or some value may fit both this spec and another one.

        Source: `tf.RaggedTensorSpec.is_compatible_with`.
        """
        return super().is_compatible_with(spec_or_value)

    @classmethod
    def from_value(cls, value: Any) -> "RaggedTensorSpec":
        """The exact spec of a ragged tensor.

        Source: `tf.RaggedTensorSpec.from_value`.
        """
        return RaggedTensorSpec(value.shape, value.dtype, value.ragged_rank)

    def __repr__(self) -> str:
        dtype = "string" if self.dtype == STRING else str(self.dtype)
        return f"RaggedTensorSpec(shape={self.shape}, dtype={dtype}, ragged_rank={self.ragged_rank})"

    def with_shape(self, shape: Shape) -> TensorSpec:
        """The spec of the same rows in another shape: batched with one more dimension in front, unbatched with one less.

        Rows of rows that have been taken apart to scalars, and those of unknown rank, are arrays like any other.
        """
        if shape is None:
            return TensorSpec(None, self.dtype, self.name)
        ragged_rank = self.ragged_rank + len(shape) - len(self.shape)
        if ragged_rank < 0:
            return TensorSpec(shape, self.dtype, self.name)
        return RaggedTensorSpec(shape, self.dtype, ragged_rank)

    @property
    def size(self) -> None:
        """None: how many values there are differs."""
        return

    @property
    def is_array(self) -> bool:
        """Whether values are arrays: the rows of ragged tensors."""
        return self.ragged_rank == 0

    def fits(self, shape: Sequence[int], dtype: np.dtype[Any]) -> bool:
        """True when an array of this shape and dtype, a row of ragged tensors, is allowed by the spec."""
        return self.is_array and super().fits(shape, dtype)

    def fits_value(self, value: Any) -> bool:
        """True when a ragged tensor, or an array where `ragged_rank` is 0, is allowed by the spec."""
        if not is_ragged(value):
            return self.is_array and super().fits_value(value)
        wanted = self.shape
        if value.ragged_rank != self.ragged_rank or value.dtype != self.dtype or len(value.shape) != len(wanted):
            return False
        if wanted[0] not in (None, len(value)) or not shape_fits(
            value.shape[self.ragged_rank + 1 :], wanted[self.ragged_rank + 1 :]
        ):
            return False
        level: Any = value
        for size in wanted[1 : self.ragged_rank + 1]:
            if size is not None and (level.row_lengths() != size).any():
                return False
            level = level.values
        return True


class DenseShapeSpec(TensorSpec):
    """The spec of the `dense_shape` of a sparse tensor of which some dimensions are known.

    Args:
      sizes: the dimensions, None for an unknown one.
    """

    __slots__ = ("sizes",)
    sizes: tuple[int | None, ...]  # type: ignore[misc]  # of each spec, where those of other arrays have none

    def __init__(self, sizes: Iterable[int | None]) -> None:
        self.sizes = tuple(sizes)
        super().__init__([len(self.sizes)], np.int64)

    __hash__ = TensorSpec.__hash__

    def fits_value(self, value: Any) -> bool:
        """True when an array has these dimensions as its values."""
        return super().fits_value(value) and shape_fits(tuple(value.tolist()), self.sizes)

    def merged_with(self, other: Any) -> Any:
        if not isinstance(other, DenseShapeSpec) or len(self.sizes) != len(other.sizes):
            return super().merged_with(other)
        sizes = merge_shapes(self.sizes, other.sizes)
        return dense_shape_spec(sizes)


def dense_shape_spec(sizes: Shape) -> TensorSpec:
    """The spec of the `dense_shape` of sparse tensors of a shape."""
    if sizes is None:
        return TensorSpec([None], np.int64)
    return TensorSpec([len(sizes)], np.int64) if all(d is None for d in sizes) else DenseShapeSpec(sizes)


class SparseTensorSpec(TensorSpec):
    """The spec of a `SparseTensor`; the counterpart of `tf.SparseTensorSpec`.

    Args:
      shape: of the whole array, None for an unknown dimension; None for an unknown rank.
      dtype: of the values; a NumPy dtype or its name.

    >>> import distinput as di
    >>> di.data.Dataset.from_tensors(di.SparseTensor([[0, 1]], [7], [3, 2])).batch(5).element_spec
    SparseTensorSpec(shape=(None, 3, 2), dtype=int32)

    Source: `tf.SparseTensorSpec`.
    """

    __slots__ = ()
    is_sparse: ClassVar[bool] = True
    __hash__ = TensorSpec.__hash__

    def __init__(self, shape: Iterable[int | None] | int | None = None, dtype: Any = np.float32) -> None:
        super().__init__(shape, dtype)

    @property
    def value_type(self) -> type:
        """`SparseTensor`."""
        from distinput.core.sparse_tensor import SparseTensor

        return SparseTensor

    @classmethod
    def from_value(cls, value: Any) -> "SparseTensorSpec":
        """The exact spec of a sparse tensor.

        Source: `tf.SparseTensorSpec.from_value`.
        """
        return SparseTensorSpec(value.shape, value.dtype)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value fits, or some value may fit both this spec and another one.

        Source: `tf.SparseTensorSpec.is_compatible_with`.
        """
        return super().is_compatible_with(spec_or_value)

    def holds(self, value: Any) -> bool:
        return self.fits_value(value)

    def fits_value(self, value: Any) -> bool:
        """True when a sparse tensor is allowed by the spec."""
        return getattr(value, "is_sparse", False) and self.accepts(self.from_value(value))

    def __repr__(self) -> str:
        dtype = "string" if self.dtype == STRING else str(self.dtype)
        return f"SparseTensorSpec(shape={self.shape}, dtype={dtype})"

    def with_shape(self, shape: Shape) -> "SparseTensorSpec":
        """The spec of the same values in another shape."""
        return SparseTensorSpec(shape, self.dtype)

    @property
    def size(self) -> None:
        """None: how many values there are differs."""
        return

    @property
    def parts(self) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
        """Those of `indices`, `values` and `dense_shape`."""
        rank = None if self.shape is None else len(self.shape)
        return TensorSpec([None, rank], np.int64), TensorSpec([None], self.dtype), dense_shape_spec(self.shape)

    @staticmethod
    def of_parts(indices: TensorSpec, values: TensorSpec, dense_shape: TensorSpec) -> "SparseTensorSpec":
        """The spec of which these are the parts."""
        del indices
        rank = dense_shape.shape[0] if dense_shape.shape else None
        sizes = dense_shape.sizes
        return SparseTensorSpec(sizes if sizes is not None or rank is None else (None,) * rank, values.dtype)


def array_spec(leaf: Any) -> TensorSpec:
    """The exact spec of an array, a scalar, bytes or a ragged tensor."""
    if is_ragged(leaf):
        return RaggedTensorSpec(leaf.shape, leaf.dtype, leaf.ragged_rank)
    return TensorSpec(shape_of(leaf), dtype_of(leaf))


def no_rows(leaf: TensorSpec, inner: tuple[int, ...]) -> Any:
    """An array, ragged or sparse tensor of a spec without rows.

    Args:
      leaf: the spec.
      inner: the shape of a row; sizes of ragged dimensions do not matter.
    """
    if leaf.is_sparse:
        from distinput.core.sparse_tensor import SparseTensor

        shape = np.array([0, *inner], np.int64)
        return SparseTensor(np.empty((0, len(shape)), np.int64), zero(leaf.dtype, (0,)), shape)
    if not leaf.ragged_rank:
        return zero(leaf.dtype, (0, *inner))
    return without_rows(leaf.dtype, leaf.ragged_rank, inner[leaf.ragged_rank :])


def merge_shapes(a: Shape, b: Shape) -> Shape:
    """The most specific shape that both fit: unknown where they differ."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple([x if x == y else None for x, y in zip(a, b, strict=True)])


def shape_fits(shape: Sequence[int | None], wanted: Shape) -> bool:
    """True when every dimension of `shape` is as `wanted` says, unknown dimensions allowing any."""
    if wanted is None or shape == wanted:
        return True
    if len(shape) != len(wanted):
        return False
    for d, w in zip(shape, wanted, strict=True):  # noqa: SIM110 - asked of each element: `all` takes three times as long
        if w is not None and w != d:
            return False
    return True
