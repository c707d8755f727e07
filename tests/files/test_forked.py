# SPDX-License-Identifier: Apache-2.0
"""A forked process says that it cannot use obstore, instead of waiting for an answer that does not come."""

import multiprocessing
import sys
from typing import Any

import pytest

import distinput as di
from distinput.files import mounts, paths

pytest.importorskip("obstore", reason="obstore is not installed")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    monkeypatch.setattr(paths, "_USED", {"here": False, "before": False})


def read(dataset: Any, answers: Any) -> None:
    try:
        answers.put(dataset.to_list())
    except di.errors.FailedPreconditionError as error:
        answers.put(str(error))


def in_a_fork(dataset: Any) -> Any:
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=read, args=(dataset, answers))
    child.start()
    child.join(60)
    return answers.get()


def test_after_the_parent_has_used_a_store_a_fork_refuses_it() -> None:
    from obstore.store import MemoryStore

    di.io.mount("lake://", MemoryStore())
    with di.io.TFRecordWriter("lake://a.tfrecord") as writer:
        writer.write(b"one")
    dataset = di.data.TFRecordDataset("lake://a.tfrecord")
    assert dataset.to_list() == [b"one"]
    answer = in_a_fork(dataset)
    assert "cannot open 'lake://a.tfrecord' here: this process was forked" in answer
    assert "multiprocessing_context='spawn'" in answer


def test_other_files_are_read_in_a_fork(tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    paths._USED["here"] = True
    assert in_a_fork(di.data.TextLineDataset(str(tmp_path / "a.txt"))) == [b"one"]
