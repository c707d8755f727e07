# SPDX-License-Identifier: Apache-2.0
"""Golden cases of several workers, with the workers on threads of this process, or all on one cluster of processes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.distribute.workers import on_workers
from tests.golden.families import Case


def answer(case: Case) -> dict[str, Any]:
    """What distinput does with a case of the family `mw`."""
    import adapter
    import engine

    def body(strategy: Any, worker: int) -> dict[str, Any]:
        got: dict[str, Any] = {}
        with engine.Fixtures(case) as root:
            try:
                engine.run_mw(adapter.backend(), strategy, case, root, got, worker)
            except Exception as error:  # noqa: BLE001 - an error is an answer
                got["error"] = adapter.error_json(error)
        return got

    results = on_workers([case["replicas_per_worker"]] * case["workers"], body)
    merged: dict[str, Any] = engine.merge_mw(results)
    return merged


class SharedCluster:
    """One cluster of workers and a parameter server for the cases of the family `ps`, one after the other."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._pair: Any = None
        self._workers = 0

    def answer(self, case: Case) -> dict[str, Any]:
        """What distinput does with a case of the family `ps`."""
        import adapter

        start = adapter.parameter_server_cluster

        @contextmanager
        def shared(workers: int) -> Iterator[Any]:
            if self._pair is None or workers != self._workers:
                self.close()
                self._pair, self._workers = self._open.enter_context(start(workers)), workers
            yield self._pair

        adapter.parameter_server_cluster = shared
        try:
            got: dict[str, Any] = adapter.run_case(case)
        finally:
            adapter.parameter_server_cluster = start
        if "error" in got:  # it may have left functions behind
            self.close()
        return got

    def close(self) -> None:
        """End its processes."""
        self._pair = None
        self._open.close()


def without_phantom_steps(case: Case) -> dict[str, Any]:
    """The answer of TensorFlow less the steps in which no replica of any worker has a row.

    A dataset of the user's own may hold empty batches, which are elements like any other.
    """
    if case["options"].get("from_function"):
        return dict(case["expect"])
    expect = dict(case["expect"])
    real = [i for i, step in enumerate(expect["steps"]) if any(part["data"] for worker in step for part in worker)]
    for key in ("steps", "step_results"):
        if key in expect:
            expect[key] = [expect[key][i] for i in real]
    return expect


def problem_of_shards(case: Case) -> str:
    """What is wrong with the shards of a case for which TensorFlow fails on some workers, or loses elements; empty if nothing.

    Policy FILE refuses too few files on every worker alike; any other policy delivers every row exactly once.
    """
    import adapter

    shards = adapter.run_case(case)["workers"]
    errors = [shard.get("error") for shard in shards]
    if ["policy", "FILE"] in case["pipeline"]:
        return "" if all(errors) else f"policy FILE must refuse on every worker, got {errors}"
    steps = [step for step in case["pipeline"] if step[:2] != ["shard", "HINT"]]
    whole = adapter.run_case({**case, "pipeline": steps, "options": {**case["options"], "run": "data"}})
    if any(errors):
        return f"no worker may fail, got {errors}"
    got, want = sorted(_rows([shard["elements"] for shard in shards])), sorted(_rows(whole["elements"]))
    return "" if got == want else f"the workers together must deliver {want}, got {got}"


def _rows(value: Any) -> list[str]:
    """All values of the leaves of elements, as text."""
    if isinstance(value, dict) and "data" in value:
        return [repr(x) for x in value["data"]]
    members = value.values() if isinstance(value, dict) else value
    return [row for member in members for row in _rows(member)]
