# SPDX-License-Identifier: Apache-2.0
"""What an element looks like: a nest of specs, one for each leaf; those of arrays are in `core.tensor_spec`, named here too."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from distinput.core.leaves import as_leaves
from distinput.core.nest import LEAF, Structure, component, structure_of
from distinput.core.shape import TensorShape
from distinput.core.tensor_spec import (
    RaggedTensorSpec,
    Shape,
    TensorSpec,
    array_spec,
    merge_shapes,
    no_rows,
    shape_fits,
)
from distinput.core.type_spec import TypeSpec

__all__ = [
    "DatasetSpec",
    "LeafSpec",
    "RaggedTensorSpec",
    "Shape",
    "Spec",
    "TensorSpec",
    "array_spec",
    "merge_shapes",
    "merge_specs",
    "no_rows",
    "opened",
    "shape_fits",
]


@dataclass(frozen=True)
class DatasetSpec(TypeSpec):
    """The spec of a leaf that is itself a dataset, as `window` gives them; `tf.data.DatasetSpec`.

    Args:
      element_spec: the spec nest of its elements.
      dataset_shape: `[]` for one dataset, `[n]` for a list of n.
    """

    element_spec: Any
    dataset_shape: TensorShape = field(default=TensorShape(()))

    def __post_init__(self) -> None:
        object.__setattr__(self, "dataset_shape", TensorShape(self.dataset_shape))

    @property
    def shape(self) -> TensorShape:
        """`dataset_shape`, as a leaf that is an array calls it."""
        return self.dataset_shape

    value_type: ClassVar[Any] = object
    """`Dataset`, which the data floor sets."""

    @staticmethod
    def from_value(value: Any) -> "DatasetSpec":
        """The spec of a dataset.

        Source: `tf.data.DatasetSpec.from_value`.
        """
        return DatasetSpec(value.element_spec)

    def holds(self, value: Any) -> bool:
        return hasattr(value, "element_spec") and self.accepts(DatasetSpec(value.element_spec))

    def accepts(self, other: Any) -> bool:
        if not isinstance(other, DatasetSpec) or not self.dataset_shape.is_compatible_with(other.dataset_shape):
            return False
        ours, theirs = Spec.of(self.element_spec), Spec.of(other.element_spec)
        pairs = zip(ours.leaves, theirs.leaves, strict=False)
        return ours.structure == theirs.structure and all(a.accepts(b) for a, b in pairs)

    def merged_with(self, other: Any) -> Any:
        if not isinstance(other, DatasetSpec):
            return None
        both = merge_specs(Spec(LEAF, (self,)), Spec(LEAF, (other,)))
        return None if both is None else both.leaves[0]

    def with_shape(self, shape: Shape) -> "DatasetSpec":
        """The same datasets in a list of another length."""
        return DatasetSpec(self.element_spec, TensorShape(shape))

    def __repr__(self) -> str:
        shape = f", {self.dataset_shape!r}" if self.dataset_shape else ""
        return f"DatasetSpec(element_spec={self.element_spec!r}{shape})"


LeafSpec = TensorSpec | DatasetSpec


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
        """From a nest whose leaves are `TensorSpec` or `DatasetSpec` objects.

        Raises:
          TypeError: a leaf is neither.
        """
        structure = structure_of(nest, lists=True, is_leaf=lambda x: isinstance(x, TensorSpec | DatasetSpec))
        leaves = structure.flatten(nest)
        for leaf in leaves:
            if not isinstance(leaf, TensorSpec | DatasetSpec):
                raise TypeError(f"a spec must be a nest of TensorSpec, got {leaf!r}")
        return Spec(structure, tuple(leaves))

    @staticmethod
    def of_value(value: Any) -> "Spec":
        """The exact spec of a value as users write it.

        Raises:
          TypeError: it is no element.
        """
        structure = structure_of(value)
        leaves = as_leaves(structure.flatten(value), structure.paths)
        return Spec(structure, tuple([getattr(leaf, "leaf_spec", None) or array_spec(leaf) for leaf in leaves]))

    @staticmethod
    def leaf(shape: Shape, dtype: Any) -> "Spec":
        """The spec of a bare leaf."""
        return Spec(LEAF, (TensorSpec(shape, dtype),))

    @cached_property
    def nest(self) -> Any:
        """The spec as users see it: the structure with leaf specs in it."""
        return self.structure.build(self.leaves)

    def map(self, change: Callable[[LeafSpec], LeafSpec]) -> "Spec":
        """The same structure with changed leaves."""
        return Spec(self.structure, tuple([change(leaf) for leaf in self.leaves]))

    @property
    def is_static(self) -> bool:
        """Whether all leaves are arrays of known shapes."""
        return all(isinstance(leaf, TensorSpec) and leaf.size is not None for leaf in self.leaves)

    @cached_property
    def row_bytes(self) -> int:
        """Memory that an element needs, as far as the spec tells: 16 bytes for a leaf of unknown size."""
        known = [leaf for leaf in self.leaves if isinstance(leaf, TensorSpec)]
        return sum([16 if leaf.size is None else leaf.size * leaf.dtype.itemsize for leaf in known])

    def tensors(self, op: str) -> tuple[TensorSpec, ...]:
        """The leaves, all of which must be arrays.

        Raises:
          TypeError: a leaf is a dataset.
        """
        for leaf, path in zip(self.leaves, self.structure.paths, strict=True):
            if not isinstance(leaf, TensorSpec):
                raise TypeError(f"{op}: {component(path)} is a dataset; flat_map or zip it first")
        return self.leaves  # type: ignore[return-value]


def merge_specs(a: Spec, b: Spec) -> Spec | None:
    """The most specific spec that elements of both fit; None where they differ in structure or dtype."""
    if a.structure != b.structure:
        return None
    leaves: list[LeafSpec] = []
    for x, y in zip(a.leaves, b.leaves, strict=True):
        if isinstance(x, TensorSpec) and isinstance(y, TensorSpec) and x.alike(y):
            leaves.append(x.with_shape(merge_shapes(x.shape, y.shape)))
        elif isinstance(x, DatasetSpec) and isinstance(y, DatasetSpec):
            inner = merge_specs(Spec.of(x.element_spec), Spec.of(y.element_spec))
            if inner is None:
                return None
            leaves.append(DatasetSpec(inner.nest, TensorShape(merge_shapes(x.shape, y.shape))))
        else:
            return None
    return Spec(a.structure, tuple(leaves))


def opened(spec: Spec) -> Spec:
    """The same structure, dtypes and ranks, with every dimension unknown."""
    return spec.map(_opened_leaf)


def _opened_leaf(leaf: LeafSpec) -> LeafSpec:
    if isinstance(leaf, DatasetSpec):
        inner = opened(Spec.of(leaf.element_spec))
        return DatasetSpec(inner.nest, TensorShape((None,) * len(leaf.dataset_shape)))
    return leaf if leaf.shape is None else leaf.with_shape((None,) * len(leaf.shape))
