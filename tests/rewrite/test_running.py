# SPDX-License-Identifier: Apache-2.0
from typing import Any

import distinput as di
from distinput.rewrite import Running

Dataset: Any = di.data.Dataset


def described() -> Any:
    return Dataset.range(20).map(lambda x: x + 1).map(lambda x: x * 2).take(9).take(5).node


def test_the_rules_that_fired_are_named_once() -> None:
    assert Running.of(described()).rules == ("map_of_map", "take_of_take")


def test_the_rules_that_fired_make_the_same_tree_again() -> None:
    running = Running.of(described())
    again = Running.of(described(), running.rules)
    assert (again.layout, again.rules) == (running.layout, running.rules)


def test_fewer_rules_make_another_layout() -> None:
    running, fewer, none = [Running.of(described(), only) for only in (None, ["map_of_map"], [])]
    assert len({running.layout, fewer.layout, none.layout}) == 3
    assert none.rules == ()


def test_names_of_rules_that_are_not_there_do_nothing() -> None:
    assert Running.of(described(), ["a_rule_of_another_release"]).rules == ()
