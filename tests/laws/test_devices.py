# SPDX-License-Identifier: Apache-2.0
"""Law: steps on devices of JAX and PyTorch are those on threads, bit for bit, also after a restart."""

from contextlib import nullcontext
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.testing.elements import exact
from distinput.testing.pipelines import INGREDIENTS, Pipeline, pipelines
from distinput.values.nest import map_leaves

OPS = [INGREDIENTS[name] for name in ("cache", "concatenate", "filter", "map", "prefetch", "repeat", "shuffle", "skip")]


def strategy_on(backend: str, replicas: int) -> Any:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)], backend=backend)


def on_host(strategy: Any, step: Any) -> Any:
    """A step with NumPy arrays, where it has arrays of a device."""
    get = strategy._replicas.devices.get
    return [map_leaves(get, part, lists=True) for part in strategy.experimental_local_results(step)]


@pytest.mark.parametrize("backend", ["jax", "torch"])
@settings(max_examples=10)
@given(st.integers(1, 4), pipelines(most_ops=4, ops=OPS), st.integers(1, 12), st.integers(0, 2), st.integers(0, 3))
def test_steps_on_devices_are_those_on_threads(
    backend: str, replicas: int, pipeline: Pipeline, size: int, ahead: int, stop: int
) -> None:
    framework = pytest.importorskip(backend)
    if not (pipeline.stackable and pipeline.exact):
        return
    options = di.distribute.InputOptions(experimental_per_replica_buffer_size=ahead)

    def distributed(strategy: Any) -> Any:
        return strategy.experimental_distribute_dataset(pipeline.build().batch(size), options)

    threads, there = strategy_on("threads", replicas), strategy_on(backend, replicas)
    expected = [exact(on_host(threads, step)) for step in distributed(threads)]
    with framework.enable_x64(True) if backend == "jax" else nullcontext():
        steps = iter(distributed(there))
        found = [exact(on_host(there, step)) for step in islice(steps, stop)]
        state = steps.state()
        again = distributed(there).restore(state)
        assert found + [exact(on_host(there, step)) for step in again] == expected
