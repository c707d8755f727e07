# SPDX-License-Identifier: Apache-2.0
"""Kills an input worker of each service that is installed, counts what comes, and writes it to docs/conformance.md.

python docs/make_killed_worker.py             write the rows of those that are installed here; the others stay as they are
python docs/make_killed_worker.py --print     print them
"""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

PAGE = Path(__file__).parent / "conformance.md"
HEADING = "## A killed input worker"
HEAD = f"""{HEADING}

Two input workers call a function for {{records:,}} records. When the consumer has {{first}} of them, one worker gets SIGKILL.
Only the service itself may start a worker again. `python docs/make_killed_worker.py` repeats this.

| service | with | not delivered | delivered again | order | how the pass ends |
|---|---|---|---|---|---|
"""
RECORDS, FIRST, PATIENCE = 2000, 300, 150


def slowly(x: Any) -> Any:
    """A record, and the process that had it."""
    time.sleep(0.002)
    return x, os.getpid()


def ours() -> Iterator[tuple[int, int]]:
    """`on_workers` at a cluster of `distinput cluster start --input-workers 2`."""
    import distinput as di
    from distinput.distribute.seats.local_cluster import LocalCluster

    with LocalCluster(0, 0, inputs=2) as cluster:
        cluster.wait()
        for x, pid in di.data.Dataset.range(RECORDS).map(slowly).on_workers(cluster.address):
            yield int(x), int(pid)


def ours_with_ray() -> Iterator[tuple[int, int]]:
    """`on_workers` at a Ray of two cores."""
    import ray

    import distinput as di

    _start_ray(ray)
    try:
        for x, pid in di.data.Dataset.range(RECORDS).map(slowly).on_workers("ray"):
            yield int(x), int(pid)
    finally:
        ray.shutdown()


def _start_ray(ray: Any) -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="CRITICAL")


@contextmanager
def _tensorflow(*words: str) -> Iterator[tuple[str, int]]:
    with subprocess.Popen(
        [sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid


def tensorflow() -> Iterator[tuple[int, int]]:
    """The data service, DYNAMIC, with a dispatcher and two workers as processes."""
    with (
        _tensorflow("dispatcher") as (address, _),
        _tensorflow("worker", address) as (_, pid),
        _tensorflow("worker", address),
    ):
        import tensorflow as tf

        service = tf.data.experimental.service
        dataset = tf.data.Dataset.range(RECORDS).map(lambda x: x)
        dataset = dataset.apply(service.distribute(service.ShardingPolicy.DYNAMIC, f"grpc://{address}"))
        for x in dataset.as_numpy_iterator():
            time.sleep(0.002)
            yield int(x), pid


def serve_tensorflow(kind: str, address: str = "") -> None:
    """Be a dispatcher or a worker of TensorFlow until the input ends."""
    import tensorflow as tf

    service = tf.data.experimental.service
    if kind == "dispatcher":
        running: Any = service.DispatchServer(service.DispatcherConfig(worker_timeout_ms=5000))
        print(running.target.partition("://")[2], flush=True)
    else:
        running = service.WorkerServer(service.WorkerConfig(dispatcher_address=address, heartbeat_interval_ms=1000))
        print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


def ray() -> Iterator[tuple[int, int]]:
    """Ray Data, `map` on two cores, which makes the tasks of a lost process again."""
    import ray

    _start_ray(ray)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def mapped(row: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.002)
        return {"id": row["id"], "pid": os.getpid()}

    try:
        for row in ray.data.range(RECORDS, override_num_blocks=RECORDS // 20).map(mapped).iter_rows():
            yield int(row["id"]), int(row["pid"])
    finally:
        ray.shutdown()


SERVICES: dict[str, tuple[str, str, Callable[[], Iterator[tuple[int, int]]]]] = {
    "distinput, `on_workers` with Dask": ("distributed", "distributed", ours),
    "distinput, `on_workers` with Ray": ("ray", "ray", ours_with_ray),
    "TensorFlow, `data.experimental.service`, DYNAMIC": ("tensorflow", "tensorflow_cpu", tensorflow),
    "Ray Data, `map`": ("ray", "ray", ray),
}
"""The package that a service needs, the one whose version is told, and its records, each with a process that may be killed."""


def row(name: str) -> str:
    """The line of a service in the table."""
    _, package, records = SERVICES[name]
    seen: list[int] = []
    killed = False
    given: Queue[tuple[int, int] | str] = Queue()

    def deliver() -> None:
        try:
            for each in records():
                given.put(each)
            given.put("as without it")
        except Exception as error:  # noqa: BLE001 - told
            given.put(type(error).__name__)

    Thread(target=deliver, daemon=True).start()
    while True:
        try:
            told = given.get(timeout=PATIENCE)
        except Empty:
            end = f"not within {PATIENCE} seconds"
            break
        if isinstance(told, str):
            end = told
            break
        seen.append(told[0])
        if len(seen) >= FIRST and not killed and told[1] != os.getpid():
            os.kill(told[1], signal.SIGKILL)
            killed = True
    assert killed
    counts = Counter(seen)
    missing = RECORDS - len(counts)
    again = len(seen) - len(counts)
    order = "exact" if all(a < b for a, b in pairwise(seen)) else "another"
    return f"| {name} | {package} {version(package)} | {missing} | {again} | {order} | {end} |\n"


def section(page: str, new: dict[str, str]) -> str:
    """The section with new rows, and those that the page has of other services."""
    old = page.partition(HEADING)[2]
    lines = []
    for name in SERVICES:
        before = [f"{line}\n" for line in old.splitlines() if line.startswith(f"| {name} |")]
        lines += [new[name]] if name in new else before
    return HEAD.format(records=RECORDS, first=FIRST) + "".join(lines)


def main(words: list[str]) -> None:
    """The command line; see the module."""
    if words and words[0] in ("dispatcher", "worker"):
        serve_tensorflow(*words)
    found = {name: row(name) for name, (module, _, _) in SERVICES.items() if importlib.util.find_spec(module)}
    page = PAGE.read_text("utf-8")
    if words == ["--print"]:
        print("".join(found.values()))
    else:
        PAGE.write_text(page.partition(HEADING)[0].rstrip() + "\n\n" + section(page, found), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # a service that waits would wait on


if __name__ == "__main__":
    main(sys.argv[1:])
