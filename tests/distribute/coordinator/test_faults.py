# SPDX-License-Identifier: Apache-2.0
"""Processes are killed and stopped while functions run: each function has its effect, and each failure its error, in time."""

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.depth import DEEP, cases

pytest.importorskip("distributed", reason="distributed is not installed (`pip install 'distinput[dask]'`)")

from distinput.distribute.seats.local_cluster import LocalCluster  # after the check that it can be imported
from tests.patience import wait_until


class Run:
    """A coordinator of some of the processes of a cluster."""

    def __init__(self, cluster: LocalCluster, workers: int, seconds: float, **options: Any) -> None:
        self.cluster = cluster
        resolver = di.distribute.cluster_resolver.DaskClusterResolver(cluster.address, num_workers=workers, num_ps=1)
        self.strategy = di.distribute.ParameterServerStrategy(resolver, worker_timeout_seconds=seconds)
        self.coordinator = di.distribute.coordinator.ClusterCoordinator(self.strategy, **options)

    def variable(self, value: Any) -> Any:
        with self.strategy.scope():
            return di.Variable(value)

    def signal(self, seat: str, number: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.cluster.pid(seat), number)


Running = Callable[..., AbstractContextManager[Run]]


@contextmanager
def running_on(cluster: LocalCluster, workers: int = 2, seconds: float = 30.0, **options: Any) -> Iterator[Run]:
    run = Run(cluster, workers, seconds, **options)
    with run.strategy:
        yield run


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Processes for one test after the other: workers that are killed are started again."""
    with LocalCluster(3, 1) as made:
        made.wait()
        yield made


@pytest.fixture
def running(cluster: LocalCluster) -> Running:
    return partial(running_on, cluster)


def counted(counts: Any, number: int, seconds: float) -> int:
    """Take so long, and leave a trace at the server."""
    time.sleep(seconds)
    mine = np.zeros(counts.shape[0], np.int64)
    mine[number] = 1
    counts.assign_add(mine)
    return number


def counts_on(counts: Any) -> None:
    """Leave traces at the server for as long as it is there."""
    while True:
        counted(counts, 0, 0.01)


@pytest.mark.slow
def test_random_kills_lose_no_function_and_repeat_only_those_that_were_put_back(running: Running) -> None:
    chance, kills, count = random.Random(7), cases(8, 100), cases(1500, 12_000)
    with running(workers=3, max_retries=1000) as run:
        counts = run.variable(np.zeros(count, np.int64))
        over = threading.Event()
        killed: Counter[str] = Counter()

        def kill() -> None:
            while not over.is_set() and killed.total() < kills:
                time.sleep(chance.uniform(0.0, 0.4))
                seat = f"worker-{chance.randrange(3)}"
                with suppress(ProcessLookupError):  # it was killed a moment ago, and the next one is not started yet
                    run.signal(seat)
                    killed[seat] += 1

        killing = threading.Thread(target=kill)
        killing.start()
        results = [run.coordinator.schedule(counted, args=(counts, i, 0.002)) for i in range(count)]
        run.coordinator.join()
        while killing.is_alive():  # the last ones, while there is still something to do
            more = [run.coordinator.schedule(time.sleep, args=(0.002,)) for _ in range(100)]
            run.coordinator.join()
            run.coordinator.fetch(more)
        over.set()
        killing.join()
        assert run.coordinator.fetch(results) == list(range(count))
        found = counts.numpy()
        assert found.min() >= 1, f"without effect: {np.flatnonzero(found < 1)}"
        assert (found - 1).sum() <= run.coordinator._queue.put_backs
        assert killed.total() == kills


@pytest.mark.slow
def test_exact_input_passes_over_no_element_and_repeats_none(running: Running) -> None:
    kills, count = cases(4, 30), cases(600, 4000)
    chance = random.Random(3)
    with running(workers=2, max_retries=1000) as run:
        dataset = di.data.Dataset.range(1_000_000).shuffle(16, seed=5, reshuffle_each_iteration=False).batch(2)
        wanted = [batch.tolist() for batch in dataset.take(count)]
        iterator = iter(run.coordinator.create_per_worker_dataset(dataset, exact_input=True))

        def step(mine: Any) -> tuple[int, list[int]]:
            batch = next(mine).tolist()
            time.sleep(0.002)
            return di.distribute.coordinator.experimental_get_current_worker_index(), batch

        results = []
        for part in range(kills):
            results += [run.coordinator.schedule(step, args=(iterator,)) for _ in range(count // kills)]
            time.sleep(chance.uniform(0.05, 0.4))
            with suppress(ProcessLookupError):  # as above
                run.signal(f"worker-{part % 2}")
        run.coordinator.join()
        taken: dict[int, list[list[int]]] = {0: [], 1: []}
        for result in results:
            worker, batch = result.fetch()
            taken[worker].append(batch)
        for worker, batches in taken.items():
            assert sorted(batches) == sorted(wanted[: len(batches)]), f"worker {worker} passed over elements"


@pytest.mark.slow
def test_coordinators_that_are_started_again_take_each_element_once_while_workers_are_killed(
    running: Running, tmp_path: Path
) -> None:
    lives, count = cases(3, 20), cases(60, 300)
    chance, path = random.Random(11), str(tmp_path / "checkpoint")
    dataset = di.data.Dataset.range(1_000_000).shuffle(16, seed=5, reshuffle_each_iteration=False).batch(2)
    taken: dict[int, list[list[int]]] = {0: [], 1: []}
    for life in range(lives):
        with running(
            workers=2, max_retries=1000
        ) as run:  # each a coordinator that knows of the one before what the file says
            iterator = iter(run.coordinator.create_per_worker_dataset(dataset, exact_input=True))
            steps = run.variable(0)
            checkpoint = di.train.Checkpoint(steps=steps, iterator=iterator)
            if life:
                checkpoint.restore(path)

            def step(mine: Any) -> tuple[int, list[int]]:
                return di.distribute.coordinator.experimental_get_current_worker_index(), next(mine).tolist()

            results = [run.coordinator.schedule(step, args=(iterator,)) for _ in range(count)]
            time.sleep(chance.uniform(0.0, 0.2))
            with suppress(ProcessLookupError):  # as above
                run.signal(f"worker-{life % 2}")
            run.coordinator.join()
            steps.assign_add(count)
            checkpoint.write(path)
            for worker, batch in run.coordinator.fetch(results):
                taken[worker].append(batch)
            for _ in range(5):  # after the checkpoint: it is done again in the next life
                run.coordinator.schedule(step, args=(iterator,))
            run.coordinator.join()
    assert sum(map(len, taken.values())) == lives * count
    wanted = [batch.tolist() for batch in dataset.take(lives * count)]
    for worker, batches in taken.items():
        assert sorted(batches) == sorted(wanted[: len(batches)]), f"worker {worker} lost or repeated elements"


def test_without_exact_input_a_worker_that_is_back_starts_its_dataset_again(running: Running) -> None:
    with running(workers=1) as run:
        iterator = iter(run.coordinator.create_per_worker_dataset(di.data.Dataset.range(100)))

        def step(mine: Any) -> int:
            return int(next(mine))

        assert [run.coordinator.schedule(step, args=(iterator,)).fetch() for _ in range(3)] == [0, 1, 2]
        run.signal("worker-0")
        assert run.coordinator.schedule(step, args=(iterator,)).fetch() == 0


def test_a_worker_that_is_killed_is_replaced_and_its_function_runs_elsewhere_at_once(running: Running) -> None:
    with running(workers=2) as run:
        pids: set[int] = set()

        def both_are_known() -> bool:
            pids.update(run.coordinator.fetch([run.coordinator.schedule(_slow_pid) for _ in range(8)]))
            return len(pids) == 2

        wait_until(both_are_known)
        results = [run.coordinator.schedule(_slow_pid) for _ in range(6)]
        time.sleep(0.02)
        began = time.perf_counter()
        run.signal("worker-0")
        run.coordinator.join()
        assert time.perf_counter() - began < 30
        assert len(run.coordinator.fetch(results)) == 6
        new = run.cluster.pid("worker-0")
        wait_until(lambda: run.coordinator.schedule(_slow_pid).fetch() == run.cluster.pid("worker-0"))
        assert new not in pids


def _slow_pid() -> int:
    time.sleep(0.05)
    return os.getpid()


def test_a_worker_that_stands_still_is_left_out_until_it_goes_on(running: Running) -> None:
    with running(workers=2, seconds=4.0) as run:
        first = [run.coordinator.schedule(_slow_pid) for _ in range(10)]
        time.sleep(0.02)
        began = time.perf_counter()
        stopped = run.cluster.pid("worker-1")
        run.signal("worker-1", signal.SIGSTOP)
        run.coordinator.join()
        assert time.perf_counter() - began < 30
        assert len(run.coordinator.fetch(first)) == 10
        assert {run.coordinator.schedule(_slow_pid).fetch() for _ in range(5)} == {run.cluster.pid("worker-0")}
        run.signal("worker-1", signal.SIGCONT)
        wait_until(lambda: run.coordinator.schedule(_slow_pid).fetch() == stopped)


def ends_its_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_function_that_always_kills_its_worker_is_named(running: Running) -> None:
    with running(workers=2, max_retries=2) as run:
        run.coordinator.schedule(ends_its_process)
        with pytest.raises(di.errors.AbortedError, match="ends_its_process lost its worker 3 times") as raised:
            run.coordinator.join()
        assert "max_retries is 2" in str(raised.value)
        assert run.coordinator.schedule(_slow_pid).fetch() > 0


def test_a_parameter_server_that_is_killed_is_unavailable_for_good() -> None:
    with LocalCluster(2, 1) as own, running_on(own) as run:
        counts = run.variable(np.zeros(1, np.int64))
        for _ in range(10):
            run.coordinator.schedule(counts_on, args=(counts,))
        wait_until(lambda: counts.numpy().any())
        began = time.perf_counter()
        run.signal("ps-0")
        with pytest.raises(di.errors.UnavailableError, match="parameter server ps-0 is lost"):
            run.coordinator.join()
        assert time.perf_counter() - began < 30
        for call in (
            run.coordinator.join,
            run.coordinator.done,
            lambda: run.coordinator.schedule(_slow_pid),
            counts.numpy,
        ):
            with pytest.raises(di.errors.UnavailableError, match="ps-0"):
                call()


def test_an_error_of_a_function_says_where_it_was_raised(running: Running) -> None:
    def divide(x: int) -> float:
        return 1 / x

    with running(workers=1) as run:
        run.coordinator.schedule(divide, args=(0,))
        with pytest.raises(ZeroDivisionError) as raised:
            run.coordinator.join()
        notes = "\n".join(raised.value.__notes__)
        assert re.search(r"in .*divide on worker-0", notes)
        assert "return 1 / x" in notes, "the lines of the function at the worker"


def test_functions_of_modules_that_workers_cannot_import_travel_as_they_are(running: Running, tmp_path: Any) -> None:
    import importlib.util

    file = tmp_path / "only_here.py"
    file.write_text("FACTOR = 3\ndef times(x):\n    return FACTOR * x\nclass Kept:\n    x = 5\n")
    spec = importlib.util.spec_from_file_location("only_here", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["only_here"] = module
    try:
        spec.loader.exec_module(module)
        with running(workers=1) as run:
            assert run.coordinator.schedule(module.times, args=(4,)).fetch() == 12
            made = run.coordinator.schedule(lambda kind: kind(), args=(module.Kept,)).fetch()
            assert isinstance(made, module.Kept)
    finally:
        import cloudpickle

        if "only_here" in cloudpickle.list_registry_pickle_by_value():
            cloudpickle.unregister_pickle_by_value(module)
        del sys.modules["only_here"]


def test_when_the_command_that_runs_the_cluster_is_killed_everything_ends() -> None:
    command = [sys.executable, "-m", "distinput", "cluster", "start", "--address", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"tcp://\S+", process.stdout.readline())
            assert found
            resolver = di.distribute.cluster_resolver.DaskClusterResolver(found[0])
            with di.distribute.ParameterServerStrategy(resolver) as strategy:
                coordinator = di.distribute.coordinator.ClusterCoordinator(strategy)
                pids = set(coordinator.fetch([coordinator.schedule(_slow_pid) for _ in range(6)]))
                process.kill()
                began = time.perf_counter()
                with pytest.raises(di.errors.UnavailableError):
                    _run_for_ever(coordinator)
                assert time.perf_counter() - began < 30
        finally:
            process.kill()
    wait_until(lambda: not any(map(_alive, pids)))


def _run_for_ever(coordinator: Any) -> None:
    while True:
        coordinator.schedule(_slow_pid)
        coordinator.join()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_whole_of_the_kills_is_played_in_the_deep_run() -> None:
    assert cases(8, 100) == (100 if DEEP else 8)
