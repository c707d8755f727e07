# SPDX-License-Identifier: Apache-2.0
"""The specs of iterators and of optional values."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from distinput.core.spec import Spec, merge_specs
from distinput.core.type_spec import TypeSpec
from distinput.data.iterator import DatasetIterator
from distinput.data.optional import Optional

__all__ = ["IteratorSpec", "OptionalSpec"]


@dataclass(frozen=True)
class _OfElements(TypeSpec):
    """The spec of something that gives elements.

    Args:
      element_spec: the spec nest of the elements.
    """

    element_spec: Any
    value_type: ClassVar[type] = object

    @classmethod
    def from_value(cls, value: Any) -> Self:
        """The spec of an object that has an `element_spec`."""
        return cls(value.element_spec)

    def holds(self, value: Any) -> bool:
        return isinstance(value, self.value_type) and self.accepts(type(self).from_value(value))

    def accepts(self, other: Any) -> bool:
        if type(other) is not type(self):
            return False
        ours, theirs = Spec.of(self.element_spec), Spec.of(other.element_spec)
        pairs = zip(ours.leaves, theirs.leaves, strict=False)
        return ours.structure == theirs.structure and all(a.accepts(b) for a, b in pairs)

    def merged_with(self, other: Any) -> Self | None:
        if type(other) is not type(self):
            return None
        both = merge_specs(Spec.of(self.element_spec), Spec.of(other.element_spec))
        return None if both is None else type(self)(both.nest)


@dataclass(frozen=True)
class IteratorSpec(_OfElements):
    """The spec of an iterator of a dataset; the counterpart of `tf.data.IteratorSpec`.

    Args:
      element_spec: the spec nest of its elements.

    >>> import distinput as di
    >>> di.data.IteratorSpec.from_value(iter(di.data.Dataset.range(3)))
    IteratorSpec(element_spec=TensorSpec(shape=(), dtype=int64))

    Source: `tf.data.IteratorSpec`.
    """

    value_type: ClassVar[type] = DatasetIterator


@dataclass(frozen=True)
class OptionalSpec(_OfElements):
    """The spec of an optional value; the counterpart of `tf.OptionalSpec`.

    Args:
      element_spec: the spec nest of the value.

    >>> import distinput as di
    >>> di.OptionalSpec.from_value(iter(di.data.Dataset.range(3)).get_next_as_optional())
    OptionalSpec(element_spec=TensorSpec(shape=(), dtype=int64))

    Source: `tf.OptionalSpec`.
    """

    value_type: ClassVar[type] = Optional
