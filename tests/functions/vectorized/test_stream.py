# SPDX-License-Identifier: Apache-2.0
import warnings
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.testing import check_restart
from tests.ops.iterating import Times, until_error

RANGE = di.data.Dataset.range
SLICES = di.data.Dataset.from_tensor_slices


@pytest.mark.parametrize("vectorize", [False, "auto", True])
def test_the_results_do_not_depend_on_vectorize(vectorize: Any) -> None:
    values = np.random.default_rng(3).normal(size=(1000, 3))
    dataset = SLICES(values).map(lambda x: x * 2 + 1, vectorize=vectorize).map(lambda x: x[:2], vectorize=vectorize)
    assert np.array_equal(np.stack(list(dataset)), (values * 2 + 1)[:, :2])


def test_it_may_be_restarted_anywhere() -> None:
    check_restart(RANGE(40).map(lambda x: x * 3, vectorize=True).batch(7))


def test_blocks_do_not_shrink_where_the_loop_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Times(monkeypatch, here=0.1)
    sizes = [loop(len(block)) for block in RANGE(100_000).map(lambda x: x * 3, vectorize=True).iter_blocks()]
    assert sizes[:3] == [64, 512, 4096]


def test_a_state_does_not_say_whether_it_was_vectorized() -> None:
    made = [RANGE(300).map(lambda x: x * 3, vectorize=how) for how in (True, False)]
    it = iter(made[0])
    _ = [next(it) for _ in range(100)]
    state = it.state()
    assert next(made[1].restore(state)) == 300
    assert state["fingerprint"] == iter(made[1]).state()["fingerprint"] if "fingerprint" in state else True


def test_elements_before_an_error_arrive() -> None:
    table = np.arange(200)
    before, error = until_error(RANGE(400).map(lambda x: table[x] * 2))
    assert before == [2 * i for i in range(200)]
    assert isinstance(error, IndexError)
    assert error.__notes__[0] == "on element np.int64(200)"


def test_warnings_are_those_of_single_calls() -> None:
    values = np.ones(400)
    values[300] = 0.0
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert list(SLICES(values).map(lambda x: 1 / x, vectorize=True))[300] == np.inf
    assert [str(w.message) for w in found if w.category is RuntimeWarning] == [
        "divide by zero encountered in scalar divide"
    ]


def test_single_calls_take_over_in_the_middle() -> None:
    factor = np.ones(1)
    dataset = RANGE(2000).map(lambda x: x * factor, vectorize=True)
    found = []
    for place, x in enumerate(dataset):
        found.append(float(x[0]))
        if place == 100:
            factor[0] = 2
    assert found[:64] == list(range(64))
    assert found[-100:] == [2 * i for i in range(1900, 2000)]
    assert "the array `factor`, which it reads, has changed" in dataset.explain()


def test_stats_and_notes_tell_what_happened() -> None:
    dataset = RANGE(1000).map(np.negative)
    assert dataset.explain().splitlines()[-2:] == ["notes:", "  map(map_func=negative): whole blocks"]
    with iter(dataset) as elements:
        _ = [next(elements) for _ in range(900)]
        assert elements.stats()["1:map"]["chose"] == "whole blocks"


def test_failures_keep_their_places() -> None:
    table = np.arange(5)
    assert RANGE(8).map(lambda x: table[x], vectorize=True).ignore_errors().to_list() == [0, 1, 2, 3, 4]
