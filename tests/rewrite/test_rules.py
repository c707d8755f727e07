# SPDX-License-Identifier: Apache-2.0
"""The table of rules, in what order they are tried, and how one of somebody else gets into it."""

from collections.abc import Iterator

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.ops.shard import Shard
from distinput.ops.take import Take
from distinput.plan.node import Node
from distinput.rewrite.rules import FIRST, RULES, Rule, register_rule, rewrite
from distinput.testing.laws import check_rewrites


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    first, rules = list(FIRST), list(RULES)
    yield
    FIRST[:], RULES[:] = first, rules


def shard_of_nothing(node: Node) -> Node | None:
    match node:
        case Shard(source, _, _) if source.cardinality == 0:
            return source
    return None


def test_a_rule_of_others_is_tried_on_every_pipeline() -> None:
    dataset = di.data.Dataset.range(5).take(0).shard(2, 1)
    assert rewrite(dataset.node)[1] == ["part_of_range"]
    register_rule(shard_of_nothing)
    assert rewrite(dataset.node)[1] == ["part_of_range", "shard_of_nothing"]
    assert "shard_of_nothing" in dataset.explain()
    check_rewrites(dataset)
    check_rewrites(di.data.Dataset.range(5).shard(2, 1))


def test_a_state_goes_on_under_a_rule_of_others() -> None:
    register_rule(shard_of_nothing)
    dataset = di.data.Dataset.range(5).take(0).shard(2, 1).concatenate(di.data.Dataset.range(3))
    iterator = iter(dataset)
    assert next(iterator) == 0
    assert list(dataset.restore(iterator.state_dict())) == [1, 2]


def test_first_rules_see_the_tree_as_it_was_described() -> None:
    seen: list[str] = []

    def looks(node: Node) -> Node | None:
        seen.append(str(node))
        return None

    register_rule(looks, first=True)
    rewrite(di.data.Dataset.range(5).take(3).take(2).node)
    assert seen == ["take(count=2)", "take(count=3)", "range(first=0, stop=5)"]


def test_first_rules_do_not_look_below_what_skips_failures() -> None:
    seen: list[str] = []

    def looks(node: Node) -> Node | None:
        seen.append(node.op)
        return None

    register_rule(looks, first=True)
    rewrite(di.data.Dataset.range(5).map(abs).ignore_errors().node)
    assert seen == []
    rewrite(di.data.Dataset.range(5).ignore_errors().node)  # which cannot fail
    assert seen == ["ignore_errors", "range"]


def test_rules_that_are_given_are_all_that_are_tried() -> None:
    node = di.data.Dataset.range(5).take(3).take(2).node
    assert rewrite(node, ())[0] is node
    running, fired = rewrite(node, only=["take_of_take"])
    assert fired == ["take_of_take"]
    assert isinstance(running, Take)


def test_a_rule_is_registered_once() -> None:
    before = len(RULES)
    assert register_rule(shard_of_nothing) is shard_of_nothing
    assert register_rule(shard_of_nothing) is shard_of_nothing
    assert len(RULES) == before + 1

    def again() -> Rule:
        def shard_of_something(_: Node) -> Node | None:
            return None

        return register_rule(shard_of_something)

    again()
    newer = again()  # a cell of a notebook that was run again
    assert [rule for rule in RULES if rule.__name__ == "shard_of_something"] == [newer]

    def take_of_take(_: Node) -> Node | None:
        return None

    with pytest.raises(
        InvalidArgumentError,
        match=r"there is a rule 'take_of_take' already, of distinput",
    ):
        register_rule(take_of_take)


@pytest.mark.parametrize("rule", [lambda node: node, 3, "take_of_take"])
def test_what_has_no_name_is_no_rule(rule: object) -> None:
    with pytest.raises(TypeError, match="a rule must be a function with a name"):
        register_rule(rule)  # type: ignore[arg-type]
