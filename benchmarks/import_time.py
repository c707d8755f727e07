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

QUESTION = (
    "fresh processes: import, first batch in memory, a strategy, first batch of TFRecords, first use of a kernel (seconds "
    "inside the process)"
)
NOTES = """
`reference kernels` is the same job in a process that never loads or compiles a kernel (`DISTINPUT_KERNELS=reference`). The
first use of a kernel is timed alone, without the imports before it; `load the library` is what the system takes for the
same file: open, read, load.
"""

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
RANGE = """
import distinput as di
found = next(iter(di.data.Dataset.range(100_000).batch(32))).tolist()
"""
STRATEGY = """
import distinput as di
strategy = di.distribute.OneDeviceStrategy("cpu:0")
dataset = strategy.experimental_distribute_dataset(di.data.Dataset.range(100_000).batch(32))
found = next(iter(dataset)).tolist()
"""
KERNEL = """
import numpy as np, distinput as di
from distinput.kernels.checksums import crc32
data = np.arange(64, dtype=np.uint8)
begin = time.perf_counter()
found = crc32(data, 0)
"""
LIBRARY = """
import os, zlib
import numpy as np, distinput as di
from distinput.kernels import object_code
from distinput.kernels.checksums import crc32
name, folders = crc32._place()
files = [os.path.join(folder, object_code._file(name, crc32.signature)) for folder in folders]
file = next(file for file in files if os.path.exists(file))
begin = time.perf_counter()
with open(file, "rb") as opened:
    object_code.entry(opened.read()[8:])
found = zlib.crc32(bytes(range(64)))
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
    for body in (RECORDS, KERNEL):
        program = [sys.executable, "-c", "import sys, time" + body, str(folder / "a.tfrecord")]
        subprocess.run(program, env=environment, check=True, stdout=subprocess.DEVNULL)


def cases(folder: Path, scale: float) -> list[Case]:
    """From nothing to the first batch of records without a compiled kernel."""
    needs = ("tensorflow",)

    def fresh(body: str, cold: bool = False, kernels: str = "auto") -> Work:
        return _fresh(body, folder, cold, kernels)

    numpy = Contender("numpy", "limit", lambda: fresh(NUMPY), reach=1 / 1.5)
    records = Contender("tf.data", "peer", lambda: fresh(RECORDS_TENSORFLOW), needs)
    reference = Contender(
        "reference kernels", "limit", lambda: fresh(RECORDS, kernels="reference"), reach=1 / 1.1, reach_cpu=1 / 1.1
    )
    bare = Contender("import numpy alone", "limit", lambda: Work(fresh(IMPORT.format(package="numpy")).once))
    return [
        Case(
            "import",
            {"process": 1},
            [
                Contender("distinput", "ours", lambda: fresh(IMPORT.format(package="distinput"))),
                Contender("numpy", "peer", lambda: fresh(IMPORT.format(package="numpy")), reach=1 / 1.2),
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
            [Contender("distinput", "ours", lambda: fresh(RECORDS)), bare, reference, records],
        ),
        Case(
            "first batch of TFRecords, cache empty",
            {"process": 1},
            [
                Contender("distinput", "ours", lambda: fresh(RECORDS, cold=True), most={"seconds": 1.0}),
                bare,
                reference,
                records,
            ],
        ),
        Case(
            "a process that makes a OneDeviceStrategy",
            {"process": 1},
            [
                Contender("distinput", "ours", lambda: fresh(STRATEGY)),
                Contender("range().batch() alone", "limit", lambda: fresh(RANGE), reach=1 / 1.5),
            ],
        ),
        Case(
            "first use of a kernel, from the cache",
            {"use": 1},
            [
                Contender("distinput", "ours", lambda: fresh(KERNEL, kernels="compiled"), most={"seconds": 0.005}),
                Contender("load the library", "limit", lambda: fresh(LIBRARY)),
            ],
        ),
    ]


def _fresh(body: str, folder: Path, cold: bool, kernels: str) -> Work:
    """The program in a process of its own, which takes the time itself."""
    program = PROGRAM.format(body=body.strip())
    # Byte code is kept, as in what users have installed.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["DISTINPUT_KERNELS"] = kernels

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
