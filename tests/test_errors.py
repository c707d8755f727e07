# SPDX-License-Identifier: Apache-2.0
import threading

import distinput as di
from distinput import errors
from distinput.distribute import engines
from tests.distribute.workers import on_workers


def test_errors_of_lost_and_late_workers_are_where_all_errors_are() -> None:
    for name in (
        "Aborted",
        "CollectiveError",
        "CollectiveTimeout",
        "EngineMissing",
        "Mismatch",
        "PeerLost",
        "Poisoned",
    ):
        assert getattr(di.errors, name) is getattr(engines, name)
    assert {"CollectiveTimeout", "PeerLost"} <= set(errors.__all__)


def test_they_are_what_is_raised() -> None:
    told = threading.Event()

    def body(strategy: object, worker: int) -> str:
        group = strategy._replicas.peers.group  # type: ignore[attr-defined]
        if worker == 0:
            try:
                group.all_gather([1], timeout=0.2)
            except di.errors.CollectiveTimeout as error:
                told.set()
                return f"late: {error.ranks}"
        told.wait(60)
        return "came late"

    assert on_workers([1, 1], body) == ["late: (1,)", "came late"]


def test_each_is_also_the_error_of_python_that_is_nearest() -> None:
    assert issubclass(errors.CollectiveTimeout, TimeoutError)
    assert issubclass(errors.Aborted, errors.PeerLost)
    assert issubclass(errors.InvalidArgumentError, ValueError)
    assert issubclass(errors.NotFoundError, FileNotFoundError)
    assert issubclass(errors.OutOfRangeError, IndexError)
