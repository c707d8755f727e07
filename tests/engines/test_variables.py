# SPDX-License-Identifier: Apache-2.0
"""Variables on real processes: created from the chief's values, and equal on all workers where the policy says so."""

from typing import Any

import pytest

from tests.distribute.workers import on_workers
from tests.engines.processes import run
from tests.engines.programs import PROGRAMS


def expected(replicas: tuple[int, ...]) -> list[dict[str, Any]]:
    """Computed from the rules: replica r adds r + 1 to [0, 1], and takes it from the second number again."""
    total = sum(replicas)
    numbers = [float(r + 1) for r in range(total)]
    aggregates = {"SUM": sum(numbers), "MEAN": sum(numbers) / total, "ONLY_FIRST_REPLICA": 1.0}
    answers = []
    for worker, count in enumerate(replicas):
        own = numbers[sum(replicas[:worker]) :][:count]
        answer: dict[str, Any] = {"read": {}, "inside": 3.0}
        for name, value in aggregates.items():
            answer[f"ON_WRITE {name}"] = [[value, 1.0]] * count
            answer[f"ON_READ {name}"] = [[n, n + 1] for n in own]
            answer["read"][f"ON_WRITE {name}"] = [value, 1.0]
            ones = total if name == "SUM" else 1
            read = own[0] if name == "ONLY_FIRST_REPLICA" else value
            answer["read"][f"ON_READ {name}"] = [read, read + ones]
        answer["ON_WRITE NONE"] = [[n, 1.0] for n in own]
        answer["ON_READ NONE"] = [[n, n + 1] for n in own]
        answer["read"]["ON_WRITE NONE"] = [own[0], 1.0]
        answers.append(answer)
    return answers


def check(results: list[Any], replicas: tuple[int, ...]) -> None:
    for result in results:
        refused = result.pop("refused")
        assert "all workers must create it with the same dtype and shape, got ['<f8', [1]] on worker 0" in refused
    assert results == expected(replicas)


@pytest.mark.parametrize("replicas", [(1,), (1, 1), (2, 1)], ids=str)
def test_on_threads(replicas: tuple[int, ...]) -> None:
    results = on_workers(replicas, lambda strategy, worker: PROGRAMS["variables"](strategy, worker, None))
    if len(replicas) == 1:
        assert "refused" not in results[0]
        results[0]["refused"] = "all workers must create it with the same dtype and shape, got ['<f8', [1]] on worker 0"
    check(results, replicas)


@pytest.mark.parametrize("engine", ["torch", "mpi", "jax"])
def test_on_processes(engine: str) -> None:
    check(run(engine, (2, 1), "variables").results, (2, 1))
