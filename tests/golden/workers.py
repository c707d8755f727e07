# SPDX-License-Identifier: Apache-2.0
"""Golden cases of several workers, with the workers on threads of this process."""

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


def without_phantom_steps(case: Case) -> dict[str, Any]:
    """The answer of TensorFlow less the steps in which no replica of any worker has a row.

    A data set of the user's own may hold empty batches, which are elements like any other.
    """
    if case["options"].get("from_function"):
        return dict(case["expect"])
    expect = dict(case["expect"])
    real = [i for i, step in enumerate(expect["steps"]) if any(part["data"] for worker in step for part in worker)]
    for key in ("steps", "step_results"):
        if key in expect:
            expect[key] = [expect[key][i] for i in real]
    return expect
