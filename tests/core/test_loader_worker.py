# SPDX-License-Identifier: Apache-2.0
"""What a process knows of the DataLoader that it reads for, played without PyTorch."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from distinput.run.threads import LoaderWorker, loader_worker


def play(monkeypatch: pytest.MonkeyPatch, info: Any) -> None:
    module = ModuleType("torch.utils.data")
    module.get_worker_info = lambda: info
    monkeypatch.setitem(sys.modules, "torch.utils.data", module)


INFO = SimpleNamespace(id=2, num_workers=3, seed=102)


def test_without_pytorch_there_is_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch.utils.data", raising=False)
    assert loader_worker() is None
    assert "torch.utils.data" not in sys.modules


def test_the_main_process_is_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, None)
    assert loader_worker() is None


def test_all_workers_of_an_epoch_share_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, INFO)
    assert loader_worker() == LoaderWorker(number=2, count=3, lasts=False, draw=100)
    play(monkeypatch, SimpleNamespace(id=0, num_workers=3, seed=100))
    assert loader_worker() == LoaderWorker(number=0, count=3, lasts=False, draw=100)


def _worker_loop(persistent_workers: bool) -> LoaderWorker | None:
    return (lambda: loader_worker())()  # from a function further in, as a dataset would ask


@pytest.mark.parametrize("lasts", [True, False])
def test_whether_it_lasts_is_read_from_the_loop_that_runs_it(monkeypatch: pytest.MonkeyPatch, lasts: bool) -> None:
    play(monkeypatch, INFO)
    worker = _worker_loop(lasts)
    assert worker is not None
    assert worker.lasts is lasts
