# SPDX-License-Identifier: Apache-2.0
"""Trains asynchronously: variables are on parameter servers, and workers take steps independently of each other.

    python examples/strategies/parameter_server.py [FOLDER]            workers and servers are threads of this process;
    distinput cluster start --workers 2 --ps 2                         or they are processes of a Dask cluster,
    python examples/strategies/parameter_server.py FOLDER tcp://...    at the address that this command prints

Checkpoints go to FOLDER; started again, it continues from the latest.
"""

import sys
import tempfile

from digits import EPOCHS, STEPS, Model, accuracy, datasets

import distinput as di


def main(folder: str, scheduler: str | None = None) -> tuple[float, Model]:
    """Train; the accuracy on the test data, and the model."""
    resolvers = di.distribute.cluster_resolver
    cluster = resolvers.DaskClusterResolver(scheduler) if scheduler else resolvers.LocalClusterResolver(2, num_ps=2)
    with di.distribute.ParameterServerStrategy(cluster) as strategy:
        coordinator = di.distribute.coordinator.ClusterCoordinator(strategy)
        train, test = datasets()
        with strategy.scope():
            model = Model()
            epoch = di.Variable(0)
        manager = di.train.CheckpointManager(di.train.Checkpoint(model=model, epoch=epoch), folder, max_to_keep=2)
        manager.restore_or_initialize()

        def step(batches):  # runs at a worker, with the iterator that it has there
            losses = strategy.run(model.train_step, args=next(batches))
            return float(losses.mean())

        # Every worker iterates over all the data; what is scheduled goes to the one that is free.
        batches = iter(coordinator.create_per_worker_dataset(train.repeat()))
        while epoch < EPOCHS:
            losses = [coordinator.schedule(step, args=(batches,)) for _ in range(STEPS)]
            coordinator.join()
            print(f"loss {losses[-1].fetch():.4f}")
            epoch.assign_add(1)
            manager.save()

        found = accuracy(di.distribute.get_strategy(), model, test)
        print(f"{type(strategy).__name__}: {100 * found:.2f} % of the test digits are right")
        return found, model


if __name__ == "__main__":
    main(*sys.argv[1:] or [tempfile.mkdtemp()])
