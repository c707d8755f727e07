# SPDX-License-Identifier: Apache-2.0
"""A recording gives the elements of the pass, counts them, and leaves nothing behind; other passes know nothing of it."""

import errno
import html
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import distinput as di
from distinput.data.recording import Recording, recorded
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.files.sink import Unfinished
from distinput.run.run import OpCounters, Run
from distinput.testing.elements import difference, exact
from distinput.testing.pipelines import Pipeline, pipelines
from tests.depth import cases
from tests.patience import threads_since

RANGE = di.data.Dataset.range


@settings(max_examples=cases(12, 400), deadline=None)
@given(pipelines())
def test_the_elements_are_those_of_the_pass_and_are_counted(pipeline: Pipeline) -> None:
    dataset = pipeline.build()
    plain = list(dataset.iter_pass(0))
    dataset._passes.begun = 0
    recording = Recording(dataset)
    taken = list(recording)
    assert recording.delivered == len(taken) == len(plain)
    assert difference(list(map(exact, taken)), list(map(exact, plain))) is None
    stats = recording.stats()
    last = f"{len(list(_walk(dataset))) - 1}:"
    assert sum(told["rows"] for key, told in stats.items() if key.startswith(last)) == len(taken)
    assert all(told["bytes"] >= 0 for told in stats.values() if "bytes" in told)
    if "on_workers" in repr(pipeline.recipe):
        return  # what workers do is counted, and drawn by none of their clocks
    for key, told in stats.items():
        spans = [span for span in recording.trace.spans if span.step == key and span.kind == "step"]
        if not key.startswith("inner:"):
            assert sum(span.rows for span in spans) == told["rows"]


def _walk(dataset: di.data.Dataset) -> list[object]:
    from distinput.plan.node import walk

    return list(walk(dataset._runs().node))


def test_a_pass_that_is_not_recorded_has_plain_counters() -> None:
    dataset = RANGE(100).batch(3).prefetch(2)
    list(Recording(dataset))
    list(dataset)
    assert "bytes" not in dataset.stats()["1:batch"]
    iterator = iter(dataset)
    assert type(iterator._run) is Run
    assert {type(counter) for counter in iterator.counted[1].values()} == {OpCounters}
    iterator.close()


def test_what_a_recording_shows() -> None:
    recording = Recording(di.data.Dataset.range(40).batch(8))
    assert repr(recording) == "<Recording of <Dataset batch(8): 5 elements of int64[?]>, which has not begun>"
    assert list(recording)
    assert re.fullmatch(r"<Recording 5 elements in [\d.]+ \S+, slowest: \S+>", repr(recording))
    assert recording.stats().bottleneck in html.unescape(recording._repr_html_())


def test_a_recording_is_of_one_pass() -> None:
    recording = Recording(RANGE(3))
    assert list(recording) == [0, 1, 2]
    with pytest.raises(FailedPreconditionError, match="one pass"):
        iter(recording)


def test_passes_are_numbered_as_without_a_recording() -> None:
    dataset = RANGE(20).shuffle(20, seed=1)
    first, second = (list(dataset.iter_pass(number)) for number in (0, 1))
    dataset = RANGE(20).shuffle(20, seed=1)
    a, b = Recording(dataset), Recording(dataset)
    assert (list(a), list(b)) == (first, second)
    assert (a.epoch, b.epoch) == (0, 1)


def test_work_in_threads_is_noted_where_it_happens() -> None:
    dataset = RANGE(64).map(lambda x: x + 1, num_parallel_calls=2).prefetch(8)
    before = threading.enumerate()
    recording = recorded(dataset)
    assert threads_since(before) == []
    kinds = {(span.step, span.kind) for span in recording.trace.spans}
    assert {("1:map", "task"), ("1:map", "step"), ("2:prefetch", "wait")} <= kinds
    tasks = {span.thread for span in recording.trace.spans if span.kind == "task"}
    assert all(recording.trace.threads[thread].startswith("distinput") for thread in tasks)
    assert {sample.what for sample in recording.trace.samples} == {"memory", "2:prefetch"}


def test_a_pass_that_is_broken_off_ends() -> None:
    recording = recorded(RANGE(10**9).prefetch(2), elements=5)
    assert recording.delivered == 5
    seconds = recording.seconds
    assert seconds == recording.seconds > 0
    assert recorded(RANGE(3), elements=0).delivered == 0
    assert recorded(RANGE(10**6).repeat(), seconds=0.01).seconds > 0


def test_a_dataset_without_end_needs_one() -> None:
    with pytest.raises(InvalidArgumentError, match=r"give seconds= or elements="):
        recorded(RANGE(3).repeat())


def test_bytes_are_those_of_the_blocks() -> None:
    recording = recorded(di.data.Dataset.from_tensor_slices(np.zeros((100, 4), np.float32)).batch(10))
    assert recording.stats()["1:batch"]["bytes"] == 1600


def test_an_error_ends_the_recording(tmp_path: Path) -> None:
    def broken(x: np.int64) -> np.int64:
        if x == 3:
            raise KeyError("three")
        return x

    recording = Recording(RANGE(5).map(broken))
    with pytest.raises(KeyError):
        list(recording)
    assert recording.delivered == 3
    recording.write_report(tmp_path / "report.html")
    assert "3</b>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_steps_of_a_distributed_dataset_are_recorded(tmp_path: Path) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    distributed = strategy.experimental_distribute_dataset(RANGE(11).map(lambda x: x + 1).batch(4))
    recording = Recording(distributed)
    total = sum(int(strategy.reduce("SUM", step, axis=0)) for step in recording)
    assert (total, recording.delivered, recording.rows) == (66, 3, [6, 5])
    assert any(told["rows"] == 11 for told in recording.stats().values())
    recording.write_report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "steps delivered" in text
    assert "replica 1" in text


def test_rows_that_cannot_be_counted_are_left_out() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0"])
    dataset = di.data.Dataset.from_tensors((np.zeros(2), np.zeros(3)))
    recording = Recording(strategy.distribute_datasets_from_function(lambda _: dataset))
    assert len(list(recording)) == 1
    assert recording.rows == []


def test_the_statistics_of_the_dataset_are_those_of_its_latest_pass() -> None:
    dataset = RANGE(6).batch(2)
    list(Recording(dataset))
    assert dataset.stats()["1:batch"]["bytes"] > 0


def test_a_full_disk_leaves_the_older_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("an older one", encoding="utf-8")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Unfinished, "publish", full)
        with pytest.raises(OSError, match="No space left"):
            di.data.Dataset.range(3).report(path)
    assert [(file.name, file.read_text(encoding="utf-8")) for file in tmp_path.iterdir()] == [
        ("report.html", "an older one")
    ]
    di.data.Dataset.range(3).report(path)
    assert "<html" in path.read_text(encoding="utf-8")
