# SPDX-License-Identifier: Apache-2.0
"""Arguments as text, for printing."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from distinput.url_secrets import without_secrets

__all__ = ["describe", "given"]


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
    text = without_secrets(text)
    return text if most is None or len(text) <= most else text[: most - 3] + "..."


def given(step: Any) -> dict[str, str]:
    """The arguments of a node that are not their defaults, as text."""
    defaults = {f.name: f.default for f in dataclasses.fields(step)}
    return {
        name: describe(value)
        for name, value in step.arguments().items()
        if not _is_default(value, defaults.get(name, dataclasses.MISSING))
    }


def _is_default(value: Any, default: Any) -> bool:
    """Whether an argument is its default; text that was sent to another process is another object."""
    return value is default or (isinstance(value, str) and isinstance(default, str) and value == default)
