# SPDX-License-Identifier: Apache-2.0
"""One module a neighbour: `interop.torch`, `interop.jax`, `interop.keras` and so on, each imported when it is first named.

A neighbour's package is imported by its module alone, so `import distinput` and every other part work without it.
"""

from importlib import import_module
from typing import Any

__all__: list[str] = []

NEIGHBOURS: dict[str, str] = {
    "grain": "grain",
    "huggingface": "huggingface",
    "jax": "jax",
    "keras": "keras",
    "ray": "ray",
    "torch": "torch",
}
"""What is here, and the extra that brings the package along."""


def __getattr__(name: str) -> Any:
    """The module of a neighbour."""
    if name in NEIGHBOURS:
        return import_module(f"{__name__}.{name}")
    there = ", ".join(sorted(NEIGHBOURS))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {there}")


def __dir__() -> list[str]:
    return sorted({*globals(), *NEIGHBOURS})
