# SPDX-License-Identifier: Apache-2.0
"""One of several processes that share a mesh of JAX devices, each with an input pipeline of its own.

Run as `python -m tests.engines.tpu_input ADDRESS RANK SIZE`; prints what it got as one line of JSON.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

import distinput as di
from distinput.distribute.core.options import InputOptions

Dataset = di.data.Dataset


def answers(strategy: Any) -> Iterator[tuple[str, Any]]:
    """What this process finds, by name."""
    resolver = strategy.cluster_resolver
    yield "place", [resolver.task_id, len(resolver.cluster_spec().as_dict()["worker"])]
    yield "devices", resolver.num_accelerators()["TPU"]
    dataset = Dataset.range(22).batch(8, drop_remainder=True)
    steps = list(strategy.experimental_distribute_dataset(dataset))
    yield "local", [np.concatenate([np.asarray(x) for x in step.values]).tolist() for step in steps]
    yield "global shape", list(steps[0].whole.shape)
    total = jax.jit(lambda x: x.sum(), out_shardings=jax.sharding.NamedSharding(
        steps[0].whole.sharding.mesh, jax.sharding.PartitionSpec())
    )  # fmt: skip
    yield "sums", [int(total(step.whole)) for step in steps]
    doubled = [strategy.run(lambda x: 2 * x, args=(step,)) for step in steps]
    yield "reduced", [int(strategy.reduce("SUM", value, axis=0)) for value in doubled]
    padded = list(strategy.experimental_distribute_dataset(Dataset.range(10).batch(8), InputOptions(tail="pad")))
    yield "rows", [sum(int(np.asarray(part).sum()) for part in mask.values) for _, mask in padded]
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    next(iterator)
    rest = strategy.experimental_distribute_dataset(dataset).restore(iterator.state())
    yield "restored", [np.concatenate([np.asarray(x) for x in step.values]).tolist() for step in rest]
    contexts: list[Any] = []

    def dataset_fn(context: Any) -> Any:
        contexts.append([context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync])
        return Dataset.range(4).batch(1, drop_remainder=True).repeat()

    step = next(iter(strategy.distribute_datasets_from_function(dataset_fn)))
    yield "dealt", [contexts, list(step.whole.shape)]
    try:
        strategy.experimental_distribute_dataset(Dataset.range(10).batch(8))
    except ValueError as error:
        yield "refused", str(error)


def main(address: str, rank: int, size: int) -> None:
    """Meet the others, and print what is found."""
    jax.distributed.initialize(address, size, rank)
    resolver = di.distribute.cluster_resolver.TPUClusterResolver.connect("local")
    print(json.dumps(dict(answers(di.distribute.TPUStrategy(resolver)))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
