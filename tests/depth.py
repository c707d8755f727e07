# SPDX-License-Identifier: Apache-2.0
"""How long a search for counterexamples runs: a sample in `make test`, the whole of it in `make test-deep`."""

import os
import random
from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

DEEP = os.environ.get("DISTINPUT_TESTS") == "deep"


def cases(sample: int, deep: int) -> int:
    """How many cases to try: `sample` in `make test`, `deep` in `make test-deep`."""
    return deep if DEEP else sample


def new_seed() -> int:
    """Of a random search: always the same in `make test`, another one each time in `make test-deep`, where failures name it."""
    return random.randrange(1 << 30) if DEEP else 0


def sampled(sample: Iterable[Any], more: Iterable[Any]) -> list[Any]:
    """The parameters of a test: `sample` in `make test`, those and `more` in `make test-deep`."""
    return [*sample, *(more if DEEP else ())]


def crossed(*axes: Iterable[Any], together: int = 2) -> list[tuple[Any, ...]]:
    """The parameters of a test: all combinations in `make test-deep`, as few as say enough in `make test`.

    Args:
      axes: the values of each parameter.
      together: how many parameters must meet: with 2, each value of one is tried beside each value of every other;
        with 1, each value is tried.
    """
    values = [list(axis) for axis in axes]
    every = list(product(*map(range, map(len, values))))
    if not DEEP:
        of_each = list(combinations(range(len(values)), together))
        left = {(at, tuple(case[i] for i in at)) for case in every for at in of_each}
        every, drawn = [], random.Random(0).sample(every, len(every))
        while left:  # the next one has as many as can be had of what is not there yet
            meets = [{(at, tuple(case[i] for i in at)) for at in of_each} & left for case in drawn]
            best = max(range(len(drawn)), key=lambda i: len(meets[i]))
            left -= meets[best]
            every.append(drawn[best])
        every.sort()
    return [tuple(axis[i] for axis, i in zip(values, case, strict=True)) for case in every]
