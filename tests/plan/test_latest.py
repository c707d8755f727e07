# SPDX-License-Identifier: Apache-2.0
import pickle

import pytest

from distinput.plan.node import Latest


def test_a_value_is_computed_when_the_key_changes() -> None:
    calls: list[int] = []

    def compute(key: int) -> int:
        calls.append(key)
        return 10 * key

    latest = Latest[int, int]()
    assert [latest.of(key, lambda key=key: compute(key)) for key in (1, 1, 2, 2, 1)] == [10, 10, 20, 20, 10]
    assert calls == [1, 2, 1]


def test_none_is_a_value() -> None:
    latest = Latest[int, None]()
    assert latest.of(0, lambda: None) is None
    assert latest.of(0, lambda: pytest.fail("computed again")) is None


def test_an_error_keeps_the_value_of_the_key_before() -> None:
    latest = Latest[int, int]()
    latest.of(1, lambda: 7)
    with pytest.raises(ZeroDivisionError):
        latest.of(2, lambda: 1 // 0)
    assert latest.of(1, lambda: 8) == 7


def test_it_travels_to_other_processes() -> None:
    latest = Latest[int, str]()
    latest.of(3, lambda: "three")
    assert pickle.loads(pickle.dumps(latest)).of(3, lambda: "again") == "three"
