# SPDX-License-Identifier: Apache-2.0
import errno
import gc
import os
import pickle
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from distinput.run.segments import Closed, Packed, SegmentConnection, dumps_with_buffers
from distinput.testing.left_behind import _open_files

Pair = tuple[SegmentConnection, SegmentConnection]


@pytest.fixture
def pair() -> Iterator[Pair]:
    left, right = map(SegmentConnection, socket.socketpair())
    yield left, right
    left.close()
    right.close()


SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)
ARRAYS: st.SearchStrategy[Any] = st.one_of(
    *[arrays.arrays(dtype, SHAPES) for dtype in (np.uint8, np.float64, np.dtype("S3"))]
)


@given(st.lists(st.one_of(ARRAYS, st.text(), st.integers()), max_size=5), st.sampled_from([0, 1 << 20]))
def test_what_is_sent_arrives(values: list[Any], cached: int) -> None:
    left, right = map(SegmentConnection, socket.socketpair())
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("distinput.run.segments.most_in_caches", lambda: cached)
            for _ in range(2):
                left.send(values)
                came = right.receive()
                assert pickle.dumps(came, 4) == pickle.dumps(values, 4)
    finally:
        left.close()
        right.close()


def test_arrays_are_not_pickled(pair: Pair) -> None:
    left, right = pair
    big = np.arange(1 << 20)
    left.send((big, big[::2]))  # the second is no contiguous memory, so it is copied on the way
    first, second = right.receive()
    assert first.base is not None
    assert (first == big).all()
    assert (second == big[::2]).all()


def test_what_is_kept_is_not_overwritten(pair: Pair) -> None:
    left, right = pair
    kept = []
    for number in range(60):  # more than may be held as views
        left.send(np.full(1000, number))
        kept.append(right.receive())
        right.send(None)
        left.receive()
    assert [array[0] for array in kept] == [array[-1] for array in kept] == list(range(60))


def test_memory_is_used_again(pair: Pair) -> None:
    left, right = pair
    places = set()
    for number in range(20):
        left.send(np.full(100_000, number))
        array = right.receive()
        places.add(array.__array_interface__["data"][0])
        del array
        right.send(None)
        left.receive()
    assert len(places) <= 2


def test_many_messages_may_be_under_way(pair: Pair) -> None:
    left, right = pair
    for _ in range(2):
        for number in range(80):
            left.send(np.full(10, number))
        kept = [right.receive() for _ in range(80)]
        right.send(None)
        left.receive()
        assert [array[0] for array in kept] == list(range(80))


def descriptors() -> Counter[str]:
    """Those of segments; other threads have others, and what earlier tests left may be closed."""
    return Counter({name: count for name, count in _open_files().items() if name.startswith("/memfd:distinput ")})


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are counted in /proc")
def test_however_many_are_under_way_no_descriptor_is_added(pair: Pair) -> None:
    left, right = pair
    found = []
    for _ in range(4):
        for number in range(100):
            left.send(np.full(10, number))
        kept = [right.receive() for _ in range(100)]
        assert [array[0] for array in kept] == [array[-1] for array in kept] == list(range(100))
        del kept
        right.send(None)
        left.receive()
        found.append(descriptors())
    assert not [later - found[0] for later in found if later - found[0]]


def test_larger_messages_get_larger_segments(pair: Pair) -> None:
    left, right = pair
    for size in (10, 100_000, 10, 1_000_000, 200_000):
        left.send(np.arange(size))
        assert right.receive().sum() == size * (size - 1) // 2
        right.send(None)
        left.receive()


def test_no_descriptor_is_left() -> None:
    before = descriptors()
    ends = socket.socketpair()
    left, right = map(SegmentConnection, ends)
    left.send(np.arange(10))
    array = right.receive()
    left.close()
    right.close()
    assert [end.fileno() for end in ends] == [-1, -1]
    assert array.tolist() == list(range(10))  # what came is still there
    del array
    assert not descriptors() - before


def test_the_end_of_the_other_side_is_seen(pair: Pair) -> None:
    left, right = pair
    left.close()
    with pytest.raises(Closed):
        right.receive()
    with pytest.raises(Closed):
        right.send(1)


def test_waiting_can_be_given_up(pair: Pair) -> None:
    asked = []

    def wait() -> bool:
        asked.append(1)
        return len(asked) < 2

    with pytest.raises(Closed, match="gave up"):
        pair[1].receive(wait)
    assert len(asked) == 2


def test_what_cannot_be_pickled_leaves_the_channel_usable(pair: Pair) -> None:
    left, right = pair
    with pytest.raises(TypeError):
        left.send(memoryview(b"a"))
    left.send(5)
    assert right.receive() == 5


def test_small_objects_need_no_shared_memory(pair: Pair) -> None:
    left, right = pair
    for value in (None, 5, ["text"] * 20):
        left.send(value)
        assert right.receive() == value
    assert not left._mine


def test_long_texts_do_not_wait_for_a_reader(pair: Pair) -> None:
    left, right = pair
    texts = [str(number) * 10_000 for number in range(50)]  # more than fits into a socket
    for text in texts:
        left.send(text)
    assert [right.receive() for _ in texts] == texts


@pytest.mark.parametrize("pause", [0.0, 2e-4, 5e-3])
def test_what_is_waited_for_arrives_after_brief_and_long_waits(pair: Pair, pause: float) -> None:
    left, right = pair

    def send() -> None:
        for number in range(20):
            time.sleep(pause)
            left.send(np.full(1000, number))

    thread = threading.Thread(target=send)
    thread.start()
    assert [right.receive()[0] for _ in range(20)] == list(range(20))
    thread.join()


def test_the_end_of_the_other_side_is_seen_from_a_nap(pair: Pair) -> None:
    left, right = pair
    thread = threading.Timer(2e-4, left.close)
    right._brief = True
    thread.start()
    with pytest.raises(Closed, match="has ended"):
        right.receive()
    thread.join()


def test_a_packed_value_in_a_cycle_is_collected_and_nothing_breaks() -> None:
    data, buffers = dumps_with_buffers(np.arange(100_000))
    packed = Packed(data, [buffer.raw() for buffer in buffers])
    frames: list[pickle.PickleBuffer] = []  # younger, so that it is cleared later
    pickle.dumps(packed, protocol=5, buffer_callback=frames.append)
    assert len(frames) == 2
    cycle: list[Any] = [packed, frames, packed.buffers]
    cycle.append(cycle)
    del cycle, frames, packed, buffers
    gc.collect()  # BufferError of what it could not clear, or a crash


@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_memory_that_cannot_be_mapped_leaves_no_open_file(
    side: str, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = pair
    if side == "receiver":
        left.send(np.zeros(1 << 16))
    before = descriptors()

    def fails(*args: Any) -> Any:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr("distinput.run.segments._Segment", fails)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        left.send(np.zeros(1 << 16)) if side == "sender" else right.receive()
    assert not descriptors() - before
