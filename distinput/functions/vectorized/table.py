# SPDX-License-Identifier: Apache-2.0
"""The table of rules: for each function of NumPy, how it is answered for a block."""

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS", "rule"]

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""By function: called with the `Rules` and the arguments of the function, of which at least one holds a stand-in."""


def rule(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a rule for these functions."""

    def enter(made: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            FUNCTIONS[function] = made
        return made

    return enter
