# SPDX-License-Identifier: Apache-2.0
"""Several workers of one job, each on a thread of this process, on the in-process engine."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import distinput as di
from distinput.distribute.collectives.multi_worker_strategy import MultiWorkerMirroredStrategy
from distinput.distribute.engines.local import open_groups

Body = Callable[[MultiWorkerMirroredStrategy, int], Any]


def on_workers(
    replicas: Sequence[int],
    body: Callable[[MultiWorkerMirroredStrategy, int], Any],
    timeout: float = 60.0,
    backend: str = "threads",
) -> list[Any]:
    """What `body(strategy, worker)` returned or raised on each worker; worker w has `replicas[w]` replicas."""
    groups = open_groups(len(replicas), timeout=timeout)
    results: list[Any] = [None] * len(replicas)

    def work(worker: int) -> None:
        try:
            first = sum(replicas[:worker]) if backend == "jax" else 0  # devices of JAX that no other worker has
            devices = [f"CPU:{first + i}" for i in range(replicas[worker])]
            with MultiWorkerMirroredStrategy(devices=devices, backend=backend, collectives=groups[worker]) as strategy:
                results[worker] = body(strategy, worker)
        except Exception as error:  # noqa: BLE001 - the tests look at what was raised
            results[worker] = error

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(len(replicas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for group in groups:
        group.close()
    assert not any(thread.is_alive() for thread in threads), "a worker hangs"
    return results


def with_policy(dataset: Any, policy: Any) -> Any:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


def rows_of(strategy: Any, steps: Any) -> list[list[list[int]]]:
    return [[part.tolist() for part in strategy.experimental_local_results(step)] for step in steps]


def by_step(results: list[Any]) -> list[list[list[int]]]:
    """The replicas' rows of all workers, step by step."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    assert len({len(result) for result in results}) == 1, "workers took different numbers of steps"
    return [[part for worker in step for part in worker] for step in zip(*results, strict=True)]
