# SPDX-License-Identifier: Apache-2.0
"""Trains on several replicas of one process, each of which has its own copy of every variable.

python examples/strategies/mirrored.py [FOLDER]    checkpoints go to FOLDER; run again, it continues
"""

import sys
import tempfile

from digits import STEPS, Model, accuracy, datasets

import distinput as di


def main(folder: str) -> tuple[float, Model]:
    """Train; the accuracy on the test data, and the model."""
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    train, test = datasets()
    with strategy.scope():
        model = Model()
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
