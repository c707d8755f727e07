# SPDX-License-Identifier: Apache-2.0
"""What an element looks like: a nest of specs, one for each leaf, and whether values and other specs fit them."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from distinput.names.lazy import dataclass, later
from distinput.values.leaves import (
    STRING,
    TensorShape,
    as_dtype,
    as_leaf,
    as_leaves,
    dtype_name,
    dtype_of,
    is_ragged,
    shape_of,
    zero,
)
from distinput.values.nest import LEAF, Structure, component, structure_of

if TYPE_CHECKING:
    from distinput.names import words
    from distinput.values import ragged_tensor, sparse_tensor
else:
    words = later("distinput.names.words")  # for messages alone
    ragged_tensor = later("distinput.values.ragged_tensor")  # few elements are ragged
    sparse_tensor = later("distinput.values.sparse_tensor")  # or sparse


# ----------------------------------------------------------------------------
# What all specs can do: say whether values and other specs fit them, and find the spec that fits several.
# ----------------------------------------------------------------------------


class TypeSpec:
    """A spec: of an array, a ragged tensor, a dataset, an iterator, an optional value.

    Source: `tf.TypeSpec`.
    """

    __slots__ = ()

    @abstractmethod
    def merged_with(self, other: Any) -> Self | None:
        """The most specific spec that fits everything that fits either; None: there is none."""

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Whether a value fits."""

    def accepts(self, other: Any) -> bool:
        """Whether some value may fit both."""
        return self.merged_with(other) is not None

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value fits, or some value may fit both this spec and another one.

        >>> import distinput as di
        >>> di.TensorSpec([None, 3]).is_compatible_with(di.TensorSpec([2, 3]))
        True

        Source: `tf.TypeSpec.is_compatible_with`.
        """
        if isinstance(spec_or_value, TypeSpec):
            return self.accepts(spec_or_value)
        return self.holds(spec_or_value)

    def is_subtype_of(self, other: Any) -> bool:
        """Whether everything that fits this spec also fits the other one.

        >>> import distinput as di
        >>> di.TensorSpec([2, 3]).is_subtype_of(di.TensorSpec([None, 3]))
        True

        Source: `tf.TypeSpec.is_subtype_of`.
        """
        return isinstance(other, TypeSpec) and other.merged_with(self) == other

    def most_specific_common_supertype(self, others: Sequence[Any]) -> Self | None:
        """The most specific spec that fits everything that fits one of them; None: there is none.

        >>> import distinput as di
        >>> di.TensorSpec([2, 3]).most_specific_common_supertype([di.TensorSpec([2, 4])])
        TensorSpec(shape=(2, None), dtype=float32)

        Source: `tf.TypeSpec.most_specific_common_supertype`.
        """
        found: Self | None = self
        for other in others:
            found = None if found is None else found.merged_with(other)
        return found

    def most_specific_compatible_type(self, other: Any) -> Self:
        """As `most_specific_common_supertype`, of two.

        Raises:
          ValueError: there is none.

        Source: `tf.TypeSpec.most_specific_compatible_type`.
        """
        found = self.merged_with(other)
        if found is None:
            raise ValueError(f"No TypeSpec is compatible with both {self} and {other}")
        return found

    if not TYPE_CHECKING:  # a type checker that saw this would accept every name

        def __getattr__(self, name: str) -> Any:
            raise words.declined(type(self), name)


# ----------------------------------------------------------------------------
# What a leaf looks like that is an array, a ragged or a sparse tensor: its dtype and its shape.
# ----------------------------------------------------------------------------


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
        return f"TensorSpec(shape={self.shape}, dtype={dtype_name(self.dtype)})"

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
        """The class of values: NumPy's arrays; a scalar and bytes are not arrays, and fit all the same."""
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

    @property
    def value_type(self) -> type:
        """`RaggedTensor`."""
        return ragged_tensor.RaggedTensor

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
        return f"RaggedTensorSpec(shape={self.shape}, dtype={dtype_name(self.dtype)}, ragged_rank={self.ragged_rank})"

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

    def __init__(self, shape: Iterable[int | None] | int | None = None, dtype: Any = np.float32) -> None:
        super().__init__(shape, dtype)

    @property
    def value_type(self) -> type:
        """`SparseTensor`."""
        return sparse_tensor.SparseTensor

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
        return f"SparseTensorSpec(shape={self.shape}, dtype={dtype_name(self.dtype)})"

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
        shape = np.array([0, *inner], np.int64)
        return sparse_tensor.SparseTensor(np.empty((0, len(shape)), np.int64), zero(leaf.dtype, (0,)), shape)
    if not leaf.ragged_rank:
        return zero(leaf.dtype, (0, *inner))
    return ragged_tensor.without_rows(leaf.dtype, leaf.ragged_rank, inner[leaf.ragged_rank :])


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


