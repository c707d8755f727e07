# SPDX-License-Identifier: Apache-2.0
"""A file of which nothing can be read, behind one that is sound, is left out as one loss, whatever its format."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyarrow import ipc

import distinput as di
from distinput.data import SkipErrors


def _arrow(path: Path, stream: bool) -> None:
    table = pa.table({"n": np.arange(6)})
    with (ipc.new_stream if stream else ipc.new_file)(str(path), table.schema) as writer:
        writer.write_table(table, 2)


def _parquet(path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"n": np.arange(6)}), path)


def _npy(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.arange(6))


def _npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, n=np.arange(6))


def _column(ds: Any) -> Any:
    return ds.map(lambda row: row["n"])


WRITERS: dict[str, tuple[Callable[[Path], Any], Callable[..., Any]]] = {
    "arrow file": (lambda path: _arrow(path, stream=False), lambda *a, **m: _column(di.data.ArrowDataset(*a, **m))),
    "arrow stream": (lambda path: _arrow(path, stream=True), lambda *a, **m: _column(di.data.ArrowDataset(*a, **m))),
    "npy": (_npy, di.data.NpyDataset),
    "npy, not mapped": (_npy, lambda *a, **m: di.data.NpyDataset(*a, memory_map=False, **m)),
    "npz": (_npz, lambda *a, **m: _column(di.data.NpzDataset(*a, **m))),
    "parquet": (_parquet, lambda *a, **m: _column(di.data.ParquetDataset(*a, **m))),
}


def _sharded(dataset: Any, policy: Any, worker: int) -> Any:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = policy
    return di.data.experimental.auto_shard_dataset(dataset.with_options(options), 2, worker)


@pytest.mark.parametrize("damage", ["nothing", "zeros", "half"])
@pytest.mark.parametrize("name", WRITERS)
def test_a_damaged_header_is_left_out(tmp_path: Path, name: str, damage: str) -> None:
    write, read = WRITERS[name]
    paths = [tmp_path / each for each in "abc"]
    for path in paths:
        write(path)
    whole = paths[1].read_bytes()
    paths[1].write_bytes({"nothing": b"", "zeros": bytes(len(whole)), "half": whole[: len(whole) // 2]}[damage])
    log = tmp_path / "bad.jsonl"

    def build(**more: Any) -> Any:
        return read(list(map(str, paths)), on_error=SkipErrors(None, quarantine=log), **more)

    found = [int(x) for x in build()]
    assert found[:6] == list(range(6)) == found[-6:]
    lost = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    assert [line["file"] for line in lost] in ([str(paths[1])], [])
    assert lost or (damage == "nothing" and len(found) == 12)
    for at in (0, 5, 6, 7, len(found)):
        with iter(build()) as iterator:
            seen = [int(next(iterator)) for _ in range(at)]
            state = json.loads(json.dumps(iterator.state()))
        assert seen + [int(x) for x in build().restore(state)] == found
    assert sorted(int(x) for x in build(num_parallel_reads=2)) == sorted(found)
    assert sorted(int(x) for worker in range(2) for x in build().shard(2, worker)) == sorted(found)
    assert [int(x) for batch in build().batch(5) for x in batch] == found
    assert [int(x) for x in build().skip(4).take(100)] == found[4:]
    for policy in di.data.experimental.AutoShardPolicy:
        if policy.name not in ("OFF", "HINT"):
            parts = [list(_sharded(build(), policy, worker)) for worker in range(2)]
            assert sorted(map(int, [*parts[0], *parts[1]])) == sorted(found), policy
    options = di.data.Options()
    options.on_error = SkipErrors(None)
    assert [int(x) for x in read(list(map(str, paths))).with_options(options)] == found
    with pytest.raises((di.errors.DataLossError, di.errors.InvalidArgumentError), match=str(paths[1])):
        list(read(list(map(str, paths)))) or pytest.skip("an empty file of this format has no elements")
