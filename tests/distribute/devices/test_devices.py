# SPDX-License-Identifier: Apache-2.0
"""How a new backend is made known, and what strategies then ask of it."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.devices import BACKENDS, open_devices, register_backend
from distinput.distribute.devices.threads import ThreadDevices


class Marked(ThreadDevices):
    """Threads that remember what was put where."""

    put_on: list[int]

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        self.put_on = [*getattr(self, "put_on", []), device]
        return super().put(value, device, owned=owned)


def test_strategies_run_on_a_registered_backend() -> None:
    register_backend("marked", Marked)
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"], backend="marked")
    assert isinstance(strategy._replicas.devices, Marked)
    double = strategy.run(lambda: 2 * di.distribute.get_replica_context().replica_id_in_sync_group)
    assert strategy.experimental_local_results(double) == (0, 2)
    with pytest.raises(ValueError, match="unknown backend 'x'; known are jax, marked, threads, torch"):
        open_devices("x", ["CPU:0"])


def test_the_backends_that_are_there_keep_their_names() -> None:
    with pytest.raises(
        ValueError, match=r"backend 'threads': the name is taken by distinput\.distribute\.devices\.threads"
    ):
        register_backend("threads", Marked)
    assert list(BACKENDS) == ["jax", "threads", "torch"]


def test_an_array_that_may_change_is_copied() -> None:
    devices = open_devices("threads", ["CPU:0"])
    array = np.arange(3)
    assert devices.put(array, 0, owned=True) is array
    copied = devices.put(array, 0, owned=False)
    array[:] = 7
    assert copied.tolist() == [0, 1, 2]
