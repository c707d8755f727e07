# SPDX-License-Identifier: Apache-2.0
"""Fetching rows of files of a web server asks for each file once in a while, not before every row."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError
from distinput.streaming import ahead
from distinput.testing import range_server
from distinput.testing.range_server import RangeServer


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked for without bytes."""
    pytest.importorskip("aiohttp", reason="fsspec needs it for http://")
    found: list[str] = []

    class Handler(range_server._Handler):
        def do_HEAD(self) -> None:
            found.append(self.path)
            super().do_HEAD()

    monkeypatch.setattr(range_server, "_Handler", Handler)
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(ahead, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def url(asked: list[str], tmp_path: Path) -> Iterator[str]:
    rows = di.data.Dataset.from_tensor_slices({"x": np.arange(2000)})
    rows.write(tmp_path / "numbers", "parquet", shards=2)
    with RangeServer(tmp_path / "numbers") as server:
        yield server.url


def files(url: str) -> list[str]:
    return [f"{url}/part-0000{i}-of-00002.parquet" for i in range(2)]


def test_a_pass_asks_for_each_file_once(url: str, asked: list[str], clock: list[float]) -> None:
    dataset = di.data.ParquetDataset(files(url)).global_shuffle(seed=1).batch(64)
    asked.clear()
    assert sorted(np.concatenate([batch["x"] for batch in dataset]).tolist()) == list(range(2000))
    assert len(asked) == 2
    dataset.to_list()
    assert len(asked) == 2
    clock[0] += 10
    dataset.to_list()
    assert len(asked) == 4


@pytest.mark.parametrize("header", [False, True])
def test_files_of_text_are_asked_for_nothing_but_bytes(asked: list[str], tmp_path: Path, header: bool) -> None:
    for number in range(6):
        (tmp_path / f"{number}.csv").write_text("x,y\n" * header + f"{number},text\n" * 20)
    with RangeServer(tmp_path) as server:
        paths = [f"{server.url}/{number}.csv" for number in range(6)]
        dataset = di.data.CsvDataset(paths, [np.int64(0), b""], header=header)
        for _ in range(2):
            assert [int(x) for x, _ in dataset] == [number for number in range(6) for _ in range(20)]
        assert sorted(name for name, *_ in server.requests) == sorted(2 * [f"{number}.csv" for number in range(6)])
    assert asked == []


def test_a_file_that_is_replaced_meanwhile_is_an_error(
    url: str, asked: list[str], clock: list[float], tmp_path: Path
) -> None:
    dataset = di.data.ParquetDataset(files(url)[0])
    assert int(dataset[1]["x"]) == 1
    other = di.data.Dataset.from_tensor_slices({"x": np.arange(5000, 6000), "y": np.arange(1000)})
    other.write(tmp_path / "other", "parquet", shards=1)
    (tmp_path / "other/part-00000-of-00001.parquet").replace(tmp_path / "numbers/part-00000-of-00002.parquet")
    with pytest.raises(DataLossError, match="changed"):
        dataset[700]
    assert asked


def test_who_tries_again_reads_the_file_that_took_its_place(url: str, clock: list[float], tmp_path: Path) -> None:
    dataset = di.data.ParquetDataset(files(url)[0])
    assert int(dataset[1]["x"]) == 1
    di.data.Dataset.from_tensor_slices({"x": np.arange(5000, 7000)}).write(tmp_path / "other", "parquet", shards=1)
    (tmp_path / "other/part-00000-of-00001.parquet").replace(tmp_path / "numbers/part-00000-of-00002.parquet")
    with pytest.raises(DataLossError, match="changed"):
        dataset[700]
    assert int(dataset[700]["x"]) == 5700
