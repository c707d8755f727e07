# SPDX-License-Identifier: Apache-2.0
"""What do cases of other people's benchmarks cost: many small files read at a time, large batches, and TensorFlow's own?"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_any_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = (
    "100 TFRecord files of 10 records of 114 KB, two at a time; 200 such files of examples in batches of 20, as DLIO's "
    "resnet50 reads them; 64 rows of 512 KB in a batch of a shuffle; rows of 4 KB of Parquet and Arrow in a random order; "
    ".npz files of 8 MB, as its unet3d reads them; and the cases of TensorFlow's own benchmarks, beside a loop of Python and "
    "beside the engine alone"
)
_BY_TURNS = "take, into two arrays by turns"
FILES, RECORDS, RECORD_BYTES = 100, 10, 114_000
EXAMPLE_FILES, EXAMPLES = 200, 20
ROWS, ROW, BATCH, EPOCHS = 256, 1 << 16, 64, 8
VECTORS, VECTOR, FEW = 100_000, 1024, 24
VOLUMES, DEPTH, SIDE, VOLUME_BATCH = 24, 128, 256, 4


def prepare(folder: Path, scale: float) -> None:
    """The files of records, and those of examples."""
    import distinput as di

    record = np.random.default_rng(SEED).bytes(RECORD_BYTES)
    example = di.io.encode_example({"image": record, "size": 338})
    for count, word, each in ((FILES, "", record), (FILES, "uneven-", record), (EXAMPLE_FILES, "example-", example)):
        for file in range(scaled(count, scale, 2)):
            with di.io.TFRecordWriter(folder / f"{word}{file:03}.tfrecord") as writer:
                for _ in range(_records(word, file)):
                    writer.write(each)
    _write_vectors(folder, scaled(VECTORS, scale, 100))
    volumes = np.random.default_rng(SEED).integers(0, 256, (scaled(DEPTH, scale, 4), SIDE, SIDE), np.uint8)
    for number in range(VOLUMES):
        np.savez(folder / f"{number}.npz", x=np.roll(volumes, number))
    for columns in (4, 64):
        line = ",".join([f"{1.23456 + column:.4f}" for column in range(columns)])
        (folder / f"{columns}.csv").write_text(f"{line}\n" * 2000, encoding="utf-8")
    for place in range(16):
        names = folder / str(place) / "deep"
        names.mkdir(parents=True)
        for number in range(16):
            (names / f"{number}.txt").touch()


def _records(word: str, file: int) -> int:
    """How many records a file has: some have two more or less."""
    return RECORDS + (file % 5 - 2 if word == "uneven-" else 0)


def _read_by_hand(names: list[str]) -> Work:
    """Records of two files by turns: the kernel that checks them, memory that is made once, and nothing to stop or save."""
    from distinput.kernels.checksums import scan_records

    places = np.empty((2, 2 * RECORDS * RECORD_BYTES), np.uint8)
    starts, sizes = np.empty((2, 2 * RECORDS), np.int64)

    def records(name: str, place: Any) -> Iterator[bytes]:
        with Path(name).open("rb", 0) as file:
            count = scan_records(place[: file.readinto(place)], 0, starts, sizes)[0]
        for start, size in zip(starts[:count].tolist(), sizes[:count].tolist(), strict=True):
            yield place[start : start + size].tobytes()

    def by_turns() -> Iterator[bytes]:
        left = iter(names)
        slots = deque([(records(next(left), place), place) for place in places])
        while slots:
            reading, place = slots.popleft()
            record = next(reading, None)
            if record is not None:
                yield record
            elif (name := next(left, None)) is not None:
                reading = records(name, place)
            else:
                continue
            slots.append((reading, place))

    return delivering(by_turns, checksum=in_any_order, plain=_bytes)


def _parsed_by_hand(names: list[str]) -> Work:
    """Batches of whole files: a thread reads, checks and finds what is in them, while bytes are made of those before.

    The kernels are ours, the memory is made once, and there is nothing to stop or save.
    """
    from distinput.kernels.checksums import scan_records
    from distinput.kernels.example_messages import locate_features
    from distinput.kernels.example_values import INT64

    keys, ends = np.frombuffer(b"imagesize", np.uint8), np.array([0, 5, 9])
    wanted, places = np.array([0, -1, 0, 0, INT64, 1, 0, 0]), np.empty((4, 2 * EXAMPLES * RECORD_BYTES), np.uint8)
    together = EXAMPLES // RECORDS

    def read(number: int) -> tuple[Any, Any, Any, Any]:
        place, end = places[number % len(places)], 0
        for name in names[number * together : (number + 1) * together]:
            with Path(name).open("rb", 0) as file:
                end += file.readinto(place[end:])
        (starts, sizes, begins, lengths), out = np.empty((4, EXAMPLES), np.int64), np.empty(8 * EXAMPLES, np.uint8)
        count, after, *_ = scan_records(place[:end], 0, starts, sizes)
        kinds = np.empty(2 * EXAMPLES, np.uint8)
        found = locate_features(place, starts, sizes, keys, ends, wanted, kinds, begins, lengths, out)
        if (count, after, *found) != (EXAMPLES, end, 0, 0):
            raise ValueError("a record is not as it should be")
        return place, begins, begins + lengths, out.view(np.int64)

    def value(place: Any, at: int, end: int) -> bytes:
        """The only value of a list of bytes: a tag, a varint, and so many bytes."""
        size, shift, at = 0, 0, at + 1
        while True:
            byte = int(place[at])
            size, shift, at = size | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                break
        if at + size != end:
            raise ValueError("a list of several values")
        return place[at:end].tobytes()  # type: ignore[no-any-return]

    def batch(place: Any, begins: Any, stops: Any, numbers: Any) -> dict[str, Any]:
        images = np.empty(EXAMPLES, object)
        images[:] = [value(place, at, end) for at, end in zip(begins.tolist(), stops.tolist(), strict=True)]
        return {"image": images, "size": numbers}

    def batches() -> Iterator[dict[str, Any]]:
        with ThreadPoolExecutor(1) as pool:
            ahead: deque[Any] = deque()
            for number in range(len(names) // together):
                ahead.append(pool.submit(read, number))
                if len(ahead) == len(places) - 1:
                    yield batch(*ahead.popleft().result())
            while ahead:
                yield batch(*ahead.popleft().result())

    return delivering(batches, checksum=in_any_order, plain=_images)


def _write_vectors(folder: Path, rows: int) -> None:
    """Rows of 4 KB as pyarrow writes them: one row group of Parquet, and record batches of Arrow."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    vectors = pa.array(np.random.default_rng(SEED).random(rows * VECTOR, np.float32))
    table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(vectors, VECTOR)})
    parquet.write_table(table, folder / "vectors.parquet", row_group_size=rows)
    with ipc.new_file(folder / "vectors.arrow", table.schema) as writer:
        writer.write_table(table)


