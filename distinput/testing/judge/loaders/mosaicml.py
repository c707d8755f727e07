# SPDX-License-Identifier: Apache-2.0
"""Loaders of MosaicML Streaming, whose ranks are processes that share memory and are told their rank by the environment."""

from pathlib import Path
from typing import Any

from distinput.testing.judge.loaders.records import once

__all__ = ["streaming"]


def streaming(records: int, batch: int, seed: int, workers: int) -> Any:
    """Shards of a folder, shuffled, through the library's own loader."""
    from streaming import MDSWriter, StreamingDataLoader, StreamingDataset

    def write(folder: Path) -> None:
        with MDSWriter(out=str(folder), columns={"id": "int"}, size_limit=200) as writer:
            for record in range(records):
                writer.write({"id": record})

    folder = once(f"mds-{records}", write)
    dataset = StreamingDataset(local=str(folder), shuffle=True, shuffle_seed=seed, batch_size=batch)
    return StreamingDataLoader(dataset, batch_size=batch, num_workers=workers)
