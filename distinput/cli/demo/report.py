# SPDX-License-Identifier: Apache-2.0
"""The report that the demo prints: headings, facts and checks, for a terminal of 100 columns."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["DemoReport", "differences"]

_WIDTH = 100
_NAMES = 26


class DemoReport:
    """Prints at once, and remembers the checks."""

    def __init__(self) -> None:
        self.checked = 0
        self.failed: list[str] = []

    def say(self, text: str) -> None:
        """Print a line at once, even if the output is redirected."""
        print(text, flush=True)

    def heading(self, text: str) -> None:
        """Begin a chapter."""
        self.say(f"\n{text}\n{'-' * len(text)}")

    def fact(self, name: str, value: str) -> None:
        """Print a name and a text."""
        lines = textwrap.wrap(value, _WIDTH - _NAMES - 2, break_long_words=False, break_on_hyphens=False)
        self.say(f"  {name:<{_NAMES}}" + f"\n{'':{_NAMES + 2}}".join(lines))

    def check(self, name: str, wrong: str, right: str) -> None:
        """Print a check; `wrong` describes the failure and is empty if the check passed."""
        self.checked += 1
        if wrong:
            self.failed.append(name)
        self.fact(name, f"NO: {wrong}" if wrong else f"yes, {right}")

    def table(self, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Print named rows of values, aligned to the right."""
        width = max(12, *(len(column) + 2 for column in columns))
        for name, values in (("", columns), *rows):
            self.say(f"  {name:<{_NAMES}}" + "".join(f"{value:>{width}}" for value in values))

    def text(self, lines: str) -> None:
        """Print lines unchanged, folded if they are too long."""
        for line in lines.splitlines():
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            self.say(textwrap.fill(line.strip(), _WIDTH, initial_indent=indent, subsequent_indent=indent + "    "))

    def conclude(self, seconds: float) -> bool:
        """Print a summary; True if every check passed."""
        if self.failed:
            self.say(f"\n{len(self.failed)} of {self.checked} checks FAILED: {'; '.join(self.failed)}.")
        else:
            self.say(f"\nAll {self.checked} checks passed, in {seconds:.1f} seconds.")
        return not self.failed


def differences(delivered: Sequence[int], expected: Any) -> str:
    """Describe how `delivered` differs from the `expected` ids, each exactly once; empty if it does not.

    >>> differences([3, 1, 2], [1, 2, 3])
    ''
    >>> differences([1, 1, 2], [1, 2, 3, 4])
    '2 missing (id 3, ...), 1 repeated (id 1)'
    """
    ids, counts = np.unique(np.asarray(delivered, np.int64), return_counts=True)
    found = {
        "missing": np.setdiff1d(expected, ids),
        "repeated": ids[counts > 1],
        "unexpected": np.setdiff1d(ids, expected),
    }
    wrong = {what: which for what, which in found.items() if len(which)}
    return ", ".join(f"{len(w)} {what} (id {w[0]}{', ...' if len(w) > 1 else ''})" for what, w in wrong.items())
