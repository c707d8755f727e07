# SPDX-License-Identifier: Apache-2.0
"""Neighbours that run as one have the last one's elements, are named in order, and count as their input does."""

from dataclasses import dataclass
from typing import Any

import distinput as di
from distinput.plan.families import Fused, Neighbours
from distinput.plan.node import Needs, Node, walk
from distinput.rewrite.rules import Running

RANGE = di.data.Dataset.range


def first(x: Any) -> Any:
    return x + 1


def second(x: Any) -> Any:
    return (x, float(x))


@dataclass(frozen=True)
class _Named:
    map_func: Any


def test_neighbours_are_named_in_order() -> None:
    assert str(Neighbours((_Named(first), _Named(second)))) == "first, second"


def fused() -> tuple[di.data.Dataset, Node]:
    described = RANGE(5).map(first).map(second)
    (found,) = [step for step in walk(Running.of(described.node).node) if isinstance(step, Fused)]
    return described, found


def test_the_elements_are_those_of_the_last_step() -> None:
    described, step = fused()
    assert step.spec == described.node.spec
    assert di.data.Dataset(step).to_list() == described.to_list()
    assert "first, second" in str(step)


def test_fused_steps_are_one_for_one() -> None:
    _, step = fused()
    assert (step.needs, step.cardinality) == (Needs.ONE, 5)
    assert step.start_at(3, 0) == {"input": step.inputs[0].start_at(3, 0), "skip": 0}
    assert len(step.inputs) == 1
