# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.experimental import service
from distinput.errors import InvalidArgumentError
from tests.distribute.workers import on_workers

RANGE = di.data.Dataset.range


def uncounted(n: int) -> di.data.Dataset[Any]:
    return RANGE(n).filter(lambda _: True)


@pytest.mark.parametrize("make", [RANGE, uncounted])
@pytest.mark.parametrize("fractions", [(0.8,), (0.7, 0.2), (0.5, 0.25, 0.25), (1 / 3, 1 / 3), (0.123,), (1.0,)])
@pytest.mark.parametrize("n", [0, 1, 7, 250])
def test_every_element_is_in_one_part_in_order(
    make: Callable[[int], di.data.Dataset[Any]], fractions: tuple[float, ...], n: int
) -> None:
    parts = [part.to_list() for part in make(n).split(*fractions, seed=3)]
    assert sorted(chain(*parts)) == list(range(n))
    assert all(part == sorted(part) for part in parts)
    assert len(parts) == len(fractions) + (sum(fractions) < 0.999)


@pytest.mark.parametrize("make", [RANGE, uncounted])
@pytest.mark.parametrize("n", [0, 1, 6, 7, 8, 100])
def test_every_element_is_tested_in_one_fold_and_trained_with_in_the_others(
    make: Callable[[int], di.data.Dataset[Any]], n: int
) -> None:
    folds = [make(n).kfold(7, i, seed=2) for i in range(7)]
    assert sorted(chain(*[test.to_list() for _, test in folds])) == list(range(n))
    assert {len(test.to_list()) for _, test in folds} <= {n // 7, n // 7 + 1}
    for train, test in folds:
        assert sorted(train.to_list() + test.to_list()) == list(range(n))


def test_sizes_are_known_and_exact_to_a_group() -> None:
    for n in range(40):
        parts = RANGE(n).split(0.7, 0.2, seed=5)
        assert [len(part) for part in parts] == [len(part.to_list()) for part in parts]
        assert abs(len(parts[0]) - 0.7 * n) < 10
    assert [len(part) for part in RANGE(1000).split(0.9, seed=1)] == [900, 100]


def test_elements_added_at_the_end_leave_the_others_where_they_are() -> None:
    few, many = [RANGE(n).split(0.3, 0.3, seed=4) for n in (53, 91)]
    for before, after in zip(few, many, strict=True):
        assert before.to_list() == [n for n in after.to_list() if n < 53]


def test_another_seed_is_another_split_and_none_is_the_same_in_every_process() -> None:
    first = [RANGE(100).split(0.5, seed=seed)[0].to_list() for seed in (0, 1, -1, 2**70)]
    assert len({str(each) for each in first}) == 4
    assert RANGE(100).split(0.5)[0].to_list() == first[0]


def test_parts_are_drawn_evenly() -> None:
    counts = np.zeros(20, int)
    for seed in range(400):
        counts[RANGE(20).split(0.25, seed=seed)[0].to_list()] += 1
    assert np.abs(counts - 100).max() < 40  # more than four deviations


def test_elements_are_found_by_position() -> None:
    train, test = RANGE(1000).global_shuffle(seed=1, reshuffle_each_iteration=False).kfold(9, 4)
    for part in (train, test):
        elements = part.to_list()
        assert part[[0, 5, -1, 60]] == [elements[i] for i in (0, 5, -1, 60)]
        assert sorted(part.global_shuffle(seed=2).to_list()) == sorted(elements)


def test_batches_are_split_whole() -> None:
    train, test = RANGE(20).batch(3).split(0.5, seed=1)
    assert sorted(map(tuple, train.to_list() + test.to_list())) == [
        tuple(range(i, min(i + 3, 20))) for i in range(0, 20, 3)
    ]


def test_parts_of_an_endless_dataset_are_endless() -> None:
    train, test = di.data.Dataset.counter().split(0.9, seed=1)
    assert train.cardinality() == test.cardinality() == di.data.INFINITE_CARDINALITY
    assert test.skip(10_000).take(1).to_list()[0] // 10 == 10_000


def test_broken_records_belong_to_a_part_too() -> None:
    def fails(x: Any) -> Any:
        if x % 4 == 1:
            raise ValueError("broken")
        return x

    whole = RANGE(40).split(0.6, seed=1)
    parts = RANGE(40).map(fails).split(0.6, seed=1)
    for part, all_of_it in zip(parts, whole, strict=True):
        assert part.ignore_errors().to_list() == [x for x in all_of_it.to_list() if x % 4 != 1]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_share_the_same_parts(workers: int, tmp_path: Any) -> None:
    RANGE(60).map(lambda n: {"n": n}).write(tmp_path / "data", "parquet", shards=6)
    folder = str(tmp_path / "data")

    def numbers(part: int) -> list[int]:
        def body(strategy: Any, _: int) -> list[int]:
            dataset = di.data.FileDataset(folder).split(0.8, seed=7)[part].batch(6)
            steps = strategy.experimental_distribute_dataset(dataset)
            return [int(n) for step in steps for each in strategy.experimental_local_results(step) for n in each["n"]]

        return sorted(chain(*on_workers([1] * workers, body)))

    expected = [sorted(x["n"] for x in part.to_list()) for part in di.data.FileDataset(folder).split(0.8, seed=7)]
    assert [numbers(0), numbers(1)] == expected


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda ds: ds.shuffle(9, seed=1),
            "split: the parts are of positions, and shuffle.*other records there in each pass",
        ),
        (lambda ds: ds.global_shuffle(), "split first and shuffle the parts, or give it a seed and reshuffle"),
        (lambda ds: ds.shuffle(9, reshuffle_each_iteration=False), "or process, so a record would be in several parts"),
        (lambda ds: ds.repeat(2), "repeat.*several positions.*split first and repeat the parts"),
        (
            lambda ds: ds.sample_from_datasets([ds, RANGE(50)], [0.5, 0.5], balanced=True, on_end="repeat"),
            "several positions.*split first and repeat the parts",
        ),
        (
            lambda ds: ds.sample_from_datasets([ds, RANGE(50)], di.data.MixtureWeights([1, 1]), balanced=True),
            "puts other records there in each pass",
        ),
        (
            lambda ds: ds.apply(service.distribute("distributed_epoch", ThreadPoolExecutor(1), job_name="parts")),
            "puts other records there in each pass",
        ),
    ],
)
def test_records_that_would_be_in_several_parts_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make(RANGE(9)).split(0.8)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda ds: ds.split(), InvalidArgumentError, r"takes fractions that sum to at most 1, .* got \(\)"),
        (lambda ds: ds.split(0.8, 0.3), InvalidArgumentError, r"sum to at most 1, .* got \(0.8, 0.3\)"),
        (lambda ds: ds.split(0), InvalidArgumentError, "split: a fraction must be above 0 and at most 1, got 0"),
        (lambda ds: ds.split(1.5), InvalidArgumentError, "above 0 and at most 1, got 1.5"),
        (lambda ds: ds.split(float("nan")), TypeError, "split: a fraction must be a number, got nan"),
        (lambda ds: ds.split(Decimal("inf")), TypeError, "split: a fraction must be a number, got Decimal"),
        (lambda ds: ds.split("a"), TypeError, "split: a fraction must be a number, got 'a'"),
        (lambda ds: ds.split(0.12345678), InvalidArgumentError, "common denominator of at most 10,000.*round them"),
        (lambda ds: ds.split(0.5, seed=None), TypeError, "split: seed must be an integer, got None"),
        (lambda ds: ds.kfold(1, 0), InvalidArgumentError, "kfold: k must be at least 2, got 1"),
        (lambda ds: ds.kfold(10_001, 0), InvalidArgumentError, "kfold: k must be at most 10,000, got 10001"),
        (lambda ds: ds.kfold(3, 3), InvalidArgumentError, "kfold: i must be from 0 to 2, got 3"),
        (lambda ds: ds.kfold(3, 0.5), TypeError, "kfold: i must be an integer, got 0.5"),
    ],
)
def test_arguments_are_checked(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(RANGE(9))
