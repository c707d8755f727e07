# SPDX-License-Identifier: Apache-2.0
"""What an element looks like: a nest of specs, one for each leaf; those of arrays are in `core.tensor_spec`, named here too."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

from distinput.core.leaves import as_leaves
from distinput.core.nest import LEAF, Structure, component, structure_of
from distinput.core.shape import TensorShape
from distinput.core.tensor_spec import (
    RaggedTensorSpec,
    Shape,
    SparseTensorSpec,
    TensorSpec,
    array_spec,
    dense_shape_spec,
    merge_shapes,
    no_rows,
    shape_fits,
)
from distinput.core.type_spec import TypeSpec

__all__ = [
    "DatasetSpec",
    "ElementsSpec",
    "LeafSpec",
    "OptionalSpec",
    "RaggedTensorSpec",
    "Shape",
    "SparseTensorSpec",
    "Spec",
    "TensorSpec",
    "array_spec",
    "dense_shape_spec",
    "merge_shapes",
    "merge_specs",
    "no_rows",
    "opened",
    "shape_fits",
]


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


@dataclass(frozen=True)
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
          TypeError: it is no element.
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
        from distinput.core.sparse_tensor import SparseTensor

        three = structure_of(SparseTensor(0, 0, 0))
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
