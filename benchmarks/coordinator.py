# SPDX-License-Identifier: Apache-2.0
"""How many functions a second does a coordinator have run on its workers, alone and with a variable at a server?"""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import ROOT, Case, Contender, Work, scaled

QUESTION = "a coordinator, 2 workers and 1 parameter server, each a process: functions scheduled, run and fetched"
NOTES = """
`identity` returns its argument. `pull and push` reads a variable at the server and adds to it. `threads` runs the workers in
the process of the coordinator. TensorFlow runs functions that `tf.function` has compiled; its workers and servers are
`tf.distribute.Server`s.
"""
SMALL, LARGE = 1_000, 1_000_000


def prepare(folder: Path, scale: float) -> None:
    """Nothing is read."""


def cases(folder: Path, scale: float) -> list[Case]:
    """Functions that do next to nothing; a small and a large variable."""
    many, some, few = scaled(3000, scale, 20), scaled(1500, scale, 20), scaled(100, scale, 10)
    processes = [
        _case("identity", many, 2.0, _identity, _tf_identity),
        _case(f"pull and push {SMALL * 4:,} bytes", some, 1.0, partial(_push, SMALL), partial(_tf_push, SMALL)),
        _case(f"pull and push {LARGE * 4:,} bytes", few, 1.0, partial(_push, LARGE), partial(_tf_push, LARGE)),
    ]
    threads = Case(
        "identity, threads",
        {"function": many},
        [
            Contender("distinput", "ours", lambda: _identity(many, engine="threads"), most={"seconds": 1 / 5000}),
            Contender("threads and a queue", "limit", lambda: _bare(many)),
        ],
    )
    return [*(processes if importlib.util.find_spec("distributed") else []), threads]


def _case(name: str, count: int, reach: float, ours: Callable[..., Work], theirs: Callable[..., Work]) -> Case:
    return Case(
        name,
        {"function": count},
        [
            Contender("distinput on Dask", "ours", lambda: ours(count, engine="dask")),
            Contender("TensorFlow", "peer", lambda: theirs(count), ("tensorflow",), reach),
        ],
    )


# ---- ours


def _cluster(engine: str) -> tuple[Any, Any, Any]:
    import distinput as di

    opened = di.testing.local_parameter_server_cluster(num_workers=2, num_ps=1, engine=engine)
    strategy, coordinator = opened.__enter__()
    return opened, strategy, coordinator


def identity(x: Any) -> Any:
    """The least that a function can do."""
    return x


def _identity(count: int, engine: str) -> Work:
    opened, _, coordinator = _cluster(engine)
    values = [np.float32(number) for number in range(count)]

    def once() -> list[Any]:
        results = [coordinator.schedule(identity, args=(value,)) for value in values]
        coordinator.join()
        fetched: list[Any] = coordinator.fetch(results)
        return fetched

    weakref.finalize(once, opened.__exit__, None, None, None)
    return Work(once, lambda: in_order(once()))


def pull_and_push(variable: Any) -> Any:
    """A step of asynchronous training without the arithmetic; the sum tells that all was read."""
    value = variable.read_value()
    variable.assign_add(np.ones_like(value))
    return np.float32(len(value))


def _push(size: int, count: int, engine: str) -> Work:
    import distinput as di

    opened, strategy, coordinator = _cluster(engine)
    with strategy.scope():
        variable = di.Variable(np.zeros(size, np.float32))

    def once() -> list[Any]:
        results = [coordinator.schedule(pull_and_push, args=(variable,)) for _ in range(count)]
        coordinator.join()
        fetched: list[Any] = coordinator.fetch(results)
        return fetched

    def check() -> str:
        before = float(variable.numpy()[0])
        lengths = once()
        after = variable.numpy()
        return in_order([*lengths, after - before])

    weakref.finalize(once, opened.__exit__, None, None, None)
    return Work(once, check)


def _bare(count: int) -> Work:
    """Two threads that take functions from a queue and set an event for each: what a coordinator of threads cannot beat."""
    from queue import SimpleQueue

    def once() -> list[Any]:
        waiting: SimpleQueue[Any] = SimpleQueue()
        results: list[Any] = [None] * count

        def serve() -> None:
            while (order := waiting.get()) is not None:
                number, value, done = order
                results[number] = identity(value)
                done.set()

        threads = [threading.Thread(target=serve) for _ in range(2)]
        for thread in threads:
            thread.start()
        events = []
        for number in range(count):
            events.append(threading.Event())
            waiting.put((number, np.float32(number), events[-1]))
        for event in events:
            event.wait()
        for _ in threads:
            waiting.put(None)
        for thread in threads:
            thread.join()
        return results

    return Work(once, lambda: in_order(once()))


# ---- TensorFlow's


def _tf_identity(count: int) -> Work:
    tf, _, coordinator, servers = _tf_cluster()
    values = [tf.constant(float(number)) for number in range(count)]
    function = tf.function(lambda x: x)

    def once() -> list[Any]:
        results = [coordinator.schedule(function, args=(value,)) for value in values]
        coordinator.join()
        fetched: list[Any] = coordinator.fetch(results)
        return fetched

    weakref.finalize(once, servers.clear)
    return Work(once, lambda: in_order(map(np.float32, once())))


def _tf_push(size: int, count: int) -> Work:
    tf, strategy, coordinator, servers = _tf_cluster()
    with strategy.scope():
        variable = tf.Variable(tf.zeros(size))

    def pull_and_push() -> Any:
        value = variable.read_value()
        variable.assign_add(tf.ones_like(value))
        return tf.cast(tf.size(value), tf.float32)

    step = tf.function(pull_and_push)

    def once() -> list[Any]:
        results = [coordinator.schedule(step) for _ in range(count)]
        coordinator.join()
        fetched: list[Any] = coordinator.fetch(results)
        return fetched

    def check() -> str:
        before = float(variable.numpy()[0])
        lengths = once()
        return in_order([*map(np.float32, lengths), variable.numpy() - before])

    weakref.finalize(once, servers.clear)
    return Work(once, check)


def _tf_cluster() -> tuple[Any, Any, Any, list[Any]]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
    first, second, server, chief = (f"127.0.0.1:{one.getsockname()[1]}" for one in sockets)
    for one in sockets:
        one.close()
    spec = {"worker": [first, second], "ps": [server], "chief": [chief]}
    servers = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.coordinator", json.dumps(spec), job, str(index)],
            cwd=ROOT,
            stdin=subprocess.PIPE,  # which ends with this process, and the server with it
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for job, index in (("worker", 0), ("worker", 1), ("ps", 0))
    ]
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(spec), rpc_layer="grpc", task_type="chief", task_id=0
    )
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    return tf, strategy, tf.distribute.coordinator.ClusterCoordinator(strategy), servers


def _tf_server(spec: str, job: str, index: str) -> None:
    import tensorflow as tf

    tf.distribute.Server(
        tf.train.ClusterSpec(json.loads(spec)), job_name=job, task_index=int(index), protocol="grpc", start=True
    )
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _tf_server(*sys.argv[1:])
