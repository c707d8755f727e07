# SPDX-License-Identifier: Apache-2.0
"""Feed PyTorch's DistributedDataParallel: every record in exactly one process, equally many steps, the right gradient.

    torchrun --standalone --nproc-per-node 2 examples/torch_ddp.py

or without a launcher, with TF_CONFIG in the environment of each process; `resolve` understands both, and mpiexec, Slurm
and Kubernetes as well.
"""

import numpy as np
import torch
import torch.distributed as dist

# Imported before there is a process group, because it keeps a reference to a group that exists at that time.
# DistributedDataParallel would import it later; then `destroy_process_group` could not end the group's threads, and a thread
# that is still busy when Python ends aborts the process.
import torch.distributed.nn

import distinput as di

ROWS, BATCH, EPOCHS = 961, 64, 3  # the last batch has one row, which one process gets


def records() -> di.data.Dataset:
    """For each record a number, [4] features, and a target that is linear in them."""
    features = np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32)
    targets = features @ np.array([1.0, -2.0, 3.0, 0.5], np.float32) + 1
    return di.data.Dataset.from_tensor_slices({"id": np.arange(ROWS), "features": features, "target": targets})


def with_batch_size(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Add the size of the global batch to every row, so that a process need not ask the others for it."""
    rows = len(batch["id"])
    return {**batch, "rows": np.full(rows, rows)}


def train(cluster: di.distribute.cluster_resolver.Cluster) -> None:
    """Train and print the result."""
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)

    dataset = records().shuffle(ROWS, seed=1).batch(BATCH).map(with_batch_size)
    mine = dataset.shard_batches(num_shards=cluster.size, index=cluster.rank)
    seen = torch.zeros(ROWS, dtype=torch.int64)
    for epoch in range(EPOCHS):
        loss_sum, empty = torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
        for step in mine:
            features, target = torch.from_numpy(step["features"].copy()), torch.from_numpy(step["target"].copy())
            errors = (model(features).squeeze(1) - target) ** 2  # [rows of this process], perhaps none
            # DDP averages the gradients of the processes, so the sum over our rows is weighted to make that average the
            # mean over the rows of the global batch, however they are spread.
            weight = cluster.size / int(step["rows"][0]) if len(errors) else 0.0
            loss = errors.sum() * weight
            optimizer.zero_grad()
            # Also without rows: the sum of nothing has gradients of zero, and DDP waits for those of every process. Whoever
            # leaves such a step out leaves the others waiting.
            loss.backward()
            optimizer.step()
            loss_sum += errors.detach().sum().double()
            empty += len(errors) == 0
            seen.index_add_(0, torch.from_numpy(step["id"].copy()), torch.ones(len(errors), dtype=torch.int64))
        dist.all_reduce(loss_sum)
        dist.all_reduce(empty)
        if cluster.rank == 0:
            print(f"epoch {epoch + 1}: loss {loss_sum.item() / ROWS:.6f}, {empty.item()} parts without rows")
    dist.all_reduce(seen)
    if cluster.rank == 0:
        once = bool((seen == EPOCHS).all())
        print(f"{cluster.size} processes, every record exactly once in each of {EPOCHS} epochs: {once}")


def main() -> None:
    """Meet the other processes, train, and leave together."""
    cluster = di.distribute.cluster_resolver.resolve()
    meeting = f"tcp://{cluster.coordinator or '127.0.0.1:0'}"
    dist.init_process_group("gloo", init_method=meeting, rank=cluster.rank, world_size=cluster.size)
    train(cluster)  # in a function of its own: the model, which holds on to the group, is gone before the group is
    dist.barrier()
    dist.destroy_process_group()  # the last reference, so the group's threads have ended when this returns


if __name__ == "__main__":
    main()
