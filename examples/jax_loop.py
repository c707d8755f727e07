# SPDX-License-Identifier: Apache-2.0
"""Feeds a training loop of JAX on all devices of all processes: every record once, all in step, the right gradient.

    python examples/jax_loop.py 2                             one process with two devices (of the CPU)
    TF_CONFIG='{"cluster": ...}' python examples/jax_loop.py  in each of several processes, with one device each

A jitted function wants the same shape in every step, so a short batch is filled up, and a mask says which rows are real.
"""

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import distinput as di

ROWS, BATCH, EPOCHS, RATE = 961, 64, 3, 0.2  # the last batch has one row


def records() -> di.data.Dataset:
    """A number for each record, [4] features, and the target: some line through them."""
    features = np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32)
    targets = features @ np.array([1.0, -2.0, 3.0, 0.5], np.float32) + 1
    return di.data.Dataset.from_tensor_slices({"id": np.arange(ROWS), "features": features, "target": targets})


def filled(step: dict[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
    """The same number of rows in every step; `real` is 1 for those that are records."""
    missing = rows - len(step["id"])
    padded = {name: np.concatenate([a, np.zeros((missing, *a.shape[1:]), a.dtype)]) for name, a in step.items()}
    return {**padded, "real": np.repeat(np.float32([1, 0]), [rows - missing, missing])}


@jax.jit
def train_step(weights: Any, batch: Any) -> Any:
    """One step of gradient descent on the mean over the real rows of all devices; JAX adds up across them."""

    def squares(weights: Any) -> Any:
        errors = batch["features"] @ weights["slope"] + weights["bias"] - batch["target"]
        return jnp.sum(errors**2 * batch["real"])

    total, gradients = jax.value_and_grad(squares)(weights)
    rows = jnp.sum(batch["real"])
    return jax.tree.map(lambda w, g: w - RATE * g / rows, weights, gradients), total


def main(devices: int) -> None:
    """Train, and say what came of it."""
    jax.config.update("jax_num_cpu_devices", devices)
    cluster = di.distribute.cluster_resolver.resolve()
    if cluster.size > 1:
        jax.distributed.initialize(
            cluster.coordinator, cluster.size, cluster.rank, cluster_detection_method="deactivate"
        )
    everywhere = jax.devices()
    by_rows = NamedSharding(Mesh(np.array(everywhere), ("rows",)), PartitionSpec("rows"))
    each = -(-BATCH // len(everywhere)) * len(jax.local_devices())  # rows of this process in a full step

    mine = records().shuffle(ROWS, seed=1).batch(BATCH).shard_batches(num_shards=cluster.size, index=cluster.rank)
    weights = {"slope": jnp.zeros(4), "bias": jnp.zeros(())}
    seen = np.zeros(ROWS, np.int64)
    for epoch in range(EPOCHS):
        loss, steps = 0.0, 0
        for step in mine:
            seen[step["id"]] += 1
            local = filled(step, each)
            batch = {
                name: jax.make_array_from_process_local_data(by_rows, local[name]) for name in local if name != "id"
            }
            weights, total = train_step(weights, batch)
            loss, steps = loss + float(total), steps + 1
        if cluster.rank == 0:
            print(f"epoch {epoch + 1}: loss {loss / ROWS:.6f}, {steps} steps")
    # Every process knows what it has seen; what all have seen is their sum.
    rows = jax.make_array_from_process_local_data(by_rows, np.tile(seen, (len(jax.local_devices()), 1)))
    once = bool((np.asarray(jnp.sum(rows, axis=0)) == EPOCHS * len(jax.local_devices())).all())
    if cluster.rank == 0:
        print(f"{len(everywhere)} devices, every record exactly once in each of {EPOCHS} epochs: {once}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
