# SPDX-License-Identifier: Apache-2.0
"""Processes of this machine start, are started again, and end with whoever started them."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

import distinput as di
from distinput.errors import UnavailableError
from tests.patience import wait_until

pytestmark = pytest.mark.needs_engine("dask")


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # a zombie has a number, too
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_is_started_again_and_a_server_is_not() -> None:
    from distinput.distribute.seats.local_cluster import LocalCluster

    said: list[str] = []
    with LocalCluster(1, 1, said=said.append) as cluster:
        cluster.wait()
        old, server = cluster.pid("worker-0"), cluster.pid("ps-0")
        os.kill(server, signal.SIGKILL)
        os.kill(old, signal.SIGKILL)
        wait_until(lambda: cluster.pid("worker-0") != old)
        new = cluster.pid("worker-0")
        assert cluster.pid("ps-0") == server

        def the_server_alone_is_missing() -> bool:
            with pytest.raises(UnavailableError) as told:
                cluster.wait(0.2)
            return "cluster: ps-0 did not start within 0.2 seconds" in str(told.value)

        wait_until(the_server_alone_is_missing)
    assert not any(map(alive, (old, new, server)))
    assert f"worker-0, process {old}, was ended by signal 9" in said
    assert f"worker-0 was started again, as process {new}" in said


def test_workers_may_come_and_go_while_they_are_counted() -> None:
    """The scheduler's table of them is sorted, and belongs to another thread."""
    from sortedcontainers import SortedDict

    from distinput.distribute.seats.local_cluster import LocalCluster

    cluster = LocalCluster.__new__(LocalCluster)
    cluster._processes = {"ps-0": None}  # type: ignore[dict-item]
    seats = {f"tcp://127.0.0.1:{port}": SimpleNamespace(name=f"worker-{port}") for port in range(200)}
    workers = SortedDict({**seats, "tcp://127.0.0.1:9999": SimpleNamespace(name="ps-0")})
    cluster._scheduler = SimpleNamespace(scheduler=SimpleNamespace(workers=workers))
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            for address in seats:
                del workers[address]
            workers.update(seats)

    changing, before = threading.Thread(target=come_and_go), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    changing.start()
    try:
        for _ in range(300):
            cluster.wait()
    finally:
        sys.setswitchinterval(before)
        over.set()
        changing.join()


def test_a_process_that_is_slow_to_find_its_scheduler_is_not_lost() -> None:
    from distinput.distribute.seats.local_cluster import LocalCluster

    with LocalCluster(0, 1, scheduler_seconds=0.001) as cluster:  # which is for a scheduler elsewhere
        cluster.wait()


def test_a_stopped_process_ends_with_its_cluster() -> None:
    from distinput.distribute.seats.local_cluster import LocalCluster

    with LocalCluster(1, 1) as cluster:
        cluster.wait()
        pid = cluster.pid("worker-0")
        os.kill(pid, signal.SIGSTOP)
    assert not alive(pid)


def test_processes_end_when_the_coordinator_is_killed() -> None:
    program = (
        "import sys, time\n"
        "from distinput.distribute.seats.local_cluster import LocalCluster\n"
        "cluster = LocalCluster(2, 1); cluster.wait()\n"
        "print(*map(cluster.pid, cluster.names), flush=True); time.sleep(100)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as coordinator:
        assert coordinator.stdout is not None
        pids = [int(word) for word in coordinator.stdout.readline().split()]
        assert len(pids) == 3
        coordinator.kill()
    wait_until(lambda: not any(map(alive, pids)))


def listening(pids: set[int]) -> set[str]:
    """The addresses at which some processes listen."""
    sockets = set()
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(file).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            words = line.split()
            if words[3] == "0A" and words[9] in sockets:
                found.add(words[1].partition(":")[0])
    return found


LOOPBACK = {"0100007F"}  # 127.0.0.1, as Linux writes it


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux says which process listens where")
@pytest.mark.parametrize("tls", [False, True])
def test_every_port_of_a_cluster_on_loopback_is_on_loopback(tls: bool) -> None:
    import distributed

    from distinput.distribute.seats.dask import temporary_security
    from distinput.distribute.seats.local_cluster import LocalCluster

    if tls:
        pytest.importorskip("cryptography")
    security = temporary_security() if tls else None
    before = listening({os.getpid()})
    with LocalCluster(1, 1, security=security) as cluster:
        cluster.wait()
        pids = {cluster.pid(name) for name in cluster.names}
        with distributed.Client(cluster.address, security=security) as client:
            resolver = di.distribute.cluster_resolver.DaskClusterResolver(client)
            with di.distribute.ParameterServerStrategy(resolver) as strategy:
                coordinator = di.distribute.coordinator.ClusterCoordinator(strategy)
                called = coordinator.schedule(lambda: 3)
                coordinator.join()
                assert coordinator.fetch(called) == 3
                assert listening(pids) == LOOPBACK
                assert listening({os.getpid()}) - before <= LOOPBACK
        if tls:
            assert cluster.address.startswith("tls://127.0.0.1:")
            with pytest.raises(OSError, match=r"Timed out|closed"):
                distributed.Client(cluster.address.replace("tls://", "tcp://"), timeout=2)
