# SPDX-License-Identifier: Apache-2.0
"""Memory that is lent is written again only when nobody reads it, and never under a reader."""

import gc
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distinput.run import lent_memory
from distinput.run.lent_memory import Borrower, Lent, Stored, UnseenError, value_of
from distinput.values.buffers import FEWEST_BYTES, empty, is_pooled, made_in

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
    lent, stored = written(np.arange(FEWEST_BYTES))
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


def test_a_small_array_that_is_kept_does_not_hold_a_room(clock: list[float]) -> None:
    lent, stored = written([np.zeros(FEWEST_BYTES, np.uint8), np.arange(4)])
    room, (_, small) = room_of(lent), value_of(stored, Borrower(4).taken(sent(lent)))
    del lent, _
    clock[0] += 1
    other, _ = written(np.zeros(10))
    assert room_of(other) == room
    assert small.tolist() == [0, 1, 2, 3]
    assert small.flags.writeable


def test_a_room_rests_before_it_is_written_again(clock: list[float]) -> None:
    lent, _ = written(np.arange(10))
    room = room_of(lent)
    del lent
    soon, _ = written(np.arange(10))
    clock[0] += 1
    late, _ = written(np.arange(10))
    assert room_of(soon) != room == room_of(late)


def test_an_array_that_is_made_in_a_room_is_not_copied() -> None:
    lent = Lent()
    with made_in(lent):
        made = empty((3, FEWEST_BYTES), np.dtype(np.uint8))
    made[:] = 7
    stored = lent.put([made])
    made[:] = 9
    (there,) = value_of(stored, Borrower(4).taken(sent(lent)))
    assert there.shape == made.shape
    assert set(there.ravel().tolist()) == {9}, "a copy has 7"


def test_arrays_that_are_kept_for_the_end_stay_where_they_were_made() -> None:
    lent, made = Lent(), []
    with made_in(lent):
        for number in range(2 * lent_memory._ROOM // FEWEST_BYTES):  # more than may be there unkept
            made.append(empty((FEWEST_BYTES,), np.dtype(np.uint8)))
            assert lent.keep([made[-1]], 0), number
    other = np.zeros(9, np.uint8)
    stored = lent.put([*made, other])
    for array in [*made, other]:
        array[:] = 9
    *there, copy = value_of(stored, Borrower(4).taken(sent(lent)))
    assert all(set(array.tolist()) == {9} for array in there)
    assert set(copy.tolist()) == {0}


def test_arrays_that_would_be_copied_are_not_kept() -> None:
    lent = Lent()
    with made_in(lent):
        made = empty((2, FEWEST_BYTES), np.dtype(np.uint8))
    elsewhere = np.zeros(9, np.uint8)
    assert not lent.keep([made, elsewhere], 8)
    assert not lent.keep([made[:, ::2]], 8)
    assert not lent.keep([made, made[:]], 8), "one memory is given once"
    assert lent.keep([made, elsewhere], 9)
    assert not lent.keep([made], 8), "it is kept already"


def test_arrays_over_the_same_memory_are_handed_over_apart() -> None:
    lent = Lent()
    with made_in(lent):
        made = empty((2, FEWEST_BYTES), np.dtype(np.uint8))
    made[:] = 7
    one, other, row = value_of(lent.put([made, made[:], made[1]]), Borrower(4).taken(sent(lent)))
    one[:] = 8
    assert set(other.ravel().tolist()) == set(row.tolist()) == {7}


def test_memory_of_arrays_that_were_dropped_or_put_is_as_in_a_pool() -> None:
    lent = Lent()
    with made_in(lent):
        places = []
        for _ in range(5):
            array = empty((FEWEST_BYTES,), np.dtype(np.uint8))
            assert is_pooled(array.base)
            places.append(array.ctypes.data)
            del array
        assert len(set(places)) == 1
        array = empty((FEWEST_BYTES,), np.dtype(np.uint8))
        lent.put(array)
        del array
        assert empty((FEWEST_BYTES,), np.dtype(np.uint8)).ctypes.data not in places, "what was put stays"


def test_rooms_hold_few_arrays_that_nobody_puts() -> None:
    lent = Lent()
    with made_in(lent):
        held = [empty((FEWEST_BYTES,), np.dtype(np.uint8)) for _ in range(4 * lent_memory._ROOM // FEWEST_BYTES)]
    assert sum(place.size for place, _ in lent.places) <= 2 * lent_memory._ROOM
    assert len({array.ctypes.data for array in held}) == len(held)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_room_in_which_this_process_has_an_array_is_not_written_again(keeps: bool, clock: list[float]) -> None:
    lent = Lent()
    with made_in(lent):
        array = empty((FEWEST_BYTES,), np.dtype(np.uint8))
    array[:] = 5
    lent.put(array)
    kept, room = array[3:] if keeps else None, room_of(lent)
    del array, lent
    clock[0] += 1
    other, _ = written(np.zeros(FEWEST_BYTES, np.uint8))
    assert (room_of(other) == room) is not keeps
    assert kept is None or set(kept.tolist()) == {5}


def is_mapped(inode: int) -> bool:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return any(line.split()[4:] == [str(inode), "/memfd:distinput", "(deleted)"] for line in lines)


def test_rooms_that_are_not_written_again_are_given_back_by_their_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lent_memory, "_MOST_KEPT", 0)
    borrower, rooms = Borrower(4), []
    for _ in range(3):
        lent, stored = written(np.arange(10))
        rooms.append(room_of(lent))
        assert value_of(stored, borrower.taken(sent(lent))).tolist() == list(range(10))
        del lent
    assert [is_mapped(room) for room in rooms] == [False, False, True]


def test_a_child_leaves_the_rooms_of_its_parent_as_they_are() -> None:
    lent, stored = written(np.arange(10))
    news, child = sent(lent), os.fork()
    if not child:
        lent._rooms.clear()
        os._exit(0)
    os.waitpid(child, 0)
    assert value_of(stored, Borrower(4).taken(news)).tolist() == list(range(10))


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
