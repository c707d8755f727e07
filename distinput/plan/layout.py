# SPDX-License-Identifier: Apache-2.0
"""Layouts: which step of a running tree each part of its states belongs to, as text.

Two trees made from one described tree can take up each other's states if, and only if, their layouts are equal.
"""

from typing import Any

import numpy as np

from distinput.plan.fused import Neighbours
from distinput.plan.node import Node

__all__ = ["layout"]


def layout(node: Node) -> str:
    """The steps of a tree that have states of their own, each with its whole-number arguments and its inputs.

    Functions, arrays and file names are left out: they are those of the described tree, whose fingerprint has them.

    >>> import distinput as di
    >>> layout(di.data.Dataset.range(9).take(4).map(abs).prefetch(2).node)
    'map(processes=0; take(count=4; range(first=0, stop=9, step=1)))'
    """
    step = node.state_of
    given = [(name, _numbers(value)) for name, value in step.arguments().items() if name not in step.indifferent]
    shown = ", ".join([f"{name}={text}" for name, text in given if text])
    inner = ", ".join([layout(source) for source in step.inputs])
    return f"{step.op}({'; '.join([part for part in (shown, inner) if part])})"


def _numbers(value: Any) -> str:
    """A whole number, or several; empty for anything else."""
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, Neighbours):
        return str(len(value.steps))
    if isinstance(value, list | tuple):
        parts = [_numbers(part) for part in value]
        return f"[{', '.join(parts)}]" if all(parts) else ""
    return ""
