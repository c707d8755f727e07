# SPDX-License-Identifier: Apache-2.0
"""Arguments as text, for printing."""

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["describe"]


def describe(value: Any, most: int | None = 60) -> str:
    """An argument as text, the same in every process, of at most `most` characters."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if callable(value):
        return str(getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value).__name__))
    if isinstance(value, Mapping):
        text = "{" + ", ".join(f"{k}: {describe(v, None)}" for k, v in value.items()) + "}"
    else:
        text = str(value) if not isinstance(value, str) else repr(value)
    return text if most is None or len(text) <= most else text[: most - 3] + "..."
