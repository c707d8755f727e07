# SPDX-License-Identifier: Apache-2.0
"""A flag is seen by all threads, and wakes those that wait for it."""

import threading

from distinput.kernels.kernel import Flag


def test_who_waits_is_woken() -> None:
    flag, seen = Flag(), list[bool]()
    threads = [threading.Thread(target=lambda: seen.append(flag.wait(60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    flag.set()
    flag.set()
    for thread in threads:
        thread.join()
    assert seen == [True] * 3
    assert flag.wait(0)


def test_patience_ends() -> None:
    flag = Flag()
    assert not flag.wait(0.01)
    assert not flag.is_set()
    flag.set()
    assert flag.is_set()
