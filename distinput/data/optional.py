# SPDX-License-Identifier: Apache-2.0
"""`Optional`: the next element of an iterator, or nothing at its end; and the type of elements for type checkers."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from distinput.arrow.adopt import adopt
from distinput.errors import InvalidArgumentError
from distinput.values.buffers import copy_of
from distinput.values.leaves import as_leaves
from distinput.values.nest import structure_of
from distinput.values.spec import OptionalSpec, Spec

__all__ = ["Optional", "T_co"]


# ----------------------------------------------------------------------------
# The type of a dataset's elements, for editors and type checkers; it is not used at run time.
# ----------------------------------------------------------------------------


if TYPE_CHECKING:
    import typing_extensions  # comes with every type checker

    T_co = typing_extensions.TypeVar("T_co", covariant=True, default=Any)
    """The type of the elements; Any where a program says `Dataset` alone."""
else:
    T_co = TypeVar("T_co", covariant=True)


# ----------------------------------------------------------------------------
# `Optional`: the next element of an iterator, or nothing at its end.
# ----------------------------------------------------------------------------


_NOTHING: Any = object()

U = TypeVar("U")


class Optional(Generic[T_co]):
    """A value, or nothing. Elements of datasets may be, or hold, Optionals; batches of them are refused, as by TensorFlow.

    Args:
      value: the value; omit it for an empty Optional.
      element_spec: the spec of the value.

    >>> import distinput as di
    >>> it = iter(di.data.Dataset.range(1))
    >>> first, second = it.get_next_as_optional(), it.get_next_as_optional()
    >>> first.get_value(), second.has_value()
    (np.int64(0), False)
    >>> halves = di.data.Dataset.range(4).map(
    ...     lambda x: di.data.experimental.Optional(x // 2, di.TensorSpec([], "int64")) if x % 2 == 0 else second
    ... )
    >>> [half.get_value() for half in halves if half.has_value()]
    [np.int64(0), np.int64(1)]

    Source: `tf.experimental.Optional`.
    """

    __slots__ = ("_value", "element_spec")

    nest_leaf = True
    """Marks the class as a leaf for `core.leaves`, which cannot import it."""
    is_optional = True

    def __init__(self, value: T_co = _NOTHING, element_spec: Any = None) -> None:
        self._value = value
        self.element_spec = element_spec

    @staticmethod
    def from_value(value: U) -> "Optional[U]":
        """An Optional that holds `value`, with its spec.

        Raises:
          TypeError: the value is no element.

        >>> import distinput as di
        >>> di.data.experimental.Optional.from_value(37.0).element_spec
        TensorSpec(shape=(), dtype=float32)

        Source: `tf.experimental.Optional.from_value`.
        """
        value = adopt(value)
        structure = structure_of(value)
        leaves = as_leaves(structure.flatten(value), structure.paths)
        shown = [leaf.to_user() if getattr(leaf, "nest_leaf", False) else copy_of(leaf) for leaf in leaves]
        return Optional(structure.build(shown), Spec.of_value(value).nest)

    @staticmethod
    def empty(element_spec: Any) -> "Optional[Any]":
        """An Optional without a value; `element_spec` describes the missing one."""
        return Optional(element_spec=element_spec)

    def has_value(self, name: str | None = None) -> bool:
        """True if there is a value.

        Args:
          name: ignored.
        """
        return self._value is not _NOTHING

    def get_value(self, name: str | None = None) -> T_co:
        """The value.

        Args:
          name: ignored.

        Raises:
          InvalidArgumentError: there is none.
        """
        if self._value is _NOTHING:
            raise InvalidArgumentError(
                "The given optional does not have a value: the data ended; ask has_value() first"
            )
        return self._value

    @property
    def leaf_spec(self) -> OptionalSpec:
        """The spec of the Optional as a leaf of an element."""
        if self.element_spec is None and self.has_value():
            return OptionalSpec(Spec.of_value(self._value).nest)
        return OptionalSpec(self.element_spec)

    def to_user(self) -> "Optional[T_co]":
        """Itself: what users are given of a leaf."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The mark of an empty one would be another object where it is sent to.
        if self.has_value():
            return Optional, (self._value, self.element_spec)
        return Optional.empty, (self.element_spec,)

    def __repr__(self) -> str:
        return f"Optional({self._value!r})" if self.has_value() else "Optional()"


OptionalSpec.value_type = Optional
