# SPDX-License-Identifier: Apache-2.0
"""What Accelerate makes of a loader of PyTorch."""

from typing import Any

from distinput.testing.judge.loaders.records import NumberedRecords

__all__ = ["prepared", "prepared_stateful", "prepared_uneven"]


def prepared(records: int, rank: int, ranks: int, batch: int, seed: int, workers: int) -> Any:
    """`Accelerator.prepare` as it is by default, with a seed of its own for the order."""
    return _prepared(records, rank, ranks, batch, seed, workers)


def prepared_uneven(records: int, rank: int, ranks: int, batch: int, seed: int, workers: int) -> Any:
    """With `even_batches=False`."""
    return _prepared(records, rank, ranks, batch, seed, workers, even_batches=False)


def prepared_stateful(records: int, rank: int, ranks: int, batch: int, seed: int, workers: int) -> Any:
    """With `use_stateful_dataloader=True`, the loaders of torchdata."""
    return _prepared(records, rank, ranks, batch, seed, workers, use_stateful_dataloader=True)


def _prepared(records: int, rank: int, ranks: int, batch: int, seed: int, workers: int, **options: Any) -> Any:
    from accelerate.data_loader import prepare_data_loader
    from accelerate.state import PartialState
    from torch.utils.data import DataLoader

    PartialState(cpu=True)
    numbers: Any = NumberedRecords(records)
    return prepare_data_loader(
        DataLoader(numbers, batch, shuffle=True, num_workers=workers),
        num_processes=ranks,
        process_index=rank,
        put_on_device=False,
        use_seedable_sampler=True,
        **options,
        data_seed=seed,
    )
