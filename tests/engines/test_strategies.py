# SPDX-License-Identifier: Apache-2.0
"""The laws of strategies on real processes."""

import pytest

from distinput.testing.strategy import LAWS
from tests.depth import sampled
from tests.engines.processes import run


@pytest.mark.parametrize("engine", ["torch", "mpi", "jax"])
@pytest.mark.parametrize("replicas", sampled([(2, 2)], [(1, 1)]), ids=str)
def test_all_laws_hold_on_processes(engine: str, replicas: tuple[int, ...]) -> None:
    assert run(engine, replicas, "laws_of_strategies").results == [list(LAWS)] * len(replicas)


@pytest.mark.needs_engine("torch")
def test_all_laws_hold_where_values_are_on_devices() -> None:
    assert run("torch", (1, 1), "laws_of_strategies", backend="torch").results == [list(LAWS)] * 2
