# SPDX-License-Identifier: Apache-2.0
"""Values on devices go from process to process by the engine's own collectives, with the numbers and errors of the host."""

import numpy as np
import pytest

from tests.distribute.test_device_exchange import mistakes, numbers
from tests.distribute.workers import on_workers
from tests.engines.processes import run

ARRAYS = {"jax": ["ArrayImpl"], "torch": ["Tensor"]}


@pytest.mark.parametrize("engine", ["torch", "jax"])
def test_values_stay_on_devices(engine: str) -> None:
    replicas = (1, 1)
    results = run(engine, replicas, "on_devices", backend=engine).results
    expected, said = on_workers(replicas, numbers), on_workers(replicas, mistakes)
    for worker, found in enumerate(results):
        assert (found["kind"], found["arrays"]) == (f"{engine} cpu", ARRAYS[engine])
        for made, right in zip(found["numbers"], expected[worker], strict=True):
            np.testing.assert_allclose(made, right, rtol=1e-6)
        assert found["mistakes"] == said[worker]
        assert (
            f"rank 0: reduce SUM, axis=None, on {engine} cpu, after step 2 of the input, given float32[3]"
            in found["mixed"]
        )
        assert "rank 1: reduce SUM, axis=None, after step 2 of the input, given float32[3]" in found["mixed"]
