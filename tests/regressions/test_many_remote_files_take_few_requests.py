# SPDX-License-Identifier: Apache-2.0
"""Many remote files that are read at once take few requests: each takes as long as some megabytes."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.implementations.local import LocalFileSystem

import distinput as di

FILES, ROWS = 18, 40_000
TEXT = b"some words in a line of text"


class Requested(LocalFileSystem):  # type: ignore[misc]
    """Local files that are read as remote ones are, and how often each was asked for a part."""

    cachable, protocol = False, "requested"

    def __init__(self) -> None:
        super().__init__()
        self.requests: Counter[str] = Counter()

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        self.requests[path] += 1
        return super()._open(path, mode, **more)


@pytest.fixture(autouse=True)
def _nothing_stays_mounted() -> Iterator[None]:
    yield
    with suppress(di.errors.InvalidArgumentError):
        di.io.unmount("requested://")


def lines(folder: Path) -> list[str]:
    paths = [folder / f"{number}.txt" for number in range(FILES)]
    for path in paths:
        path.write_bytes((TEXT + b"\n") * ROWS)
    return list(map(str, paths))


def tables(folder: Path) -> list[str]:
    paths = [folder / f"{number}.parquet" for number in range(FILES)]
    for number, path in enumerate(paths):
        numbers = np.random.default_rng(number).random((4, ROWS))
        di.io.write_parquet(
            path, {"x": numbers[0], "y": numbers[1], "z": numbers[2], "w": numbers[3], "t": [TEXT] * ROWS}
        )
    return list(map(str, paths))


@pytest.mark.parametrize("at_once", [1, 8, 17, 64])
@pytest.mark.parametrize(
    "write, read, most", [(lines, di.data.TextLineDataset, 6), (tables, di.data.ParquetDataset, 8)]
)
def test_all_at_once_or_one_after_the_other(
    write: Callable[[Path], list[str]], read: Callable[..., Any], most: int, at_once: int, tmp_path: Path
) -> None:
    paths, store = write(tmp_path), Requested()
    dataset = read(paths, num_parallel_reads=at_once, filesystem=store)
    assert sum(len(batch["x"] if isinstance(batch, dict) else batch) for batch in dataset.batch(4096)) == FILES * ROWS
    assert len(store.requests) == FILES
    assert max(store.requests.values()) <= most
