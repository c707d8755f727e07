# SPDX-License-Identifier: Apache-2.0
"""Trains on JAX devices: TPUs where there are any, else GPUs or CPUs. Each step is compiled once for all replicas.

    python examples/strategies/tpu.py [FOLDER]
    XLA_FLAGS=--xla_force_host_platform_device_count=8 python examples/strategies/tpu.py    on eight parts of a CPU

Checkpoints go to FOLDER; started again, it continues from the latest. Needs `pip install 'distinput[jax]'`.
"""

import sys
import tempfile

import jax.numpy as jnp
from digits import STEPS, Model, accuracy, datasets

import distinput as di


def main(folder: str) -> tuple[float, Model]:
    """Train; the accuracy on the test data, and the model."""
    strategy = di.distribute.TPUStrategy()
    train, test = datasets()
    with strategy.scope():
        model = Model(jnp)  # what is compiled computes with the functions of JAX
    steps = iter(strategy.experimental_distribute_dataset(train))
    manager = di.train.CheckpointManager(di.train.Checkpoint(model=model, steps=steps), folder, max_to_keep=2)
    manager.restore_or_initialize()

    for number, (images, labels) in enumerate(steps, start=1):
        losses = strategy.run(model.train_step, args=(images, labels))
        if number % STEPS == 0:
            print(f"loss {float(strategy.reduce('MEAN', losses, axis=0)):.4f}")
            manager.save()

    found = accuracy(strategy, model, test)
    print(f"{type(strategy).__name__}: {100 * found:.2f} % of the test digits are right")
    return found, model


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
