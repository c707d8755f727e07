# SPDX-License-Identifier: Apache-2.0
"""The suite for engines: threads pass, and each way for a channel to be wrong is caught under the name of a check."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from distinput.distribute.engines import Collectives, OpenGroup
from distinput.distribute.engines.local import LocalChannel, _SharedState
from distinput.testing import check_collectives
from distinput.testing.collectives import CHECKS, IN_THREADS
from tests.depth import sampled
from tests.engines.installed import need


def opening(channel: type[LocalChannel]) -> OpenGroup:
    """An engine over threads: those that give one address meet."""
    meeting: dict[str | None, _SharedState] = {}
    lock = threading.Lock()

    def open_group(
        rank: int | None, size: int | None, address: str | None, *, timeout: float, name: str
    ) -> Collectives:
        with lock:
            shared = meeting.setdefault(address, _SharedState(size or 1))
        return Collectives(channel(shared, rank or 0), name, timeout)

    return open_group


@pytest.mark.parametrize("size", [1, 2, 3])
def test_threads_pass(size: int) -> None:
    faults = IN_THREADS if size > 1 else ()
    assert check_collectives(opening(LocalChannel), size=size, faults=faults, patience=0.5) == (*CHECKS, *faults)


class Wrong(LocalChannel):
    """What `dup` makes is wrong as well."""

    def dup(self, name: str, timeout: float) -> "Wrong":
        return type(self)(self._shared, self.rank, name)


class GathersBackwards(Wrong):
    def all_gather_uneven(self, mine: Any, sizes: Sequence[int]) -> Any:
        return self._contribute(mine, lambda parts: [part.copy() for part in parts[::-1]])


class AlwaysAdds(Wrong):
    def all_reduce(self, values: Any, op: str) -> Any:
        return super().all_reduce(values, "sum")


class AddsInFloats(Wrong):
    def all_reduce(self, values: Any, op: str) -> Any:
        return self._contribute(values, lambda parts: np.sum([part.astype(np.float32) for part in parts], axis=0))


class BroadcastsTheFirst(Wrong):
    def broadcast(self, values: Any, root: int) -> Any:
        return super().broadcast(values, 0)


class AddsWrongly(Wrong):
    def post_sum(self, values: Any) -> Any:
        return self._contribute(values, lambda parts: parts[0] * len(parts), "agree")


class SaysItIsThereEarly(Wrong):
    """An agreement that is done as soon as it is posted."""

    def post_sum(self, values: Any) -> Any:
        handle = super().post_sum(values)
        wait = handle.wait

        class Early:
            def wait(self, seconds: float) -> bool:
                return True if seconds == 0 else wait(seconds)

            def value(self) -> Any:
                wait(10.0)
                return handle.value()

        return Early()


class TellsNobody(Wrong):
    """Statuses are lost: whoever fails is only seen to be late."""

    class _Silent:
        host_rank = None

        def publish(self, status: str) -> None:
            pass

        def read(self) -> Mapping[int, str]:
            return {}

        def close(self) -> None:
            pass

    silent: ClassVar[Any] = _Silent()

    def __init__(self, shared: Any, rank: int, name: str = "") -> None:
        super().__init__(shared, rank, name)
        self.status_board = self.silent


@pytest.mark.parametrize(
    "wrong, check",
    [
        (GathersBackwards, "all_gather"),
        (AlwaysAdds, "all_reduce"),
        (AddsInFloats, "all_reduce"),
        (BroadcastsTheFirst, "broadcast_from_every_root"),
        (AddsWrongly, "agree"),
        (SaysItIsThereEarly, "an_agreement_is_not_done_early"),
        (TellsNobody, "agreements_about_different_things"),
    ],
)
def test_a_channel_that_is_wrong_is_caught(wrong: type[LocalChannel], check: str) -> None:
    with pytest.raises(AssertionError, match=rf"collectives: (?s:.*)rank \d: {check}\w*: "):
        check_collectives(opening(wrong), size=2, faults=["raise"], timeout=3.0, patience=0.5)


def test_a_worker_that_does_not_report_is_an_error() -> None:
    with pytest.raises(AssertionError, match="2 of 2 workers did not report"):
        check_collectives("fractions:Fraction", size=2, faults=[])


def test_faults_that_cannot_be_are_refused() -> None:
    engine: Callable[..., Any] = opening(LocalChannel)
    with pytest.raises(ValueError, match="'kill' is none of the faults close, come_too_late, raise"):
        check_collectives(engine, faults=["kill"])
    with pytest.raises(ValueError, match="'sleep' is none of the faults close, come_too_late, cross"):
        check_collectives("torch", faults=["sleep"])


@pytest.mark.parametrize("engine", sampled(["mpi"], ["torch", "jax"]))
def test_our_engines_pass_in_processes(engine: str) -> None:
    need(engine)
    assert check_collectives(engine, size=2, faults=["close"]) == (*CHECKS, "close")
