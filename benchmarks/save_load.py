# SPDX-License-Identifier: Apache-2.0
"""What do `save`, `load` and a cache on disk cost?"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = (
    "rows of 64 float32 and a label, one by one and in batches of 256: saved, loaded, and read from a cache on disk; "
    "records of 120 bytes, written to TFRecords"
)
NOTES = """
Files are in the page cache. distinput computes a checksum of all bytes while it writes. Of a cache, a later pass is
measured. Compression is off, the default of `save` in both libraries.

TFRecords are written to memory (`/dev/shm`) where there is such. A disk takes ten times as long in one pass as in the next,
and distinput alone waits for it, until a manifest of some hundred bytes is there.
`frame_records + one write` has all records in one array before the clock starts, and computes nothing but the frames.
`Dataset.write` also computes a checksum of the file, gives it its name when it is complete, and writes a manifest; so does
`frames, checksum, manifest`, a part of the records at a time.
`a function for each record` refuses what is not bytes, keeps a list of 4,096 records of 1 KB at most, and joins, frames and
writes these at once: a writer that is called in Python, and that holds no file in memory, can do no less.
"""
BATCH, WIDTH = 256, 64
RECORD = 120
_TOGETHER, _MOST = 4096, 1024  # records that the function keeps, and bytes of each
TENSORFLOW = ("tensorflow",)
_KEPT: list[TemporaryDirectory[str]] = []
"""Folders in memory, where there is such, until the process that prepares them ends."""


def prepare(folder: Path, scale: float) -> None:
    """The rows, saved by us; each peer saves its own when it begins."""
    import distinput as di

    x, y = _rows(_count(scale))
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    di.data.Dataset.from_tensor_slices({"x": x, "y": y}).save(folder / "ours")
    memory = TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    _KEPT.append(memory)
    (folder / "memory").symlink_to(memory.name)


def _count(scale: float) -> int:
    return scaled(200_000, scale, 1000)


def _rows(count: int) -> tuple[Any, Any]:
    """Features [count, 64] and labels [count]."""
    random = np.random.default_rng(SEED)
    return random.standard_normal((count, WIDTH), np.float32), random.integers(0, 10, count)


def cases(folder: Path, scale: float) -> list[Case]:
    """Saving elements and batches, loading them, and a later pass over a cache on disk."""
    count = _count(scale)
    units = {"row": count, "byte": count * (WIDTH * 4 + 8)}
    return [
        Case(
            "save, rows",
            units,
            [
                Contender("distinput", "ours", lambda: _saving(folder, 1)),
                Contender("write the bytes", "limit", lambda: _writing(folder)),
                Contender("tf.data", "peer", lambda: _tensorflow_saving(folder, 1), TENSORFLOW, 5.0),
            ],
        ),
        Case(
            "save, batches",
            units,
            [
                Contender("distinput", "ours", lambda: _saving(folder, BATCH)),
                Contender("write the bytes", "limit", lambda: _writing(folder)),
                Contender("tf.data", "peer", lambda: _tensorflow_saving(folder, BATCH), TENSORFLOW),
            ],
        ),
        Case(
            "load rows, batch",
            units,
            [
                Contender("distinput", "ours", lambda: _loading(folder)),
                Contender("slices of mapped arrays", "limit", lambda: _mapped(folder)),
                Contender("tf.data", "peer", lambda: _tensorflow_loading(folder), TENSORFLOW, 5.0),
            ],
        ),
        Case(
            "cache on disk, rows, batch",
            units,
            [
                Contender("distinput", "ours", lambda: _cached(folder)),
                Contender("slices of mapped arrays", "limit", lambda: _mapped(folder)),
                Contender("tf.data", "peer", lambda: _tensorflow_cached(folder), TENSORFLOW, 5.0),
            ],
        ),
        *_record_cases(folder / "memory", scaled(100_000, scale, 1000)),
    ]


def _record_cases(folder: Path, count: int) -> list[Case]:
    """Records of bytes to a TFRecord file: those of a dataset, and one by one."""
    units = {"record": count, "byte": count * RECORD}
    framing = Contender("frame_records + one write", "limit", lambda: _framing(folder, count), reach=0.8)
    return [
        Case(
            "TFRecords, a dataset",
            units,
            [
                Contender("distinput", "ours", lambda: _dataset_writing(folder, count)),
                framing,
                Contender("frames, checksum, manifest", "limit", lambda: _publishing(folder, count)),
                Contender("tf.data", "peer", lambda: _tensorflow_dataset_writing(folder, count), TENSORFLOW, 1.0),
                Contender("tf.io", "peer", lambda: _tensorflow_records(folder, count), TENSORFLOW, 1.0),
            ],
        ),
        Case(
            "TFRecords, one by one",
            units,
            [
                Contender("distinput", "ours", lambda: _one_by_one(folder, count)),
                framing,
                Contender("a function for each record", "limit", lambda: _calling(folder, count)),
                Contender("tf.io", "peer", lambda: _tensorflow_records(folder, count), TENSORFLOW, 1.0),
            ],
        ),
    ]


def _arrays(folder: Path) -> dict[str, Any]:
    return {name: np.load(folder / f"{name}.npy") for name in ("x", "y")}


def _work(save: Callable[[], Any], load: Callable[[], Any]) -> Work:
    """Saving is measured; what was saved is checked."""

    def check() -> str:
        save()
        return in_order(load())

    return Work(save, check)


def _saving(folder: Path, batch: int) -> Work:
    import distinput as di

    rows = di.data.Dataset.from_tensor_slices(_arrays(folder))
    dataset = rows if batch == 1 else rows.batch(batch)
    path = folder / f"saved-{batch}"

    def load() -> Any:
        return di.data.Dataset.load(path) if batch > 1 else di.data.Dataset.load(path).batch(BATCH)

    return _work(lambda: dataset.save(path), load)


def _writing(folder: Path) -> Work:
    """The bytes alone, to one file."""
    arrays = list(_arrays(folder).values())

    def once() -> None:
        with open(folder / "bytes", "wb") as file:
            file.writelines(array.data for array in arrays)

    return Work(once)


def _loading(folder: Path) -> Work:
    import distinput as di

    return delivering(lambda: di.data.Dataset.load(folder / "ours").batch(BATCH))


def _mapped(folder: Path) -> Work:
    def batches() -> Any:
        x, y = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("x", "y")]
        return [{"x": x[i : i + BATCH], "y": y[i : i + BATCH]} for i in range(0, len(x), BATCH)]

    return delivering(batches)


def _cached(folder: Path) -> Work:
    import distinput as di

    dataset = di.data.Dataset.from_tensor_slices(_arrays(folder)).cache(str(folder / "cached")).batch(BATCH)
    return delivering(lambda: dataset)


def _tensorflow_saving(folder: Path, batch: int) -> Work:
    import tensorflow as tf

    rows = tf.data.Dataset.from_tensor_slices(_arrays(folder))
    dataset = rows if batch == 1 else rows.batch(batch)
    path = folder / f"tensorflow-{batch}"

    def save() -> None:
        shutil.rmtree(path, ignore_errors=True)  # it would keep what it saved before
        dataset.save(str(path))

    def load() -> Any:
        loaded = tf.data.Dataset.load(str(path))
        return (loaded if batch > 1 else loaded.batch(BATCH)).as_numpy_iterator()

    return _work(save, load)


def _tensorflow_loading(folder: Path) -> Work:
    import tensorflow as tf

    path = folder / "tensorflow"
    if not path.exists():
        tf.data.Dataset.from_tensor_slices(_arrays(folder)).save(str(path))
    dataset = tf.data.Dataset.load(str(path)).batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return delivering(lambda: dataset.as_numpy_iterator())


def _tensorflow_cached(folder: Path) -> Work:
    import tensorflow as tf

    rows = tf.data.Dataset.from_tensor_slices(_arrays(folder)).cache(str(folder / "tensorflow-cache"))
    dataset = rows.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return delivering(lambda: dataset.as_numpy_iterator())


def _records(count: int) -> list[bytes]:
    data = np.random.default_rng(SEED).bytes(count * RECORD)
    return [data[i : i + RECORD] for i in range(0, len(data), RECORD)]


def _work_of_file(path: Path, write: Callable[[], Any]) -> Work:
    """Writing is measured; the bytes of the file are checked."""
    return _work(write, lambda: [np.fromfile(path, np.uint8)])


def _dataset_writing(folder: Path, count: int) -> Work:
    import distinput as di

    dataset = di.data.Dataset.from_tensor_slices(np.array(_records(count), object))
    path = folder / "written"
    return _work_of_file(path / "part-00000.tfrecord", lambda: dataset.write(path, "tfrecord", overwrite=True))


def _one_by_one(folder: Path, count: int) -> Work:
    import distinput as di

    records, path = _records(count), folder / "ours.tfrecord"

    def write() -> None:
        with di.io.TFRecordWriter(path) as writer:
            for record in records:
                writer.write(record)

    return _work_of_file(path, write)


def _framing(folder: Path, count: int) -> Work:
    """The kernel that frames records, and one write."""
    from distinput.kernels.checksums import frame_records

    path = folder / "framed.tfrecord"
    data, offsets = np.frombuffer(b"".join(_records(count)), np.uint8), np.arange(count + 1) * RECORD
    out = np.empty(count * (RECORD + 16), np.uint8)

    def write() -> None:
        frame_records(data, offsets, out)
        with open(path, "wb", buffering=0) as file:
            file.write(out)  # type: ignore[arg-type]

    return _work_of_file(path, write)


def _publishing(folder: Path, count: int) -> Work:
    """All that `Dataset.write` promises: a file with its name when it is complete, and a manifest that outlives the machine."""
    from distinput.kernels.checksums import crc32, frame_records

    path, manifest, hidden = folder / "published.tfrecord", folder / "manifest.json", folder / ".hidden"
    data = np.frombuffer(b"".join(_records(count)), np.uint8)
    out = np.empty(_TOGETHER * (RECORD + 16), np.uint8)

    def write() -> None:
        checksum = 0
        with open(hidden, "wb", buffering=0) as file:
            for first in range(0, count, _TOGETHER):
                part = data[first * RECORD : (first + _TOGETHER) * RECORD]
                size = frame_records(part, np.arange(len(part) // RECORD + 1) * RECORD, out)
                checksum = crc32(out[:size], checksum)
                file.write(out[:size])  # type: ignore[arg-type]
        os.replace(hidden, path)
        with open(hidden, "wb", buffering=0) as file:
            file.write(json.dumps({"name": path.name, "rows": count, "crc32": checksum}).encode())
            os.fsync(file.fileno())
        os.replace(hidden, manifest)
        names = os.open(folder, os.O_RDONLY)
        os.fsync(names)
        os.close(names)

    return _work_of_file(path, write)


def _calling(folder: Path, count: int) -> Work:
    """The same from a function of Python that is called with each record, some thousands of which are in memory."""
    from distinput.kernels.checksums import frame_records

    records, path = _records(count), folder / "called.tfrecord"
    out = np.empty(_TOGETHER * (RECORD + 16), np.uint8)

    def write() -> None:
        kept: list[bytes] = []

        def put() -> None:
            sizes = np.fromiter(map(len, kept), np.int64, len(kept))
            size = frame_records(np.frombuffer(b"".join(kept), np.uint8), np.append(0, sizes.cumsum()), out)
            file.write(out[:size])  # type: ignore[arg-type]
            kept.clear()

        def keep(record: bytes) -> None:
            if type(record) is not bytes or len(record) > _MOST:
                raise TypeError(record)
            kept.append(record)
            if len(kept) == _TOGETHER:
                put()

        with open(path, "wb", buffering=0) as file:
            for record in records:
                keep(record)
            put()

    return _work_of_file(path, write)


def _tensorflow_records(folder: Path, count: int) -> Work:
    import tensorflow as tf

    records, path = _records(count), folder / "tensorflow.tfrecord"

    def write() -> None:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in records:
                writer.write(record)

    return _work_of_file(path, write)


def _tensorflow_dataset_writing(folder: Path, count: int) -> Work:
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(_records(count))
    path = folder / "tensorflow-dataset.tfrecord"
    return _work_of_file(path, lambda: tf.data.experimental.TFRecordWriter(str(path)).write(dataset))
