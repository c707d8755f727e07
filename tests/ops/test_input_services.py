# SPDX-License-Identifier: Apache-2.0
"""`on_workers` with a Dask cluster, and with executors."""

import asyncio
import importlib
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import distinput as di
from distinput.cluster.input_service import opened
from distinput.columns.block import ColumnBlock
from distinput.data.experimental.service import distribute
from distinput.errors import FailedPreconditionError, UnavailableError
from distinput.ops import piece_lanes
from distinput.ops.pieces import PieceTask, WorkPiece, in_place_of
from distinput.run import lent_memory
from distinput.run.run import Run
from distinput.values.buffers import empty
from tests.depth import cases
from tests.ops.iterating import until_error
from tests.ops.test_on_workers import INT64, RANGE, double, odd, some
from tests.patience import PATIENCE, wait_until


def slowly(x: Any) -> Any:
    time.sleep(0.002)
    return np.array([x, os.getpid()])


def fatal(x: Any) -> Any:
    if x == 20:
        os._exit(3)
    return x


def in_place(x: Any) -> Any:
    x += 1
    return x


def found_in(folder: str) -> None:
    sys.path.insert(0, folder)


def of_version(text: str, folder: Path) -> Any:
    """`answer` of a module that both sides import, as it is here."""
    (folder / "input_code.py").write_text(text)
    sys.modules.pop("input_code", None)
    importlib.invalidate_caches()
    return importlib.import_module("input_code").answer


def large(x: Any) -> Any:
    return np.full(50_000, x)


def summed(x: Any) -> Any:
    return x + x.sum()


