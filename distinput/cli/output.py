# SPDX-License-Identifier: Apache-2.0
"""What commands print: JSON for programs, tables and values for people."""

import json
import math
import shutil
import sys
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.cli.visible import visible, visible_json

# ----------------------------------------------------------------------------
# What commands print: JSON for programs, tables and values for people.
# ----------------------------------------------------------------------------


def print_json(value: object) -> None:
    """Print one JSON value on a line of its own; what a terminal would obey is escaped, which means the same."""
    text = json.dumps(as_json(value), ensure_ascii=False, allow_nan=False)
    print(visible_json(text))


def as_json(value: object) -> Any:
    """A value of a dataset as JSON has it: arrays as lists, bytes as text where they are UTF-8, else as {"base64": text}.

    Times are text, and so are numbers that JSON has not: "NaN", "Infinity" and "-Infinity".

    >>> as_json({"x": np.arange(2), "name": b"a"})
    {'x': [0, 1], 'name': 'a'}
    """
    if isinstance(value, dict):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind in "mM":  # as Python has them, some are numbers without a unit
            return as_json(value.astype(str).tolist()) if isinstance(value, np.ndarray) else str(value)
        return as_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(value).decode()}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return as_json(value.to_list()) if hasattr(value, "to_list") else str(value)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows in columns; columns whose cells are all numbers are set to the right, the last one is cut to the terminal.

    In a terminal, where rich is installed, it draws them: headings in bold with a line below, long cells on several lines.
    """
    shown = [[_cell(cell) for cell in row] for row in rows]
    columns = zip(*rows, strict=True) if rows else [()] * len(headings)
    right = [bool(rows) and not any(isinstance(cell, str) for cell in column) for column in columns]
    if sys.stdout.isatty() and _drawn(headings, shown, right):
        return
    widths = [max(len(line[i]) for line in [list(headings), *shown]) for i in range(len(headings))]
    for line in [list(headings), *shown]:
        places = zip(line, widths, right, strict=True)
        cells = [cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in places]
        print(shortened("  ".join(cells).rstrip(), shutil.get_terminal_size((120, 24)).columns))


def _drawn(headings: Sequence[str], shown: Sequence[Sequence[str]], right: Sequence[bool]) -> bool:
    """Let rich draw a table; False if it is not installed."""
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading, to_right in zip(headings, right, strict=True):
        table.add_column(Text(heading), justify="right" if to_right else "left", overflow="fold")
    for line in shown:
        table.add_row(*map(Text, line))  # cells are no markup
    Console().print(table)
    return True


def _cell(cell: object) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int):
        return f"{cell:.4g}" if isinstance(cell, float) else visible(cell)
    return f"{cell:,}"


def shortened(text: str, width: int) -> str:
    """A text of at most `width` characters; what is cut is shown by an ellipsis.

    >>> shortened("a long text", 6)
    'a lon…'
    """
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"
