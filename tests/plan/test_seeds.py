# SPDX-License-Identifier: Apache-2.0
"""With the drawn seeds of another process a tree has its order; with one shared seed all workers have one order."""

import os
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.dataset import Dataset
from distinput.plan.families import drawn_seeds, own_draw, stores, walk_made, with_drawn_seeds, with_seed
from distinput.plan.node import Node, Origin, walk

RANGE = di.data.Dataset.range


def shuffled() -> Dataset:
    return RANGE(30).shuffle(30).map(lambda x: x + 1).shuffle(10)


def test_another_process_has_the_same_order_with_the_same_seeds() -> None:
    mine, theirs = shuffled(), shuffled()
    assert drawn_seeds(mine.node) != drawn_seeds(theirs.node)
    copied = with_drawn_seeds(theirs.node, drawn_seeds(mine.node))
    assert drawn_seeds(copied) == drawn_seeds(mine.node)
    assert Dataset(copied).to_list() == mine.to_list()


def test_seeds_that_were_given_are_not_drawn() -> None:
    assert drawn_seeds(RANGE(3).shuffle(3, seed=1).batch(2).node) == []
    assert len(drawn_seeds(RANGE(3).shuffle(3).shuffle(3, seed=1).node)) == 1


def test_a_node_that_occurs_twice_counts_once_and_stays_one() -> None:
    once = RANGE(5).shuffle(5)
    tree = once.concatenate(once).node
    assert len(drawn_seeds(tree)) == 1
    changed = with_drawn_seeds(tree, [7])
    assert changed.inputs[0] is changed.inputs[1]
    first = Dataset(changed).to_list()[:5]
    assert sorted(first) == list(range(5))


@given(st.integers(0, 1 << 64), st.integers(0, 1 << 64))
def test_one_shared_seed_gives_all_places_their_own(seed: int, other: int) -> None:
    one, two = [drawn_seeds(with_seed(shuffled().node, seed)) for _ in range(2)]
    assert one == two
    assert one[0] != one[1]
    assert all(0 <= each < 1 << 63 for each in one)
    assert (drawn_seeds(with_seed(shuffled().node, other)) == one) == (seed == other)


def test_a_tree_without_drawn_seeds_is_the_same_tree() -> None:
    node = RANGE(3).batch(2).node
    assert with_seed(node, 5) is node


def test_what_was_kept_belongs_to_the_old_seeds() -> None:
    kept = RANGE(5).shuffle(5).cache()
    kept.to_list()
    (old,) = stores(kept.node)
    changed = with_drawn_seeds(kept.node, [7])
    (new,) = stores(changed)
    assert new is not old
    assert (old.epoch, new.epoch) == (0, None)


def test_datasets_that_functions_make_are_walked_through() -> None:
    tree = RANGE(3).flat_map(lambda n: RANGE(n).shuffle(4)).node
    names = [step.op for step in walk_made(tree)]
    assert "shuffle" in names
    assert "shuffle" not in [step.op for step in walk(tree)]
    assert names[-1] == "flat_map"


def of_process(node: Node, process: int) -> Node:
    inputs = tuple([of_process(source, process) for source in node.inputs])
    moved = node.with_inputs(inputs) if inputs else node
    return replace(moved, origin=Origin("a.py", 1, process))


def test_orders_that_this_process_drew_are_its_own() -> None:
    drawn = own_draw(shuffled().node, 2)
    assert drawn is not None
    assert drawn.op == "shuffle"
    assert own_draw(RANGE(3).shuffle(3, seed=1).node, 2) is None
    assert own_draw(RANGE(3).node, 2) is None


def test_orders_of_another_process_are_shared_with_it() -> None:
    assert own_draw(of_process(shuffled().node, os.getpid() + 1), 2) is None
    assert own_draw(of_process(shuffled().node, os.getpid()), 2) is not None


def test_orders_drawn_inside_functions_are_found() -> None:
    drawn = own_draw(RANGE(3).flat_map(lambda n: RANGE(n).shuffle(4)).node, 2)
    assert drawn is not None
    assert drawn.op == "shuffle"
