# SPDX-License-Identifier: Apache-2.0
"""What the demo prints: headings, facts and checks, for a terminal of 100 columns."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["Report", "differences"]

_WIDTH = 100
_NAMES = 26


class Report:
    """Prints as it goes, and remembers what was checked."""

    def __init__(self) -> None:
        self.checked = 0
        self.failed: list[str] = []

    def say(self, text: str) -> None:
        """Print a line at once, also where the output is collected."""
        print(text, flush=True)

    def heading(self, text: str) -> None:
        """Begin a chapter."""
        self.say(f"\n{text}\n{'-' * len(text)}")

    def fact(self, name: str, value: str) -> None:
        """A name, and what there is to say."""
        lines = textwrap.wrap(value, _WIDTH - _NAMES - 2, break_long_words=False, break_on_hyphens=False)
        self.say(f"  {name:<{_NAMES}}" + f"\n{'':{_NAMES + 2}}".join(lines))

    def check(self, name: str, wrong: str, right: str) -> None:
        """A fact that must hold; `wrong` says what is wrong and is empty when nothing is."""
        self.checked += 1
        if wrong:
            self.failed.append(name)
        self.fact(name, f"NO: {wrong}" if wrong else f"yes, {right}")

    def table(self, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Named rows of values, aligned to the right."""
        width = max(12, *(len(column) + 2 for column in columns))
        for name, values in (("", columns), *rows):
            self.say(f"  {name:<{_NAMES}}" + "".join(f"{value:>{width}}" for value in values))

    def text(self, lines: str) -> None:
        """Lines as they are, folded where they are too long."""
        for line in lines.splitlines():
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            self.say(textwrap.fill(line.strip(), _WIDTH, initial_indent=indent, subsequent_indent=indent + "    "))

    def conclude(self, seconds: float) -> bool:
        """Say how it went; true when every check held."""
        if self.failed:
            self.say(f"\n{len(self.failed)} of {self.checked} checks FAILED: {'; '.join(self.failed)}.")
        else:
            self.say(f"\nAll {self.checked} checks passed, in {seconds:.1f} seconds.")
        return not self.failed


def differences(delivered: Sequence[int], expected: Any) -> str:
    """What is wrong when `delivered` are not the `expected` ids, each exactly once; empty when nothing is.

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
