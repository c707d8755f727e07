# SPDX-License-Identifier: Apache-2.0
"""Workers that shuffle apart do not divide their data: `shard_batches` refuses, `shard` warns, and nobody else hears of it."""

import multiprocessing
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import distinput as di
from distinput.errors import InputWarning, InvalidArgumentError

Dataset = di.data.Dataset


def mixed(seed: int | None) -> Any:
    return Dataset.sample_from_datasets([Dataset.range(50), Dataset.range(50, 100)], seed=seed)


def listed(folder: Any, **given: Any) -> Any:
    for i in range(4):
        (folder / f"{i}.txt").write_text("a\n")
    return Dataset.list_files(f"{folder}/*.txt", **given)


RANDOM: dict[str, Callable[[Any, int | None], Any]] = {
    "shuffle": lambda _, seed: Dataset.range(100).shuffle(100, seed=seed),
    "global_shuffle": lambda _, seed: Dataset.range(100).global_shuffle(seed=seed),
    "list_files": lambda folder, seed: listed(folder, seed=seed),
    "sample_from_datasets": lambda _, seed: mixed(seed),
    "below other steps": lambda _, seed: Dataset.range(9).shuffle(9, seed=seed).map(lambda x: x + 1).repeat(2),
    "one pass like another": lambda _, seed: Dataset.range(9).shuffle(9, seed=seed, reshuffle_each_iteration=False),
    "one of two sources": lambda _, seed: Dataset.zip(Dataset.range(9), Dataset.range(9).shuffle(9, seed=seed)),
    "inside a function": lambda _, seed: Dataset.range(3).flat_map(lambda x: Dataset.range(9).shuffle(9, seed=seed)),
    "inside a window": lambda _, seed: Dataset.range(9).group_by_window(
        lambda x: x % 2, lambda key, window: window.shuffle(9, seed=seed), window_size=4
    ),
    "inside an interleave": lambda _, seed: Dataset.range(3).interleave(lambda x: Dataset.range(9).shuffle(9, seed)),
}


@pytest.mark.parametrize("kind", RANDOM)
def test_without_a_seed_shard_batches_refuses_and_shard_warns(kind: str, tmp_path: Any) -> None:
    dataset = RANDOM[kind](tmp_path, None)
    with pytest.raises(InvalidArgumentError, match=r"was given no seed.*seed=1"):
        dataset.batch(4).shard_batches(num_shards=2, index=0)
    with pytest.warns(InputWarning, match=r"records will be lost and others delivered twice.*seed=1") as told:
        dataset.shard(2, 0)
    assert [warning.filename for warning in told] == [__file__]


@pytest.mark.parametrize("kind", RANDOM)
def test_with_a_seed_nobody_complains(kind: str, tmp_path: Any) -> None:
    dataset = RANDOM[kind](tmp_path, 7)
    parts = [list(dataset.shard(2, i).enumerate()) for i in range(2)]
    assert parts[0] or parts[1]
    dataset.batch(4).shard_batches(num_shards=2, index=0)


def test_what_is_no_disagreement(tmp_path: Any) -> None:
    shuffled = Dataset.range(100).shuffle(100)
    shuffled.shard(1, 0)
    shuffled.batch(4).shard_batches(1, 0)
    shuffled.shard(di.data.experimental.SHARD_HINT, di.data.experimental.SHARD_HINT)
    Dataset.range(100).shard(2, 1).shuffle(100)
    Dataset.range(100).shuffle(1).shard(2, 1)
    Dataset.range(9).flat_map(lambda x: Dataset.range(x)).shard(2, 1)
    listed(tmp_path, shuffle=False).shard(2, 1)
    Dataset.sample_from_datasets([Dataset.range(5), Dataset.range(5)], weights=[1.0, 0.0]).shard(2, 1)
    di.data.experimental.auto_shard_dataset(shuffled.batch(2), 2, 0)  # the strategy shares a seed beforehand


def test_one_warning_for_a_line(tmp_path: Any) -> None:
    shuffled = Dataset.range(100).shuffle(100)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for epoch in range(3):
            shuffled.shard(2, epoch % 2)
    assert [each.category for each in told].count(di.errors.InputWarning) == 1


def _parts(inherited: Any, index: int, answers: Any) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        numbers = [int(x) for x in inherited.shard(2, index)]
        rows = [row for batch in inherited.batch(5).shard_batches(2, index) for row in batch.tolist()]
    answers.put(
        (numbers, rows, [str(warning.message) for warning in told if warning.category is di.errors.InputWarning])
    )


def test_processes_that_were_given_the_dataset_share_the_seed_it_drew() -> None:
    context = multiprocessing.get_context("fork")
    answers, dataset = context.Queue(), Dataset.range(40).shuffle(40)
    workers = [context.Process(target=_parts, args=(dataset, index, answers)) for index in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        for worker in workers:
            worker.start()
    found = [answers.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert sorted(found[0][0] + found[1][0]) == sorted(found[0][1] + found[1][1]) == list(range(40))
    assert [told for _, _, told in found] == [[], []]


def test_a_restart_in_a_window_that_is_shuffled_goes_on_in_its_order() -> None:
    dataset = Dataset.range(40).group_by_window(lambda x: x % 2, lambda key, window: window.shuffle(9), window_size=8)
    with iter(dataset) as iterator:
        first = [next(iterator) for _ in range(11)]
        state = iterator.state()
        rest = list(iterator)
    again = Dataset.range(40).group_by_window(lambda x: x % 2, lambda key, window: window.shuffle(9), window_size=8)
    assert list(again.restore(state)) == rest
    assert sorted(first + rest) == list(range(40))
