# SPDX-License-Identifier: Apache-2.0
"""What all specs can do: say whether values and other specs fit them, and find the spec that fits several."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

__all__ = ["TypeSpec"]


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
            from distinput.core.declined import declined  # for messages alone

            raise declined(type(self), name)
