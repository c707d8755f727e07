# SPDX-License-Identifier: Apache-2.0
"""The law of a file system that fails: the same records as without, or an error; for every format and every way to read."""

from collections.abc import Callable, Iterator
from typing import Any

import fsspec
import numpy as np
import pytest

import distinput as di
from distinput.files import mounts
from distinput.testing.faulty_files import FaultyFiles

ROWS = 3000
PATIENCE = di.io.Retries(deadline=100, stall=0.1, first_pause=0.0005, longest_pause=0.001)


@pytest.fixture(scope="module")
def memory() -> Any:
    system = fsspec.filesystem("memory")
    columns = {"x": np.arange(ROWS), "name": [b"%d" % n * (n % 50) for n in range(ROWS)]}
    for part in range(3):
        with di.io.TFRecordWriter(f"memory://faulty/{part}.tfrecord") as writer:
            for n in range(ROWS):
                writer.write(b"%d" % n * (n % 50))
        with di.io.TFRecordWriter(f"memory://faulty/{part}.gz", "GZIP") as writer:
            for n in range(ROWS):
                writer.write(b"%d" % n)
        system.pipe(f"/faulty/{part}.txt", b"".join(b"%d\n" % n for n in range(ROWS)))
        di.io.write_parquet(f"memory://faulty/{part}.parquet", columns, row_group_size=100)
        di.io.write_arrow(f"memory://faulty/{part}.arrow", columns, batch_rows=100)
        with fsspec.open(f"memory://faulty/{part}.npy", "wb") as file:
            np.save(file, np.arange(ROWS * 40).reshape(ROWS, 40))
    return system


@pytest.fixture
def faulty(memory: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyFiles]:
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    made = FaultyFiles(memory, seed=7)
    di.io.mount("faulty://", made, retries=PATIENCE)
    yield made
    made.release()


READS: dict[str, Callable[[str], Any]] = {
    "tfrecord": lambda root: di.data.TFRecordDataset([f"{root}/{n}.tfrecord" for n in range(3)]),
    "gzip": lambda root: di.data.TFRecordDataset([f"{root}/{n}.gz" for n in range(3)], "GZIP"),
    "text": lambda root: di.data.TextLineDataset([f"{root}/{n}.txt" for n in range(3)], num_parallel_reads=3),
    "parquet": lambda root: di.data.ParquetDataset([f"{root}/{n}.parquet" for n in range(3)]),
    "parquet column": lambda root: di.data.ParquetDataset([f"{root}/{n}.parquet" for n in range(3)], columns=["x"]),
    "parquet shuffled": lambda root: di.data.ParquetDataset(f"{root}/0.parquet").take(300).global_shuffle(seed=1),
    "arrow": lambda root: di.data.ArrowDataset([f"{root}/{n}.arrow" for n in range(3)]),
    "npy": lambda root: di.data.NpyDataset([f"{root}/{n}.npy" for n in range(3)]),
    "fixed length": lambda root: di.data.FixedLengthRecordDataset(f"{root}/0.npy", 320, header_bytes=128),
}


@pytest.mark.parametrize("kind", READS)
def test_the_records_are_those_without_faults(kind: str, faulty: FaultyFiles) -> None:
    faulty._shares = {"error": 0.4, "short": 0.2, "stall": 0.01}  # so few requests would hardly meet fewer
    found = READS[kind]("faulty://faulty").batch(500).to_list()
    assert found == READS[kind]("memory://faulty").batch(500).to_list()
    assert faulty.faults["error"] + faulty.faults["short"] > 0


def test_with_the_usual_shares_many_requests_meet_all_kinds_of_faults(faulty: FaultyFiles) -> None:
    for _ in range(3):
        for kind in READS:
            assert len(READS[kind]("faulty://faulty").batch(500).to_list())
    assert faulty.faults["error"]
    assert faulty.faults["short"]


def test_a_restart_in_the_middle_goes_on_with_the_same_records(faulty: FaultyFiles) -> None:
    rows = READS["parquet column"]("faulty://faulty").map(lambda row: row["x"])
    iterator = iter(rows)
    head = [next(iterator) for _ in range(1234)]
    assert head + list(rows.restore(iterator.state())) == 3 * list(range(ROWS))


def test_one_that_always_fails_is_an_error_that_names_the_file(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "_MOUNTS", {})
    broken = FaultyFiles(memory, errors=1)
    di.io.mount("faulty://", broken, retries=di.io.Retries(deadline=0.05, first_pause=0.001))
    with pytest.raises(ConnectionError, match="on purpose") as error:
        di.data.TextLineDataset("faulty://faulty/0.txt").to_list()
    assert "faulty://faulty/0.txt" in "".join(error.value.__notes__)
