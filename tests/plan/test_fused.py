# SPDX-License-Identifier: Apache-2.0
"""Neighbours that run as one have the last one's elements, count as their input does, and say what they are."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

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


WAYS: dict[str, Callable[..., di.data.Dataset]] = {
    "map": di.data.Dataset.map,
    "map_rows": di.data.Dataset.map_rows,
}


def neighbours(way: str, factor: int, signature: Any = None) -> Node:
    described = WAYS[way](WAYS[way](RANGE(5), lambda x: x * factor), abs, output_signature=signature)
    (found,) = [step for step in walk(Running.of(described.node).node) if isinstance(step, Fused)]
    return found


@pytest.mark.parametrize("way", WAYS)
def test_fused_steps_are_told_apart_by_what_their_functions_do_and_hold(way: str) -> None:
    identity = neighbours(way, 2).identity
    assert identity == neighbours(way, 2).identity
    assert {name for name, word in neighbours(way, 3).identity.items() if word != identity[name]} == {"held"}
    assert identity.keys() >= {"step", "code", "held"}


@pytest.mark.parametrize("way", WAYS)
def test_fused_steps_call_functions_to_know_their_spec(way: str) -> None:
    step = neighbours(way, 2)
    assert step.known_spec is None
    assert step.first_in_memory is None
    assert Fused.maps.fget(step) == step.functions.steps  # type: ignore[attr-defined]


def test_the_spec_of_fused_steps_is_known_where_the_last_one_states_it() -> None:
    signature = di.TensorSpec([], "int64")
    assert neighbours("map_rows", 2, signature).known_spec == neighbours("map_rows", 2, signature).spec


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("regroup", [di.data.Dataset.unbatch, lambda dataset: dataset.rebatch(2)])
def test_a_pass_begins_without_a_call_of_fused_steps(way: str, regroup: Callable[..., di.data.Dataset]) -> None:
    calls: list[Any] = []

    def fails(x: Any) -> Any:
        calls.append(x)
        raise ValueError("no")

    texts = di.data.Dataset.from_tensor_slices(["a", "b"])
    dataset = regroup(WAYS[way](WAYS[way](texts, fails), second).ignore_errors())
    with iter(dataset) as iterator:
        assert not calls
        assert list(iterator) == []
