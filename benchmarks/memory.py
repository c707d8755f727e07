# SPDX-License-Identifier: Apache-2.0
"""How much memory does it take to stream files that are much larger, and does it grow on the way?"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.harness import ROOT, SEED, Case, Contender, Measured, Work, scaled

QUESTION = "2 GB of TFRecord and of Parquet to batch(256): the peak of memory in a fresh process over the import alone"
FILES, REPEAT, BATCH, CHUNK = 4, 8, 256, 1 << 20
PEAK, GROWTH = "MB at the peak over the import", "MB of growth from a tenth of the way to the end"

PROGRAM = """
import json, os, sys, time
import distinput as di

def resident(word):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1000 for line in status if line.startswith(word + ":"))

kind, *files = sys.argv[1:]
imported, begin = resident("VmRSS"), time.perf_counter()
if kind == "tfrecord":
    fixed = di.io.FixedLenFeature
    features = {"id": fixed([], "int64"), "vector": fixed([VALUES], "float32"), "name": fixed([], "string")}
    dataset = di.data.TFRecordDataset(files).parse_example(features)
else:
    dataset = di.data.ParquetDataset(files)
total, seen = 0, []
for batch in dataset.batch(BATCH).prefetch(di.data.AUTOTUNE):
    total += int(batch["id"].sum())
    seen.append(resident("VmRSS"))
early = max(seen[: max(1, len(seen) // 10)])
late = max(seen[-max(1, len(seen) // 10) :])
print(json.dumps([time.perf_counter() - begin, total, resident("VmHWM") - imported, max(0.001, late - early)]))
"""
VALUES = 500


def prepare(folder: Path, scale: float) -> None:
    """Files of a sixteenth of the bytes: each is read several times over, as if there were more."""
    import distinput as di

    rows = _rows(scale)
    random = np.random.default_rng(SEED)
    for number in range(FILES):
        vectors = random.standard_normal((rows, VALUES), np.float32)
        names = [b"name %d" % row for row in range(rows)]
        with di.io.TFRecordWriter(folder / f"{number}.tfrecord") as writer:
            for row in range(rows):
                writer.write(di.io.encode_example({"id": [row], "vector": vectors[row], "name": [names[row]]}))
        columns = {"id": np.arange(rows), "vector": vectors, "name": names}
        di.io.write_parquet(str(folder / f"{number}.parquet"), columns, row_group_size=8192)


def _rows(scale: float) -> int:
    """Of one file: 2 GB are all files as often as they are read."""
    return scaled(2_000_000_000 // (4 * VALUES * FILES * REPEAT), scale, 300)


def cases(folder: Path, scale: float) -> list[Case]:
    """Both formats."""
    return [_case(folder, kind, _rows(scale)) for kind in ("tfrecord", "parquet") if Path("/proc/self/status").exists()]


def _case(folder: Path, kind: str, rows: int) -> Case:
    files = [str(folder / f"{number}.{kind}") for number in range(FILES)] * REPEAT
    size = sum(os.path.getsize(file) for file in files)
    most = {PEAK: 300.0, GROWTH: 30.0}
    ours = Contender("distinput", "ours", lambda: _fresh(kind, files), most=most)
    limit = Contender("read", "limit", lambda: Work(lambda: _read(files)))
    return Case(kind, {"row": rows * FILES * REPEAT, "byte": size}, [ours, limit])


def _fresh(kind: str, files: list[str]) -> Work:
    """A pass in a process of its own, which measures itself."""
    program = PROGRAM.replace("VALUES", str(VALUES)).replace("BATCH", str(BATCH))
    found: list[tuple[float, float]] = []

    def once() -> tuple[float, int]:
        command = [sys.executable, "-c", program, kind, *files]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
        seconds, total, peak, growth = json.loads(done.stdout)
        found.append((peak, growth))
        return seconds, total

    def facts() -> dict[str, float]:
        peaks, growths = zip(*found, strict=True)
        return {PEAK: max(peaks), GROWTH: max(growths)}

    return Work(lambda: Measured(once()[0]), lambda: str(once()[1]), facts)


def _read(files: list[str]) -> None:
    buffer = np.empty(CHUNK, np.uint8)
    for file in files:
        with open(file, "rb", buffering=0) as opened:
            while opened.readinto(buffer):  # type: ignore[arg-type]
                pass
