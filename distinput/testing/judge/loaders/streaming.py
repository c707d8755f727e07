# SPDX-License-Identifier: Apache-2.0
"""Loaders of MosaicML Streaming."""

from pathlib import Path
from typing import Any

from distinput.testing.judge.loaders.records import once

__all__ = ["shuffled"]


def shuffled(records: int, batch: int, seed: int, workers: int) -> Any:
    """`StreamingDataset` over files on this machine, shuffled; it takes its rank from the environment."""
    from streaming import MDSWriter, StreamingDataLoader, StreamingDataset

    def write(folder: Path) -> None:
        with MDSWriter(out=str(folder), columns={"id": "int"}, size_limit=256) as out:
            for record in range(records):
                out.write({"id": record})

    local = str(once(f"mds-{records}", write))
    dataset = StreamingDataset(local=local, batch_size=batch, shuffle=True, shuffle_seed=seed)
    return StreamingDataLoader(dataset, batch_size=batch, num_workers=workers)
