# SPDX-License-Identifier: Apache-2.0
"""Loaders of Hugging Face's datasets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from distinput.testing.judge.loaders.records import spans

__all__ = ["shuffled_stream", "split_by_node", "stream_in_128"]


def split_by_node(records: int, rank: int, ranks: int, batch: int) -> Any:
    """An iterable dataset with a shard for each file, split by rank, in its own batches."""
    from datasets import IterableDataset
    from datasets.distributed import split_dataset_by_node

    dataset: Any = IterableDataset.from_generator(_records, gen_kwargs={"spans": spans(records)})
    return split_dataset_by_node(dataset, rank, ranks).batch(batch)


def shuffled_stream(records: int, rank: int, ranks: int, batch: int, seed: int) -> Any:
    """An Arrow table as a stream, shuffled in a buffer of 16, split by rank, in its own batches."""
    return _stream(records, rank, ranks, seed, 16).batch(batch)


def stream_in_128(records: int, rank: int, ranks: int, batch: int, seed: int) -> Any:
    """The same in a buffer of 128, batched by torchdata's loader, which saves the state of the stream."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(_stream(records, rank, ranks, seed, 128), batch)


def _stream(records: int, rank: int, ranks: int, seed: int, buffer: int) -> Any:
    from datasets import Dataset
    from datasets.distributed import split_dataset_by_node

    table = Dataset.from_dict({"id": list(range(records))})
    stream: Any = table.to_iterable_dataset(num_shards=1).shuffle(seed=seed, buffer_size=buffer)
    return split_dataset_by_node(stream, rank, ranks)


def _records(spans: Sequence[range]) -> Iterator[Mapping[str, int]]:
    for span in spans:
        for record in span:
            yield {"id": record}
