# SPDX-License-Identifier: Apache-2.0
"""Where a thread cannot be started, a pass ends in an error that says so, and the next pass gives all elements."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.exhausted import ThreadStarts
from tests.patience import threads_since, wait_until

Dataset = di.data.Dataset


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = tmp_path_factory.mktemp("files")
    paths = [str(folder / f"{index}.tfrecord") for index in range(4)]
    for path in paths:
        with di.io.TFRecordWriter(path) as writer:
            for row in range(20):
                writer.write(b"%d" % row * 2000)
    return paths


PIPELINES: dict[str, Callable[[list[str]], di.data.Dataset]] = {
    "map": lambda _: Dataset.range(50).map(lambda x: x + 1, num_parallel_calls=3).prefetch(4),
    "errors left out": lambda _: Dataset.range(50).map(lambda x: x + 1, num_parallel_calls=3).ignore_errors(),
    "interleave": lambda _: Dataset.range(4).interleave(
        lambda x: Dataset.range(5).map(lambda y: y + 1, num_parallel_calls=2), cycle_length=2, num_parallel_calls=2
    ),
    "prefetches": lambda _: Dataset.range(20).prefetch(1).map(lambda x: x + 1).prefetch(1),
    "files ahead": lambda files: di.data.TFRecordDataset(files, num_parallel_reads=3).prefetch(2),
    "functions of files": lambda files: Dataset.from_tensor_slices(files).map(di.io.read_file, num_parallel_calls=2),
}


@pytest.mark.parametrize("lasts", [1, 10**6], ids=["one", "all"])
@pytest.mark.parametrize("name", PIPELINES)
def test_a_pass_without_a_thread_is_an_error_and_the_next_one_is_whole(
    name: str, lasts: int, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = PIPELINES[name](files)
    whole = pipeline.to_list()
    starts = ThreadStarts(monkeypatch)
    assert pipeline.to_list() == whole
    failed = 0
    for first in range(1, starts.count + 1):
        starts.fail(first, lasts)
        failed += _fails(pipeline, whole)
        starts.fail(0, 0)
        assert pipeline.to_list() == whole
    assert failed


def _fails(pipeline: di.data.Dataset, whole: list[Any]) -> bool:
    """Whether a pass ends in an error, and not in all elements; either way it leaves no thread."""
    before = threading.enumerate()
    with iter(pipeline) as elements:
        try:
            found, said = list(elements), ""
        except RuntimeError as error:
            found, said = whole, str(error)
    assert found == whole
    assert said in ("", "can't start new thread")
    wait_until(lambda: not threads_since(before))
    return bool(said)


def test_replicas_without_a_thread_leave_none(monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    starts, before = ThreadStarts(monkeypatch), threading.enumerate()
    starts.fail(2)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        strategy.run(lambda: np.int64(1))
    wait_until(lambda: not threads_since(before))
    assert strategy.experimental_local_results(strategy.run(lambda: np.int64(1))) == (1, 1, 1)
