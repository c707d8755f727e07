# SPDX-License-Identifier: Apache-2.0
"""Braces in patterns of paths: `{a,b}` and `{000..127}` stand for several names, as in a shell."""

import re

from distinput.errors import InvalidArgumentError

__all__ = ["expand_braces"]

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")
_MOST = 1_000_000  # names that one pattern may stand for


def expand_braces(pattern: str) -> list[str]:
    """The names that a pattern stands for, in the order of a shell; the pattern itself if it has no such braces.

    Braces without a comma or a range are part of the name, and so is a brace without its other half.

    Raises:
      InvalidArgumentError: the pattern stands for more than a million names, or a range has a step of 0.

    >>> expand_braces("part-{08..10}.{txt,csv}")
    ['part-08.txt', 'part-08.csv', 'part-09.txt', 'part-09.csv', 'part-10.txt', 'part-10.csv']
    >>> expand_braces("{train,eval-{0..6..3}}/a"), expand_braces("a{b}c{")
    (['train/a', 'eval-0/a', 'eval-3/a', 'eval-6/a'], ['a{b}c{'])
    """
    names = [""]
    at = 0
    while at < len(pattern):
        end = _closing(pattern, at) if pattern[at] == "{" else None
        parts = None if end is None else _parts(pattern[at + 1 : end])
        if parts is None or end is None:
            parts, end = [pattern[at]], at
        if len(names) * len(parts) > _MOST:
            raise InvalidArgumentError(f"{pattern!r} stands for more than {_MOST} names; use a pattern with *")
        names = [name + part for name in names for part in parts]
        at = end + 1
    return names


def _closing(text: str, start: int) -> int | None:
    """Where the brace that opens at `start` is closed."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if not depth:
            return i
    return None


def _parts(inside: str) -> list[str] | None:
    """What braces with this text inside stand for; None if they are part of the name."""
    found = _RANGE.fullmatch(inside)
    if found is not None:
        return _numbers(*found.groups())
    cuts, depth = [-1], 0
    for i, letter in enumerate(inside):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and not depth:
            cuts.append(i)
    if len(cuts) == 1:
        return None
    parts = [inside[a + 1 : b] for a, b in zip(cuts, [*cuts[1:], len(inside)], strict=True)]
    return [name for part in parts for name in expand_braces(part)]


def _numbers(first: str, last: str, step: str | None) -> list[str]:
    a, b, by = int(first), int(last), abs(int(step or 1))
    if not by:
        raise InvalidArgumentError(f"{{{first}..{last}..{step}}}: the step of a range of names must not be 0")
    if abs(b - a) // by >= _MOST:
        raise InvalidArgumentError(f"{{{first}..{last}}} stands for more than {_MOST} names; use a pattern with *")
    padded = any(len(n.lstrip("-")) > 1 and n.lstrip("-").startswith("0") for n in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [f"{n:0{width}d}" for n in (range(a, b + 1, by) if a <= b else range(a, b - 1, -by))]
