# SPDX-License-Identifier: Apache-2.0
"""Clusters are started by commands, used by a coordinator, and leave nothing behind."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from distinput.cli.cluster import what_is_open
from distinput.distribute.cluster_resolver import ClusterSpec, DaskClusterResolver, SimpleClusterResolver
from distinput.distribute.seats import open_seats
from distinput.testing.ports import free_ports
from tests.patience import wait_until

pytest.importorskip("distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)")

Started = subprocess.Popen[str]


@contextmanager
def started(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Started]:
    command = [sys.executable, "-m", "distinput", *arguments]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_with(process: Started, text: str) -> str:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        if text in line:
            return line
        seen.append(line)
    raise AssertionError(f"{text!r} is not in {seen}")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pids(seats: Any) -> dict[str, int]:
    return {name: seats.place(name, Pid).call("get") for name in (*seats.workers, *seats.servers)}


class Pid:
    """Placed at a seat, it knows the number of the process."""

    def get(self) -> int:
        return os.getpid()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_of_one_machine_is_used_and_ends_cleanly(number: signal.Signals) -> None:
    with started(["cluster", "start", "--workers", "2", "--ps", "1", "--address", "127.0.0.1:0"]) as process:
        said = line_with(process, "tcp://")
        found = re.search(r"2 workers and 1 parameter server at (tcp://127\.0\.0\.1:\d+)", said)
        assert found, said
        line_with(process, "Ctrl-C")
        seats = open_seats("dask", DaskClusterResolver(found[1]))
        assert (seats.workers, seats.servers) == (("worker-0", "worker-1"), ("ps-0",))
        numbers = pids(seats)
        seats.close()
        again = open_seats("dask", DaskClusterResolver(found[1]))  # the next program finds the same processes
        assert pids(again) == numbers
        again.close()
        process.send_signal(number)
        _, error = process.communicate(timeout=300)
        assert (process.returncode, error) == (0, "")
        assert not any(alive(pid) for pid in numbers.values())


SERVED = """
import os, sys, tempfile, time
import distinput as di, distributed
{security}
room = tempfile.TemporaryDirectory()
here, folder, until = os.getpid(), room.name, time.monotonic() + 60
def worker(x):
    if os.getpid() != here:
        open(os.path.join(folder, str(os.getpid())), "w").close()
        while len(os.listdir(folder)) < {count} and time.monotonic() < until:
            time.sleep(0.01)  # however late the others are
    return x, os.getpid()
