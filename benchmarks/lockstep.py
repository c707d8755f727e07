# SPDX-License-Identifier: Apache-2.0
"""How long does a training loop wait for the workers to agree that there is another step?"""

import contextlib
import importlib.util
import os
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from typing import Any

from benchmarks.harness import ROOT, Case, Contender, Measured, Work, scaled
from distinput.testing.ports import free_ports

QUESTION = "2 workers, 5 ms of device-like work a step (sleep): time waited for the agreement on the next step"
NOTES = """
`torch's own, four steps ahead` is a bare thread that posts the same numbers by the same calls of gloo: the cost of agreeing
ahead of time without strategies, errors and states. `nothing to agree on` does none of that work.
"""
DEVICE = 5e-3
BLOCK = 4
TIMEOUT = 60.0

Loop = Callable[[Any, int], list[float]]
"""(group, steps) -> seconds waited before each step."""


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def cases(folder: Path, scale: float) -> list[Case]:
    """Workers on threads; and on processes through gloo, where PyTorch is installed."""
    steps = scaled(200, scale, 5)
    engines = ["local", *(["torch"] if importlib.util.find_spec("torch") else [])]
    return [_case(engine, steps) for engine in engines]


def _case(engine: str, steps: int) -> Case:
    """Between threads a blocking sum takes so little that no ratio is wanted: see what a loop takes that agrees on nothing."""
    ours = Contender("distinput, ahead", "ours", lambda: _waiting(engine, "ahead", steps))
    blocking = Contender("all_reduce in every step", "peer", lambda: _waiting(engine, "waiting", steps))
    if engine == "local":
        nothing = Contender("nothing to agree on", "limit", lambda: _waiting(engine, "nothing", steps))
        return Case("threads", {"step": steps}, [ours, nothing, blocking])
    needs = ("torch",)
    posted = Contender("torch's own, four steps ahead", "limit", lambda: _waiting(engine, "posted", steps), needs)
    plain = Contender("torch's own all_reduce", "peer", lambda: _waiting(engine, "plain", steps), needs, 60.0)
    contenders = [replace(ours, most={"seconds": 50e-6}), posted, replace(blocking, reach=60.0), plain]
    return Case("gloo, 2 processes", {"step": steps}, contenders)


def _timed(step: Callable[[], bool]) -> list[float]:
    """Seconds that `step` took before each bout of work; it says whether there is another one."""
    waited = []
    while True:
        begin = time.perf_counter()
        more = step()
        waited.append(time.perf_counter() - begin)
        if not more:
            return waited
        time.sleep(DEVICE)


def ahead(group: Any, steps: int) -> list[float]:
    """As distributed iterators do it: the agreement on a step is under way while those before it are computed."""
    from distinput.distribute.input.lockstep import Lockstep

    left = [steps]

    def draw() -> tuple[list[Any], Any]:
        left[0] -= 1
        return ([b"batch"] if left[0] >= 0 else []), {}

    lockstep = Lockstep(group, draw, {})
    return _timed(lambda: lockstep.next() is not None)


def nothing(group: Any, steps: int) -> list[float]:
    """A loop that knows its steps: what it takes to look at the clock twice after a sleep."""
    left = [steps]

    def step() -> bool:
        left[0] -= 1
        return left[0] >= 0

    return _timed(step)


def waiting(group: Any, steps: int) -> list[float]:
    """As TensorFlow does it: a blocking sum in every step."""
    left = [steps]

    def step() -> bool:
        left[0] -= 1
        return bool(group.all_reduce(int(left[0] >= 0)) > 0)

    return _timed(step)


def plain(group: Any, steps: int) -> list[float]:
    """The same, without anything of distinput."""
    import torch

    left = [steps]

    def step() -> bool:
        left[0] -= 1
        have = torch.tensor([int(left[0] >= 0)])
        _bare[0].allreduce([have]).wait()
        return bool(have.item() > 0)

    return _timed(step)


