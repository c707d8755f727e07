# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's convention for calling a function with an element."""

from collections.abc import Callable
from typing import Any

__all__ = ["calling"]


def calling(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """`function` as a function of one element: a tuple is unpacked into arguments, and a returned list becomes a tuple.

    Source: the convention of `tf.data.Dataset.map`.
    """

    def call(element: Any) -> Any:
        result = function(*element) if type(element) is tuple else function(element)
        return tuple(result) if type(result) is list else result

    return call
