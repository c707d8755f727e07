# SPDX-License-Identifier: Apache-2.0
"""Memory that is lent is written again only when nobody reads it, and never under a reader."""

import gc
import pickle
import sys
from typing import Any

import numpy as np
import pytest

from distinput.run import lent_memory
from distinput.run.lent_memory import Borrower, Lent, Stored, UnseenError, value_of

pytestmark = pytest.mark.skipif(
    not lent_memory.machine(), reason="memory is lent where there are memory files and /proc"
)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    lent_memory._KEPT.clear()
    now = [0.0]
    monkeypatch.setattr(lent_memory, "monotonic", lambda: now[0])
    return now


def written(value: Any) -> tuple[Lent, Stored]:
    lent = Lent()
    return lent, lent.put(value)


def sent(lent: Lent) -> Any:
    return pickle.loads(pickle.dumps(lent))


def room_of(lent: Lent) -> int:
    return lent.places[0][0].inode


def test_a_value_is_what_it_was() -> None:
    value = {"x": np.arange(10), "y": [np.zeros((2, 3), np.uint8), "text"]}
    lent, stored = written(value)
    there = value_of(stored, Borrower(4).taken(sent(lent)))
    np.testing.assert_equal(there, value)


def test_a_room_is_written_again_when_its_reader_has_dropped_all_views(clock: list[float]) -> None:
    borrower = Borrower(4)
    lent, stored = written(np.arange(10))
    room, there = room_of(lent), value_of(stored, borrower.taken(sent(lent)))
    part = there[2:4]
    del lent, there
    clock[0] += 1
    other, _ = written(np.zeros(10))
    assert room_of(other) != room
    assert part.tolist() == [2, 3]
    del part
    gc.collect()
    last, _ = written(np.ones(10))
    assert room_of(last) == room


def test_a_room_rests_before_it_is_written_again(clock: list[float]) -> None:
    lent, _ = written(np.arange(10))
    room = room_of(lent)
    del lent
    soon, _ = written(np.arange(10))
    clock[0] += 1
    late, _ = written(np.arange(10))
    assert room_of(soon) != room == room_of(late)


def test_who_comes_too_late_is_told_so(clock: list[float]) -> None:
    lent, _ = written(np.arange(10))
    news = sent(lent)
    del lent
    with pytest.raises(UnseenError, match="has another message"):
        Borrower(4).taken(news)
    clock[0] += 1
    other, stored = written(np.zeros(3))
    assert value_of(stored, Borrower(4).taken(sent(other))).tolist() == [0, 0, 0]


def test_memory_of_a_process_that_ended_is_not_seen() -> None:
    import subprocess

    code = (
        "import pickle, sys, numpy as np; from distinput.run.lent_memory import Lent; lent = Lent(); lent.put(np.arange(9)); "
        "sys.stdout.buffer.write(pickle.dumps(lent))"
    )
    news = pickle.loads(
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=300).stdout
    )
    with pytest.raises(UnseenError):
        Borrower(4).taken(news)
