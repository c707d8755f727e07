# SPDX-License-Identifier: Apache-2.0
"""Loaders of WebDataset."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distinput.testing.judge.loaders.records import tar_files

__all__ = ["split_by_node"]


def split_by_node(records: int, rank: int, ranks: int, batch: int, seed: int, epoch: int, workers: int) -> Any:
    """Tar files, split by rank and by worker, shuffled in a buffer of 16."""
    import webdataset

    pipeline = webdataset.DataPipeline(
        webdataset.SimpleShardList(list(tar_files(records))),
        webdataset.split_by_node,
        webdataset.split_by_worker,
        webdataset.tarfile_to_samples(),
        webdataset.detshuffle(16, seed=1000 * seed + epoch),
        webdataset.decode(),
        webdataset.to_tuple("json"),
        webdataset.batched(batch),
    )
    return _OfRank(webdataset.WebLoader(pipeline, batch_size=None, num_workers=workers), rank, ranks)


class _OfRank:
    """A loader that is told its rank by variables of the environment, while it is read."""

    def __init__(self, loader: Any, rank: int, ranks: int) -> None:
        self._loader = loader
        self._variables = {"RANK": str(rank), "WORLD_SIZE": str(ranks)}

    def __iter__(self) -> Iterator[Any]:
        with _environment(self._variables):
            batches = iter(self._loader)
        while True:
            with _environment(self._variables):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
