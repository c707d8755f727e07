# SPDX-License-Identifier: Apache-2.0
"""A key for dictionaries and sets that stands for a variable."""

from typing import Any

__all__ = ["Reference"]


class Reference:
    """Equal to another reference if both refer to the very same object.

    Source: the result of `tf.Variable.ref`.
    """

    __slots__ = ("_referent",)

    def __init__(self, referent: Any) -> None:
        self._referent = referent

    def deref(self) -> Any:
        """The object."""
        return self._referent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._referent is self._referent

    def __hash__(self) -> int:
        return id(self._referent)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._referent!r}>"