class Losing(Executor):
    """Loses the first of each three calls."""

    def __init__(self, most: int = 3) -> None:
        self.inner, self.calls, self.most = ThreadPoolExecutor(2), 0, most

    def submit(self, function: Any, /, *given: Any) -> Any:  # type: ignore[override]
        self.calls += 1
        if self.calls % self.most == 0:
            lost: Future[Any] = Future()
            lost.set_exception(ConnectionError("gone"))
            return lost
        return self.inner.submit(function, *given)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Workers that are lost are started again."""
    pytest.importorskip("distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)")
    from distinput.distribute.seats.local_cluster import LocalCluster

    with LocalCluster(0, 0, inputs=2) as made:
        yield made


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """Each test has a connection of its own, so that one that was lost is lost to one test."""
    import distributed

    cluster.wait()
    with distributed.Client(cluster.address, set_as_default=False) as made:
        yield made


def made(kind: str) -> di.data.Dataset[Any]:
    rows = np.arange(600.0).reshape(150, 4)
    return {
        "numbers": RANGE(90).map(double).filter(odd).shuffle(9, 1, False).map_rows(double).batch(4),
        "rows": di.data.Dataset.from_tensor_slices({"rows": rows, "text": [b"a" * i for i in range(150)]}).map(dict),
    }[kind]


def plain(elements: Any) -> Any:
    return [
        {key: np.asarray(value).tolist() for key, value in element.items()}
        if isinstance(element, dict)
        else np.asarray(element).tolist()
        for element in elements
    ]


@pytest.mark.parametrize("kind", ["numbers", "rows"])
def test_elements_and_states_are_those_without_it(client: Any, kind: str) -> None:
    alone = made(kind)
    elements = plain(alone)
    for service in (client, client.scheduler.address, client.get_executor()):
        served = made(kind).on_workers(service)
        assert plain(served) == elements
    for saving, restoring in ((alone, served), (served, alone)):
        with iter(saving) as iterator:
            assert plain(next(iterator) for _ in range(7)) == elements[:7]
            state = json.loads(json.dumps(iterator.state()))
        assert plain(restoring.restore(state)) == elements[7:]


def test_calls_run_at_the_workers_and_results_can_be_written(client: Any) -> None:
    made = list(RANGE(300).map(slowly).on_workers(client))
    assert [int(number) for number, _ in made] == list(range(300))
    assert {int(pid) for _, pid in made} - {os.getpid()} == set(client.run(os.getpid).values())
    assert all(each.flags.writeable for each in made) == all(
        each.flags.writeable for each in RANGE(300).map(slowly).on_workers("processes:1")
    )


def test_errors_keep_their_places(client: Any) -> None:
    failing = RANGE(50).map(some, output_signature=INT64)
    assert failing.on_workers(client).ignore_errors().to_list() == failing.ignore_errors().to_list()
    before, error = until_error(failing.on_workers(client))
    assert before == [0, 1, 2]
    assert "no 3" in str(error)
    assert any("in a worker of the service, process" in note for note in error.__notes__)


def test_killed_workers_lose_nothing(client: Any) -> None:
    seen, killed = [], 0
    for number, _ in RANGE(600).map(slowly).on_workers(client):
        seen.append(int(number))
        if len(seen) in (50, 300):
            with suppress(Exception):  # it tells nobody
                client.run(os._exit, 1, workers=[next(iter(client.nthreads()))], on_error="ignore")
            killed += 1
    assert seen == list(range(600))
    assert killed == 2


def large_blocks(client: Any) -> di.data.Dataset[Any]:
    """Pieces and results of which each is lent to another process of this machine."""
    rows = np.arange(40)[:, None] * np.ones(40_000)
    return di.data.Dataset.from_tensor_slices(rows).map(summed).on_workers(client)


def test_elements_that_are_kept_do_not_change(client: Any) -> None:
    kept = [(x, int(x[0])) for _ in range(3) for x in RANGE(60).map(large).on_workers(client)]
    assert [number for _, number in kept] == 3 * list(range(60))
    kept[5][0][:] = 77
    assert [int(x.sum()) // 50_000 for x, _ in kept] == [*range(5), 77, *range(6, 60), *range(60), *range(60)]
    alone = np.arange(40) * 40_001
    for _ in range(2):
        assert [float(x[3]) for x in large_blocks(client)] == alone.tolist()


def test_workers_of_a_cluster_read_files(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "a.npy", np.arange(40)[:, None] * np.ones(40_000))
    alone = di.data.NpyDataset(str(tmp_path / "a.npy")).shuffle(40, 1, False).map(summed)
    expected = [float(x[3]) for x in alone]
    sent = []
    send = piece_lanes.ServiceLanes.send
    monkeypatch.setattr(
        piece_lanes.ServiceLanes, "send", lambda lanes, given: (sent.append(given[0]), send(lanes, given))[1]
    )
    assert [float(x[3]) for x in alone.on_workers(client)] == expected
    assert sum(block.nbytes for piece in sent for block, _ in piece.blocks) < 8 * 40 + 1
    assert all(piece.stamps for piece in sent)


def test_a_further_pass_begins_with_larger_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    send = piece_lanes.ServiceLanes.send
    monkeypatch.setattr(
        piece_lanes.ServiceLanes, "send", lambda lanes, given: (sent.append(given[0].rows), send(lanes, given))[1]
    )
    dataset = RANGE(5000).map(double, output_signature=INT64).on_workers(ThreadPoolExecutor(2))
    passes = []
    for _ in range(2):
        sent.clear()
        assert dataset.to_list() == list(range(0, 10_000, 2))
        passes.append([*sent])
    assert passes[0][0] == 1 < passes[1][0] < 5000  # the last piece may have had fewer rows than it could have
    assert len(passes[1]) < len(passes[0])


def test_pieces_become_smaller_towards_the_end() -> None:
    with ThreadPoolExecutor(2) as pool:
        lanes = piece_lanes.ServiceLanes(opened(pool), b"", cast("Any", None), "")
        assert [lanes.piece_seconds(left) for left in (80.0, 0.4, 0.2, 0.0)] == [0.2, 0.1, 0.05, 0.05]
        assert lanes.piece_seconds(None) == 0.05, "an eighth of what was done"


def test_pieces_for_workers_that_are_lent_memory_are_larger_and_fewer_wait() -> None:
    with ThreadPoolExecutor(2) as pool:
        lanes = piece_lanes.ServiceLanes(opened(pool), b"", cast("Any", None), "")
        far = lanes.most_bytes
        lanes._near = True
        assert (far, lanes.most_bytes) == (32 << 20, 64 << 20)
        lanes._count = 64
        assert lanes.most_bytes == 4 << 20


def pooled(x: Any) -> Any:
    return empty((1 << 20,), np.dtype(np.uint8))


@pytest.mark.skipif(not lent_memory.machine(), reason="memory is lent where there are memory files and /proc")
@pytest.mark.parametrize("function, kind", [(pooled, ColumnBlock), (large, lent_memory.Stored)])
def test_arrays_that_were_made_in_lent_memory_are_pickled_at_the_end(function: Any, kind: type) -> None:
    chain = cast("Any", RANGE(8).map(function)._node)
    base = chain.input
    (block, after), *_ = base.open(base.start(0), Run([base]))
    piece = WorkPiece(chain.start(0), [(block, after)], 0, None)
    steps = piece_lanes.steps_for_service(PieceTask(chain.with_inputs((in_place_of(base),)), 1, elsewhere=True))
    content = piece_lanes._as_packed((piece, False, False))
    answer = piece_lanes._answered(steps, piece_lanes._Message(content, (lent_memory.machine(), 1), None))
    assert isinstance(answer.content, lent_memory.Stored), answer.trace
    views = lent_memory.Borrower(64).taken(pickle.loads(pickle.dumps(answer.lent)))
    made = [each for each, _ in lent_memory.value_of(answer.content, views).items]
    assert {*map(type, made)} == {kind}
    assert len(made) == 8


@pytest.mark.parametrize("where", ["here", "there"])
def test_memory_that_is_not_to_be_seen_is_sent(where: str, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def nothing(*_: Any) -> Any:
        asked.append(where)
        if where == "here":
            raise lent_memory.UnseenError("no")
        return [(lent_memory.RoomPlace(1, 999_999, 0, 0, 1 << 22), 1)]

    if where == "here":
        monkeypatch.setattr(lent_memory.Borrower, "taken", nothing)
    else:
        monkeypatch.setattr(lent_memory.Lent, "places", property(nothing))
    assert [float(x[3]) for x in large_blocks(client)] == (np.arange(40) * 40_001).tolist()
    assert asked or not lent_memory.machine()


def test_a_function_that_ends_its_worker_is_named(client: Any, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster._scheduler.scheduler, "allowed_failures", cases(0, 3))  # each costs a new worker
    dataset = RANGE(40).map(fatal, output_signature=INT64).on_workers(client)
    before, error = until_error(dataset)
    assert isinstance(error, UnavailableError)
    assert "map(map_func=fatal" in str(error)
    assert "KilledWorker" in str(error)
    assert before == list(range(len(before)))
    assert RANGE(40).map(double).on_workers(client).to_list() == list(range(0, 80, 2)), "the cluster goes on"


def test_a_worker_with_another_version_of_the_code_is_refused(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    client.run(found_in, str(tmp_path))
    of_version("def answer(x):\n    return x + 1\n", tmp_path)
    client.run(__import__, "input_code")
    answer = of_version("def answer(x):\n    return x + 22\n", tmp_path)
    _, error = until_error(RANGE(9).map(answer, output_signature=INT64).on_workers(client))
    assert isinstance(error, FailedPreconditionError)
    assert "has another version of the code of map(map_func=answer" in str(error)


def test_a_pass_that_is_left_leaves_no_work(client: Any) -> None:
    with iter(RANGE(100_000).map(slowly).on_workers(client, 3)) as elements:
        for _ in range(5):
            next(elements)
    wait_until(lambda: not any(client.processing().values()))


async def room(client: Any, by: int) -> None:
    """Take places in the queue of a client's gathers, or give them back."""
    for _ in range(abs(by)):
        if by < 0:
            await client._gather_semaphore.acquire()
        else:
            client._gather_semaphore.release()


