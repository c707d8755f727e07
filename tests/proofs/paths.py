# SPDX-License-Identifier: Apache-2.0
"""Every way through code that branches on statements about all integers: it runs once for each sequence of answers."""

from collections.abc import Callable, Iterator
from typing import Any

import z3

__all__ = ["LONGEST", "Possible", "decide", "explore"]

LONGEST = 128
"""Branches on one way through; code that loops until a statement holds may have no end of them."""

Possible = Callable[[list[Any]], bool]
"""What is held on a way -> False if that cannot be, so that nobody need go there."""


class _Way:
    """One way through: the answers to give first, and the statements that were held so far."""

    def __init__(self, answers: list[tuple[bool, bool]], possible: Possible) -> None:
        self.answers, self.possible, self.held = answers, possible, list[Any]()

    def answer(self, statement: Any) -> bool:
        if len(self.held) == LONGEST:
            raise RecursionError(f"more than {LONGEST} branches on one way through the code")
        if len(self.held) == len(self.answers):
            yes = self.possible([*self.held, statement])
            self.answers.append((yes, yes and self.possible([*self.held, z3.Not(statement)])))
        answer, _ = self.answers[len(self.held)]
        self.held.append(statement if answer else z3.Not(statement))
        return answer


_ways: list[_Way] = []


def decide(statement: Any) -> bool:
    """The answer to a statement on this way; ways with the other answer follow."""
    if not _ways:
        raise RuntimeError(f"a branch on {statement} outside of explore: nobody would take the other way")
    return _ways[-1].answer(statement)


def explore(function: Callable[[], Any], possible: Possible) -> Iterator[tuple[list[Any], Any]]:
    """What is held on each way through the function, and what it returns there.

    Args:
      function: the code; it makes all its values anew each time.
      possible: leaves out ways; where it does not know, it must say True.
    """
    answers: list[tuple[bool, bool]] = []  # and whether the other one is to follow
    while True:
        way = _Way(answers, possible)
        _ways.append(way)
        try:
            result = function()
        finally:
            _ways.pop()
        yield way.held, result
        while answers and not answers[-1][1]:
            answers.pop()
        if not answers:
            return
        answers[-1] = (False, False)
