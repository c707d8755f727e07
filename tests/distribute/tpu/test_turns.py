# SPDX-License-Identifier: Apache-2.0
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import distinput as di
from distinput.distribute.tpu import mesh as turns
from distinput.distribute.tpu.mesh import ReplicaMesh, in_turn
from tests.distribute.tpu.programs import REPLICAS


def test_a_program_waits_for_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = ReplicaMesh.of()
    slow = jax.jit(lambda x: jnp.linalg.inv(x @ x).sum())
    first = in_turn(mesh, lambda: (slow(jnp.ones((700, 700))), "not an array"))
    assert in_turn(mesh, lambda: first[0].is_ready())
    assert turns._last == []


def test_one_device_waits_for_nobody() -> None:
    turns._last.clear()
    in_turn(ReplicaMesh.of(jax.devices()[:1]), lambda: jnp.ones(3))
    assert turns._last == []


@pytest.mark.slow
def test_many_programs_that_meet_do_not_block_each_other() -> None:
    """Sums over replicas beside steps that do not depend on them: without turns this ended the process."""
    strategy = di.distribute.TPUStrategy()
    x = di.distribute.PerReplica([np.ones((128, 256), np.float32)] * REPLICAS)
    with strategy.scope():
        v = di.Variable(np.zeros((256, 512), np.float32), aggregation="MEAN")

    def step(x: jax.Array) -> jax.Array:
        v.assign_add(x.T @ jnp.tanh(x @ (v.read_value() + 0.01)))
        return jnp.tanh(x @ v.read_value()).mean()

    batch = strategy.run(lambda x: x + 0, (x,))
    losses = [strategy.reduce("MEAN", strategy.run(step, (batch,)), axis=None) for _ in range(60)]
    assert np.isfinite([float(loss) for loss in losses]).all()
