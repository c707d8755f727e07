# SPDX-License-Identifier: Apache-2.0
"""The threads of a run: a stream that ends tells its own to end and waits for none; `join` waits for all."""

import threading
from time import monotonic

import pytest

from distinput.run.threads import Threads


def test_a_stream_that_ends_waits_for_nothing_and_drops_what_was_not_begun() -> None:
    threads, begun, release, ran = Threads(), threading.Event(), threading.Event(), list[int]()

    def slow() -> None:
        begun.set()
        release.wait(60)
        ran.append(1)

    with threads.pool(1) as pool:
        pool.submit(slow)
        second = pool.submit(ran.append, 2)
        assert begun.wait(60)
    assert not ran
    release.set()
    threads.join(None)
    assert second.cancelled()
    assert ran == [1]
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(print)


def test_ending_all_tells_single_threads_and_pools() -> None:
    threads, told, pooled = Threads(), threading.Event(), threading.Event()
    single = threading.Thread(target=told.wait, args=(60,), daemon=True)
    with threads.beside(single, told.set), threads.pool(1) as pool:
        assert single.is_alive()
        pool.submit(pooled.wait, 60)
        later = pool.submit(print)
        threads.end()
        assert told.is_set()
        assert later.cancelled()
        pooled.set()
        threads.join(None)
        assert not single.is_alive()


def test_what_streams_share_is_over_with_the_run_also_for_a_thread_that_asks_late() -> None:
    threads = Threads()
    threads.end()
    late = threads.shared_pool("decoding", 2)
    with pytest.raises(RuntimeError, match="after shutdown"):
        late.submit(print)


def test_the_end_of_a_stream_ends_its_thread_also_after_an_error() -> None:
    threads, told = Threads(), threading.Event()
    single = threading.Thread(target=told.wait, args=(60,), daemon=True)
    with pytest.raises(ValueError, match="in the stream"), threads.beside(single, told.set):
        raise ValueError("in the stream")
    threads.join(None)
    assert not single.is_alive()


@pytest.mark.parametrize("patience, least", [(0, 0.0), (0.05, 0.05)])
def test_patience_is_the_most_that_is_waited_for_all_together(patience: float, least: float) -> None:
    threads, release = Threads(), threading.Event()
    singles = [threading.Thread(target=release.wait, args=(60,), daemon=True) for _ in range(3)]
    try:
        for single in singles:
            with threads.beside(single, lambda: None):
                pass
        begin = monotonic()
        threads.join(patience)
        assert least <= monotonic() - begin < 30
        assert all(single.is_alive() for single in singles)
    finally:
        release.set()


def test_a_thread_of_its_own_does_not_wait_for_itself() -> None:
    threads, done = Threads(), threading.Event()

    def close() -> None:
        threads.join(None)
        done.set()

    single = threading.Thread(target=close, daemon=True)
    with threads.beside(single, lambda: None):
        assert done.wait(60)


def test_threads_that_have_ended_are_forgotten() -> None:
    threads = Threads()
    for _ in range(5):
        single = threading.Thread(target=int)
        with threads.beside(single, lambda: None), threads.pool(1) as pool:
            pool.submit(int).result()
        single.join()
        for thread in list(pool.threads):
            thread.join()
    assert len(threads._single) == len(threads._pools) == 1