def test_a_pass_that_is_left_while_results_are_gathered_ends_no_other_work_of_the_client(client: Any) -> None:
    other, service = client.submit(double, 4), opened(client)
    wait_until(other.done)
    client.sync(room, client, -5)
    left = service.submit(double, 3)
    behind = client.gather(other, asynchronous=True)  # they wait for their place together
    wait_until(lambda: client._gather_future is not None)
    waiting = asyncio.run_coroutine_threadsafe(behind, client.loop.asyncio_loop)
    time.sleep(0.1)
    left.cancel()
    time.sleep(0.1)
    client.sync(room, client, 5)
    assert waiting.result(PATIENCE) == 8
    assert service.submit(double, 5).result(PATIENCE) == 10


def test_an_executor_that_loses_calls_is_asked_again() -> None:
    executor = Losing()
    assert RANGE(500).map(double).on_workers(executor).to_list() == list(range(0, 1000, 2))
    assert executor.calls > 3
    _, error = until_error(RANGE(5).map(double, output_signature=INT64).on_workers(Losing(1)))
    assert isinstance(error, UnavailableError)
    assert "lost again and again while they had the same 1 elements" in str(error)


def noting(folder: str) -> Any:
    def noted(x: Any) -> Any:
        with open(f"{folder}/calls", "a", encoding="utf-8") as calls:
            calls.write("x")
        return x * 2

    return noted


