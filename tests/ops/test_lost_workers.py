# SPDX-License-Identifier: Apache-2.0
"""`on_workers` while workers, schedulers, consumers, connections and disks fail. Each record is counted; nothing hangs."""

import importlib
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.cluster import input_service
from distinput.cluster.dask import close_client
from distinput.errors import FailedPreconditionError, UnavailableError
from distinput.ops import piece_lanes
from distinput.testing.ports import free_ports
from tests.depth import cases
from tests.ops.iterating import until_error
from tests.ops.test_on_workers import INT64, RANGE

pytest.importorskip("distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)")
pytestmark = [pytest.mark.timeout(cases(600, 1800)), pytest.mark.needs_engine("dask")]

ROWS = di.TensorSpec([2], "int64")


def slowly(x: Any) -> Any:
    time.sleep(0.004)
    return np.array([x, os.getpid()])


def number(x: Any) -> Any:
    time.sleep(0.004)
    return x * 3


@contextmanager
def cluster(count: int, **options: Any) -> Iterator[Any]:
    from distinput.distribute.seats.local_cluster import LocalCluster

    with LocalCluster(0, 0, inputs=count, **options) as made:
        made.wait()
        yield made


@pytest.fixture(scope="module")
def two() -> Iterator[Any]:
    """Two workers for the tests that leave them as they were."""
    with cluster(2) as made:
        yield made


