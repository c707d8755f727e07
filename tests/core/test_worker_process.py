# SPDX-License-Identifier: Apache-2.0
"""What a worker process does with what its parent sends, on a thread of this one, and in a process of its own."""

import os
import pickle
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from distinput.run import processes
from distinput.run.processes import this_is_one
from distinput.run.segments import Closed, SegmentConnection


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[SegmentConnection]:
    """A channel to a worker that runs on a thread, and ends when the channel is closed."""
    monkeypatch.setattr(processes, "_HERE", False)
    monkeypatch.setattr(processes.signal, "signal", lambda *_: None)  # only the main thread may set it
    monkeypatch.setattr(sys, "path", list(sys.path))
    ours, theirs = socket.socketpair()
    ours.settimeout(60)
    thread = threading.Thread(target=processes.main, args=(theirs.detach(),), daemon=True)
    thread.start()
    channel = SegmentConnection(ours)
    yield channel
    channel.close()
    thread.join(60)
    assert not thread.is_alive()


def start(parent: SegmentConnection, function: Any) -> Any:
    parent.send((sys.path, None, pickle.dumps(function)))
    return parent.receive()


def ask(parent: SegmentConnection, argument: Any) -> Any:
    parent.send(argument)
    return parent.receive()


def test_this_process_is_no_worker() -> None:
    assert not this_is_one()


def test_arguments_are_answered_in_order(parent: SegmentConnection) -> None:
    assert start(parent, len) == (True, None)
    assert [ask(parent, argument) for argument in ("abc", [], (1,))] == [(3, None), (0, None), (1, None)]
    assert this_is_one()


def test_an_error_is_told_and_the_next_argument_is_served(parent: SegmentConnection) -> None:
    start(parent, len)
    answer, text = ask(parent, 5)
    assert answer is None
    assert "TypeError: object of type 'int' has no len()" in text
    assert "Traceback" in text
    assert ask(parent, "ab") == (2, None)


def test_an_answer_that_cannot_be_pickled_is_an_error(parent: SegmentConnection) -> None:
    start(parent, memoryview)
    answer, text = ask(parent, b"ab")
    assert answer is None
    assert "memoryview" in text
    assert "not 'int'" in ask(parent, 7)[1]


def test_a_function_that_cannot_be_loaded_ends_the_worker(parent: SegmentConnection) -> None:
    parent.send((sys.path, None, b"no pickle"))
    answer, text = parent.receive()
    assert answer is None
    assert text.startswith("UnpicklingError: ")
    with pytest.raises(Closed):
        parent.receive()


def test_the_path_of_the_parent_is_taken_over(parent: SegmentConnection) -> None:
    parent.send((["somewhere", *sys.path], None, pickle.dumps(os.getenv)))
    assert parent.receive() == (True, None)
    assert sys.path[0] == "somewhere"
