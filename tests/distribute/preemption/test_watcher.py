# SPDX-License-Identifier: Apache-2.0
"""The watcher: whoever was told to end, all learn of it."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from distinput.distribute.collectives.multi_worker_strategy import MultiWorkerMirroredStrategy
from distinput.distribute.engines.local import open_groups
from distinput.distribute.experimental import PreemptionWatcher
from tests.patience import wait_until


def test_a_process_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    watcher = PreemptionWatcher()
    assert watcher.preemption_message is None
    os.kill(os.getpid(), signal.SIGTERM)
    assert watcher.preemption_message == "worker 0 received SIGTERM"
    watcher.block_until_worker_exit()
    watcher._notice.acted_on()
    watcher.close()
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_others_learn_of_it_and_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.distribute.preemption._LOOK_SECONDS", 0.01)
    groups = open_groups(2, timeout=60)
    with ThreadPoolExecutor(2) as pool:
        strategies = list(pool.map(lambda group: MultiWorkerMirroredStrategy(collectives=group), groups))
    watchers = []
    for strategy in strategies:
        with strategy.scope():
            watchers.append(PreemptionWatcher())
    watchers[1]._notice.arrived()
    wait_until(lambda: watchers[0].preemption_message)
    assert [watcher.preemption_message for watcher in watchers] == ["worker 1 received SIGTERM"] * 2
    began = time.monotonic()
    watchers[0].block_until_worker_exit(timeout=0.2)
    assert time.monotonic() - began >= 0.2, "worker 1 is still there"
    strategies[1].close()
    groups[1].close()
    watchers[0].block_until_worker_exit()
    for watcher in watchers:
        watcher._notice.acted_on()
        watcher.close()
    strategies[0].close()
    groups[0].close()


def test_the_others_learn_of_it_also_if_this_program_was_the_first_to_look() -> None:
    groups = open_groups(2, timeout=60)
    with ThreadPoolExecutor(2) as pool:
        strategies = list(pool.map(lambda group: MultiWorkerMirroredStrategy(collectives=group), groups))
    watchers = []
    for strategy in strategies:
        with strategy.scope():
            watchers.append(PreemptionWatcher())
    watchers[1]._notice.arrived()
    assert watchers[1].preemption_message == "worker 1 received SIGTERM"
    wait_until(lambda: watchers[0].preemption_message)
    assert watchers[0].preemption_message == "worker 1 received SIGTERM"
    for watcher, strategy, group in zip(watchers, strategies, groups, strict=True):
        watcher._notice.acted_on()
        watcher.close()
        strategy.close()
        group.close()
