# SPDX-License-Identifier: Apache-2.0
"""Seats in processes of a Dask cluster keep the laws of all seats, and know of losses at once."""

import asyncio
import os
import queue
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distinput.cluster.dask import DaskClusterResolver
from distinput.distribute.seats import SeatLost, Seats, open_seats
from distinput.distribute.seats.dask import DaskDirectory, start_scheduler
from distinput.errors import UnavailableError
from distinput.testing import check_seats
from tests.depth import sampled
from tests.patience import wait_until

pytestmark = pytest.mark.needs_engine("dask")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Processes for one test after the other: workers that are killed are started again."""
    pytest.importorskip("distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)")
    from distinput.distribute.seats.local_cluster import LocalCluster

    with LocalCluster(2, 1) as cluster:
        yield cluster


def opened(cluster: Any, seconds: float = 30.0) -> Seats:
    cluster.wait()
    return open_seats("dask", DaskClusterResolver(cluster.address), worker_timeout_seconds=seconds)


def test_the_laws_of_seats(cluster: Any) -> None:
    check_seats(opened(cluster))


def test_a_worker_that_comes_before_the_scheduler_tells_of_it_is_found(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at the scheduler and the subscription to its events take two ways: what happens between them is told to nobody."""
    from distributed import Client

    cluster.wait()
    subscribed, asked = Client.subscribe_topic, DaskDirectory._look

    def deaf(client: Any, topic: str, handler: Any) -> Any:
        return subscribed(client, topic, (lambda event: None) if topic == "all" else handler)

    async def early(directory: Any) -> None:
        await asked(directory)
        monkeypatch.setattr(DaskDirectory, "_look", asked)
        directory._present.pop("worker-1", None)  # it had not registered when the scheduler answered

    monkeypatch.setattr(Client, "subscribe_topic", deaf)
    monkeypatch.setattr(DaskDirectory, "_look", early)
    seats = open_seats("dask", DaskClusterResolver(cluster.address), worker_timeout_seconds=30.0)
    assert seats.place("worker-1", Keeper).call("pid") == cluster.pid("worker-1")
    seats.close()


class Keeper:
    """What is placed at seats here."""

    def __init__(self) -> None:
        self.array = np.zeros(1 << 20, np.float32)

    def pid(self) -> int:
        return os.getpid()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def lock(self) -> Any:
        return threading.Lock()

    def address(self) -> str:
        import distributed

        return str(distributed.get_worker().name)

    def writes(self, array: Any) -> bool:
        array += 1
        return bool(array[0] == 1)


def test_a_killed_worker_is_known(cluster: Any) -> None:
    seats = opened(cluster)
    told = threading.Event()
    seats.watch(lambda name: told.set())
    pid = seats.place("worker-0", Keeper).call("pid")
    os.kill(pid, signal.SIGKILL)
    assert told.wait(60)
    seats.close()


def test_a_worker_that_was_killed_before_anybody_watched_is_told(cluster: Any) -> None:
    seats = opened(cluster)
    first: queue.Queue[str] = queue.Queue()
    late: queue.Queue[str] = queue.Queue()
    seats.watch(first.put)
    os.kill(seats.place("worker-0", Keeper).call("pid"), signal.SIGKILL)
    assert first.get(timeout=60) == "worker-0"
    seats.watch(late.put)
    assert late.get(timeout=60) == "worker-0"
    assert first.empty()
    seats.wait_back("worker-0", 60)
    back: list[str] = []
    seats.watch(back.append)
    assert not back
    seats.close()


def stand_still(pid: int) -> None:
    """Stop a process, and wait until it has stopped: the signal alone does not say that it has."""
    os.kill(pid, signal.SIGSTOP)
    stat = Path(f"/proc/{pid}/stat")
    wait_until(lambda: not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "T")


def test_a_worker_that_stands_still_is_lost_after_the_time_and_taken_up_again(cluster: Any) -> None:
    seats = opened(cluster, seconds=4.0)
    told: list[str] = []
    seats.watch(told.append)
    placed = seats.place("worker-1", Keeper)
    pid = placed.call("pid")
    stand_still(pid)
    try:
        with pytest.raises(SeatLost, match="worker-1 is lost: it has stood still for 4 seconds"):
            placed.call("wait", 0.0)
        wait_until(lambda: "worker-1" in told)
        with pytest.raises(TimeoutError, match="worker-1 did not come back in time"):
            seats.wait_back("worker-1", 0.2)
        assert told.count("worker-1") == 1
    finally:
        os.kill(pid, signal.SIGCONT)
    seats.wait_back("worker-1", 60)
    assert seats.place("worker-1", Keeper).call("wait", 0.0) is None
    seats.close()


def test_a_parameter_server_does_not_come_back() -> None:
    from distinput.distribute.seats.local_cluster import LocalCluster

    with LocalCluster(1, 1) as cluster:
        cluster.wait()
        seats = opened(cluster)
        server = seats.place("ps-0", Keeper)
        os.kill(server.call("pid"), signal.SIGKILL)
        began = time.perf_counter()
        with pytest.raises(SeatLost, match="ps-0 is lost"):
            server.call("pid")
        assert time.perf_counter() - began < 30
        with pytest.raises(TimeoutError):
            seats.wait_back("ps-0", 1.5)
        seats.close()


