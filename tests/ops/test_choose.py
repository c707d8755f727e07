# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.ops import choose
from tests.ops.iterating import until_error

Dataset = di.data.Dataset
RANGE = Dataset.range
CHOOSE = Dataset.choose_from_datasets
SAMPLE = Dataset.sample_from_datasets


def numbers(*values: int) -> di.data.Dataset:
    return Dataset.from_tensor_slices(np.array(values, np.int64))


@pytest.mark.parametrize(
    "stop, want",
    [(True, [0, 10, 1]), (False, [0, 10, 1, 11, 12])],
)
def test_a_data_set_that_ran_out(stop: bool, want: list[int]) -> None:
    made = CHOOSE([RANGE(2), RANGE(10, 13)], numbers(0, 1, 0, 0, 1, 0, 1), stop_on_empty_dataset=stop)
    assert made.to_list() == want


def test_a_number_out_of_range_is_an_error_after_what_came_before() -> None:
    before, error = until_error(CHOOSE([RANGE(3), RANGE(10, 13)], numbers(1, 0, 2, 0)))
    assert before == [10, 0]
    assert isinstance(error, InvalidArgumentError)
    assert "choose_from_datasets: the selector must give numbers from 0 to 1, got 2" in str(error)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: CHOOSE([], numbers(0)), InvalidArgumentError, "choose_from_datasets: Invalid `datasets`"),
        (
            lambda: CHOOSE([RANGE(1)], Dataset.range(2, output_type="int32")),
            TypeError,
            "choose_from_datasets: choice_dataset must give int64 scalars, got .*int32",
        ),
        (lambda: CHOOSE([RANGE(1)], [0]), TypeError, r"choose_from_datasets: expected a dataset, got \[0\]"),
        (
            lambda: CHOOSE([RANGE(1), RANGE(1).batch(1).map(lambda x: (x, x))], numbers(0)),
            TypeError,
            "choose_from_datasets: all datasets must have the same structure of elements",
        ),
        (
            lambda: CHOOSE([RANGE(1), RANGE(1, output_type="int32")], numbers(0)),
            TypeError,
            "choose_from_datasets: all datasets must have the same dtypes, got int64 and int32",
        ),
        (lambda: SAMPLE([]), InvalidArgumentError, "sample_from_datasets: Invalid `datasets`"),
        (
            lambda: SAMPLE([RANGE(1)], weights=[0.5, 0.5]),
            InvalidArgumentError,
            "sample_from_datasets: there must be one weight for each of the 1 datasets, got 2",
        ),
        (
            lambda: SAMPLE([RANGE(1), RANGE(1)], weights=[2, -1]),
            InvalidArgumentError,
            r"sample_from_datasets: weights must not be negative, got \[2.0, -1.0\]",
        ),
        *(
            (
                lambda weights=weights, balanced=balanced: SAMPLE([RANGE(1), RANGE(1)], weights, balanced=balanced),
                InvalidArgumentError,
                r"sample_from_datasets: weights and their sum must be finite, got \[",
            )
            for weights in ([float("inf"), 1], [1e308, 1e308])
            for balanced in (False, True)
        ),
    ],
)
def test_arguments_are_checked(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_data_set_left_alone_by_the_weights_is_returned_itself() -> None:
    only = RANGE(3)
    assert SAMPLE([only, RANGE(9)], weights=[1.0, 0.0]) is only


@pytest.mark.parametrize("seed", [1.5, True, "1"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_seed_that_is_no_integer_is_refused(seed: Any, count: int) -> None:
    with pytest.raises(TypeError, match=f"sample_from_datasets: seed must be an integer, got {seed!r}"):
        SAMPLE([RANGE(3)] * count, seed=seed)


def test_no_positive_weight_gives_nothing() -> None:
    assert SAMPLE([RANGE(3), RANGE(9)], weights=[0.0, 0.0]).to_list() == []


def test_every_element_is_drawn_once_when_exhausted_sources_are_passed_over() -> None:
    made = SAMPLE([RANGE(50), RANGE(100, 120)], weights=[0.9, 0.1], seed=3)
    assert sorted(made.to_list()) == [*range(50), *range(100, 120)]


@pytest.mark.parametrize(
    "made, count",
    [
        (lambda: SAMPLE([RANGE(3).repeat(), RANGE(3)]), di.data.INFINITE_CARDINALITY),  # TensorFlow 2.21 answers so
        (lambda: SAMPLE([RANGE(3), RANGE(3)]), di.data.UNKNOWN_CARDINALITY),
        # TensorFlow says infinite for these two, though they end.
        (lambda: SAMPLE([RANGE(3).repeat(), RANGE(3)], stop_on_empty_dataset=True), di.data.UNKNOWN_CARDINALITY),
        (lambda: CHOOSE([RANGE(3).repeat(), RANGE(3)], RANGE(2)), di.data.UNKNOWN_CARDINALITY),
    ],
)
def test_the_cardinality_of_choices(made: Callable[[], di.data.Dataset], count: int) -> None:
    assert made().cardinality() == count


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("choices", [[0, 1, 1, 0, 0, 1, 0, 0, 1], [0, 0, 0, 1]])
def test_elements_before_an_error_of_a_source_arrive(stop: bool, choices: list[int]) -> None:
    # TensorFlow 2.21 answers so; several elements are asked for at a time, and none of them may be lost.
    wrong = Dataset.from_tensor_slices(np.array([1, 2, 3, 0, 6]))
    wrong = wrong.map(lambda x: np.int64(12 // int(x)))
    made = CHOOSE([wrong, RANGE(9)], numbers(*choices, 0, 1, 0, 1), stop_on_empty_dataset=stop)
    before, error = until_error(made)
    assert before == ([12, 0, 1, 6, 4, 2] if len(choices) > 4 else [12, 6, 4, 0])
    assert isinstance(error, ZeroDivisionError)
    assert error.__notes__[0] == "on element np.int64(0)"


def test_datasets_that_have_run_out_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    gathered = choose.gathered
    monkeypatch.setattr(choose, "gathered", lambda *given: (calls.append(1), gathered(*given))[1])
    datasets = [di.data.Dataset.range(5 * k, 5 * k + 5) for k in range(100)]
    assert sorted(di.data.Dataset.sample_from_datasets(datasets, seed=1)) == list(range(500))
    assert len(calls) < 50


@pytest.mark.parametrize(
    "made",
    [
        lambda: CHOOSE([RANGE(3), RANGE(10, 13)], Dataset.from_tensors(np.int64(1)).repeat(), False),
        lambda: Dataset.sample_from_datasets([RANGE(3), RANGE(10, 13)], [1e-300, 1], seed=1),
        lambda: Dataset.sample_from_datasets(
            [RANGE(3), RANGE(10, 13)], Dataset.from_tensors([0.0, 1.0]).repeat(), seed=1
        ),
    ],
)
def test_datasets_that_are_never_chosen_do_not_hang(monkeypatch: pytest.MonkeyPatch, made: Any) -> None:
    monkeypatch.setattr(choose, "_MOST_PASSED", 5000)
    found, elements = [], iter(made())
    with pytest.raises(
        InvalidArgumentError, match=r"of those that have ended, \[1\], .* have not, \[0\]; .*stop_on_empty"
    ):
        found.extend(elements)
    assert found == [10, 11, 12]


def test_datasets_that_are_seldom_chosen_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_MOST_PASSED", 50_000)
    mixed = Dataset.sample_from_datasets([RANGE(3), RANGE(10, 13)], [1e-3, 1], seed=1)
    assert mixed.to_list() == [10, 11, 12, 0, 1, 2]
