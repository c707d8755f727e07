# SPDX-License-Identifier: Apache-2.0
"""What a step says of itself, and what it says by default."""

import distinput as di
from distinput.plan.families import Batching, Grouped, OneForOne, SameElements
from distinput.plan.node import Needs, Node
from tests.sharding.ops_of_others import Sums

RANGE = di.data.Dataset.range


def every_class(kind: type[Node] = Node) -> list[type[Node]]:
    found = [inner for heir in kind.__subclasses__() for inner in every_class(heir)]
    return [kind, *found]


def test_a_step_that_says_nothing_is_cautious() -> None:
    silent = Sums(RANGE(4).node)
    assert silent.needs == Needs.ALL
    facts = (
        "same_count",
        "same_end",
        "same_access",
        "by_position",
        "shuffles",
        "keeps_batches",
        "view_only",
        "about_the_whole",
        "skips_failures",
        "reads_files",
    )
    assert not any(getattr(silent, fact) for fact in facts)
    assert not any([silent.draws, silent.keeps, silent.drops_rows, silent.spec_given, silent.spec_from_file])
    assert (silent.own_options, silent.rows_per_batch, silent.for_groups(4), silent.made) == (None, None, None, ())
    assert silent.over_pieces(RANGE(4).node, 2) is None
    assert silent.with_full_batches() is silent
    assert silent.alike_everywhere() is silent
    assert (silent.random_access, silent.start_at(1, 0)) == (False, None)


def test_families_speak_for_their_kind() -> None:
    assert (OneForOne.needs, Grouped.needs, Batching.needs, SameElements.needs) == (
        Needs.ONE, Needs.PART, Needs.PART, Needs.ALL,
    )  # fmt: skip
    assert SameElements.keeps_batches
    assert not OneForOne.keeps_batches


def test_facts_do_not_contradict_one_another() -> None:
    for kind in every_class():
        if not kind.__module__.startswith("distinput."):
            continue
        assert not (kind.shuffles and not kind.by_position), f"{kind}: an order of positions is by position"
        assert not (kind.transparent and kind.needs != Needs.ONE), (
            f"{kind}: states of the input are places of one for one"
        )
        assert not (kind.by_position and not kind.keeps_batches), f"{kind}: elements as they are keep their rows"
        counts = kind.cardinality is not Node.cardinality
        assert kind.same_count + kind.same_end + counts <= 1, f"{kind}: its elements are counted in one way"
        reaches = kind.random_access is not Node.random_access
        assert not (kind.same_access and reaches), f"{kind}: a fact, and an answer of its own"