# ----------------------------------------------------------------------------
# What an element looks like: a nest of specs, one for each leaf; those of arrays are above.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ElementsSpec(TypeSpec):
    """The spec of what gives elements, or one: a dataset, an optional value, an iterator.

    Args:
      element_spec: the spec nest of its elements.
    """

    element_spec: Any
    value_type: ClassVar[Any] = object
    """The class of values, which the data floor sets."""
    called: ClassVar[str] = "a value"
    """What messages call such a component of an element, and the cure where only arrays will do."""
    cure: ClassVar[str] = ""

    @classmethod
    def from_value(cls, value: Any) -> Self:
        """The spec of an object that has an `element_spec`."""
        return cls(value.element_spec)

    @property
    def shape(self) -> TensorShape:
        """As a leaf that is an array calls it."""
        return TensorShape(())

    def holds(self, value: Any) -> bool:
        return isinstance(value, self.value_type) and self.accepts(type(self).from_value(value))

    def accepts(self, other: Any) -> bool:
        if type(other) is not type(self):
            return False
        ours, theirs = Spec.of(self.element_spec), Spec.of(other.element_spec)
        pairs = zip(ours.leaves, theirs.leaves, strict=False)
        return ours.structure == theirs.structure and all(a.accepts(b) for a, b in pairs)

    def merged_with(self, other: Any) -> Any:
        if type(other) is not type(self):
            return None
        both = merge_specs(Spec.of(self.element_spec), Spec.of(other.element_spec))
        return None if both is None else self.of_elements(both.nest, other)

    def of_elements(self, element_spec: Any, other: Any = None) -> "ElementsSpec":
        """The same of other elements.

        Args:
          element_spec: their spec nest.
          other: a spec that is merged with this one.
        """
        return type(self)(element_spec)

    def with_shape(self, shape: Shape) -> "ElementsSpec":
        """The spec itself: it has no other shape."""
        return self


@dataclass(frozen=True)
class DatasetSpec(ElementsSpec):
    """The spec of a leaf that is itself a dataset, as `window` gives them; `tf.data.DatasetSpec`.

    Args:
      element_spec: the spec nest of its elements.
      dataset_shape: `[]` for one dataset, `[n]` for a list of n.
    """

    dataset_shape: TensorShape = field(default=TensorShape(()))
    called: ClassVar[str] = "a dataset"
    cure: ClassVar[str] = "flat_map or zip it first"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dataset_shape", TensorShape(self.dataset_shape))

    @property
    def shape(self) -> TensorShape:
        """`dataset_shape`, as a leaf that is an array calls it."""
        return self.dataset_shape

    @staticmethod
    def from_value(value: Any) -> "DatasetSpec":
        """The spec of a dataset.

        Source: `tf.data.DatasetSpec.from_value`.
        """
        return DatasetSpec(value.element_spec)

    def holds(self, value: Any) -> bool:
        return hasattr(value, "element_spec") and self.accepts(DatasetSpec(value.element_spec))

    def accepts(self, other: Any) -> bool:
        return super().accepts(other) and self.dataset_shape.is_compatible_with(other.dataset_shape)

    def of_elements(self, element_spec: Any, other: Any = None) -> "DatasetSpec":
        shape = self.dataset_shape if other is None else TensorShape(merge_shapes(self.shape, other.shape))
        return DatasetSpec(element_spec, shape)

    def with_shape(self, shape: Shape) -> "DatasetSpec":
        """The same datasets in a list of another length."""
        return DatasetSpec(self.element_spec, TensorShape(shape))

    def __repr__(self) -> str:
        shape = f", {self.dataset_shape!r}" if self.dataset_shape else ""
        return f"DatasetSpec(element_spec={self.element_spec!r}{shape})"


class OptionalSpec(ElementsSpec):
    """The spec of an optional value; the counterpart of `tf.OptionalSpec`.

    Args:
      element_spec: the spec nest of the value.

    >>> import distinput as di
    >>> di.OptionalSpec.from_value(iter(di.data.Dataset.range(3)).get_next_as_optional())
    OptionalSpec(element_spec=TensorSpec(shape=(), dtype=int64))

    Source: `tf.OptionalSpec`.
    """

    called: ClassVar[str] = "an Optional"
    cure: ClassVar[str] = "map it to its value, get_value(), first"


LeafSpec = TensorSpec | ElementsSpec


