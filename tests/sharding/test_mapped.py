# SPDX-License-Identifier: Apache-2.0
"""Arrow and npy files among workers: each reads its own rows only, and a single file is shared out evenly."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.formats.arrow_ipc import ArrowIpc
from distinput.formats.npy import Npy
from distinput.ops.reader import Reader

Policy = di.data.experimental.AutoShardPolicy


@pytest.fixture(params=["arrow", "npy"])
def dataset(request: Any, tmp_path: Path) -> di.data.Dataset:
    """The numbers from 0 to 999, in one file."""
    path = str(tmp_path / "numbers")
    if request.param == "arrow":
        di.io.write_arrow(path, {"x": np.arange(1000)}, 10)
        return di.data.ArrowDataset(path).map(lambda row: row["x"])
    with open(path, "wb") as file:
        np.save(file, np.arange(1000))
    return di.data.NpyDataset(path)


def of_worker(dataset: di.data.Dataset, policy: Any, workers: int, worker: int) -> di.data.Dataset:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    return di.data.experimental.auto_shard_dataset(dataset.with_options(options), workers, worker, workers)


@pytest.mark.parametrize("workers", [2, 3, 7])
def test_one_file_is_shared_out_evenly(dataset: di.data.Dataset, workers: int) -> None:
    shares = [of_worker(dataset, Policy.BALANCED, workers, worker).to_list() for worker in range(workers)]
    assert sorted(x for share in shares for x in share) == list(range(1000))
    assert max(map(len, shares)) - min(map(len, shares)) <= 10  # a record batch; single rows of an array


@pytest.mark.parametrize("shuffled", [False, True])
def test_with_policy_data_only_own_rows_are_fetched(
    dataset: di.data.Dataset, shuffled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[int] = []
    fetch = Reader.fetch
    monkeypatch.setattr(Reader, "fetch", lambda self, rows, epoch: fetched.extend(rows) or fetch(self, rows, epoch))
    for kind in (ArrowIpc, Npy):
        monkeypatch.setattr(kind, "read_groups", lambda *_: pytest.fail("the file must not be read through"))
    whole = dataset.global_shuffle(seed=3) if shuffled else dataset
    shares = []
    for worker in range(4):
        fetched.clear()
        shares.append([x for batch in of_worker(whole.batch(50), Policy.DATA, 4, worker) for x in batch.tolist()])
        assert sorted(fetched) == sorted(shares[-1])
    assert sorted(x for share in shares for x in share) == list(range(1000))


def test_single_rows_are_gathered_from_several_files(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.npy") for number in range(3)]
    for number, path in enumerate(paths):
        np.save(path, np.arange(100 * number, 100 * number + 100).reshape(-1, 1) + np.zeros(3, np.int64))
    rows = di.data.NpyDataset(paths)
    assert rows.node.random_access
    wanted = np.array([250, 3, 299, 101, 3, 0])
    assert rows.node.fetch(wanted, 0).materialize().columns[0].array[:, 1].tolist() == wanted.tolist()  # type: ignore[attr-defined]
    assert sorted(row[0] for row in rows.global_shuffle(seed=1)) == list(range(300))


def test_what_is_not_mapped_has_no_random_access(tmp_path: Path) -> None:
    local, url = str(tmp_path / "a.arrow"), "memory://mapped/a.arrow"
    di.io.write_arrow(local, {"x": np.arange(10)})
    di.io.write_arrow(url, {"x": np.arange(10)})
    assert di.data.ArrowDataset(local).node.random_access
    for other in (url, [local, url]):
        assert not di.data.ArrowDataset(other).node.random_access
    di.io.write_arrow(local, {"x": np.arange(10)}, compression="lz4")
    assert not di.data.ArrowDataset(local).node.random_access
    assert sorted(row["x"] for row in di.data.ArrowDataset([local, url]).global_shuffle(seed=1)) == sorted(
        [*range(10)] * 2
    )
