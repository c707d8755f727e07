# SPDX-License-Identifier: Apache-2.0
"""Loaders of distinput."""

from typing import TYPE_CHECKING, Any

from distinput.data import Dataset, TextLineDataset
from distinput.names.lazy import later
from distinput.testing.judge.loaders.records import text_files

if TYPE_CHECKING:
    from distinput.interop import torch as torch_data
else:
    torch_data = later("distinput.interop.torch")  # PyTorch is for those who judge its loaders


def numpy_steps(records: int, rank: int, ranks: int, global_batch: int, seed: int) -> Any:
    """Arrays, of which each rank gets its rows of every batch."""
    return Dataset.range(records).shuffle(max(1, records), seed=seed).batch(global_batch).shard_batches(ranks, rank)


def filtered_lines(records: int, rank: int, ranks: int, global_batch: int, seed: int) -> Any:
    """Text files through steps whose rows cannot be counted beforehand, and a small buffer that shuffles."""
    lines = TextLineDataset(list(text_files(records))).map(int).filter(lambda record: record >= 0)
    return lines.shuffle(16, seed=seed).batch(global_batch).shard_batches(ranks, rank)


def torch_loader(records: int, rank: int, ranks: int, global_batch: int, seed: int, workers: int) -> Any:
    """Tensors from text files."""
    lines = TextLineDataset(list(text_files(records))).map(int)
    dataset = lines.shuffle(max(1, records), seed=seed).batch(global_batch)
    return torch_data.Loader(dataset, rank=rank, world_size=ranks, num_workers=workers, tail="partial")
