# SPDX-License-Identifier: Apache-2.0
"""What classes say when they are asked for a member of TensorFlow that they do not have."""

from typing import Any

from distinput.data.absent import absent_member

__all__ = ["missing"]


def missing(owner: Any, name: str) -> Any:
    """For `__getattr__`: raise the error that says what to write instead.

    Raises:
      AttributeError: always.
    """
    if hasattr(type(owner), name):  # a property failed: its own error says more
        return object.__getattribute__(owner, name)
    raise AttributeError(absent_member(type(owner), name), name=name, obj=owner)