@dataclass(frozen=True)
class Spec:
    """The spec of an element: its structure, and one leaf spec for each leaf.

    Args:
      structure: the nest.
      leaves: specs in flattening order.
    """

    structure: Structure
    leaves: tuple[LeafSpec, ...]

    @staticmethod
    def of(nest: Any) -> "Spec":
        """From a nest whose leaves are `TensorSpec`, `DatasetSpec` or `OptionalSpec` objects.

        Raises:
          TypeError: a leaf is none of these.
        """
        structure = structure_of(nest, lists=True, is_leaf=lambda x: isinstance(x, TensorSpec | ElementsSpec))
        leaves = structure.flatten(nest)
        for leaf in leaves:
            if not isinstance(leaf, TensorSpec | ElementsSpec):
                raise TypeError(f"a spec must be a nest of TensorSpec, got {leaf!r}")
        if not any(leaf.is_sparse for leaf in leaves if isinstance(leaf, TensorSpec)):
            return Spec(structure, tuple(leaves))
        return Spec(structure, tuple(leaves)).unfolded

    @staticmethod
    def of_value(value: Any) -> "Spec":
        """The exact spec of a value as users write it.

        Raises:
          TypeError: it is not an element.
        """
        structure = structure_of(value)
        leaves = as_leaves(structure.flatten(value), structure.paths)
        specs = [getattr(leaf, "leaf_spec", None) or array_spec(leaf) for leaf in leaves]
        for first in structure.sparse:
            specs[first + 2] = dense_shape_spec(tuple(leaves[first + 2].tolist()))
        return Spec(structure, tuple(specs))

    @staticmethod
    def leaf(shape: Shape, dtype: Any) -> "Spec":
        """The spec of a bare leaf."""
        return Spec(LEAF, (TensorSpec(shape, dtype),))

    @cached_property
    def nest(self) -> Any:
        """The spec as users see it: the structure with leaf specs in it."""
        return self.folded.structure.build(self.folded.leaves)

    @cached_property
    def folded(self) -> "Spec":
        """The same elements with one spec for each sparse tensor, instead of one for each of its three arrays."""
        if not self.structure.sparse:
            return self
        leaves: list[Any] = []
        at = 0
        for first in self.structure.sparse:
            leaves += [*self.leaves[at:first], SparseTensorSpec.of_parts(*self.leaves[first : first + 3])]  # type: ignore[arg-type]  # of arrays
            at = first + 3
        return Spec(self.structure.folded, (*leaves, *self.leaves[at:]))

    @property
    def unfolded(self) -> "Spec":
        """The spec that was folded, as blocks have its columns."""
        sparse = [isinstance(leaf, SparseTensorSpec) for leaf in self.leaves]
        if not any(sparse):
            return self
        three = structure_of(sparse_tensor.SparseTensor(0, 0, 0))
        structure = self.structure.graft([three if each else LEAF for each in sparse])
        leaves = [leaf.parts if isinstance(leaf, SparseTensorSpec) else (leaf,) for leaf in self.leaves]
        return Spec(structure, tuple([part for parts in leaves for part in parts]))

    def map(self, change: Callable[[LeafSpec], LeafSpec]) -> "Spec":
        """The same structure with changed leaves; a sparse tensor is one of them, in any shape."""
        spec = self.folded
        made = Spec(spec.structure, tuple([change(leaf) for leaf in spec.leaves]))
        return made if spec is self else made.unfolded

    @property
    def is_static(self) -> bool:
        """Whether all leaves are arrays of known shapes."""
        return all(isinstance(leaf, TensorSpec) and leaf.size is not None for leaf in self.folded.leaves)

    @property
    def is_sized(self) -> bool:
        """Whether all elements take `row_bytes`."""
        return all(
            isinstance(leaf, TensorSpec) and leaf.size is not None and leaf.dtype != STRING for leaf in self.leaves
        )

    @cached_property
    def row_bytes(self) -> int:
        """Memory that an element needs, as far as the spec tells: 16 bytes for a leaf of unknown size."""
        known = [leaf for leaf in self.leaves if isinstance(leaf, TensorSpec)]
        return sum([16 if leaf.size is None else leaf.size * leaf.dtype.itemsize for leaf in known])

    def tensors(self, op: str) -> tuple[TensorSpec, ...]:
        """The leaves, all of which must be arrays.

        Raises:
          TypeError: a leaf is a dataset or an Optional.
        """
        for leaf, path in zip(self.leaves, self.structure.paths, strict=True):
            if not isinstance(leaf, TensorSpec):
                raise TypeError(f"{op}: {component(path)} is {leaf.called}; {leaf.cure}")
        return self.leaves  # type: ignore[return-value]


def merge_specs(a: Spec, b: Spec) -> Spec | None:
    """The most specific spec that elements of both fit; None where they differ in structure or dtype."""
    if a.structure != b.structure:
        return None
    leaves = [x.merged_with(y) for x, y in zip(a.leaves, b.leaves, strict=True)]
    return None if None in leaves else Spec(a.structure, tuple(leaves))


def opened(spec: Spec) -> Spec:
    """The same structure, dtypes and ranks, with every dimension unknown."""
    return spec.map(_opened_leaf)


def _opened_leaf(leaf: LeafSpec) -> LeafSpec:
    if isinstance(leaf, ElementsSpec):
        return leaf.of_elements(opened(Spec.of(leaf.element_spec)).nest).with_shape((None,) * len(leaf.shape))
    return leaf if leaf.shape is None else leaf.with_shape((None,) * len(leaf.shape))