@pytest.mark.parametrize("shared, lost", [(0, False), (1 << 20, False), (1 << 20, True)])
def test_jobs_of_two_clients_cost_one_where_they_share(client: Any, shared: int, lost: bool, tmp_path: Path) -> None:
    import distributed

    def job(service: Any) -> di.data.Dataset[Any]:
        numbers = RANGE(640).shuffle(100, seed=1).map(noting(str(tmp_path)), output_signature=INT64)
        return numbers.on_workers(service, shared_bytes=shared)

    with distributed.Client(client.scheduler.address, set_as_default=False) as other, iter(job(other)) as second:
        both = []
        for number, element in enumerate(job(client)):
            both.append((int(element), int(next(second))))
            if lost and number == 300:
                with suppress(Exception):  # it tells nobody
                    client.run(os._exit, 1, workers=[next(iter(client.nthreads()))], on_error="ignore")
    assert [x for x, _ in both] == [y for _, y in both]
    assert sorted(x for x, _ in both) == list(range(0, 1280, 2))
    if not lost:  # what was shared and not read yet is made again, which may be all
        assert (tmp_path / "calls").stat().st_size == (640 if shared else 1280)


def test_off_comes_once_for_each_worker(client: Any) -> None:
    there = RANGE(50).map(double).apply(distribute("parallel_epochs", client)).to_list()
    times = len(there) // 50
    assert there == times * list(range(0, 100, 2))
    assert times in (1, 2), "a worker that was killed may not be back"


@pytest.mark.parametrize("where", ["client", "threads", "processes"])
def test_a_function_that_changes_its_element_fails_as_it_does_here(where: str, client: Any) -> None:
    rows = np.arange(40.0).reshape(10, 4)
    alone = di.data.Dataset.from_tensor_slices(rows).map(in_place, output_signature=di.TensorSpec([4], "float64"))
    services = {"client": client, "threads": ThreadPoolExecutor(2), "processes": "processes:1"}
    messages = [str(until_error(dataset)[1]) for dataset in (alone, alone.on_workers(services[where]))]
    assert messages == ["output array is read-only"] * 2
    assert np.array_equal(rows, np.arange(40.0).reshape(10, 4))


def test_a_scheduler_that_is_not_there_is_named() -> None:
    pytest.importorskip("distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)")
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        _, error = until_error(RANGE(3).map(double, output_signature=INT64).on_workers("tcp://127.0.0.1:9"))
    assert isinstance(error, UnavailableError)
    assert "there is no Dask scheduler at tcp://127.0.0.1:9" in str(error)


@pytest.mark.needs("ray")
def test_ray() -> None:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="CRITICAL")
    try:
        assert plain(made("numbers").on_workers("ray")) == plain(made("numbers"))
        jobs = [iter(made("numbers").on_workers("ray", shared_bytes=1 << 20)) for _ in range(2)]
        assert [plain(job) for job in jobs] == 2 * [plain(made("numbers"))]
    finally:
        ray.shutdown()


SCHEDULER = """
import subprocess
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    own = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": "CRITICAL"}
    with LocalCluster(n_workers=1, threads_per_worker=1, **own) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


def test_a_scheduler_that_ends_is_an_error_and_no_wait(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)")
    import dask

    (tmp_path / "scheduler.py").write_text(SCHEDULER)
    words = [sys.executable, str(tmp_path / "scheduler.py")]
    seen: list[int] = []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as scheduler:
        assert scheduler.stdout
        address = scheduler.stdout.readline().strip()
        dataset = RANGE(100_000).map(slowly).on_workers(address)

        def killing() -> None:
            for number, _ in dataset:
                seen.append(int(number))
                if len(seen) == 20:
                    scheduler.kill()

        with (
            dask.config.set({"distributed.comm.timeouts.connect": f"{cases(2, 30)}s"}),
            pytest.raises(UnavailableError, match="on_workers"),
        ):
            killing()
    assert seen == list(range(len(seen)))
