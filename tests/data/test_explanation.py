# SPDX-License-Identifier: Apache-2.0
"""An explanation has in parts what `explain` prints."""

import json

import distinput as di
from distinput.data.explanation import explanation_of


def test_its_parts_are_those_that_are_printed() -> None:
    ds = di.data.Dataset.range(9).repeat(2).map(lambda x: x + 1).take(5).take(3).batch(2)
    told = explanation_of(ds.node, ds._runs().node, num_workers=2)
    parts = json.loads(json.dumps(told.to_dict()))
    printed = ds.explain(num_workers=2)
    assert parts["rules"] == ["take_of_take"]
    assert parts["described"][1].startswith("  take(count=3)")
    assert len(parts["runs"]) == len(parts["described"]) - 1
    assert all(line in printed for line in (*parts["described"], *parts["runs"], *parts["notes"]))
    assert parts["shards"]["num_workers"] == 2


def test_what_no_rule_changes_runs_as_described() -> None:
    node = di.data.Dataset.range(9).node
    told = explanation_of(node, node)
    assert (told.rules, told.runs, told.shards) == ((), told.described, None)
    assert str(told) == "described:\n  range(first=0, stop=9)  int64  x9\nrules: none"
