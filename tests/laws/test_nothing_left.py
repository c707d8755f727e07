# SPDX-License-Identifier: Apache-2.0
"""Law 8: no thread, process and open file is left behind."""

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

import distinput as di
from distinput.testing import check_nothing_left
from distinput.testing.pipelines import Pipeline, pipelines
from tests.patience import threads_since

Dataset = di.data.Dataset


@settings(max_examples=max(4, settings().max_examples // 3))
@given(pipelines())
def test_random_pipelines_leave_nothing(pipeline: Pipeline) -> None:
    check_nothing_left(pipeline.build)


def fails_at(limit: int) -> Callable[[int], int]:
    def function(x: int) -> int:
        if x == limit:
            raise OSError("the disk is gone")
        return x

    return function


def slow(x: int) -> int:
    if x > 3:
        time.sleep(0.05)
    return x


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder, paths = tmp_path_factory.mktemp("files"), []
    for index in range(6):
        path = folder / f"{index}.tfrecord"
        with di.io.TFRecordWriter(str(path)) as writer:
            for row in range(50):
                writer.write(b"%d" % row * 2000)
        paths.append(str(path))
    return paths


PIPELINES: dict[str, Callable[[list[str]], di.data.Dataset]] = {
    "an error in a function": lambda _: Dataset.range(50).map(fails_at(20)).batch(4),
    "an error in threads": lambda _: Dataset.range(50).map(fails_at(20), num_parallel_calls=3).prefetch(4),
    "processes": lambda _: Dataset.range(50).map(np.negative, num_parallel_calls=2, processes=True).prefetch(4),
    "an error in a process": lambda _: Dataset.range(50).map(
        int.__neg__, num_parallel_calls=1, processes=True, output_signature=di.TensorSpec([], "int64")
    ),
    "an error in an interleave": lambda _: Dataset.range(9).interleave(
        lambda x: Dataset.range(9).map(fails_at(5)), cycle_length=4, num_parallel_calls=4
    ),
    "an endless prefetch": lambda _: Dataset.range(9).repeat().prefetch(5),
    "files ahead": lambda files: di.data.TFRecordDataset(files, num_parallel_reads=3).prefetch(2),
    "files one after the other": lambda files: di.data.TFRecordDataset(files).shuffle(7),
    "files in a flat_map": lambda files: Dataset.from_tensor_slices(files).flat_map(di.data.TFRecordDataset),
    "a file that is missing": lambda files: di.data.TFRecordDataset(
        [*files[:2], "none.tfrecord"], num_parallel_reads=2
    ),
    "a shuffle over a prefetch": lambda files: di.data.TFRecordDataset(files).prefetch(9).shuffle(7).batch(4),
    "a prefetch over a prefetch, beside what ends first": lambda _: Dataset.zip(
        Dataset.range(3), Dataset.range(10**9).map(slow).prefetch(1).map(lambda x: x + 1).prefetch(1)
    ),
    "a prefetch over a prefetch, beside an error": lambda _: Dataset.zip(
        Dataset.range(9).map(fails_at(2)), Dataset.range(10**9).map(slow).prefetch(1).map(lambda x: x + 1).prefetch(1)
    ),
    "a zip of endless ones": lambda _: Dataset.zip(
        Dataset.range(3).repeat().prefetch(2), Dataset.range(20).prefetch(3)
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_with_threads_and_files_leave_nothing(name: str, files: list[str]) -> None:
    check_nothing_left(lambda: PIPELINES[name](files))


@pytest.mark.parametrize(
    "again",
    [
        lambda: Dataset.range(3).map(lambda x: x, num_parallel_calls=2).repeat(60),
        lambda: Dataset.range(60).flat_map(lambda x: Dataset.range(2).map(lambda y: y, num_parallel_calls=2)),
        lambda: Dataset.range(60).flat_map(lambda x: Dataset.range(2).prefetch(1)),
        lambda: Dataset.range(60).interleave(lambda x: Dataset.range(2), cycle_length=2, num_parallel_calls=2),
    ],
)
def test_threads_do_not_pile_up_while_a_pass_runs(again: Callable[[], di.data.Dataset]) -> None:
    before = threading.enumerate()
    most = 0
    with iter(again()) as elements:
        for _ in elements:
            most = max(most, len(threads_since(before)))
    assert most <= 8


@pytest.mark.parametrize(
    "inner",
    [
        lambda: Dataset.range(64).map(lambda x: x, num_parallel_calls=8),
        lambda: Dataset.range(64).map(lambda x: x).on_workers("threads:2"),
    ],
)
def test_streams_that_end_early_leave_nothing_under_way(inner: Callable[[], di.data.Dataset]) -> None:
    with iter(Dataset.range(30).flat_map(lambda x: inner().take(3))) as elements:
        held = [len(elements._run.holding) for _ in elements]
    assert max(held) <= 1


def test_a_distributed_iterator_leaves_nothing(files: list[str]) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def steps() -> di.data.Dataset:
        distributed = strategy.experimental_distribute_dataset(di.data.TFRecordDataset(files).prefetch(3).batch(8))
        with iter(distributed) as iterator:
            next(iterator)
        return Dataset.range(2).map(np.int32)

    check_nothing_left(steps)
