# SPDX-License-Identifier: Apache-2.0
"""Policies print as the user names them, and are compared by all that they say."""

import dataclasses

import pytest

from distinput.plan.node import Node
from distinput.plan.options import Decision, Policy, Share


def whole(node: Node, share: Share) -> Node:
    return node


def test_a_policy_is_its_name_and_its_functions_are_not_printed() -> None:
    policy = Policy("MINE", "each worker reads all", whole)
    assert str(policy) == f"{policy}" == "MINE"
    assert "whole" not in repr(policy)
    assert (policy.decide, policy.divides, policy.reads_everything) == (None, True, False)


@pytest.mark.parametrize(
    "value", [Share(2, 0), Policy("A", "", whole), Decision(*[Policy("A", "", whole)] * 2, "", "")]
)
def test_values_cannot_be_changed(value: object) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, dataclasses.fields(value)[0].name, None)
