# SPDX-License-Identifier: Apache-2.0
r"""Trains in several processes, on one machine or many, each of which has a copy of every variable.

Start it once for each worker, with the description of all of them in TF_CONFIG (or under torchrun, MPI or Slurm):

    TF_CONFIG='{"cluster": {"worker": ["localhost:23451", "localhost:23452"]}, "task": {"type": "worker", "index": 0}}' \
        python examples/strategies/multi_worker.py [FOLDER]

Checkpoints go to FOLDER of the first worker; started again, it continues from the latest.
"""

import sys
import tempfile

from digits import STEPS, Model, accuracy, datasets

import distinput as di


def main(folder: str) -> tuple[float, Model]:
    """Train; the accuracy on the test data, and the model."""
    with di.distribute.MultiWorkerMirroredStrategy() as strategy:
        train, test = datasets()
        with strategy.scope():
            model = Model()
        steps = iter(strategy.experimental_distribute_dataset(train))
        # All workers make the same calls; the first one writes the checkpoints.
        manager = di.train.CheckpointManager(di.train.Checkpoint(model=model, steps=steps), folder, max_to_keep=2)
        manager.restore_or_initialize()

        for number, (images, labels) in enumerate(steps, start=1):
            losses = strategy.run(model.train_step, args=(images, labels))
            if number % STEPS == 0:
                print(f"loss {float(strategy.reduce('MEAN', losses, axis=0)):.4f}")
                manager.save()

        found = accuracy(strategy, model, test)
        print(f"{strategy}: {100 * found:.2f} % of the test digits are right")
        return found, model


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
