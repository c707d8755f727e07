# SPDX-License-Identifier: Apache-2.0
"""What do records on disk cost in a random order, when the system has their pages in memory?"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_any_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled
from benchmarks.shuffle import BATCH, images

QUESTION = "images uint8[784] with labels in files: a shuffled epoch in batches of 256"
NOTES = """
The limit in memory gathers from an array that the process has written itself. The limits of mapped files gather from the
same pages as distinput does: by NumPy's `take` where rows lie side by side, by a compiled loop of copies where they are in
record batches.
"""
GROUP = 1000  # rows in a record batch, as writers of such files make them


def prepare(folder: Path, scale: float) -> None:
    """The same rows as arrays, as one record batch, as many, as a stream, and as ArrayRecord where that is installed."""
    from distinput.io import write_arrow

    pictures, labels = images(_rows(scale))
    np.save(folder / "image.npy", pictures)
    np.save(folder / "label.npy", labels)
    columns = {"image": pictures, "label": labels}
    write_arrow(str(folder / "one.arrow"), columns)
    write_arrow(str(folder / "many.arrow"), columns, GROUP)
    write_arrow(str(folder / "stream.arrow"), columns, GROUP, stream=True)
    half = len(labels) // 2
    for number, rows in enumerate((slice(0, half), slice(half, None))):
        write_arrow(str(folder / f"part-{number}.arrow"), {k: v[rows] for k, v in columns.items()}, GROUP)
    try:
        from array_record.python.array_record_module import ArrayRecordWriter
    except ImportError:
        return
    writer = ArrayRecordWriter(str(folder / "rows.array_record"), "group_size:1")
    for picture, label in zip(pictures, labels, strict=True):
        writer.write(picture.tobytes() + label.tobytes())
    writer.close()


def _rows(scale: float) -> int:
    return scaled(60_000, scale, 1000)


def cases(folder: Path, scale: float) -> list[Case]:
    """Arrays, and tables cut into record batches in several ways."""
    rows = _rows(scale)
    units = {"batch": -(-rows // BATCH), "row": rows, "byte": rows * 792}

    def arrays() -> Any:
        import distinput as di

        return di.data.Dataset.zip(
            di.data.NpyDataset(str(folder / "image.npy")), di.data.NpyDataset(str(folder / "label.npy"))
        )

    def table(*names: str) -> Callable[[], Any]:
        def source() -> Any:
            import distinput as di

            return di.data.ArrowDataset([str(folder / name) for name in names])

        return source

    def ours(source: Callable[[], Any]) -> Callable[[], Work]:
        def load() -> Work:
            dataset = source().global_shuffle(seed=SEED).batch(BATCH)
            return delivering(lambda: dataset, plain=_pair, checksum=in_any_order)

        return load

    # Pages of a file are mostly 4 KiB, those of large arrays in memory 2 MiB: what that alone costs.
    def mapped(*names: str) -> Contender:
        def load() -> Work:
            pictures, labels = _mapped([folder / name for name in names])
            return _taking(pictures[0], labels[0]) if len(labels) == 1 else _copying(pictures, labels)

        if names[0] in ("one.arrow", "image.npy"):
            return Contender("permutation + take of mapped arrays", "limit", load)
        return Contender("permutation + copies from mapped batches", "peer", load, ("numba",))

    peers = [
        Contender("grain", "peer", lambda: _grain(folder), ("grain", "array_record"), 500.0),
        Contender("datasets, arrow", "peer", lambda: _datasets(folder, "arrow"), ("datasets",), 15.0),
        Contender("datasets, numpy", "peer", lambda: _datasets(folder, "numpy"), ("datasets",)),
    ]
    tables = {
        "arrow, one batch": ("one.arrow",),
        "arrow": ("many.arrow",),
        "arrow, stream": ("stream.arrow",),
        "arrow, two files": ("part-0.arrow", "part-1.arrow"),
    }
    made = [("npy", arrays, mapped("image.npy", "label.npy"))]
    made += [(name, table(*files), mapped(*files)) for name, files in tables.items()]
    return [
        Case(
            name,
            units,
            [
                Contender("distinput", "ours", ours(source)),
                Contender("permutation + take in memory", "limit", lambda: _taking(*images(rows)), reach=0.9),
                limit,
                *(peers if name in ("npy", "arrow") else []),
            ],
        )
        for name, source, limit in made
    ]


def _mapped(paths: Sequence[Path]) -> tuple[list[Any], list[Any]]:
    """The pictures and the labels of npy files, or of the record batches of tables."""
    if paths[0].suffix == ".npy":
        image, label = (np.asarray(np.load(path, mmap_mode="r")) for path in paths)
        return [image], [label]
    import pyarrow as pa
    from pyarrow import ipc

    batches: list[Any] = []
    for path in paths:
        file = pa.memory_map(str(path))
        reader = ipc.open_stream(file) if path.name == "stream.arrow" else ipc.open_file(file)
        batches += reader.read_all().to_batches()
    pictures = [batch["image"].flatten().to_numpy().reshape(-1, 784) for batch in batches]
    return pictures, [batch["label"].to_numpy() for batch in batches]


def _taking(pictures: Any, labels: Any) -> Work:
    random = np.random.default_rng(SEED)

    def epoch() -> Iterator[Any]:
        order = random.permutation(len(labels))
        for first in range(0, len(labels), BATCH):
            picked = order[first : first + BATCH]
            yield pictures.take(picked, 0), labels.take(picked, 0)

    return delivering(epoch, checksum=in_any_order)


def _copying(pictures: list[Any], labels: list[Any]) -> Work:
    """A compiled loop that calls `memcpy` for each row, wherever it lies in record batches, and does nothing else."""
    from numba import njit

    most, rows = len(labels[0]), sum(map(len, labels))
    assert {len(each) for each in labels[:-1]} == {most}, "a row's batch is its number divided by the rows of one"
    pictures_at, labels_at = (np.array([each.ctypes.data for each in column]) for column in (pictures, labels))
    low, high = int(labels_at.min()), int(labels_at.max()) + most * 8
    words = np.asarray(_Words(low, (high - low) // 8))
    copy = ctypes.CDLL(None).memcpy
    copy.argtypes, copy.restype = [ctypes.c_size_t] * 3, ctypes.c_size_t
    random = np.random.default_rng(SEED)

    @njit("(int64[::1], int64)")  # type: ignore[untyped-decorator]
    def copied(starts: Any, into: int) -> None:
        for i in range(starts.size):
            copy(into + i * 784, starts[i], 784)

    def epoch() -> Iterator[Any]:
        number, place = np.divmod(random.permutation(rows), most)
        starts, label_starts = pictures_at[number] + place * 784, (labels_at[number] - low) // 8 + place
        for first in range(0, rows, BATCH):
            batch = slice(first, first + BATCH)
            images = np.empty((len(place[batch]), 784), np.uint8)
            copied(starts[batch], images.ctypes.data)
            yield images, words.take(label_starts[batch]).view(np.int64)

    work = delivering(epoch, checksum=in_any_order)
    return Work(work.once, work.check, lambda: {"record batches": float(len(pictures))})  # which hold the memory


class _Words:
    """So many words of 8 bytes from an address on, for NumPy."""

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {"data": (address, True), "shape": (size,), "typestr": "<u8", "version": 3}


def _pair(batch: Any) -> Any:
    return (batch["image"], batch["label"]) if isinstance(batch, dict) else batch


def _grain(folder: Path) -> Work:
    """As its guide says: a source with random access, shuffled, each record decoded, batched."""
    import grain

    def decoded(record: bytes) -> Any:
        return np.frombuffer(record, np.uint8, 784), np.frombuffer(record, np.int64, 1, 784)[0]

    source = grain.sources.ArrayRecordDataSource([str(folder / "rows.array_record")])
    dataset = grain.MapDataset.source(source).shuffle(seed=SEED).map(decoded).batch(BATCH).to_iter_dataset()
    return delivering(lambda: dataset, checksum=in_any_order)


def _datasets(folder: Path, kind: str) -> Work:
    """A mapped file of its own format, shuffled by indices."""
    import datasets

    dataset = datasets.Dataset.from_file(str(folder / "stream.arrow")).shuffle(seed=SEED).with_format(kind)

    def plain(batch: Any) -> Any:
        if kind == "numpy":
            return np.asarray(batch["image"], np.uint8), batch["label"]
        whole = batch["image"].combine_chunks()
        return whole.flatten().to_numpy().reshape(-1, 784), batch["label"].to_numpy()

    return delivering(lambda: dataset.iter(BATCH), plain=plain, checksum=in_any_order)
