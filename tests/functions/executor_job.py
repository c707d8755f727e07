# SPDX-License-Identifier: Apache-2.0
"""A program that maps through an executor of somebody else's, and prints what came of it as JSON.

python -m tests.functions.executor_job KIND [FOLDER]
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import distinput as di
from distinput.functions.workers import workers_of

INT64 = di.TensorSpec([], "int64")


def double(x: Any) -> Any:
    return x * 2


def inverse(x: Any) -> Any:
    return np.int64(12 // int(5 - x))


def process(x: Any) -> Any:
    return np.int64(os.getpid())


def drawn(x: Any) -> Any:
    return np.random.default_rng().integers(1 << 60)


def slow(x: Any) -> Any:
    time.sleep(0.02)
    return x


def die_once(x: Any, mark: str) -> Any:
    """The process that meets element 3 first ends over it."""
    if int(x) == 3 and not Path(mark).exists():
        Path(mark).touch()
        os._exit(1)
    return x * 2


buffer = np.zeros(2, np.int64)


def filled(x: Any) -> Any:
    buffer[:] = x
    time.sleep(0.002)
    return buffer


@contextmanager
def dask() -> Iterator[Any]:
    from distributed import Client

    from distinput.distribute.seats.local_cluster import LocalCluster

    with LocalCluster(0, 0, inputs=2) as cluster:
        cluster.wait()
        with Client(cluster.address) as client, client.get_executor() as executor:
            yield executor


@contextmanager
def dask_on_threads() -> Iterator[Any]:
    from distributed import Client

    own: dict[str, Any] = {"dashboard_address": "127.0.0.1:0", "silence_logs": "CRITICAL"}
    with Client(n_workers=1, threads_per_worker=2, **own) as client, client.get_executor() as executor:
        yield executor


@contextmanager
def mpi() -> Iterator[Any]:
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as executor:
        yield executor


@contextmanager
def interpreters() -> Iterator[Any]:
    from concurrent.futures import InterpreterPoolExecutor

    with InterpreterPoolExecutor(2) as executor:
        yield executor


@contextmanager
def loky() -> Iterator[Any]:
    from loky import get_reusable_executor

    with get_reusable_executor(2) as executor:
        yield executor


@contextmanager
def ray() -> Iterator[Any]:
    import ray

    @ray.remote(max_retries=0)
    def call(function: Any, *given: Any) -> Any:
        return function(*given)

    class RayExecutor(Executor):
        """That of docs/pipeline.md, but Ray does not call again what it lost, so that the map has to."""

        def submit(self, function: Any, /, *given: Any) -> Any:  # type: ignore[override]
            return call.remote(function, *given).future()

    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="CRITICAL",
        runtime_env={"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}},
    )  # fmt: skip
    try:
        yield RayExecutor()
    finally:
        ray.shutdown()


KINDS = {
    "dask": dask,
    "dask on threads": dask_on_threads,
    "interpreters": interpreters,
    "loky": loky,
    "mpi": mpi,
    "ray": ray,
}


class Watched(Executor):
    """Passes calls on, and knows what became of them."""

    def __init__(self, executor: Any) -> None:
        self.executor, self.futures, self._max_workers = executor, list[Any](), workers_of(executor)

    def submit(self, function: Any, /, *given: Any) -> Any:  # type: ignore[override]
        self.futures.append(self.executor.submit(function, *given))
        return self.futures[-1]


def abandoned(executor: Any) -> dict[str, int]:
    """What is left of a pass that was left after three elements of 500."""
    watched = Watched(executor)
    with iter(di.data.Dataset.range(500).map(slow, executor=watched, output_signature=INT64)) as elements:
        for _ in range(3):
            next(elements)
    deadline = time.monotonic() + 60
    while (running := sum(not each.done() for each in watched.futures)) and time.monotonic() < deadline:
        time.sleep(0.02)  # `wait` would not return for a future that was cancelled before Ray looked at it
    return {"sent": len(watched.futures), "running": running}


def main() -> None:
    kind, *folder = sys.argv[1:]
    numbers, told = di.data.Dataset.range, dict[str, Any]()
    with KINDS[kind]() as executor:
        options = {"executor": executor, "output_signature": INT64}
        told["doubled"] = [int(x) for x in numbers(200).map(double, **options)]
        told["processes"] = len({int(x) for x in numbers(200).map(process, **options)} - {os.getpid()})
        with iter(numbers(30).map(double, **options)) as elements:
            told["before"] = [int(next(elements)) for _ in range(7)]
            told["after"] = [int(x) for x in numbers(30).map(double, **options).restore(elements.state())]
        told["until"] = []
        try:
            for x in numbers(9).map(inverse, **options):
                told["until"].append(int(x))
        except ZeroDivisionError as error:
            told["error"] = "\n".join(error.__notes__)
        told["skipped"] = [int(x) for x in numbers(9).map(inverse, on_error="skip", **options)]
        told["distinct"] = len({int(x) for x in numbers(1).repeat(100).map(drawn, **options)})
        told["workers"] = workers_of(executor)
        told["filled"] = ""
        try:
            numbers(200).map(filled, executor=executor, output_signature=di.TensorSpec([2], "int64")).to_list()
        except di.errors.InvalidArgumentError as error:
            told["filled"] = str(error)
        told["abandoned"] = abandoned(executor)
        if folder:
            dying = partial(die_once, mark=f"{folder[0]}/mark")
            if kind == "loky":  # whose pools break with their first lost worker
                from loky import get_reusable_executor

                options["executor"] = lambda: get_reusable_executor(2)
            told["lost"] = [int(x) for x in numbers(9).map(dying, **options)]
    print("\n" + json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
