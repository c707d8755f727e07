# SPDX-License-Identifier: Apache-2.0
"""How long does a fresh process take to import, and to its first batch?"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.harness import Case, Contender, Measured, Work, scaled

QUESTION = "fresh processes: import, first batch in memory, first batch of TFRecords (seconds inside the process)"

PROGRAM = """
import json, sys, time
begin = time.perf_counter()
{body}
print(json.dumps([time.perf_counter() - begin, found]))
"""

IMPORT = "import {package}; found = 0"
NUMPY = "import numpy as np; found = np.arange(100_000)[:32].tolist()"
OURS = """
import numpy as np, distinput as di
found = next(iter(di.data.Dataset.from_tensor_slices(np.arange(100_000)).batch(32))).tolist()
"""
TENSORFLOW = """
import numpy as np, tensorflow as tf
found = next(iter(tf.data.Dataset.from_tensor_slices(np.arange(100_000)).batch(32))).numpy().tolist()
"""
RECORDS = """
import distinput as di
dataset = di.data.TFRecordDataset(sys.argv[1])
found = next(iter(dataset.parse_example({"x": di.io.FixedLenFeature([], "int64")}).batch(32)))["x"].tolist()
"""
RECORDS_TENSORFLOW = """
import tensorflow as tf
dataset = tf.data.TFRecordDataset(sys.argv[1]).batch(32)
features = {"x": tf.io.FixedLenFeature([], tf.int64)}
found = next(iter(dataset.map(lambda batch: tf.io.parse_example(batch, features))))["x"].numpy().tolist()
"""


def prepare(folder: Path, scale: float) -> None:
    """A TFRecord file, and the kernels that reading it takes in the cache where every process finds them."""
    import distinput as di

    with di.io.TFRecordWriter(folder / "a.tfrecord") as writer:
        for number in range(scaled(100_000, scale, 1000)):
            writer.write(di.io.encode_example({"x": [number]}))
    environment = {**os.environ, "DISTINPUT_KERNELS": "compiled"}
    program = [sys.executable, "-c", "import sys" + RECORDS, str(folder / "a.tfrecord")]
    subprocess.run(program, env=environment, check=True, stdout=subprocess.DEVNULL)


def cases(folder: Path, scale: float) -> list[Case]:
    """From nothing to the first batch of records without a compiled kernel."""
    needs = ("tensorflow",)

    def fresh(body: str, cold: bool = False) -> Work:
        return _fresh(body, folder, cold)

    numpy = Contender("numpy", "limit", lambda: fresh(NUMPY), reach=1 / 1.5)
    records = Contender("tf.data", "peer", lambda: fresh(RECORDS_TENSORFLOW), needs)
    bare = Contender("import numpy alone", "limit", lambda: Work(fresh(IMPORT.format(package="numpy")).once))
    return [
        Case(
            "import",
            {"process": 1},
            [
                Contender("distinput", "ours", lambda: fresh(IMPORT.format(package="distinput"))),
                Contender("numpy", "limit", lambda: fresh(IMPORT.format(package="numpy")), reach=1 / 1.2),
                Contender("tensorflow", "peer", lambda: fresh(IMPORT.format(package="tensorflow")), needs),
            ],
        ),
        Case(
            "first batch in memory",
            {"process": 1},
            [
                Contender("distinput", "ours", lambda: fresh(OURS)),
                numpy,
                Contender("tf.data", "peer", lambda: fresh(TENSORFLOW), needs),
            ],
        ),
        Case(
            "first batch of TFRecords, kernels in the cache",
            {"process": 1},
            [Contender("distinput", "ours", lambda: fresh(RECORDS)), bare, records],
        ),
        Case(
            "first batch of TFRecords, cache empty",
            {"process": 1},
            [Contender("distinput", "ours", lambda: fresh(RECORDS, cold=True), most={"seconds": 1.0}), bare, records],
        ),
    ]


def _fresh(body: str, folder: Path, cold: bool) -> Work:
    """The program in a process of its own, which takes the time itself."""
    program = PROGRAM.format(body=body.strip())
    # Byte code is kept, as in what users have installed.
    left_out = ("DISTINPUT_KERNELS", "PYTHONDONTWRITEBYTECODE")
    environment = {key: value for key, value in os.environ.items() if key not in left_out}

    whole: list[float] = []

    def run(**cache: str) -> tuple[float, object]:
        begin = perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", program, str(folder / "a.tfrecord")],
            env={**environment, **cache},
            stdout=subprocess.PIPE,
            check=True,
        )
        whole.append(perf_counter() - begin)
        seconds, found = json.loads(done.stdout)
        return seconds, found

    def once() -> tuple[float, object]:
        if not cold:
            return run()
        with tempfile.TemporaryDirectory() as empty:
            return run(NUMBA_CACHE_DIR=empty)

    def facts() -> dict[str, float]:
        return {"seconds until the process has ended": median(whole)}

    return Work(lambda: Measured(once()[0]), lambda: json.dumps(once()[1]), facts)


assert np.__name__  # loaded here, so that its files are in the page cache before the first fresh process
