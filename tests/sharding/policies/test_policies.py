# SPDX-License-Identifier: Apache-2.0
"""The table of policies, and how one of somebody else gets into it."""

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.plan.node import Node
from distinput.plan.options import AutoShardPolicy, Policy, Share
from distinput.sharding.policies import POLICIES, policy_named, register_policy


def whole(node: Node, _: Share) -> Node:
    return node


def test_each_policy_of_the_enum_is_in_the_table_in_alphabetical_order() -> None:
    ours = [name for name in POLICIES if name in AutoShardPolicy.__members__]
    assert ours == sorted(AutoShardPolicy.__members__)
    for name in ours:
        assert policy_named(name).name == name


def test_a_policy_is_registered_once() -> None:
    policy = Policy("SOME_WHOLE", "everything", whole)
    try:
        assert register_policy(policy) is policy
        assert register_policy(policy) is policy
        assert policy_named("SOME_WHOLE") is policy
        with pytest.raises(InvalidArgumentError, match="there is a policy SOME_WHOLE already"):
            register_policy(Policy("SOME_WHOLE", "something else", whole))
    finally:
        POLICIES.pop("SOME_WHOLE", None)


def test_ours_are_not_replaced() -> None:
    with pytest.raises(InvalidArgumentError, match="there is a policy DATA already; choose another name"):
        register_policy(Policy("DATA", "nothing", whole))


@pytest.mark.parametrize("name", ["", "mine", "Mine", "TWO WORDS"])
def test_a_name_is_one_word_in_capital_letters(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="one word in capital letters"):
        register_policy(Policy(name, "nothing", whole))


def test_a_function_is_no_policy() -> None:
    with pytest.raises(TypeError, match="needs a Policy"):
        register_policy(whole)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'auto_shard_policy' must be of type AutoShardPolicy"):
        di.data.Options().experimental_distribute.auto_shard_policy = whole  # type: ignore[assignment]


def test_an_unknown_name_names_a_known_one() -> None:
    with pytest.raises(InvalidArgumentError, match=r"there is no policy 'DATE'; did you mean DATA\?"):
        policy_named("DATE")
