# SPDX-License-Identifier: Apache-2.0
"""What an element looks like: dtype and shape of each leaf, and the structure of the nest."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from distinput.core.leaves import STRING, as_dtype
from distinput.core.nest import LEAF, Structure, component, structure_of
from distinput.core.shape import TensorShape

__all__ = [
    "DatasetSpec",
    "LeafSpec",
    "Shape",
    "Spec",
    "TensorSpec",
    "merge_shapes",
    "merge_specs",
    "opened",
    "shape_fits",
]

Shape = tuple[int | None, ...] | None


class TensorSpec:
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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self.shape == other.shape and self.dtype == other.dtype

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
        """True when a value of this shape and dtype is allowed by the spec."""
        return dtype == self.dtype and shape_fits(tuple(shape), self.shape)


@dataclass(frozen=True)
class DatasetSpec:
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


def merge_shapes(a: Shape, b: Shape) -> Shape:
    """The most specific shape that both fit: unknown where they differ."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple([x if x == y else None for x, y in zip(a, b, strict=True)])


def merge_specs(a: Spec, b: Spec) -> Spec | None:
    """The most specific spec that elements of both fit; None where they differ in structure or dtype."""
    if a.structure != b.structure:
        return None
    leaves: list[LeafSpec] = []
    for x, y in zip(a.leaves, b.leaves, strict=True):
        if isinstance(x, TensorSpec) and isinstance(y, TensorSpec) and x.dtype == y.dtype:
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
