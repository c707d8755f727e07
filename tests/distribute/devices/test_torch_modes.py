# SPDX-License-Identifier: Apache-2.0
"""Settings that PyTorch keeps for each thread, on the threads of replicas."""

from contextlib import ExitStack
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from distinput.distribute.devices.torch import (  # noqa: E402
    USUAL,
    TorchDevices,
    TorchModes,
)


def test_replicas_compute_in_the_modes_of_the_caller() -> None:
    def modes(_: Any) -> Any:
        return (
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu"),
            torch.is_autocast_cache_enabled(),
            torch.ones(1).device.type,
        )

    contexts: list[list[Any]] = [
        [],
        [torch.no_grad()],
        [torch.inference_mode()],
        [torch.inference_mode(), torch.enable_grad()],
        [torch.autocast("cpu", torch.bfloat16, cache_enabled=False)],
        [torch.autocast("cpu", torch.float16), torch.no_grad()],
        [torch.device("meta")],
    ]
    there = TorchDevices(["CPU:0", "CPU:1", "CPU:2"])
    for given in contexts:
        with ExitStack() as stack:
            for context in given:
                stack.enter_context(context)
            expected = modes(None)
            assert there.run(modes, [(i,) for i in range(3)]) == [expected] * 3
    assert there.run(modes, [(i,) for i in range(3)]) == [modes(None)] * 3


def test_nothing_is_entered_where_nothing_was_set() -> None:
    assert TorchModes.here(["cpu"]) is USUAL
    assert USUAL.contexts() == []