dataset = di.data.Dataset.range(60).map(worker)
{dataset}
made = [(int(x), int(pid)) for x, pid in dataset]
assert [x for x, _ in made] == list(range(60))
print(*sorted({{pid for _, pid in made}} - {{os.getpid()}}))
"""


def called_at(process: Started, count: int, security: str = "") -> list[int]:
    """The processes, so many at least, in which the pipeline, that the command prints, has its functions called."""
    program = SERVED.format(security=security, count=count, dataset=line_with(process, "on_workers").strip())
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return sorted(map(int, done.stdout.split()))


def numbers_of(process: Started, count: int) -> list[int]:
    return sorted(int(line_with(process, ": process").rpartition(" ")[2]) for _ in range(count))


def test_input_workers_of_a_machine_are_used_and_others_join_them() -> None:
    with started(["cluster", "start", "--input-workers", "2", "--address", "127.0.0.1:0"]) as cluster:
        found = re.search(r"2 input workers at (tcp://127\.0\.0\.1:\d+)", line_with(cluster, "tcp://"))
        assert found
        here = numbers_of(cluster, 2)
        assert "every process of this machine" in line_with(cluster, "open to")
        with started(["input-worker", found[1], "--wait", "6"]) as further:
            assert line_with(further, "1 input worker of") == f"1 input worker of {found[1]}\n"
            others = numbers_of(further, 1)
            listening = wait_for_listeners(others[0])
            assert all(host == "127.0.0.1" for host in listening)
            assert called_at(cluster, 3) == sorted(here + others)
            cluster.send_signal(signal.SIGINT)
            _, error = cluster.communicate(timeout=300)
            assert (cluster.returncode, error) == (0, "")
            _, error = further.communicate(timeout=300)
            assert further.returncode == 1
            assert f"no Dask scheduler at {found[1]} for 6 seconds" in error
    assert not any(map(alive, here + others))


def wait_for_listeners(pid: int) -> list[str]:
    psutil = pytest.importorskip("psutil")

    def listening() -> list[str]:
        return [one.laddr.ip for one in psutil.Process(pid).net_connections("inet") if one.status == "LISTEN"]

    wait_until(listening)
    return listening()


def test_input_workers_with_certificates_are_used_and_joined_as_it_says() -> None:
    pytest.importorskip("cryptography")
    arguments = ["cluster", "start", "--input-workers", "1", "--address", "127.0.0.1:0", "--tls"]
    with started(arguments) as cluster:
        found = re.search(r"tls://127\.0\.0\.1:\d+", line_with(cluster, "tls://"))
        assert found
        here = numbers_of(cluster, 1)
        security = line_with(cluster, "security =").strip()
        files = dict(re.findall(r"(tls_\w+)='([^']+)'", security))
        environment = {
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": files["tls_ca_file"],
            "DASK_DISTRIBUTED__COMM__TLS__WORKER__CERT": files["tls_client_cert"],
            "DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY": files["tls_client_key"],
        }
        with started(["input-worker", found[0]], environment) as further:
            others = numbers_of(further, 1)
            assert "nobody else" in line_with(further, "open to")
            wait_for_listeners(others[0])
            assert called_at(cluster, 2, security) == sorted(here + others)
            further.send_signal(signal.SIGTERM)
            assert further.wait(60) == 0
        cluster.send_signal(signal.SIGTERM)
        assert cluster.wait(60) == 0


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["cluster", "start", "--input-workers", "1", "--ps", "1"], "without --workers and --ps"),
        (["input-worker", "here:1"], "must be that of a Dask scheduler, such as tcp://host:8786, got here:1"),
    ],
)
def test_what_input_workers_cannot_be(arguments: list[str], says: str, capsys: Any) -> None:
    from distinput.cli import main

    assert main(arguments) == 1
    assert says in capsys.readouterr().err


def test_workers_of_tf_config_wait_for_their_coordinator_and_end_with_it() -> None:
    chief, first, second, server = (f"127.0.0.1:{port}" for port in free_ports(4))
    cluster = {"chief": [chief], "worker": [first, second], "ps": [server]}

    def config(job: str, index: int) -> dict[str, str]:
        return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})}

    with (
        started(["worker", "--tf-config"], config("worker", 0)) as one,
        started(["worker", "--tf-config"], config("worker", 1)) as two,
        started(["worker", "--tf-config"], config("ps", 0)) as ps,
    ):
        resolver = SimpleClusterResolver(ClusterSpec(cluster), task_type="chief", task_id=0)
        seats = open_seats("dask", resolver)
        assert pids(seats) == {"worker-0": one.pid, "worker-1": two.pid, "ps-0": ps.pid}
        seats.close()
        for process in (one, two, ps):
            assert process.wait(60) == 0


def test_a_worker_without_a_scheduler_gives_up_after_its_time() -> None:
    (port,) = free_ports(1)
    arguments = ["--scheduler", f"tcp://127.0.0.1:{port}", "--name", "worker-0", "--wait", "1"]
    with started(["worker", *arguments]) as process:
        _, error = process.communicate(timeout=300)
    assert process.returncode == 1
    assert f"worker-0: no scheduler at tcp://127.0.0.1:{port}" in error


@pytest.mark.parametrize(
    "arguments, config, says",
    [
        ([], {}, "give either --tf-config, or --scheduler and --name"),
        (["--tf-config", "--scheduler", "tcp://a:1", "--name", "ps-0"], {}, "give either"),
        (["--scheduler", "tcp://a:1"], {}, "give either"),
        (["--tf-config"], {}, "must be a worker or a parameter server"),
        (
            ["--tf-config"],
            {"cluster": {"chief": ["127.0.0.1:1"]}, "task": {"type": "chief", "index": 0}},
            "got 'chief' 0; the chief runs your own program",
        ),
        (
            ["--tf-config"],
            {"cluster": {"worker": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"]}, "task": {"type": "ps", "index": 0}},
            'add a task to "cluster" in TF_CONFIG, such as "chief"',
        ),
    ],
)
def test_what_a_worker_cannot_make_sense_of(
    arguments: list[str], config: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from distinput.cli import main

    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert main(["worker", *arguments]) == 1
    assert says in capsys.readouterr().err


def test_what_is_open_is_said() -> None:
    assert "every process of this machine" in what_is_open("tcp://127.0.0.1:1", encrypted=False)
    assert "every process of this machine" in what_is_open("tcp://[::1]:1", encrypted=False)
    assert "OPEN TO EVERYBODY" in what_is_open("tcp://10.0.0.1:1", encrypted=False)
    assert "OPEN TO EVERYBODY" in what_is_open("tcp://0.0.0.0:1", encrypted=False)
    assert "who has the certificates, and nobody else" in what_is_open("tls://10.0.0.1:1", encrypted=True)


def test_a_cluster_with_certificates_is_used_as_it_says() -> None:
    pytest.importorskip("cryptography")
    with started(["cluster", "start", "--workers", "1", "--ps", "1", "--address", "127.0.0.1:0", "--tls"]) as process:
        assert "who has the certificates" in line_with(process, "open to")
        security, resolver = line_with(process, "security ="), line_with(process, "resolver =")
        program = "import distinput as di, distributed\n" + security.strip() + "\n" + resolver.strip() + "\n"
        program += "with di.distribute.ParameterServerStrategy(resolver) as strategy:\n"
        program += "    coordinator = di.distribute.coordinator.ClusterCoordinator(strategy)\n"
        program += (
            "    called = coordinator.schedule(lambda: 3); coordinator.join(); print(coordinator.fetch(called))\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
        assert done.stdout.strip() == "3", done.stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
