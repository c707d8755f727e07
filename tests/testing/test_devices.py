# SPDX-License-Identifier: Apache-2.0
"""The suite for devices: threads pass, and each way to be wrong is caught under the name of its law."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from distinput.distribute.core.values import PerReplica
from distinput.distribute.devices.threads import ThreadDevices
from distinput.testing import check_devices
from distinput.testing.devices import LAWS


def test_threads_keep_all_laws() -> None:
    assert check_devices(ThreadDevices, counts=[1, 2, 4]) == tuple(LAWS)


class OtherLabels(ThreadDevices):
    @property
    def local(self) -> tuple[str, ...]:
        return tuple(reversed(super().local))


class ChangesTheDtype(ThreadDevices):
    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        made = super().put(value, device, owned=owned)
        return made.astype(np.float32) if isinstance(made, np.ndarray) and made.dtype.kind == "f" else _as_int(made)


def _as_int(value: Any) -> Any:
    return value.astype(np.int32) if isinstance(value, np.ndarray) and value.dtype == np.int64 else value


class NeverCopies(ThreadDevices):
    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        return value


class InAnotherOrder(ThreadDevices):
    def run(self, function: Any, per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        return super().run(function, per_device_args)[::-1]


class OneAfterTheOther(ThreadDevices):
    def run(self, function: Any, per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [function(*args) for args in per_device_args]


class WithoutContext(ThreadDevices):
    """New threads, which begin with a context of their own."""

    def run(self, function: Any, per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        results: list[Any] = [None] * len(per_device_args)
        errors: list[BaseException] = []

        def call(index: int) -> None:
            try:
                results[index] = function(*per_device_args[index])
            except BaseException as error:  # noqa: BLE001 - raised below
                errors.append(error)

        threads = [threading.Thread(target=call, args=(index,)) for index in range(1, len(per_device_args))]
        for thread in threads:
            thread.start()
        call(0)
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return results


class AllOnOtherThreads(ThreadDevices):
    def run(self, function: Any, per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.extend(ThreadDevices.run(self, function, per_device_args)))
        thread.start()
        thread.join()
        return results


class SwallowsErrors(ThreadDevices):
    def run(self, function: Any, per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        def call(*args: Any) -> Any:
            try:
                return function(*args)
            except ValueError:
                return None

        return super().run(call, per_device_args)


class RaisesTheFirstDevicesError(WithoutContext):
    """The error of the lowest number rather than the first in time."""

    def run(self, function: Any, per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        errors: dict[int, BaseException] = {}
        places = {id(args): index for index, args in enumerate(per_device_args)}

        def call(args: tuple[Any, ...]) -> Any:
            try:
                return function(*args)
            except BaseException as error:
                errors[places[id(args)]] = error
                raise

        try:
            return ThreadDevices.run(self, call, [(args,) for args in per_device_args])
        except BaseException:  # noqa: BLE001 - the other one is raised
            raise errors[min(errors)] from None


class OneRunOnly(ThreadDevices):
    busy = False

    def run(self, function: Any, per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        if self.busy:
            raise RuntimeError("busy")
        self.busy = True
        try:
            return super().run(function, per_device_args)
        finally:
            self.busy = False


class ClosedForGood(ThreadDevices):
    closed = False

    def close(self) -> None:
        super().close()
        self.closed = True

    def run(self, function: Any, per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        if self.closed:
            raise RuntimeError("closed")
        return super().run(function, per_device_args)


class StepsInAnotherOrder(ThreadDevices):
    def put_step(self, leaves: Sequence[Sequence[Any]]) -> list[PerReplica]:
        return [PerReplica(list(parts)[::-1]) for parts in leaves]


class LeavesAThread(ThreadDevices):
    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(labels)
        threading.Thread(target=threading.Event().wait, daemon=True, name="left").start()


@pytest.mark.parametrize(
    "wrong, law, says",
    [
        (OtherLabels, "labels", "must be the labels in order"),
        (ChangesTheDtype, "round trip", "put on device 0 and got back"),
        (NeverCopies, "copies", "was written to after put"),
        (InAnotherOrder, "results", "expected the results in order"),
        (OneAfterTheOther, "at the same time", "must be under way at the same time"),
        (AllOnOtherThreads, "threads", "must be made on the calling thread"),
        (WithoutContext, "context", "must see the caller's context variables"),
        (SwallowsErrors, "errors", "run must raise what a call raises, here ValueError"),
        (RaisesTheFirstDevicesError, "errors", "the first error in time was that of device 1"),
        (OneRunOnly, "nested", "busy"),
        (ClosedForGood, "closed and used again", "closed"),
        (LeavesAThread, "nothing left", "'left'"),
        (StepsInAnotherOrder, "steps", "put_step, device 0"),
    ],
)
def test_devices_that_are_wrong_are_caught_under_the_name_of_the_law(
    wrong: type[ThreadDevices], law: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distinput.testing.devices._SECONDS", 0.3)
    with pytest.raises(AssertionError, match=rf"^{law}: .*{says}"):
        check_devices(wrong, counts=[2])


def test_an_unknown_law_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match="there is no law 'result'; known are labels"):
        check_devices(ThreadDevices, leave_out=["result"])