def test_a_call_that_takes_too_long_is_given_up_and_others_go_on(cluster: Any) -> None:
    seats = opened(cluster)
    placed = seats.place("worker-0", Keeper)
    with pytest.raises(TimeoutError, match=r"worker-0: no result of 'wait' within 0\.2 seconds"):
        placed.call("wait", 60.0, timeout=0.2)
    assert isinstance(placed.call("pid", timeout=60.0), int)
    seats.close()


def test_a_result_that_cannot_be_sent_is_an_error_of_the_call(cluster: Any) -> None:
    seats = opened(cluster)
    placed = seats.place("worker-0", Keeper)
    with pytest.raises(TypeError, match="lock: the result, a lock, cannot be sent to the caller"):
        placed.call("lock")
    assert isinstance(placed.call("pid"), int)
    seats.close()


def test_a_seat_knows_its_dask_worker(cluster: Any) -> None:
    seats = opened(cluster)
    assert seats.place("worker-1", Keeper).call("address") == "worker-1"
    seats.close()


def test_an_array_that_was_sent_can_be_written_to(cluster: Any) -> None:
    seats = opened(cluster)
    given = np.zeros(100_000)
    assert seats.place("worker-0", Keeper).call("writes", given)
    assert given[0] == 0
    seats.close()


def test_an_object_goes_when_nothing_refers_to_it(cluster: Any) -> None:
    seats = opened(cluster)
    kept, placed = seats.place("ps-0", Keeper), seats.place("ps-0", Keeper)
    number = placed._number  # type: ignore[attr-defined]
    packed = seats.packing.pack([placed])
    del placed
    kept.call("pid")
    (again,) = seats.packing.unpack(packed)
    assert isinstance(again.call("pid"), int)  # what is packed keeps it
    del packed, again
    kept.call("pid")
    with pytest.raises(SeatLost, match="the object is no longer there"):
        kept._links.call(number, "pid", ())  # type: ignore[attr-defined]
    seats.close()


def certificates(folder: Path) -> Any:
    """Certificates that one command makes, for all roles."""
    from distributed import Security

    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes the certificates, is not installed")
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    command = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -keyout {key} -out {certificate}"
    subprocess.run([openssl, *command.split()], check=True, capture_output=True)
    roles = {
        f"tls_{role}_{kind}": file
        for role in ("client", "scheduler", "worker")
        for kind, file in (("key", key), ("cert", certificate))
    }
    return Security(tls_ca_file=certificate, require_encryption=True, **roles)


@pytest.mark.slow
@pytest.mark.parametrize("encrypted", sampled([True], [False]))
def test_a_running_client_is_taken_over_with_its_nannies_and_certificates(encrypted: bool, tmp_path: Path) -> None:
    from distributed import Client
    from distributed import LocalCluster as DaskCluster

    security = certificates(tmp_path) if encrypted else None
    with (
        DaskCluster(
            n_workers=3,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            security=security,
            protocol="tls" if encrypted else "tcp",
            local_directory=str(tmp_path),
        ) as cluster,
        Client(cluster, security=security) as client,
    ):
        seats = open_seats("dask", DaskClusterResolver(client, num_ps=1))
        assert (seats.workers, seats.servers) == (("worker-0", "worker-1"), ("ps-0",))
        placed = seats.place("worker-0", Keeper)
        used = {type(connection) for connection in placed._links._all}  # type: ignore[attr-defined]
        assert used == {ssl.SSLSocket if encrypted else socket.socket}
        check_seats(seats)
        assert client.submit(sum, [1, 2]).result() == 3, "the client is still the user's"


def test_an_address_of_another_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    def refused(**_: Any) -> None:
        raise RuntimeError("Cluster failed to start: [Errno -2] Name or service not known")

    monkeypatch.setattr(distributed, "LocalCluster", refused)
    with pytest.raises(UnavailableError, match=r"cannot listen at far:2222: .*Name or service.*the task \"chief\""):
        start_scheduler("far:2222", 1.0)


def test_a_scheduler_looks_around_seldom() -> None:
    with start_scheduler("127.0.0.1:0", 30.0) as made:
        assert made.scheduler.periodic_callbacks["tick"].callback_time == 2000
        assert made.scheduler.periodic_callbacks["monitor"].callback_time == 5000


def test_a_scheduler_ends_after_the_loss_of_a_worker_that_it_had_told_nobody_of() -> None:
    """Dask's own cluster watches its workers, and cannot be closed once it is told of the end of one that it did not know."""
    with start_scheduler("127.0.0.1:0", 30.0) as made:
        watched = made.scheduler.plugins["worker-status"]
        made.loop.add_callback(watched.remove_worker, made.scheduler, "tcp://127.0.0.1:1")
        wait_until(lambda: watched.bcomm.message_count == 1 and not watched.bcomm.buffer)
        made.sync(asyncio.sleep, 0.1)
    assert made.status.name == "closed"
