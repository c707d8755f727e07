# SPDX-License-Identifier: Apache-2.0
"""One of several processes that feed arrays over all their JAX devices.

Run as `python -m tests.engines.jax_feed ADDRESS RANK SIZE`; prints what it got as one line of JSON.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import distinput as di

Dataset = di.data.Dataset


class Rows:
    """A source that remembers which of its rows were read."""

    def __init__(self) -> None:
        self.read: set[int] = set()

    def __call__(self, row: Any) -> Any:
        self.read.add(int(row))
        return row


def here(array: Any) -> list[list[int]]:
    """What this process holds of an array: the first row and the values of each shard."""
    return sorted([int(s.index[0].start or 0), *np.asarray(s.data).ravel().tolist()] for s in array.addressable_shards)


def answers() -> Iterator[tuple[str, Any]]:
    """What this process finds, by name."""
    jitted = jax.jit(lambda batch, mask: (batch * mask).sum())
    devices = np.array(jax.devices())
    flat = NamedSharding(Mesh(devices, ("data",)), PartitionSpec("data"))
    # The data axis goes over the processes, the other one over the devices of each.
    both = NamedSharding(Mesh(devices.reshape(2, 2), ("data", "model")), PartitionSpec("data"))
    # Each process has every row: the data axis goes over the devices of each.
    same = NamedSharding(Mesh(devices.reshape(2, 2).T, ("data", "model")), PartitionSpec("data"))
    apart = NamedSharding(Mesh(devices[[0, 2, 1, 3]], ("data",)), PartitionSpec("data"))
    for name, sharding in (("flat", flat), ("both", both), ("same", same), ("apart", apart)):
        rows = Rows()
        feed = di.interop.jax.batches(Dataset.range(22).map(rows).batch(8), sharding)
        rows.read.clear()  # the function is called for the spec, too
        steps = list(feed)
        yield name, [here(batch) for batch, _ in steps]
        yield f"{name} masks", [here(mask) for _, mask in steps]
        yield f"{name} sums", [int(jitted(*step)) for step in steps]
        yield f"{name} read", sorted(rows.read)
    yield "programs", jitted._cache_size()
    dataset = Dataset.range(22).shuffle(22).filter(lambda x: x % 2 == 0).batch(4)  # no seed, no count
    feed = di.interop.jax.batches(dataset, flat)
    iterator = iter(feed)
    first = here(next(iterator)[0])
    state = iterator.state()
    rest = [here(batch) for batch, _ in iterator]
    yield "agreed", [first, *rest]
    yield "restored", [here(batch) for batch, _ in feed.restore(state)] == rest
    yield "state", state
    strategy = di.distribute.TPUStrategy()
    steps = strategy.experimental_distribute_dataset(Dataset.range(16).batch(8, drop_remainder=True))
    yield "to_global", [here(di.interop.jax.to_global(step, flat)) for step in steps]
    losses = di.distribute.PerReplica([np.float32(jax.process_index()), np.float32(2)])
    yield "scalars", here(di.interop.jax.to_global(losses, flat))
    mine = NamedSharding(Mesh(np.array(jax.local_devices()), ("data",)), PartitionSpec("data"))
    yield "mine", [here(batch) for batch in di.interop.jax.batches(Dataset.range(5).batch(4), mine, tail="drop")]
    try:
        different = Dataset.range(10 + jax.process_index()).batch(4)
        di.interop.jax.batches(different, flat)
    except di.errors.FailedPreconditionError as error:
        yield "different", str(error)


def main(address: str, rank: int, size: int) -> None:
    """Meet the others, and print what is found."""
    jax.distributed.initialize(address, size, rank)
    print(json.dumps(dict(answers())), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
