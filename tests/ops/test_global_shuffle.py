# SPDX-License-Identifier: Apache-2.0
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.ops.iterating import state_bytes

RANGE = di.data.Dataset.range


def test_every_element_once_in_another_order() -> None:
    got = RANGE(1000).global_shuffle(seed=1).to_list()
    assert sorted(got) == list(range(1000)) != got


def test_a_seed_gives_one_order_per_pass() -> None:
    first, again = RANGE(100).global_shuffle(seed=1), RANGE(100).global_shuffle(seed=1)
    assert [first.to_list(), first.to_list()] == [again.to_list(), again.to_list()]
    assert first.to_list() != first.to_list()


def test_the_order_can_be_kept() -> None:
    kept = RANGE(100).global_shuffle(seed=1, reshuffle_each_iteration=False)
    assert kept.to_list() == kept.to_list()


def test_the_input_must_be_countable() -> None:
    message = (
        r"global_shuffle: the input's elements must be countable .* got filter; use shuffle\(.*, or index=True for text"
    )
    with pytest.raises(InvalidArgumentError, match=message):
        RANGE(3).filter(lambda x: True).global_shuffle()


def test_the_seed_must_be_a_whole_number() -> None:
    with pytest.raises(TypeError, match=r"global_shuffle: seed must be an integer, got 0\.5"):
        RANGE(3).global_shuffle(seed=0.5)


def test_the_state_holds_no_rows() -> None:
    assert state_bytes(RANGE(100_000).global_shuffle(seed=1), 50_000) < 300


def test_there_may_be_too_many_elements() -> None:
    with pytest.raises(InvalidArgumentError, match=r"global_shuffle: there must be at most 2\*\*62 elements"):
        RANGE(5).repeat(2**62).global_shuffle()
