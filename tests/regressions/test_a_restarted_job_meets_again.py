# SPDX-License-Identifier: Apache-2.0
"""Workers that torchrun starts again find one another, though the store of its agent outlives every attempt."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.engines.background import attempt_name
from distinput.testing.ports import free_ports
from tests.depth import DEEP
from tests.engines.installed import need

ROOT = Path(__file__).parents[2]

PROGRAM = """
import json, os, signal, sys, time
import distinput as di

saved, kill = sys.argv[1], sys.argv[2]
options = di.distribute.experimental.CommunicationOptions(timeout_seconds=60.0)
with di.distribute.MultiWorkerMirroredStrategy(communication_options=options) as strategy:
    worker, workers = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
    distributed = strategy.experimental_distribute_dataset(di.data.Dataset.range(24).batch(4))
    done = {"rows": [], "sums": [], "workers": [], "state": None}
    if os.path.exists(saved):
        with open(saved) as file:
            done = json.load(file)
    iterator = distributed.restore(done["state"]) if done["state"] else iter(distributed)
    for step in iterator:
        done["sums"].append(int(strategy.reduce("SUM", step, axis=0)))
        done["rows"].append(strategy.gather(step, axis=0).tolist())
        done["workers"].append(workers)
        done["state"] = iterator.state()
        if worker == 0:
            with open(saved + ".part", "w") as file:
                json.dump(done, file)
            os.replace(saved + ".part", saved)
        if len(done["rows"]) == 3 and workers == 2:
            if kill == "machine":
                time.sleep(600)  # until the test ends this agent
            elif kill == "worker" and worker == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                os.kill(os.getpid(), 9)
"""


def torchrun(folder: Path, *words: str, kill: str = "worker") -> subprocess.Popen[bytes]:
    """An agent of torchrun with one worker program, in a process group of its own."""
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "torch.distributed.run", *words, str(folder / "program.py")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with (folder / "output.txt").open("ab") as output:
        return subprocess.Popen(
            [*command, str(folder / "saved.json"), kill],
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def end(agent: subprocess.Popen[bytes]) -> None:
    """Kill an agent and its workers, which it starts in sessions of their own."""
    children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split() if agent.poll() is None else []
    for process in [agent.pid, *map(int, children)]:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    agent.wait(60)


def saved(folder: Path) -> dict[str, Any]:
    path = folder / "saved.json"
    return dict(json.loads(path.read_text())) if path.exists() else {"rows": []}


def every_record_once(folder: Path) -> None:
    found = saved(folder)
    assert found["rows"] == [list(range(at, at + 4)) for at in range(0, 24, 4)], found
    assert found["sums"] == [sum(rows) for rows in found["rows"]]


@pytest.mark.slow
@pytest.mark.loads("torch")
def test_as_many_workers_go_on(tmp_path: Path) -> None:
    need("torch")
    agent = torchrun(tmp_path, "--standalone", "--nproc-per-node=2", "--max-restarts=2")
    try:
        assert agent.wait(240) == 0, (tmp_path / "output.txt").read_text()
    finally:
        end(agent)
    every_record_once(tmp_path)
    assert saved(tmp_path)["workers"] == [2] * 6


@pytest.mark.slow
@pytest.mark.skipif(not DEEP, reason="starts two agents; `make test-deep` does")
def test_fewer_workers_go_on(tmp_path: Path) -> None:
    need("torch")
    (port,) = free_ports(1)
    words = ["--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=3", "--monitor-interval=0.2", "--rdzv-backend=c10d"]
    words += ["--rdzv-id=job", f"--rdzv-endpoint=127.0.0.1:{port}"]
    words += ["--rdzv-conf=last_call_timeout=30,is_host={}"]  # for the second agent to come, however late it starts
    agents = []
    try:
        for host, kill in (("true", "nothing"), ("false", "machine")):
            agents.append(torchrun(tmp_path, *words[:-1], words[-1].format(host), kill=kill))
        deadline = time.monotonic() + 240
        while len(saved(tmp_path)["rows"]) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        end(agents[1])
        assert agents[0].wait(240) == 0, (tmp_path / "output.txt").read_text()
    finally:
        for agent in agents:
            end(agent)
    every_record_once(tmp_path)
    assert Counter(saved(tmp_path)["workers"]) == {2: 3, 1: 3}


class Memory:
    """A store that outlives the workers."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def put(self, key: str, value: str) -> None:
        self.values[key] = value

    def get(self, key: str) -> str | None:
        return self.values.get(key)


def meet(store: Memory, ranks: list[int], size: int, pauses: list[float], timeout: float = 60.0) -> list[str]:
    names = [""] * len(ranks)

    def enter(index: int) -> None:
        time.sleep(pauses[index])
        try:
            names[index] = attempt_name(store, ranks[index], size, "job", timeout)
        except ChannelLost as error:
            names[index] = str(error)

    threads = [threading.Thread(target=enter, args=(index,)) for index in range(len(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return names


@pytest.mark.parametrize("late", [0, 1, 2])
def test_every_attempt_has_a_name_of_its_own(late: int) -> None:
    store = Memory()
    seen = set()
    for size in (3, 3, 2, 3):
        names = meet(store, list(range(size)), size, [0.03 if rank == late else 0.0 for rank in range(size)])
        assert len(set(names)) == 1
        seen.add(names[0])
    assert len(seen) == 4


def test_who_does_not_come_is_named_also_when_an_earlier_attempt_left_tokens() -> None:
    store = Memory()
    meet(store, [0, 1, 2], 3, [0, 0, 0])
    assert meet(store, [0, 1], 3, [0, 0], 0.3) == ["rank 2 did not come"] * 2
    assert meet(store, [1, 2], 3, [0, 0], 0.3) == ["rank 0 did not come"] * 2