@contextmanager
def started(*words: str, **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """A command, which ends with the block."""
    with subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_with(process: "subprocess.Popen[str]", text: str) -> str:
    assert process.stdout is not None
    return next(line for line in process.stdout if text in line)


def counted(dataset: Any, count: int, each: Any = lambda seen: None) -> list[int]:
    """The numbers of a pass, which must be all of them in their order; `each` is called with how many there were."""
    seen: list[int] = []
    with iter(dataset) as elements:
        for element in elements:
            seen.append(int(np.ravel(element)[0]))
            each(len(seen))
    assert seen == list(range(count))
    return seen


def test_workers_are_killed_at_random() -> None:
    """In `make test-deep` a hundred of them."""
    kills = cases(4, 100)
    chance = random.Random(26)
    done: list[int] = []
    over = threading.Event()
    with cluster(3) as made:

        def killing() -> None:
            while len(done) < kills and not over.wait(chance.uniform(0.1, 0.9)):
                victim = made.pid(chance.choice(list(made.names)))
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    done.append(victim)

        killer = threading.Thread(target=killing)
        killer.start()
        passes, count = 0, 1500
        try:
            while len(done) < kills:
                counted(RANGE(count).map(slowly, output_signature=ROWS).on_workers(made.address), count)
                passes += 1
        finally:
            over.set()
            killer.join()
    assert len(set(done)) > kills // 2, "processes that had just started were killed again and again"
    assert passes


def test_a_worker_that_stands_still_delays_and_loses_nothing(two: Any) -> None:
    stopped: list[int] = []

    def stop(seen: int) -> None:
        if seen == 200:
            stopped.append(two.pid("input-0"))
            os.kill(stopped[0], signal.SIGSTOP)
            timer = threading.Timer(cases(3, 30), os.kill, (stopped[0], signal.SIGCONT))
            timer.daemon = True
            timer.start()

    counted(RANGE(1500).map(slowly, output_signature=ROWS).on_workers(two.address), 1500, stop)
    assert stopped == [two.pid("input-0")], "it goes on"


def test_a_worker_that_stands_still_for_good_is_replaced() -> None:
    with cluster(2, worker_timeout_seconds=cases(1, 5)) as made:

        def stop(seen: int) -> None:
            if seen == 200:
                os.kill(made.pid("input-0"), signal.SIGSTOP)

        count = cases(700, 1500)
        counted(RANGE(count).map(slowly, output_signature=ROWS).on_workers(made.address), count, stop)


def scheduler(port: int) -> Any:
    return started("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")


def test_a_scheduler_that_is_killed_may_come_back() -> None:
    (port,) = free_ports(1)
    address = f"tcp://127.0.0.1:{port}"
    with ExitStack() as after, ExitStack() as first:
        process = first.enter_context(scheduler(port))
        line_with(process, "Scheduler at")
        workers = after.enter_context(started("distinput", "input-worker", address, "--workers", "2", "--wait", "60"))
        line_with(workers, "Ctrl-C")

        def kill(seen: int) -> None:
            if seen == 300:
                first.close()
                after.enter_context(scheduler(port))

        counted(RANGE(1200).map(slowly, output_signature=ROWS).on_workers(address), 1200, kill)


def test_a_scheduler_that_stays_away_is_an_error_and_the_state_goes_on_elsewhere() -> None:
    import dask

    (port,) = free_ports(1)
    address = f"tcp://127.0.0.1:{port}"
    seen: list[int] = []
    with (
        dask.config.set({"distributed.comm.timeouts.connect": f"{cases(5, 30)}s"}),
        scheduler(port) as process,
        started("distinput", "input-worker", address),
    ):
        line_with(process, "Scheduler at")
        dataset = RANGE(1200).map(slowly, output_signature=ROWS)
        with iter(dataset.on_workers(address)) as elements:

            def killing() -> None:
                for element in elements:
                    seen.append(int(element[0]))
                    if len(seen) == 100:
                        process.kill()

            with pytest.raises(UnavailableError, match="continue from the last state that was saved") as caught:
                killing()
            state = json.loads(json.dumps(elements.state()))
    assert "slowly" in "\n".join([str(caught.value), *caught.value.__notes__])
    with dataset.on_workers("threads:2").restore(state) as rest:
        seen += [int(element[0]) for element in rest]
    assert seen == list(range(1200))


class Cutting:
    """Passes bytes on between clients and a server, until `cut` ends all connections that there are.

    Args:
      port: of the server.

    Attributes:
      left: before each cut that it makes by itself, in the middle of a message, the bytes that are passed on.
    """

    def __init__(self, port: int) -> None:
        self.left: list[int] = []
        self._counting = threading.Lock()
        self._to = ("127.0.0.1", port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._all: list[socket.socket] = [self._server]
        self._threads: list[threading.Thread] = []
        self.port: int = self._server.getsockname()[1]
        self._run(self._accept)

    def _run(self, function: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=function, args=arguments)
        self._threads.append(thread)
        thread.start()

    def cut(self, *, silently: bool = False) -> None:
        """End the connections; silently: the client alone is told, as when an address is given to another machine."""
        ended, self._open = self._open, []
        for end in ended[:: 2 if silently else 1]:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for end in self._all:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in self._all:
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(self._to)
                self._open += [client, server]
                self._all += [client, server]
                for source, sink in ((client, server), (server, client)):
                    self._run(self._pass, source, sink)

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self._is_last(len(data)):
                    sink.sendall(data[: len(data) // 2])
                    self.cut()
                    return
                sink.sendall(data)
        if sink in self._open:
            with suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)

    def _is_last(self, size: int) -> bool:
        """Whether to cut after so many bytes more."""
        with self._counting:
            if not self.left:
                return False
            self.left[0] -= size
            if self.left[0] >= 0:
                return False
            del self.left[0]
            return True


@pytest.mark.parametrize("silently", [False, True])
def test_connections_of_a_consumer_are_cut(two: Any, silently: bool) -> None:
    with closing(Cutting(int(two.address.rpartition(":")[2]))) as between:
        cuts: list[int] = []

        def cut(seen: int) -> None:
            if seen % 300 == 150 and len(cuts) < cases(3, 50):
                cuts.append(seen)
                between.cut(silently=silently)

        count = cases(1500, 16_000)
        dataset = RANGE(count).map(slowly, output_signature=ROWS).on_workers(f"tcp://127.0.0.1:{between.port}")
        counted(dataset, count, cut)
        assert len(cuts) == cases(3, 50)


@pytest.mark.parametrize("owned", [True, False])
def test_a_client_that_does_not_come_back_is_replaced_or_named(
    owned: bool, two: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask's client ends its attempt to come back, without a word, over messages that were meant for the connection before."""
    from distributed import Client

    connect = Client._ensure_connected

    async def surprised(client: Any, **_: Any) -> None:
        monkeypatch.setattr(Client, "_ensure_connected", connect)
        raise AssertionError

    def cut(seen: int) -> None:
        if seen == 150:
            monkeypatch.setattr(Client, "_ensure_connected", surprised)
            between.cut()

    with closing(Cutting(int(two.address.rpartition(":")[2]))) as between:
        address = f"tcp://127.0.0.1:{between.port}"
        dataset = RANGE(600).map(slowly, output_signature=ROWS)
        if owned:
            counted(dataset.on_workers(address), 600, cut)
            return
        client = Client(address, set_as_default=False)
        with pytest.raises(UnavailableError, match=r"the connection to the scheduler at .* was lost"):
            counted(dataset.on_workers(client), 600, cut)
        close_client(client)


def test_connections_are_cut_in_the_middle_of_a_block(two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_service, "_is_reached", lambda _: False)  # so blocks come by way of the scheduler
    monkeypatch.setattr(piece_lanes, "machine", lambda: "")  # and no memory is lent
    with closing(Cutting(int(two.address.rpartition(":")[2]))) as between:
        # Counted in bytes, of which all elements together have 192 MB: what is read ahead of the loop is not known.
        between.left += [32_000_000, 64_000_000]
        dataset = RANGE(120).map(large, output_signature=di.TensorSpec([200_000], "int64"))
        counted(dataset.on_workers(f"tcp://127.0.0.1:{between.port}"), 120, lambda seen: None)
        assert not between.left, "it was cut"


def test_connections_of_workers_are_cut() -> None:
    (port,) = free_ports(1)
    with scheduler(port) as process, closing(Cutting(port)) as between:
        line_with(process, "Scheduler at")
        with cluster_of(f"tcp://127.0.0.1:{between.port}") as workers:
            line_with(workers, "Ctrl-C")

            def cut(seen: int) -> None:
                if seen in (100, 600):
                    between.cut()

            dataset = RANGE(1000).map(slowly, output_signature=ROWS).on_workers(f"tcp://127.0.0.1:{port}")
            counted(dataset, 1000, cut)


def cluster_of(address: str) -> Any:
    return started("distinput", "input-worker", address, "--workers", "2")


def fatal(x: Any) -> Any:
    if x == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def test_a_function_that_kills_its_worker_is_named_and_the_others_go_on() -> None:
    with cluster(2) as made:
        before, error = until_error(RANGE(40).map(fatal, output_signature=INT64).on_workers(made.address))
        assert isinstance(error, UnavailableError)
        assert "map(map_func=fatal" in str(error)
        assert "11 different workers" in str(error)
        assert before == list(range(len(before)))
        assert RANGE(40).map(number).on_workers(made.address).to_list() == list(range(0, 120, 3)), "the cluster goes on"


@pytest.mark.parametrize(
    "there, named",
    [
        ("given = abs\n", "map(map_func=abs"),
        (
            "import more_words\ndef given(x):\n    return more_words.more(x)\n",
            "more_words.more, which map(map_func=given",
        ),
    ],
)
def test_a_worker_with_another_file_is_refused(
    there: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    given_here = there if "more" in there else "def given(x):\n    return x + 1\n"
    for folder, text, step in ((tmp_path, given_here, 1), (tmp_path / "there", there, 2)):
        (folder / "input_words.py").write_text(text)
        (folder / "more_words.py").write_text(f"def more(x):\n    return x + {step}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    given = importlib.import_module("input_words").given
    (port,) = free_ports(1)
    elsewhere = {**os.environ, "PYTHONPATH": str(tmp_path / "there")}
    with (
        scheduler(port) as process,
        started("distinput", "input-worker", f"tcp://127.0.0.1:{port}", env=elsewhere) as worker,
    ):
        line_with(process, "Scheduler at")
        pid = int(line_with(worker, ": process").rpartition(" ")[2])
        dataset = RANGE(9).map(given, output_signature=INT64).on_workers(f"tcp://127.0.0.1:{port}")
        _, error = until_error(dataset)
    for name in ("input_words", "more_words"):
        sys.modules.pop(name, None)
    assert isinstance(error, FailedPreconditionError)
    assert f"process {pid} on" in str(error)
    assert f"another version of the code of {named}" in str(error)
    assert "the work was that of map(map_func=given" in str(error)


def written(x: Any) -> Any:
    """A function that needs a disk: for element 7, its file may not grow beyond some bytes, as where there is no room."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        if x == 7:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        with tempfile.TemporaryFile(buffering=0) as file:
            file.writelines(20 * [b"x" * 100])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    return x


def test_a_full_disk_at_a_worker_is_the_error_of_its_element(two: Any) -> None:
    dataset = RANGE(20).map(written, output_signature=INT64).on_workers(two.address)
    before, error = until_error(dataset)
    assert before == list(range(7))
    assert isinstance(error, OSError)
    assert "File too large" in str(error)
    assert any("map(map_func=written" in note for note in error.__notes__)
    assert dataset.ignore_errors().to_list() == [*range(7), *range(8, 20)]


def large(x: Any) -> Any:
    return np.full(200_000, x)


def no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_a_worker_of_dask_that_cannot_spill_loses_nothing(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    spilling = {
        **os.environ,
        "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "0.0001",
        "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "0.0002",
        "DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE": "False",
        "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False",
        "PYTHONDONTWRITEBYTECODE": "1",  # of which a part would be left in the installation
    }
    words = ("distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", "--nthreads", "1", "--no-nanny")
    own = ("--memory-limit", "1GB", "--local-directory", str(tmp_path), "--host", "127.0.0.1", "--no-dashboard")
    with scheduler(port) as process, started(*words, *own, env=spilling, preexec_fn=no_room) as worker:
        line_with(process, "Scheduler at")
        dataset = RANGE(60).map(large, output_signature=di.TensorSpec([200_000], "int64"))
        counted(dataset.on_workers(f"tcp://127.0.0.1:{port}"), 60)
        assert re.search(r"[Ss]pill|File too large", line_with(worker, "pill"))


CONSUMER = """
import json, os, signal, sys, time
import distinput as di
address, folder, stop, often = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
def number(x):
    time.sleep(0.004)
    return x * 3
dataset = di.data.Dataset.range(900).map(number).batch(9).on_workers(address)
saved = os.path.join(folder, "saved.json")
if os.path.exists(saved):
    with open(saved) as file:
        delivered, state = json.load(file)
    elements = dataset.restore(state)
else:
    delivered, elements = [], iter(dataset)
for batch in elements:
    delivered.append(batch.tolist())
    with open(saved + ".new", "w") as file:
        json.dump([delivered, elements.state()], file)
    os.replace(saved + ".new", saved)
    if len(delivered) % often == stop:
        os.kill(os.getpid(), signal.SIGKILL)
print("done", flush=True)
"""


def test_two_consumers_of_one_cluster_die_and_come_back(two: Any, tmp_path: Path) -> None:
    (tmp_path / "consumer.py").write_text(CONSUMER)

    def consuming(name: str, stop: int) -> "subprocess.Popen[str]":
        words = [
            sys.executable,
            str(tmp_path / "consumer.py"),
            two.address,
            str(tmp_path / name),
            str(stop),
            often,
        ]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    stops, often = {"one": 5, "two": 7}, str(cases(50, 10))
    for name in stops:
        (tmp_path / name).mkdir()
    running = {name: consuming(name, stop) for name, stop in stops.items()}
    deaths = 0
    while running:
        name = next(iter(running))
        process = running.pop(name)
        told, _ = process.communicate(timeout=300)
        if "done" not in told:
            assert process.returncode == -signal.SIGKILL
            deaths += 1
            running[name] = consuming(name, stops[name])
    assert deaths == cases(4, 20)
    for name in stops:
        delivered, _ = json.loads((tmp_path / name / "saved.json").read_text())
        assert [x for batch in delivered for x in batch] == list(range(0, 2700, 3))