def posted(group: Any, steps: int) -> list[float]:
    """The same four steps ahead: a thread sums what it is given about four of them, while the loop goes on."""
    import torch

    orders: SimpleQueue[list[int] | None] = SimpleQueue()
    sums: SimpleQueue[list[int]] = SimpleQueue()

    def serve() -> None:
        while (facts := orders.get()) is not None:
            total = torch.tensor(facts)
            _bare[0].allreduce([total]).wait()
            sums.put(total.tolist())

    left = [steps]
    known: deque[int] = deque()

    def post() -> None:
        facts: list[int] = []
        for _ in range(BLOCK):
            left[0] -= 1
            facts += (int(left[0] >= 0), 0, 0)  # elements, rows, failures, as ours
        orders.put(facts)

    def step() -> bool:
        if not known:
            post()
            known.extend(sums.get())
        have, _, _ = known.popleft(), known.popleft(), known.popleft()
        return have > 0

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    post()
    waited = _timed(step)
    orders.put(None)
    thread.join()
    return waited


_bare: list[Any] = []
"""The gloo group of this process that nothing of distinput touches."""

LOOPS: dict[str, Loop] = {
    "ahead": ahead, "nothing": nothing, "plain": plain, "posted": posted, "waiting": waiting,
}  # fmt: skip


def _waiting(engine: str, loop: str, steps: int) -> Work:
    """This process is worker 0; another process or thread is worker 1, takes part in every pass, and ends with the work."""
    group, other = _workers(engine, loop)
    found: list[float] = []

    def once() -> Measured:
        group.broadcast(steps, 0)
        waited = LOOPS[loop](group, steps)[1:]  # without the start, at which there is nothing to do meanwhile
        found.extend(waited)
        return Measured(sum(waited))

    def check() -> str:
        group.broadcast(steps, 0)
        return f"{len(LOOPS[loop](group, steps)) - 1} steps"

    weakref.finalize(once, _end, group, other)
    return Work(once, check, lambda: {"median wait in us": 1e6 * median(found)})


def _end(group: Any, other: "subprocess.Popen[bytes] | None") -> None:
    """Nobody measures any more; worker 1 sees that worker 0 has gone."""
    group.close()
    if other is not None:
        try:
            other.wait(10)
        except subprocess.TimeoutExpired:
            other.kill()
            other.wait()


def _serve(group: Any, loop: str) -> None:
    """Worker 1: as many steps as worker 0 says, until it has gone."""
    from distinput.distribute.engines import CollectiveError

    with contextlib.suppress(CollectiveError):
        while True:
            LOOPS[loop](group, int(group.broadcast(timeout=3600)))


def _workers(engine: str, loop: str) -> "tuple[Any, subprocess.Popen[bytes] | None]":
    """The group of worker 0, and the process of worker 1 if it is one."""
    if engine == "local":
        from distinput.distribute.engines.local import open_groups

        here, there = open_groups(2, timeout=TIMEOUT)
        threading.Thread(target=_serve, args=(there, loop), daemon=True).start()
        return here, None
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "benchmarks.lockstep", loop, str(port)]
    other = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return _open(loop, port, 0), other


def _open(loop: str, port: int, rank: int) -> Any:
    from distinput.distribute.engines import open_collectives

    group = open_collectives("torch", rank=rank, size=2, address=f"127.0.0.1:{port}", timeout=TIMEOUT)
    if loop in ("plain", "posted"):
        import torch.distributed

        store = torch.distributed.TCPStore(
            "127.0.0.1", port, is_master=rank == 0, wait_for_workers=False, multi_tenant=True
        )
        mine = torch.distributed.PrefixStore("plain", store)
        _bare[:] = [torch.distributed.ProcessGroupGloo(mine, rank, 2, timedelta(seconds=TIMEOUT))]
    return group


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    _serve(_open(sys.argv[1], int(sys.argv[2]), 1), sys.argv[1])
