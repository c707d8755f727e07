# SPDX-License-Identifier: Apache-2.0
"""How much more memory does a mixture of a hundred files take than one of them, and how many threads?"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.harness import ROOT, SEED, Case, Contender, Measured, Work, scaled

QUESTION = (
    "100 files of texts of 400 to 1200 bytes, in turn, batches of 256: the peak of memory beside that of one; threads"
)
FILES, ROWS, BATCH = 100, 4000, 256
TIMES, THREADS = "times the peak of one file", "threads"

PROGRAM = """
import json, sys, threading, time

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1000 for line in status if line.startswith("VmHWM:"))

who, kind, *files = sys.argv[1:]
if who == "distinput":
    import distinput as di
    sources = [di.data.TFRecordDataset(f) if kind == "tfrecord" else di.data.ParquetDataset(f) for f in files]
    mixed = di.data.Dataset.sample_from_datasets(sources, balanced=True) if len(files) > 1 else sources[0]
    batches = mixed.batch(BATCH).as_numpy_iterator()
else:
    import grain
    kinds = {"tfrecord": grain.experimental.TFRecordIterDataset, "parquet": grain.experimental.ParquetIterDataset}
    sources = [kinds[kind](f) for f in files]
    mixed = grain.IterDataset.mix(sources) if len(files) > 1 else sources[0]
    batches = iter(mixed.batch(BATCH, batch_fn=list))
begin, total, threads = time.perf_counter(), 0, 0
for batch in batches:
    texts = batch if kind == "tfrecord" else batch["text"] if isinstance(batch, dict) else [row["text"] for row in batch]
    total += sum(map(len, texts))
    threads = max(threads, threading.active_count())
print(json.dumps([time.perf_counter() - begin, total, peak(), threads]))
"""


def prepare(folder: Path, scale: float) -> None:
    """Each file in both formats."""
    import distinput as di

    rows = _rows(scale)
    random = np.random.default_rng(SEED)
    for number in range(FILES):
        letters = random.integers(97, 123, 1200 * rows, np.uint8).tobytes()
        sizes = random.integers(400, 1200, rows)
        texts = [letters[1200 * row : 1200 * row + size] for row, size in enumerate(sizes.tolist())]
        with di.io.TFRecordWriter(folder / f"{number}.tfrecord") as writer:
            for text in texts:
                writer.write(text)
        di.io.write_parquet(str(folder / f"{number}.parquet"), {"text": texts})


def _rows(scale: float) -> int:
    return scaled(ROWS, scale, 3)


def cases(folder: Path, scale: float) -> list[Case]:
    """Both formats."""
    return [_case(folder, kind, scale) for kind in ("tfrecord", "parquet") if Path("/proc/self/status").exists()]


def _case(folder: Path, kind: str, scale: float) -> Case:
    files = [str(folder / f"{number}.{kind}") for number in range(FILES)]
    # Without a linker, 50 MB of a mixture are the library that loads compiled kernels, which one file does not need.
    most = {TIMES: 2.5, THREADS: 16.0}
    ours = Contender("distinput", "ours", lambda: _fresh("distinput", kind, files), most=most)
    peer = Contender("Grain", "peer", lambda: _fresh("grain", kind, files), ("grain", "array_record"))
    return Case(kind, {"row": FILES * _rows(scale)}, [ours, peer])


def _fresh(who: str, kind: str, files: list[str]) -> Work:
    """A pass in a process of its own, which measures itself."""

    def once(files: list[str]) -> tuple[float, int, float, float]:
        command = [sys.executable, "-c", PROGRAM.replace("BATCH", str(BATCH)), who, kind, *files]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
        seconds, total, peak, threads = json.loads(done.stdout)
        return seconds, total, peak, threads

    def facts() -> dict[str, float]:
        (_, _, one, _), (_, _, many, threads) = once(files[:1]), once(files)
        return {TIMES: many / one, THREADS: threads}

    return Work(lambda: Measured(once(files)[0]), lambda: str(once(files)[1]), facts)
