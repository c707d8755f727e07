# SPDX-License-Identifier: Apache-2.0
"""`Optional`: the next element of an iterator, or nothing at its end."""

from typing import Any, Generic, TypeVar

from distinput.core.adopt import adopt
from distinput.core.spec import Spec
from distinput.data.element import T_co
from distinput.errors import InvalidArgumentError

__all__ = ["Optional"]

_NOTHING: Any = object()

U = TypeVar("U")


class Optional(Generic[T_co]):
    """A value, or nothing.

    Args:
      value: the value; omit it for an empty Optional.
      element_spec: the spec of the value.

    >>> import distinput as di
    >>> it = iter(di.data.Dataset.range(1))
    >>> first, second = it.get_next_as_optional(), it.get_next_as_optional()
    >>> first.get_value(), second.has_value()
    (np.int64(0), False)

    Source: `tf.experimental.Optional`.
    """

    __slots__ = ("_value", "element_spec")

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
        return Optional(value, Spec.of_value(adopt(value)).nest)

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

    def __repr__(self) -> str:
        return f"Optional({self._value!r})" if self.has_value() else "Optional()"
