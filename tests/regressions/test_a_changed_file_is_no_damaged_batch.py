# SPDX-License-Identifier: Apache-2.0
"""With `on_error="skip"` an Arrow file that changes while it is read loses its rest: nothing of another version is read."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di

BATCH, BATCHES = 512, 8


def write(path: Path, value: int, *, null: bool = False) -> None:
    """Batches of numbers; without one of them in the second batch, which is an error of that batch."""
    numbers = np.full(BATCH * BATCHES, value)
    missing = np.zeros(len(numbers), bool)
    missing[BATCH] = null
    batches = pa.table({"x": pa.array(numbers, mask=missing)}).to_batches(BATCH)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def change(path: Path, way: str) -> None:
    new = path.with_suffix(".new")
    write(new, 2)
    if way == "in place":
        path.write_bytes(new.read_bytes())
        os.utime(path, ns=(1, 1))
    else:
        os.replace(new, path)


@pytest.mark.parametrize("memory_map", [True, False])
@pytest.mark.parametrize("way", ["in place", "replaced"])
def test_nothing_of_another_version_is_read(tmp_path: Path, way: str, memory_map: bool) -> None:
    path, log = tmp_path / "a.arrow", tmp_path / "log"
    write(path, 1, null=way == "replaced")  # of the old file the second batch is left out, behind which reading goes on
    policy = di.data.SkipErrors(None, quarantine=log)
    dataset: Any = di.data.ArrowDataset(str(path), memory_map=memory_map, on_error=policy, nulls="error")
    values = []
    for row in dataset:
        if not values:
            change(path, way)
        values.append(int(row["x"]))
    assert len(values) == BATCH
    (told,) = map(json.loads, log.read_text().splitlines())
    assert (told["row"], told["lost"], told["rest_of_file"]) == (BATCH, None, True)
    assert "changed while it was read" in told["message"]


def test_a_file_that_stays_is_read_on(tmp_path: Path) -> None:
    write(tmp_path / "a.arrow", 1, null=True)
    dataset = di.data.ArrowDataset(str(tmp_path / "a.arrow"), on_error="skip", nulls="error")
    assert len(dataset.to_list()) == BATCH * (BATCHES - 1)
