# SPDX-License-Identifier: Apache-2.0
"""When a channel of PyTorch's engine is open, between two threads that stand for processes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402 - needs PyTorch

from distinput.distribute.engines.torch import TorchChannel  # noqa: E402 - likewise
from tests.patience import PATIENCE  # noqa: E402 - likewise


class _Watched(TorchChannel):
    """Worker 1 is slow to go on once it has connected: it does when worker 0 has nothing more to do, or waits for it."""

    events: list[str]
    goes_on: threading.Event

    def _group(self, name: str, limit: Any) -> Any:
        group = super()._group(name, limit)
        if self.rank == 1 and name.endswith("/agreements"):
            assert self.goes_on.wait(PATIENCE)
            self.events.append("worker 1 has connected")
        return group

    def _meet(self, name: str, limit: Any) -> None:
        if self.rank == 0 and name.endswith("/connected"):
            self.goes_on.set()
        super()._meet(name, limit)


def test_a_channel_is_open_once_all_have_connected() -> None:
    """Gloo takes a worker for lost that closes its group while another one still connects."""
    store = dist.HashStore()

    class Channel(_Watched):
        events, goes_on = list[str](), threading.Event()

    def work(rank: int) -> None:
        board: Any = None  # nothing is told on it
        channel = Channel(store, rank, 2, "job", board, None, PATIENCE)
        Channel.events.append(f"worker {rank} is open")
        Channel.goes_on.set()
        channel.close(broken=False)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))
    assert Channel.events[0] == "worker 1 has connected"
