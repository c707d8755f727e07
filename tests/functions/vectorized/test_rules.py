# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

from distinput.functions.vectorized.answers import Refused, Rules, StandIn, same_bits
from tests.functions.vectorized.blocks import VECTORS


def test_any_nan_is_the_same_as_another_but_zeros_have_signs() -> None:
    assert same_bits(np.float32("nan"), -np.float32("nan"))
    assert not same_bits(0.0, -0.0)
    assert not same_bits(np.float32(1), np.float64(1))
    assert not same_bits(np.ones(1), np.ones(2))


def test_a_rule_that_gives_other_digits_is_found_out() -> None:
    rules = Rules(measured=True)
    one = StandIn(VECTORS, rules)
    with pytest.raises(Refused, match=r"np\.exp gives other last digits for a block than for one element"):
        rules.measure("exp", np.nextafter(np.exp(VECTORS), np.float32(9)), (one,), np.exp)


def test_what_has_been_compared_often_is_compared_for_a_few_elements_only() -> None:
    rules, calls = Rules(measured=True), []

    def call(value: Any) -> Any:
        calls.append(1)
        return np.negative(value)

    counts = []
    for _ in range(60):
        calls.clear()
        rules.measure("f", -VECTORS, (StandIn(VECTORS, rules),), call)
        counts.append(len(calls))
    assert counts[0] == 40
    assert counts[-1] == 2


@pytest.mark.parametrize("wrong", [0, 1, 1777, 3999])
def test_one_wrong_value_of_a_first_block_is_found(wrong: int) -> None:
    values, rules = np.linspace(1, 2, 4000), Rules(measured=True)
    made = np.exp(values)
    made[wrong] = np.nextafter(made[wrong], 9)
    with pytest.raises(Refused, match=r"np\.exp gives other last digits"):
        rules.measure("exp", made, (StandIn(values, rules),), np.exp)


def test_later_blocks_are_compared_in_other_places_each() -> None:
    values, rules, seen = np.arange(100.0), Rules(measured=True), []

    def call(value: Any) -> Any:
        seen.append(int(value))
        return -value

    while len(seen) < 1 << 13:
        rules.measure("f", -values, (StandIn(values, rules),), call)
    seen.clear()
    for _ in range(50):
        rules.measure("f", -values, (StandIn(values, rules),), call)
    assert len(set(seen)) > 50


def test_functions_without_a_rule_are_refused_by_name() -> None:
    one = StandIn(VECTORS, Rules(measured=True))
    with pytest.raises(Refused, match=r"np\.partition has no rule"):
        np.partition(one, 1)
    with pytest.raises(Refused, match=r"np\.add.accumulate has no rule"):
        np.add.accumulate(one)
