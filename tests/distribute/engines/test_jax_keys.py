# SPDX-License-Identifier: Apache-2.0
"""Operations through the keys of a store: workers may be several agreements apart."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from distinput.distribute.engines import jax

ONE = np.ones(8, np.uint8)


class Store:
    """A store in memory. `before_read` is called with each key that is read."""

    def __init__(self, keys: dict[str, bytes], before_read: Callable[[str], None] = lambda _: None) -> None:
        self._keys, self._before_read = keys, before_read

    def put_bytes(self, key: str, value: bytes) -> None:
        self._keys[key] = value

    def get_bytes(self, key: str, seconds: float) -> bytes | None:
        self._before_read(key)
        if key not in self._keys:
            time.sleep(min(seconds, 0.001))
        return self._keys.get(key)

    def remove(self, prefix: str) -> None:
        for key in [key for key in self._keys if key.startswith(f"{prefix}/")]:
            del self._keys[key]


def begun(stream: Any, other: int, count: int) -> list[Any]:
    return [stream.begin(ONE, {other: len(ONE)}, dict) for _ in range(count)]


def test_no_key_is_removed_that_another_worker_has_yet_to_read() -> None:
    keys: dict[str, bytes] = {}
    gone_on, looked = threading.Event(), []
    last = jax._BLOCK - 1

    def before_read(key: str) -> None:
        if f"/{last}/" in key:
            looked.append(key)
            if len(looked) > 1:  # it came too early, and looks again only when the other worker has gone on
                gone_on.wait(60)

    fast, slow = (
        jax._Stream(store, rank, 2, "agreements")  # type: ignore[arg-type]
        for rank, store in enumerate([Store(keys), Store(keys, before_read)])
    )
    for _ in range(last):
        assert all(each.wait(60) for each in begun(fast, 1, 1) + begun(slow, 0, 1))
    behind = begun(slow, 0, 2)
    while not looked:
        time.sleep(0.001)
    assert all(each.wait(60) for each in begun(fast, 1, 2))
    gone_on.set()
    assert all(each.wait(60) for each in behind)
    fast.close()
    slow.close()


def test_old_keys_are_removed() -> None:
    keys: dict[str, bytes] = {}
    streams = [jax._Stream(Store(keys), rank, 2, "calls") for rank in range(2)]  # type: ignore[arg-type]
    for _ in range(4 * jax._BLOCK):
        assert all(each.wait(60) for each in begun(streams[0], 1, 1) + begun(streams[1], 0, 1))
    for stream in streams:
        stream.close()
    assert len(keys) <= 2 * 2 * jax._BLOCK
