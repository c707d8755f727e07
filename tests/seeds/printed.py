# SPDX-License-Identifier: Apache-2.0
"""What a page of TensorFlow shows as printed, as it is printed where the tensors are NumPy values."""

import re
from typing import Any

__all__ = ["lines_of", "shown"]

_TENSOR = re.compile(r"<tf\.Tensor: ?shape=(?P<shape>\([^)]*\)), dtype=(?P<dtype>\w+), numpy=\s*(?P<value>[^>]*)>")


def shown(text: str) -> list[str]:
    """The lines of a page's output, each tensor replaced by the NumPy value that it prints.

    >>> shown("(<tf.Tensor: shape=(), dtype=float32, numpy=1.0>,)")
    ['(np.float32(1.0),)']
    """
    bare = _TENSOR.sub(_numpy, text)
    return lines_of(re.sub(r"(?m)^( *\d+):(?=\S)", r"\1: ", bare))


def lines_of(value: Any) -> list[str]:
    """The lines of a value as the interactive prompt shows it; pages leave out empty ones, and may break after a comma.

    >>> lines_of((1, 2))
    ['(1, 2)']
    """
    text = value if isinstance(value, str) else repr(value)
    text = re.sub(r",\n (?=\S)", ", ", text)
    return [line for line in text.splitlines() if line.strip()]


def _numpy(found: re.Match[str]) -> str:
    return f"np.{found['dtype']}({found['value']})" if found["shape"] == "()" else found["value"]
