# SPDX-License-Identifier: Apache-2.0
"""Records of megabytes go through every op in the memory of a few of them, not of so many rows."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import distinput as di
from distinput.columns.block import block_rows, gathered_rows, picked_rows, rows_within
from distinput.ops.shard_batches import fetches
from distinput.plan.batch_sizes import Assignment, RowRanges
from distinput.run.run import bytes_of
from tests.depth import cases

Dataset = di.data.Dataset

PROGRAM = """
import gc, sys
import numpy as np
import distinput as di

Dataset = di.data.Dataset
folder, size, count = sys.argv[1], 0, 0
large = int(sys.argv[2])

def array(i): return np.full(size, int(i) % 250, np.uint8)
def text(i): return bytes([int(i) % 250]) * size
def generate(): return map(array, range(count))
def arrays(): return Dataset.range(count).map(array)
def texts(): return Dataset.range(count).map(text)
def generated(): return Dataset.from_generator(generate, output_signature=di.TensorSpec([None], "uint8"))
def records():
    with di.io.TFRecordWriter(f"{folder}/{size}", index=True) as writer:
        for i in range(count): writer.write(text(i))
    return di.data.TFRecordDataset(f"{folder}/{size}", index=True)

OPS = {
    "map": arrays,
    "map to text": texts,
    "map of map": lambda: arrays().map(lambda x: x + 1),
    "threads": lambda: texts().map(lambda x: x + b"1", num_parallel_calls=2),
    "filter": lambda: texts().filter(lambda x: len(x) > 0),
    "generator": generated,
    "shuffle": lambda: arrays().shuffle(4, seed=1),
    "shuffle text": lambda: texts().shuffle(4, seed=1),
    "shuffle lists": lambda: generated().shuffle(4, seed=1),
    "batch": lambda: texts().batch(4),
    "padded_batch": lambda: generated().padded_batch(4),
    "shard_batches": lambda: arrays().batch(4).shard_batches(2, 0),
    "sample_from_datasets": lambda: Dataset.sample_from_datasets([arrays(), arrays()], seed=1),
    "interleave": lambda: Dataset.range(2).interleave(lambda i: arrays(), cycle_length=2, num_parallel_calls=2),
    "records": records,
    "global_shuffle": lambda: records().global_shuffle(seed=1),
    "map_rows": lambda: arrays().map_rows(lambda x: x + 1),
    "prefetch": lambda: arrays().prefetch(di.data.AUTOTUNE),
}

def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) >> 10

for name in OPS:
    size, count = 10, 40
    list(OPS[name]())  # loads what it needs
    size, count = 3_000_000, large
    dataset = OPS[name]()
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    for element in dataset:
        del element
    print(f"{name}: {status('VmHWM') - before}", flush=True)
"""


def test_records_of_three_megabytes_take_the_memory_of_a_few(tmp_path: Path) -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("the peak of a process's memory cannot be reset here")
    count = cases(100, 300)
    for attempt in range(3):  # a peak has noise, upwards alone: what is bounded is so in one of three runs
        folder = tmp_path / str(attempt)
        folder.mkdir()
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(folder), str(count)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        found = {name: int(peak) for name, peak in (line.split(": ") for line in run.stdout.splitlines())}
        assert len(found) == 18
        high = {name: peak for name, peak in found.items() if peak > 180}
        if not high:
            return
    pytest.fail(f"MB, of {3 * count}: {high}")


@pytest.mark.parametrize("rows, most", [(block_rows, 4 << 20), (gathered_rows, 4 << 20), (picked_rows, 16 << 20)])
def test_a_block_holds_at_least_one_row_and_some_megabytes(rows: Callable[[float], int], most: int) -> None:
    for size in (1, 100, 10_000, 300_000, 3_000_000, 500_000_000):
        assert rows(size) == 1 or rows(size) * size <= most
    assert rows(1) == 32_768
    assert rows(500_000_000) == 1
    assert rows_within(1, 500_000_000) == rows_within(0, 0) == 1


def test_what_is_held_of_results_is_counted() -> None:
    assert bytes_of(b"text") == bytes_of("text") == 4
    assert bytes_of({"a": [np.zeros(4), (b"12", "3")]}) == 35
    assert bytes_of(None) == bytes_of(1) == bytes_of(b"") == 1


@pytest.mark.parametrize("size", [10, 100_000, 3_000_000])
def test_orders_do_not_depend_on_how_many_rows_move_together(size: int, tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with di.io.TFRecordWriter(path, index=True) as writer:
        for number in range(40):
            writer.write(b"%d" % number + bytes(size))
    for make in (lambda d: d.shuffle(8, seed=1), lambda d: d.global_shuffle(seed=1)):
        wanted = [int(x) for x in make(Dataset.range(40))]
        found = [int(x[:2].rstrip(b"\0")) for x in make(di.data.TFRecordDataset(path, index=True))]
        assert found == wanted
        iterator = iter(make(di.data.TFRecordDataset(path, index=True)))
        for _ in range(7):
            next(iterator)
        rest = make(di.data.TFRecordDataset(path, index=True)).restore(iterator.state())
        assert [int(x[:2].rstrip(b"\0")) for x in rest] == wanted[7:]


@pytest.mark.parametrize("row_bytes, most", [(8, 32_768), (300_000, 223), (3_000_000, 22), (500_000_000, 4)])
def test_a_worker_fetches_few_of_its_rows_where_they_are_large(row_bytes: int, most: int) -> None:
    pieces = RowRanges(100_000, 8, False, Assignment(2, first=1, period=2))
    found = [int((stops - starts).sum()) for starts, stops, _ in fetches(pieces, 0, row_bytes)]
    assert max(found) <= most
    assert sum(found) == 50_000
