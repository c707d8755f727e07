# SPDX-License-Identifier: Apache-2.0
"""Samples of several datasets, and parts of replicas, that are balanced."""

from itertools import count
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.core.nest import structure_of
from distinput.data.dataset import Dataset
from distinput.kernels.even_deal import deal_evenly
from distinput.kernels.fair_choice import WHOLE
from distinput.ops.balance_rows import BalanceRows
from distinput.ops.balanced_sample import BalancedSample, whole
from distinput.testing.ops.arguments import SMALL, OpArguments
from distinput.testing.ops.batching import stacked_rows
from distinput.testing.ops.several import VARIANTS, sources_of, variant_model
from distinput.testing.pipeline import DrawFrom, Ingredient, Pipeline

__all__ = ["BALANCED"]

_WEIGHTS = ([1.0, 1.0, 1.0], [1.0, 2.0, 0.5], [0.0, 1.0, 3.0], [3.0, 0.5, 0.0])
_FAR = 50
"""Steps beyond which a deadline does not matter, for these weights."""


def _draw(draw: DrawFrom, _: Pipeline) -> OpArguments:
    steps = draw(st.lists(st.integers(1, 20), max_size=2, unique=True))
    return {
        "others": draw(st.lists(VARIANTS, min_size=1, max_size=2)),
        "steps": [0, *sorted(steps)],
        "weights": [draw(st.integers(0, 3)) for _ in range(1 + len(steps))],
        "on_end": draw(st.sampled_from(["stop", "skip", "repeat"])),
    }


def _schedule(a: OpArguments) -> dict[int, list[float]]:
    k = 1 + len(a["others"])
    return {step: _WEIGHTS[number][:k] for step, number in zip(a["steps"], a["weights"], strict=True)}


def _build(ds: Dataset, a: OpArguments) -> Dataset:
    return Dataset.sample_from_datasets(sources_of(ds, a), _schedule(a), balanced=True, on_end=a["on_end"])


def _model(p: Pipeline, a: OpArguments) -> list[Any]:
    wholes = [p.elements, *[variant_model(p.elements, word) for word in a["others"]]]
    schedule = _schedule(a)

    def weights_at(step: int) -> list[float]:
        return schedule[max(first for first in schedule if first <= step)]

    everyone = [i for i in range(len(wholes)) if any(weights[i] for weights in schedule.values())]
    if not any(weights_at(0)):
        return []
    if len(everyone) == 1 and len(schedule) == 1:
        return list(wholes[everyone[0]])
    remaining, ended, over, first = [list(each) for each in wholes], set(), set(range(len(wholes))) - set(everyone), 0
    counts = [0] * len(wholes)
    elements: list[Any] = []
    while True:
        step = len(elements)
        going = [i for i in range(len(wholes)) if i not in over]
        if not any(weights_at(step)[i] for i in going):
            return elements
        later = [weights_at(step), *[weights for begin, weights in schedule.items() if begin > step]]
        if a["on_end"] == "repeat" and not any(weights[i] for weights in later for i in going if i not in ended):
            return elements
        turn = _turn(going, counts, [weights_at(n) for n in range(first, step + _FAR)], step - first)
        if remaining[turn]:
            elements.append(remaining[turn].pop(0))
            counts[turn] += 1
            continue
        if a["on_end"] == "stop":
            return elements
        if a["on_end"] == "repeat" and wholes[turn]:
            ended.add(turn)
            remaining[turn] = list(wholes[turn])
            continue
        over.add(turn)
        first, counts = step, [0] * len(wholes)


def _turn(going: list[int], counts: list[int], weights: list[list[float]], done: int) -> int:
    """Whose turn it is, straight from the theorem: the sums of shares, and the first step at which each must have come."""
    d = max(2 * len(going) - 2, 2)
    shares = [whole([each[i] for i in going]) for each in weights]
    found = []
    for place, i in enumerate(going):
        target = sum(share[place] for share in shares[: done + 1])
        if d * (target - counts[i] * WHOLE) >= WHOLE:
            for after in count():
                if d * (target - counts[i] * WHOLE) >= (d - 1) * WHOLE or done + after + 1 >= len(shares):
                    break
                target += shares[done + after + 1][place]
            found.append((after, i))
    return min(found)[1]


def _cost(*components: Any) -> Any:
    """A number for each row of a batch."""
    structure = structure_of(components)
    return np.arange(len(structure.flatten(components)[0])) * 7 % 5


def _model_rows(p: Pipeline, a: OpArguments) -> list[Any]:
    rows = []
    for element in p.elements:
        leaves = p.flat(element)
        count = len(leaves[0])
        if not count:
            rows.append(leaves)
            continue
        loads, owners = np.zeros(a["pieces"], np.int64), np.empty(count, np.int64)
        deal_evenly.reference(np.arange(count) * 7 % 5, loads, owners)
        order = sorted(range(count), key=lambda row: owners[row])
        rows.append(
            [stacked_rows(leaf, [array[i] for i in order]) for array, leaf in zip(leaves, p.leaves, strict=True)]
        )
    return p.like(rows)


BALANCED: tuple[Ingredient, ...] = (
    Ingredient(
        "balance_rows",
        (BalanceRows,),
        lambda ds, a: ds._followed_by(BalanceRows(ds.node, _cost, a["pieces"])),
        _model_rows,
        lambda draw, _: {"pieces": draw(SMALL)},
        lambda p: p.batched and len(p.leaves) > 0,
        weight=3,
    ),
    Ingredient("sample_balanced", (BalancedSample,), _build, _model, _draw),
)
"""Samples and replicas that are balanced."""
