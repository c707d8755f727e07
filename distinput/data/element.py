# SPDX-License-Identifier: Apache-2.0
"""The type of a dataset's elements, for editors and type checkers; it is not used at run time."""

from typing import TYPE_CHECKING, Any

__all__ = ["T_co"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # comes with every type checker

    T_co = TypeVar("T_co", covariant=True, default=Any)
    """The type of the elements; Any where a program says `Dataset` alone."""
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)
