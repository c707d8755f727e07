# SPDX-License-Identifier: Apache-2.0
"""Who waits for the threads that a test leaves does not wait for those that somebody still holds."""

import gc
import threading
from typing import Any

import distinput as di
from tests.conftest import _serving


def test_threads_serve_as_long_as_something_holds_their_strategy() -> None:
    before = set(threading.enumerate())
    strategy: Any = di.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    strategy.run(lambda: None)
    replicas = {each for each in set(threading.enumerate()) - before if each.name.startswith("distinput-replica")}
    assert len(replicas) == 2
    assert replicas <= _serving()
    del strategy
    gc.collect()
    assert not replicas & _serving()
    for thread in replicas:
        thread.join(60)
        assert not thread.is_alive()
