# SPDX-License-Identifier: Apache-2.0
"""Loaders of Grain."""

from typing import Any

__all__ = ["elastic", "index_loader", "map_slices"]


def elastic(records: int, rank: int, ranks: int, global_batch: int, seed: int, epoch: int) -> Any:
    """`ElasticIterator`, which goes on with other ranks."""
    import grain

    order = grain.MapDataset.range(records).shuffle(seed=1000 * seed + epoch)
    return grain.experimental.ElasticIterator(order, global_batch, grain.sharding.ShardOptions(rank, ranks))


def map_slices(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int) -> Any:
    """Every n-th record of a `MapDataset`, in batches."""
    import grain

    order = grain.MapDataset.range(records).shuffle(seed=1000 * seed + epoch)
    return order[rank::ranks].batch(batch).to_iter_dataset()


def index_loader(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int, workers: int) -> Any:
    """`DataLoader` with an `IndexSampler`."""
    import grain.python as grain

    _parse_no_flags()
    sampler = grain.IndexSampler(
        records, grain.ShardOptions(rank, ranks), shuffle=True, seed=1000 * seed + epoch, num_epochs=1
    )
    source = grain.RangeDataSource(0, records, 1)
    return grain.DataLoader(data_source=source, sampler=sampler, operations=[grain.Batch(batch)], worker_count=workers)


def _parse_no_flags() -> None:
    """Its worker processes take the flags of this one, which has none."""
    from absl import flags

    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()
