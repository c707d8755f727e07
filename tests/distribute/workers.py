# SPDX-License-Identifier: Apache-2.0
"""Several workers of one job, each on a thread of this process, on the in-process engine."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from distinput.distribute.backends.local import open_groups
from distinput.distribute.strategies.multi_worker_mirrored import MultiWorkerMirroredStrategy

Body = Callable[[MultiWorkerMirroredStrategy, int], Any]


def on_workers(
    replicas: Sequence[int], body: Callable[[MultiWorkerMirroredStrategy, int], Any], timeout: float = 5.0
) -> list[Any]:
    """What `body(strategy, worker)` returned or raised on each worker; worker w has `replicas[w]` replicas."""
    groups = open_groups(len(replicas), timeout=timeout)
    results: list[Any] = [None] * len(replicas)

    def work(worker: int) -> None:
        try:
            devices = [f"CPU:{i}" for i in range(replicas[worker])]
            with MultiWorkerMirroredStrategy(devices=devices, collectives=groups[worker]) as strategy:
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
