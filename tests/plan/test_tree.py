# SPDX-License-Identifier: Apache-2.0
"""Inputs, arguments, names and copies, which are found in the fields of a step."""

import operator
import pickle
from functools import partial
from typing import Any
from unittest import mock

import distinput as di
from distinput.data.dataset import Dataset
from distinput.plan.families import kept_epochs
from distinput.plan.node import Node, walk

RANGE = di.data.Dataset.range


def test_inputs_are_the_nodes_among_the_fields_also_those_in_tuples() -> None:
    a, b = RANGE(3), RANGE(3).batch(2)
    assert Dataset.zip(a, b).node.inputs == (a.node, b.node)
    assert a.node.inputs == ()
    assert list(walk(b.node)) == [*b.node.inputs, b.node]


def test_other_inputs_take_the_places_of_the_old_ones_and_the_spec_stays_where_theirs_is_the_same() -> None:
    mapped = RANGE(3).map(lambda x: x, name="same").node
    spec, others = mapped.spec, RANGE(5).node
    _ = others.spec
    moved = mapped.with_inputs((others,))
    assert (moved.inputs, moved.name) == ((others,), "same")
    assert vars(moved)["spec"] is spec
    changed = mapped.with_inputs((RANGE(5).batch(2).node,))
    assert "spec" not in vars(changed)


def test_a_step_below_many_others_is_looked_at_once_for_the_pass_that_is_kept() -> None:
    dataset: Dataset[Any] = RANGE(3).cache()
    for _ in range(8):
        dataset = Dataset.zip(dataset, dataset)
    with mock.patch.object(Node, "epoch_below", autospec=True, side_effect=lambda _, epoch: epoch) as looked:
        assert kept_epochs(dataset.node, 5) == [5]
    assert looked.call_count == 2 * 8 + 1


def test_a_step_is_called_as_users_call_it_and_says_which_line_made_it() -> None:
    node: Node = RANGE(3).global_shuffle(seed=3, name="mixed").node
    assert (node.op, str(node)) == ("global_shuffle", "global_shuffle[mixed](seed=3)")
    assert node.where().startswith("global_shuffle[mixed](seed=3), made at ")
    assert node.arguments() == {"seed": 3, "reshuffle_each_iteration": None}


def test_a_node_is_sent_with_its_fields_and_its_spec() -> None:
    node = Dataset.range(5).map(partial(operator.mul, 2)).node
    assert "spec" not in vars(pickle.loads(pickle.dumps(node)))
    spec = node.spec
    _ = node.inputs, node.lasting, node.in_memory
    again = pickle.loads(pickle.dumps(node))
    assert vars(again)["spec"] == spec
    assert "lasting" not in vars(again)
    assert str(again) == str(node)
