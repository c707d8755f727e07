# SPDX-License-Identifier: Apache-2.0
"""Loaders of libraries that many use; the table has a line for each way to use them."""

from typing import Any

from distinput.testing.judge.loaders.known import Known

__all__ = ["LOADERS"]

_HERE = "distinput.testing.judge.loaders"

_FEW: dict[str, Any] = {"ranks": (1, 2), "stops": (1, 5)}
"""For loaders that begin slowly."""
_PROCESSES = {**_FEW, "play": "processes"}
"""For those whose ranks are processes: each run starts new ones."""
_THREADS = {**_FEW, "play": "threads"}
"""For those where one program hands out the parts of all ranks."""

LOADERS: tuple[Known, ...] = (
    Known("distinput, `shard_batches`", f"{_HERE}.ours:numpy_steps", ("distinput",)),
    Known("distinput, files, `filter` and `shuffle`", f"{_HERE}.ours:filtered_lines", ("distinput",)),
    Known("distinput, `interop.torch.Loader`", f"{_HERE}.ours:torch_loader", ("distinput", "torch")),
    Known("PyTorch, `DistributedSampler`", f"{_HERE}.libraries:padding_sampler", ("torch",)),
    Known("PyTorch, `DistributedSampler(drop_last=True)`", f"{_HERE}.libraries:dropping_sampler", ("torch",)),
    Known("torchdata, `StatefulDataLoader`", f"{_HERE}.libraries:stateful_loader", ("torch", "torchdata")),
    Known("Accelerate, `prepare`", f"{_HERE}.libraries:prepared", ("accelerate", "torch")),
    Known("Accelerate, `even_batches=False`", f"{_HERE}.libraries:prepared_uneven", ("accelerate", "torch")),
    Known("Accelerate, stateful", f"{_HERE}.libraries:prepared_stateful", ("accelerate", "torch", "torchdata")),
    Known("Grain, `ElasticIterator`", f"{_HERE}.libraries:elastic", ("grain",)),
    Known("Grain, `MapDataset`, every n-th", f"{_HERE}.libraries:map_slices", ("grain",)),
    Known("Grain, `DataLoader`", f"{_HERE}.libraries:index_loader", ("grain",)),
    Known("Hugging Face, `split_dataset_by_node`", f"{_HERE}.libraries:huggingface_split_by_node", ("datasets",)),
    Known("Hugging Face, stream after `shuffle`", f"{_HERE}.libraries:shuffled_stream", ("datasets",)),
    Known(
        "MosaicML, `StreamingDataset`",
        f"{_HERE}.libraries:streaming",
        ("mosaicml-streaming", "torch"),
        ("streaming", "torch"),
        _PROCESSES,
    ),
    Known(
        "LitData, `StreamingDataset`",
        f"{_HERE}.libraries:litdata_stream",
        ("litdata", "torch"),
        options=_PROCESSES,
    ),
    Known("Ray Data, `streaming_split`", f"{_HERE}.libraries:streaming_split", ("ray",), options=_THREADS),
    Known("Ray Data, `streaming_split(equal=True)`", f"{_HERE}.libraries:dropping_split", ("ray",), options=_THREADS),
    Known("Lance, `ShardedBatchSampler`", f"{_HERE}.libraries:lance_batches", ("pylance", "torch"), ("lance", "torch")),
    Known("LanceDB, `StreamingDataset`", f"{_HERE}.libraries:lancedb_stream", ("lancedb", "torch"), options=_FEW),
    Known(
        "TensorFlow, `experimental_distribute_dataset`",
        f"{_HERE}.libraries:distributed",
        ("tensorflow-cpu",),
        ("tensorflow",),
    ),
    Known("TensorFlow, `shard`", f"{_HERE}.libraries:shards", ("tensorflow-cpu",), ("tensorflow",)),
    Known("WebDataset, `split_by_node`", f"{_HERE}.libraries:webdataset_split_by_node", ("webdataset", "torch")),
)
"""Every known loader, ours first."""
