# SPDX-License-Identifier: Apache-2.0
"""Where workers read parts of files, what a step leaves out is told and counted, also beside a file that cannot be read."""

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
from distinput.distribute.rehearsal import rehearse

POLICIES = di.data.experimental.AutoShardPolicy


def _csv(path: Path, values: Any) -> None:
    path.write_text("x\n" + "".join(f"{'zz' if value in (23, 27) else value}\n" for value in values))


def _jsonl(path: Path, values: Any) -> None:
    path.write_text("".join(f'{{"x": {"?" if value in (23, 27) else value}}}\n' for value in values))


def _parquet(path: Path, values: Any) -> None:
    pyarrow.parquet.write_table(pa.table({"x": values}), path, row_group_size=4)
    _cut(path, values)


def _arrow(path: Path, values: Any) -> None:
    with ipc.new_file(str(path), pa.schema([("x", pa.int64())])) as writer:
        writer.write_table(pa.table({"x": values}), 4)
    _cut(path, values)


def _cut(path: Path, values: Any) -> None:
    if 20 in values:
        path.write_bytes(path.read_bytes()[:100])


FORMATS: dict[str, tuple[Callable[[Path, Any], None], int]] = {
    "arrow": (_arrow, 1),
    "csv": (_csv, 2),
    "jsonl": (_jsonl, 2),
    "parquet": (_parquet, 1),
}
"""By name: writes a file, and how many losses it has if it has the numbers from 20 on."""


def _fails(row: Any) -> Any:
    if row["x"] % 13 == 5:
        raise ValueError(f"no {row['x']}")
    return row["x"]


@pytest.mark.parametrize("policy", ["BALANCED", "DATA", "FILE"])
@pytest.mark.parametrize("name", FORMATS)
def test_what_workers_leave_out_is_told(tmp_path: Path, name: str, policy: str) -> None:
    write, losses = FORMATS[name]
    paths = [str(tmp_path / f"{number}") for number in range(5)]
    for number, path in enumerate(paths):
        write(Path(path), np.arange(10 * number, 10 * number + 10))
    log = tmp_path / "bad.jsonl"
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = POLICIES[policy]

    def build(**more: Any) -> Any:
        read = di.data.FileDataset(paths, name, on_error=SkipErrors(None, **more))
        return read.map(_fails, on_error=SkipErrors(None, **more))

    def steps(distributed: Any, strategy: Any) -> list[list[int]]:
        return [[int(x) for part in getattr(step, "values", [step]) for x in np.asarray(part)] for step in distributed]

    whole = [int(x) for x in build()]
    failed = sum(value % 13 == 5 for value in range(50) if not 20 <= value < 30)
    for workers in (2, 3):
        log.unlink(missing_ok=True)
        found = rehearse(build(quarantine=log).batch(6).with_options(options), workers, 1, steps)
        assert len({len(worker) for worker in found}) == 1
        assert sorted(x for worker in found for step in worker for x in step) == sorted(whole)
        told = [json.loads(line) for line in log.read_text().splitlines()]
        assert sum(line["op"] == name for line in told) == losses
        assert sum(line["op"] == "map" for line in told) == failed
        for line in told:
            if line["op"] == "map" and line["row"] is not None:
                assert line["message"] == f"no {10 * paths.index(line['file']) + line['row']}"