def cases(folder: Path, scale: float) -> list[Case]:
    """The files two at a time, beside the same in turn; the examples; the batches; and rows in a random order."""
    row = scaled(ROW, scale, 1024)

    def files(word: str) -> Case:
        numbers = range(scaled(FILES, scale, 2))
        names = [str(folder / f"{word}{file:03}.tfrecord") for file in numbers]
        records = sum([_records(word, file) for file in numbers])

        def read(module: str, reads: int | None) -> Work:
            dataset: Any = _data(module).TFRecordDataset(names, num_parallel_reads=reads)
            return delivering(lambda: dataset, checksum=in_any_order, plain=_bytes)

        return Case(
            f"num_parallel_reads=2{', files that differ' if word else ''}",
            {"record": records, "byte": records * RECORD_BYTES},
            [
                Contender("distinput", "ours", lambda: read("distinput", 2)),
                Contender("in turn", "limit", lambda: read("distinput", None), reach_cpu=0.95),
                Contender("by hand, two at a time", "limit", lambda: _read_by_hand(names)),
                Contender("tf.data", "peer", lambda: read("tensorflow", 2), ("tensorflow",), 1.2),
            ],
        )

    examples = [str(folder / f"example-{file:03}.tfrecord") for file in range(scaled(EXAMPLE_FILES, scale, 2))]

    def parsed() -> Work:
        import distinput as di

        features = {"image": di.io.FixedLenFeature([], "string"), "size": di.io.FixedLenFeature([], "int64")}
        batches: Any = di.data.TFRecordDataset(examples).batch(EXAMPLES, drop_remainder=True)
        return delivering(lambda: batches.parse_example(features).prefetch(2), checksum=in_any_order, plain=_images)

    def parsed_by_tensorflow() -> Work:
        import tensorflow as tf

        features = {"image": tf.io.FixedLenFeature([], tf.string), "size": tf.io.FixedLenFeature([], tf.int64)}
        batches = tf.data.TFRecordDataset(examples, num_parallel_reads=2).batch(EXAMPLES, drop_remainder=True)
        made = batches.map(lambda each: tf.io.parse_example(each, features), num_parallel_calls=2).prefetch(2)
        return delivering(lambda: made, checksum=in_any_order, plain=_images)

    def batches(module: str) -> Work:
        rows = np.random.default_rng(SEED).random((ROWS, row))
        dataset: Any = _data(module).Dataset.from_tensor_slices(rows).shuffle(ROWS).repeat(EPOCHS).batch(BATCH)
        return delivering(lambda: dataset, checksum=in_any_order)

    def vectors(kind: str, *others: Contender) -> Case:
        def shuffled() -> Work:
            import distinput as di

            source = di.data.ParquetDataset if kind == "Parquet" else di.data.ArrowDataset
            batches: Any = source(str(folder / f"vectors.{kind.lower()}")).global_shuffle(seed=SEED).batch(FEW)
            return delivering(lambda: batches, checksum=in_any_order, plain=_vector)

        return Case(
            f"global_shuffle of 4 KB rows of {kind}, batch({FEW})",
            {"row": scaled(VECTORS, scale, 100)},
            [
                Contender("distinput", "ours", shuffled),
                *others,
                Contender("LanceDB", "peer", lambda: _shuffled_by_lancedb(folder), ("lancedb",), 5.0),
            ],
        )

    return [
        files(""),
        files("uneven-"),
        Case(
            "examples of 114 KB, batch(20), 2 threads",
            {"example": len(examples) * RECORDS, "byte": len(examples) * RECORDS * RECORD_BYTES},
            [
                Contender("distinput", "ours", parsed),
                Contender("by hand, read ahead", "limit", lambda: _parsed_by_hand(examples)),
                Contender("tf.data", "peer", parsed_by_tensorflow, ("tensorflow",), 1.2),
            ],
        ),
        Case(
            "shuffle().repeat().batch(64), 32 MB",
            {"batch": ROWS * EPOCHS // BATCH, "byte": ROWS * EPOCHS * row * 8},
            [
                Contender("distinput", "ours", lambda: batches("distinput")),
                Contender(_BY_TURNS, "limit", lambda: _gathered(ROWS, row, BATCH, ROWS * EPOCHS // BATCH), reach=0.8),
                Contender("tf.data", "peer", lambda: batches("tensorflow"), ("tensorflow",), 1.0, 1.0),
            ],
        ),
        Case(
            "npz of 8 MB, batch(4), 2 threads",
            {"file": VOLUMES},
            [
                Contender("distinput", "ours", lambda: _volumes(folder)),
                Contender("DataLoader, 2 workers", "peer", lambda: _loaded_volumes(folder), ("torch",), 1.3),
            ],
        ),
        vectors(
            "Parquet",
            Contender("pyarrow, all decoded once", "limit", lambda: _taken_from_memory(folder)),
            Contender("pyarrow by hand", "peer", lambda: _taken_by_hand(folder), ("pyarrow",), 5.0),
        ),
        vectors("Arrow"),
        *[_short(name, make, scaled(count, scale, 8), folder) for name, (make, count) in SHORT.items()],
    ]


# ---- TensorFlow's own benchmarks (tensorflow/python/data): (tf.data or ours, elements, a folder) -> a dataset ----------------


def _repeated(data: Any, *values: Any) -> Any:
    """The same element again and again."""
    return data.Dataset.from_tensors(values if len(values) > 1 else values[0]).repeat()


def _rows(data: Any) -> Any:
    return data.Dataset.from_tensor_slices(np.random.default_rng(SEED).standard_normal((1000, 10, 10)))


def _added(dataset: Any, amount: int, times: int) -> Any:
    for _ in range(times):
        dataset = dataset.map(lambda x: x + amount)
    return dataset


def _turns(data: Any, cycle: int, calls: int | None = None) -> Any:
    ranges = data.Dataset.range(1).repeat()
    return ranges.interleave(lambda _: data.Dataset.range(100), cycle_length=cycle, num_parallel_calls=calls)


def _resampled(data: Any) -> Any:
    classes = data.Dataset.from_tensor_slices(np.random.default_rng(SEED).choice(4, 10_000)).repeat()
    return classes.rejection_resample(lambda x: x, [0.1, 0.2, 0.3, 0.4], [0.25] * 4, seed=SEED)


def _cells(data: Any, folder: Path, columns: int) -> Any:
    return data.experimental.CsvDataset(str(folder / f"{columns}.csv"), [np.float32] * columns).repeat()


def _names(data: Any, folder: Path) -> Any:
    return data.Dataset.list_files([str(folder / str(place) / "deep" / "*.txt") for place in range(16)], shuffle=False)


def _snapshot(data: Any, folder: Path) -> Any:
    rows = data.Dataset.from_tensor_slices(np.zeros((2000, 128), np.float32))
    return rows.snapshot(str(folder / f"snapshot-{os.getpid()}"))


_LARGE = "from_tensors(64K).repeat().batch(64)"

SHORT: dict[str, tuple[Callable[[Any, Path], Any], int]] = {
    "range": (lambda data, _: data.Dataset.range(10**9), 50_000),
    "prefetch(5)": (lambda data, _: data.Dataset.range(10**9).prefetch(5), 50_000),
    "filter of one value": (lambda data, _: _repeated(data, True).filter(lambda x: x), 20_000),
    "map": (lambda data, _: _added(data.Dataset.range(10**9), 1, 1), 10_000),
    "10 maps": (lambda data, _: _added(data.Dataset.range(10**9), 1, 10), 10_000),
    "map with a fan-out of 20": (lambda data, _: _repeated(data, *range(20)).map(_same), 5000),
    "5 maps, filter": (lambda data, _: _added(_repeated(data, 5), 5, 5).filter(lambda x: x > -1), 5000),
    "from_tensors(1024).repeat().batch(8)": (lambda data, _: _repeated(data, _random(1 << 10)).batch(8), 4096),
    _LARGE: (lambda data, _: _repeated(data, _random(1 << 16)).batch(64), 32),
    "from_tensor_slices, repeat(10)": (lambda data, _: _rows(data).repeat(10), 10_000),
    "from_tensor_slices, repeat(10), batch(100)": (lambda data, _: _rows(data).repeat(10).batch(100), 100),
    "batch(100), cache, repeat(10)": (lambda data, _: _rows(data).batch(100).cache().repeat(10), 100),
    "unbatch": (lambda data, _: _repeated(data, np.zeros((64, 100), np.float32)).unbatch(), 20_000),
    "10 rows, map, batch(4), repeated": (
        lambda data, _: _added(data.Dataset.from_tensor_slices(np.arange(10.0)), 1, 1).batch(4).repeat(),
        3000,
    ),
    "interleave, a cycle of 1": (lambda data, _: _turns(data, 1), 20_000),
    "interleave, a cycle of 10 in parallel": (lambda data, _: _turns(data, 10, 10), 20_000),
    "interleave, a cycle of 1000": (lambda data, _: _turns(data, 1000), 100_000),
    "interleave, a cycle of 1000 in parallel": (lambda data, _: _turns(data, 1000, 1000), 20_000),
    "rejection_resample": (lambda data, _: _resampled(data), 5000),
    "CSV, 4 columns": (lambda data, folder: _cells(data, folder, 4), 10_000),
    "CSV, 64 columns": (lambda data, folder: _cells(data, folder, 64), 4000),
    "list_files, 16 folders": (_names, 256),
    "snapshot, read": (_snapshot, 2000),
}
"""By the name of the case; the datasets are cut to these numbers of elements."""


def _short(name: str, make: Callable[[Any, Path], Any], count: int, folder: Path) -> Case:
    def dataset(module: str) -> Any:
        elements = make(_data(module), folder).take(count)
        if name == "snapshot, read":
            for _ in elements:  # which writes it
                pass
        return elements

    def work(module: str) -> Work:
        elements = dataset(module)
        plain = np.shape if name == "rejection_resample" else None  # which draws as it likes
        return delivering(lambda: elements, plain=plain)

    def engine() -> Work:
        """TensorFlow's own way to time it: all elements are made, and the last one is handed to Python."""
        last = dataset("tensorflow").skip(count - 1)

        def once() -> Any:
            iterator = iter(last)
            next(iterator)
            return iterator

        return Work(once)

    large = [Contender(_BY_TURNS, "limit", lambda: _gathered(1, 1 << 16, 64, count), reach=0.8)]
    return Case(
        f"TensorFlow's: {name}",
        {"element": count},
        [
            Contender("distinput", "ours", lambda: work("distinput")),
            *(large if name == _LARGE else []),
            Contender("tf.data", "peer", lambda: work("tensorflow"), ("tensorflow",), 1.0, 1.0),
            Contender("tf.data, its engine alone", "peer", engine, ("tensorflow",), 1 / 3),
        ],
    )


def _gathered(rows: int, width: int, batch: int, count: int) -> Work:
    """What one core can do: rows copied into two arrays by turns, whose pages are there."""
    source, outs = _random(rows * width).reshape(rows, width), np.zeros((2, batch, width))
    numbers = np.random.default_rng(SEED).integers(0, rows, (count, batch))

    def once() -> None:
        for index, some in enumerate(numbers):
            source.take(some, 0, outs[index % 2], "clip")

    return Work(once)


def _random(count: int) -> Any:
    return np.random.default_rng(SEED).random(count)


def _taken_by_hand(folder: Path) -> Work:
    """Each batch taken from the row group that holds it, read for it as there is no other way by pyarrow's interface."""
    from pyarrow import parquet

    rows = parquet.read_metadata(folder / "vectors.parquet").num_rows
    order = np.random.default_rng(SEED).permutation(rows)
    share = min(1.0, 4 * FEW / rows)

    def batches() -> Any:
        for first in range(0, int(rows * share), FEW):
            with parquet.ParquetFile(folder / "vectors.parquet") as file:
                yield file.read_row_group(0).take(order[first : first + FEW]).column(0).combine_chunks().flatten()

    return Work(lambda: [len(each) for each in batches()], share=int(rows * share) / rows)


def _taken_from_memory(folder: Path) -> Work:
    """The file decoded whole in each pass, which takes memory for all of it, and each batch taken from it."""
    from pyarrow import parquet

    def batches() -> Iterator[Any]:
        vectors = parquet.read_table(folder / "vectors.parquet").column(0).combine_chunks()
        order = np.random.default_rng(SEED).permutation(len(vectors))
        for first in range(0, len(order), FEW):
            yield _matrix(vectors.take(order[first : first + FEW]))

    return delivering(batches, checksum=in_any_order)


def _shuffled_by_lancedb(folder: Path) -> Work:
    """Its permutations, in batches of Arrow."""
    import lancedb
    import pyarrow as pa
    from lancedb.permutation import Permutation, permutation_builder
    from pyarrow import ipc

    rows = ipc.open_file(pa.memory_map(str(folder / "vectors.arrow"))).read_all()
    table = lancedb.connect(folder / f"lance-{os.getpid()}").create_table("vectors", rows, mode="overwrite")
    order = permutation_builder(table).shuffle(seed=SEED).execute()
    shuffled = Permutation.from_tables(table, order).with_format("arrow")
    return delivering(lambda: shuffled.iter(FEW), checksum=in_any_order, plain=lambda batch: _matrix(batch.column(0)))


def _matrix(vectors: Any) -> Any:
    return vectors.flatten().to_numpy().reshape(-1, VECTOR)


def _volume(path: Any) -> Any:
    with np.load(path.decode() if isinstance(path, bytes) else path) as archive:
        return archive["x"]


def _volumes(folder: Path) -> Work:
    import distinput as di

    names = di.data.Dataset.from_tensor_slices([str(folder / f"{number}.npz") for number in range(VOLUMES)])
    batches = names.map(_volume, num_parallel_calls=2).batch(VOLUME_BATCH).prefetch(2)
    return delivering(lambda: batches)


class _Volumes:
    """A map-style dataset of PyTorch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __len__(self) -> int:
        return VOLUMES

    def __getitem__(self, number: int) -> Any:
        return _volume(self.folder / f"{number}.npz")


def _loaded_volumes(folder: Path) -> Work:
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(_Volumes(folder), VOLUME_BATCH, num_workers=2)
    return delivering(lambda: loader)


def _vector(batch: Any) -> Any:
    return batch["vector"]


def _same(*values: Any) -> Any:
    return values


def _data(module: str) -> Any:
    if module == "tensorflow":
        import tensorflow as tf

        return tf.data
    import distinput as di

    return di.data


def _bytes(record: Any) -> Any:
    return np.frombuffer(record if isinstance(record, bytes) else record.numpy(), np.uint8)


def _images(batch: Any) -> Any:
    images = batch["image"]
    found = images if isinstance(images, np.ndarray) else images.numpy()
    return np.frombuffer(b"".join(found.tolist()), np.uint8)
