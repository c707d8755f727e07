# SPDX-License-Identifier: Apache-2.0
"""Loaders of PyTorch."""

from typing import Any

from distinput.testing.judge.loaders.records import NumberedRecords

__all__ = ["dropping_sampler", "padding_sampler", "stateful_loader"]


def padding_sampler(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int, workers: int) -> Any:
    """`DistributedSampler` as it is by default."""
    from torch.utils.data import DataLoader

    return DataLoader(
        _numbers(records), batch, sampler=_sampler(records, rank, ranks, seed, epoch), num_workers=workers
    )


def dropping_sampler(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int, workers: int) -> Any:
    """`DistributedSampler(drop_last=True)`."""
    from torch.utils.data import DataLoader

    sampler = _sampler(records, rank, ranks, seed, epoch, drop_last=True)
    return DataLoader(_numbers(records), batch, sampler=sampler, num_workers=workers)


def stateful_loader(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int, workers: int) -> Any:
    """The loader and the sampler of torchdata, which have states."""
    from torchdata.stateful_dataloader import StatefulDataLoader
    from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

    numbers = _numbers(records)
    sampler = StatefulDistributedSampler(numbers, ranks, rank, seed=seed)
    sampler.set_epoch(epoch)
    return StatefulDataLoader(numbers, batch, sampler=sampler, num_workers=workers)


def _numbers(records: int) -> Any:
    return NumberedRecords(records)


def _sampler(records: int, rank: int, ranks: int, seed: int, epoch: int, drop_last: bool = False) -> Any:
    from torch.utils.data import DistributedSampler

    sampler: Any = DistributedSampler(_numbers(records), ranks, rank, seed=seed, drop_last=drop_last)
    sampler.set_epoch(epoch)
    return sampler
