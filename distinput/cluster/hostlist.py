# SPDX-License-Identifier: Apache-2.0
"""Expands Slurm's short notation for many hosts or numbers."""

import re
from collections.abc import Iterator
from itertools import product

__all__ = ["MOST_HOSTS", "expand_counts", "expand_hostlist"]

MOST_HOSTS = 1_000_000
"""More hosts than any cluster has; a list of more is a mistake that would fill the memory."""

_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_COUNT = re.compile(r"([0-9]+)(?:\(x([0-9]+)\))?")


def expand_hostlist(hostlist: str) -> list[str]:
    """The hosts named by a Slurm hostlist, in its order.

    Args:
      hostlist: names with ranges in brackets, separated by commas. A name may have several brackets, and text before,
        between and after them; the last bracket runs fastest. "01" keeps its leading zeros.

    Raises:
      ValueError: unbalanced brackets, a range that is malformed or runs backwards, or more than a million hosts.

    >>> expand_hostlist("n[9-11],login")
    ['n9', 'n10', 'n11', 'login']
    >>> expand_hostlist("rack[1-2]-n[01,03]-ib")
    ['rack1-n01-ib', 'rack1-n03-ib', 'rack2-n01-ib', 'rack2-n03-ib']

    Source: the meaning is that of `scontrol show hostnames`.
    """
    hosts: list[str] = []
    for name in _names(hostlist):
        if not name:
            raise _wrong(hostlist, "a name between two commas is empty")
        texts = re.split(r"\[[^\[\]]*\]", name)
        brackets = [list(_numbers(inside, hostlist)) for inside in re.findall(r"\[([^\[\]]*)\]", name)]
        count = 1
        for numbers in brackets:
            count *= len(numbers)
        if len(hosts) + count > MOST_HOSTS:
            raise _wrong(hostlist, f"it names more than {MOST_HOSTS} hosts")
        hosts.extend(
            texts[0] + "".join(number + text for number, text in zip(chosen, texts[1:], strict=True))
            for chosen in product(*brackets)
        )
    return hosts


def expand_counts(counts: str) -> list[int]:
    """The numbers in Slurm's notation "2(x3),1".

    Raises:
      ValueError: anything else.

    >>> expand_counts("2(x3),1")
    [2, 2, 2, 1]

    Source: the form is that of SLURM_TASKS_PER_NODE.
    """
    numbers: list[int] = []
    for part in counts.split(","):
        match = _COUNT.fullmatch(part.strip())
        if match is None or len(numbers) + int(match[2] or 1) > MOST_HOSTS:
            raise ValueError(f"slurm: counts must have the form '2(x3),1', got {counts!r}")
        numbers += [int(match[1])] * int(match[2] or 1)
    return numbers


def _names(hostlist: str) -> Iterator[str]:
    """The parts between commas outside brackets."""
    begin, inside = 0, False
    for place, letter in enumerate(hostlist):
        if letter in "[]":
            if inside == (letter == "["):
                raise _wrong(hostlist, "its brackets do not match")
            inside = letter == "["
        elif letter == "," and not inside:
            yield hostlist[begin:place].strip()
            begin = place + 1
    if inside:
        raise _wrong(hostlist, "its brackets do not match")
    if hostlist.strip():
        yield hostlist[begin:].strip()


def _numbers(inside: str, hostlist: str) -> Iterator[str]:
    total = 0
    for part in inside.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise _wrong(hostlist, f"{part!r} is not a number nor a range such as 1-3")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise _wrong(hostlist, f"the range {part!r} runs backwards")
        total += last - first + 1
        if total > MOST_HOSTS:
            raise _wrong(hostlist, f"it names more than {MOST_HOSTS} hosts")
        width = len(match[1])
        yield from (f"{number:0{width}d}" for number in range(first, last + 1))


def _wrong(hostlist: str, why: str) -> ValueError:
    return ValueError(f"slurm: a hostlist must have the form 'n[1-3,7],m[01-02]-ib', got {hostlist!r}: {why}")
