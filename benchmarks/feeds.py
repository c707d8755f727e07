# SPDX-License-Identifier: Apache-2.0
"""What does it cost to feed PyTorch, JAX and Keras, beside the loaders that they bring along?"""

import os
import struct
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_any_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "tensors of PyTorch, arrays on 8 virtual CPU devices of JAX and batches of Keras, from files and from memory"
NOTES = """
`DataLoader` is used as its guide shows it: it parses records and collates them one by one, in this process or in two others
that take every second file. Protobuf's C code parses its examples. Only distinput compares the checksums of records. Batches
of JAX lie on all devices with a `NamedSharding`; `device_put` alone is the limit. A hand-over is a step whose batch, a few
bytes, is ready: it measures the call and nothing else.
"""
BATCH, WIDTH, FILES = 256, 64, 4
TEXTS = 2048
DEVICES, ROWS = 8, 8192
"""8192 rows of 256 float32 are 8 MiB."""
FLAG = "--xla_force_host_platform_device_count"
TORCH, JAX, GRAIN, HUGGING_FACE = ("torch",), ("jax",), ("jax", "grain"), ("jax", "datasets")
PROTOBUF = ("torch", "google")


def prepare(folder: Path, scale: float) -> None:
    """The same rows as TFRecord files of examples and as Parquet files."""
    from pyarrow import parquet, table

    import distinput as di

    features, labels = _rows(_records(scale))
    for number in range(FILES):
        mine = slice(number, None, FILES)
        with di.io.TFRecordWriter(folder / f"{number}.tfrecord") as writer:
            for row, label in zip(features[mine], labels[mine].tolist(), strict=True):
                writer.write(di.io.encode_example({"x": row, "y": [label]}))
        columns = {f"x{i}": features[mine, i] for i in range(16)}
        parquet.write_table(
            table(columns | {"y": labels[mine]}), folder / f"{number}.parquet", row_group_size=4 * BATCH
        )


def _records(scale: float) -> int:
    return scaled(40_000, scale, 600)


def _rows(count: int) -> tuple[Any, Any]:
    """Features [count, 64] and labels [count]."""
    random = np.random.default_rng(SEED)
    return random.standard_normal((count, WIDTH), np.float32), random.integers(0, 10, count)


def cases(folder: Path, scale: float) -> list[Case]:
    """PyTorch from TFRecord, Parquet and memory; JAX from memory; Keras; and hand-overs."""
    records = _records(scale)
    steps = scaled(40, scale, 2)
    units = {"record": records}
    examples = [str(folder / f"{number}.tfrecord") for number in range(FILES)]
    tables = [str(folder / f"{number}.parquet") for number in range(FILES)]
    return [
        Case(
            "PyTorch, TFRecord",
            units,
            [
                Contender("distinput", "ours", lambda: _torch(partial(_parsed, examples))),
                Contender("DataLoader", "peer", lambda: _loader(_Examples(examples)), PROTOBUF, 5.0),
                Contender("DataLoader, 2 workers", "peer", lambda: _loader(_Examples(examples), 2), PROTOBUF, 5.0),
            ],
        ),
        Case(
            "PyTorch, Parquet",
            units,
            [
                Contender("distinput", "ours", lambda: _torch(partial(_columns, tables))),
                Contender("DataLoader, row by row", "peer", lambda: _loader(_Tables(tables)), TORCH, 5.0),
                Contender("DataLoader, 2 workers", "peer", lambda: _loader(_Tables(tables), 2), TORCH, 5.0),
            ],
        ),
        Case(
            "PyTorch, memory",
            units,
            [
                Contender("distinput", "ours", lambda: _torch(partial(_slices, records))),
                Contender("distinput, 2 workers", "peer", lambda: _torch(partial(_slices, records), 2), TORCH),
                Contender("DataLoader, TensorDataset", "peer", lambda: _tensors(records), TORCH, 5.0),
                Contender("DataLoader, 2 workers", "peer", lambda: _tensors(records, 2), TORCH, 5.0),
            ],
        ),
        Case(
            "PyTorch, text",
            units,
            [
                Contender("distinput", "ours", lambda: _texts(records)),
                Contender("bytes objects, joined by hand", "peer", lambda: _joined_texts(records), TORCH, 2.0),
            ],
        ),
        Case(
            f"JAX, rows onto {DEVICES} devices",
            {"batch": steps, "byte": steps * ROWS * 1024},
            [
                Contender("distinput", "ours", lambda: _jax(_wide(steps), rows=True)),
                Contender("grain, device_put", "peer", lambda: _grain(steps), GRAIN),
                Contender("datasets, device_put", "peer", lambda: _hugging_face(steps), HUGGING_FACE),
            ],
        ),
        Case(
            f"JAX, batches onto {DEVICES} devices",
            {"batch": steps, "byte": steps * ROWS * 1024},
            [
                Contender("distinput", "ours", lambda: _jax(_wide(steps), rows=False)),
                Contender("device_put", "limit", lambda: _device_put(_wide(steps)), JAX, reach=0.9),
            ],
        ),
        Case(
            "Keras, predict",
            units,
            [
                Contender("distinput", "ours", lambda: _keras(partial(_ours_for_keras, examples, records))),
                Contender(
                    "PyDataset",
                    "peer",
                    lambda: _keras(partial(_theirs_for_keras, examples)),
                    ("keras", "jax", "google"),
                    5.0,
                ),
            ],
        ),
        Case(
            "hand-over, PyTorch",
            {"step": scaled(20_000, scale, 200)},
            [Contender("distinput", "ours", lambda: _steps_torch(scaled(20_000, scale, 200)), most={"seconds": 30e-6})],
        ),
        Case(
            "hand-over, JAX",
            {"step": scaled(5_000, scale, 200)},
            [
                Contender("distinput", "ours", lambda: _steps_jax(scaled(5_000, scale, 200))),
                Contender("device_put", "limit", lambda: _steps_device_put(scaled(5_000, scale, 200)), JAX),
            ],
        ),
    ]


# ---- PyTorch


def _torch(dataset: Callable[[], Any], workers: int = 0) -> Work:
    from torch.utils.data import DataLoader

    import distinput as di

    # Processes of a loader are begun for each pass, as those of the peers are.
    view = di.interop.torch.IterableView(dataset(), rank=0, world_size=1)
    loader: Any = DataLoader(view, batch_size=None, num_workers=workers)
    return delivering(lambda: loader, checksum=in_any_order)


def _parsed(files: list[str]) -> Any:
    import distinput as di

    features = {"x": di.io.FixedLenFeature([WIDTH], "float32"), "y": di.io.FixedLenFeature([], "int64")}
    return di.data.TFRecordDataset(files).batch(BATCH).parse_example(features).prefetch(di.data.AUTOTUNE)


def _columns(files: list[str]) -> Any:
    import distinput as di

    return di.data.ParquetDataset(files).batch(BATCH).prefetch(di.data.AUTOTUNE)


def _slices(count: int) -> Any:
    import distinput as di

    features, labels = _rows(count)
    return di.data.Dataset.from_tensor_slices({"x": features, "y": labels}).batch(BATCH)


def _texts(count: int) -> Work:
    import distinput as di

    dataset = di.data.Dataset.from_tensor_slices(_words(count)).batch(TEXTS).as_uint8()
    loader = di.interop.torch.Loader(dataset, rank=0, world_size=1)
    return delivering(lambda: loader, plain=_parts)


def _parts(texts: Any) -> Any:
    return texts.values(), texts.offsets()


def _joined_texts(count: int) -> Work:
    """What a program does that gets the bytes objects of a batch."""
    import torch

    import distinput as di

    batches: Any = di.data.Dataset.from_tensor_slices(_words(count)).batch(TEXTS)

    def tensors() -> Iterator[Any]:
        for batch in batches:
            texts = batch.tolist()
            offsets = torch.tensor([0, *accumulate(map(len, texts))])
            numbers = torch.frombuffer(bytearray(b"".join(texts)), dtype=torch.uint8)
            yield torch.nested.nested_tensor_from_jagged(numbers, offsets)

    return delivering(tensors, plain=_parts)


def _words(count: int) -> Any:
    """Texts of 0 to 200 letters, in a column of Arrow."""
    import pyarrow as pa

    sizes = np.random.default_rng(SEED).integers(0, 200, count)
    return pa.array([b"x" * size for size in sizes.tolist()], pa.binary())


def _loader(dataset: Any, workers: int = 0) -> Work:
    from torch.utils.data import DataLoader

    loader: Any = DataLoader(_iterable(dataset), BATCH, num_workers=workers)
    return delivering(lambda: loader, checksum=in_any_order)


def _iterable(rows: Any) -> Any:
    """Rows as an iterable dataset of PyTorch's; its workers take a file each in turn."""
    from torch.utils.data import IterableDataset, get_worker_info

    class Rows(IterableDataset):  # type: ignore[misc]  # torch may be missing
        def __iter__(self) -> Iterator[Any]:
            info = get_worker_info()
            yield from rows.of(rows.files[info.id :: info.num_workers] if info else rows.files)

    return Rows()


class _Examples:
    """Rows of TFRecord files, parsed one by one."""

    def __init__(self, files: list[str]) -> None:
        self.files = files

    def of(self, files: list[str]) -> Iterator[dict[str, Any]]:
        """The rows of these files."""
        parse = example_class().FromString
        for file in files:
            for record in records_of(file):
                yield row_of(parse(record))


class _Tables:
    """Rows of Parquet files, one by one."""

    def __init__(self, files: list[str]) -> None:
        self.files = files

    def of(self, files: list[str]) -> Iterator[dict[str, Any]]:
        """The rows of these files."""
        from pyarrow.parquet import ParquetFile

        for file in files:
            for batch in ParquetFile(file).iter_batches(4096):
                columns = {
                    name: column.to_numpy() for name, column in zip(batch.schema.names, batch.columns, strict=True)
                }
                for i in range(batch.num_rows):
                    yield {name: column[i] for name, column in columns.items()}


def _tensors(count: int, workers: int = 0) -> Work:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    features, labels = _rows(count)
    dataset = TensorDataset(torch.from_numpy(features), torch.from_numpy(labels))
    loader: Any = DataLoader(dataset, BATCH, num_workers=workers)
    return delivering(lambda: loader, checksum=in_any_order)


def records_of(file: str) -> Iterator[bytes]:
    """The records of a TFRecord file; their checksums are passed over."""
    with open(file, "rb") as opened:
        while header := opened.read(12):
            yield opened.read(struct.unpack("<Q", header[:8])[0])
            opened.read(4)


def row_of(example: Any) -> dict[str, Any]:
    """A parsed example as a loader wants it."""
    features = example.features.feature
    return {
        "x": np.array(features["x"].float_list.value, np.float32),
        "y": np.int64(features["y"].int64_list.value[0]),
    }


def example_class() -> Any:
    """`tf.train.Example` of protobuf's C code, without TensorFlow: its fields are from the public example.proto."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="feeds", syntax="proto3")
    for name, kind in (
        ("BytesList", field.TYPE_BYTES),
        ("FloatList", field.TYPE_FLOAT),
        ("Int64List", field.TYPE_INT64),
    ):
        file.message_type.add(name=name).field.add(name="value", number=1, type=kind, label=field.LABEL_REPEATED)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("bytes_list", "float_list", "int64_list"), start=1):
        of = "." + "feeds." + name.title().replace("_", "")
        feature.field.add(
            name=name, number=number, type=field.TYPE_MESSAGE, type_name=of, label=field.LABEL_OPTIONAL, oneof_index=0
        )
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    entry.field.add(
        name="value", number=2, type=field.TYPE_MESSAGE, type_name=".feeds.Feature", label=field.LABEL_OPTIONAL
    )
    inner = ".feeds.Features.FeatureEntry"
    features.field.add(name="feature", number=1, type=field.TYPE_MESSAGE, type_name=inner, label=field.LABEL_REPEATED)
    file.message_type.add(name="Example").field.add(
        name="features", number=1, type=field.TYPE_MESSAGE, type_name=".feeds.Features", label=field.LABEL_OPTIONAL
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("feeds.Example"))


# ---- JAX


def _wide(steps: int) -> Any:
    """Batches of 8 MiB, [steps, 8192, 256], at an address that JAX takes without a copy."""
    size = steps * ROWS * 256
    memory = np.empty(size + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4
    made = memory[start : start + size].reshape(steps, ROWS, 256)
    made[:] = np.random.default_rng(SEED).standard_normal((ROWS, 256), np.float32)
    made[:, 0, 0] = np.arange(steps)
    return made


def _sharding() -> Any:
    if FLAG not in os.environ.get("XLA_FLAGS", ""):  # read by JAX before its first computation
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}={DEVICES}".strip()
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    return NamedSharding(jax.make_mesh((DEVICES,), ("data",)), PartitionSpec("data"))


def _ready(batches: Callable[[], Any]) -> Work:
    """Each batch is waited for when the next one has been asked for, as a step that computes would."""
    import jax

    def pass_over() -> Iterator[Any]:
        before: Any = None
        for batch in batches():
            if before is not None:
                yield jax.block_until_ready(before)
            before = batch
        if before is not None:
            yield jax.block_until_ready(before)

    return delivering(pass_over, plain=np.asarray, checksum=in_any_order)


def _jax(wide: Any, *, rows: bool) -> Work:
    sharding = _sharding()
    import distinput as di

    source = di.data.Dataset.from_tensor_slices
    dataset = source(wide.reshape(-1, 256)).batch(ROWS) if rows else source(wide)
    return _ready(lambda: (batch for batch, _ in di.interop.jax.batches(dataset, sharding, tail="pad")))


def _device_put(wide: Any) -> Work:
    sharding = _sharding()
    import jax

    return _ready(lambda: (jax.device_put(batch, sharding) for batch in wide))


def _grain(steps: int) -> Work:
    sharding = _sharding()
    import grain.python as grain
    import jax

    dataset = grain.MapDataset.source(_wide(steps).reshape(-1, 256)).batch(ROWS).to_iter_dataset()
    return _ready(lambda: (jax.device_put(batch, sharding) for batch in dataset))


def _hugging_face(steps: int) -> Work:
    sharding = _sharding()
    import datasets
    import jax

    rows: Any = _wide(steps).reshape(-1, 256)
    features = datasets.Features({"x": datasets.Array2D((1, 256), "float32")})
    dataset = datasets.Dataset.from_dict({"x": rows[:, None]}, features=features).with_format("numpy")
    return _ready(lambda: (jax.device_put(batch["x"][:, 0], sharding) for batch in dataset.iter(ROWS)))


# ---- Keras


def _keras(data: Callable[[], Any]) -> Work:
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras

    model = keras.Sequential([keras.Input([WIDTH]), keras.layers.Dense(4, kernel_initializer="ones")])
    given = data()

    def once() -> Any:
        return model.predict(given, verbose=0)

    return Work(once, lambda: in_any_order([np.round(once(), 3)]))


def _ours_for_keras(files: list[str], records: int) -> Any:
    import distinput as di

    batches = -(-records // BATCH)  # files of records do not say how many they have
    counted = _parsed(files).apply(di.data.experimental.assert_cardinality(batches))
    return di.interop.keras.Sequence(counted.map(lambda batch: batch["x"]))


def _theirs_for_keras(files: list[str]) -> Any:
    import keras

    kept = [record for file in files for record in records_of(file)]

    class Examples(keras.utils.PyDataset):  # type: ignore[misc]  # keras may be missing
        """Examples that are in memory, parsed when their batch is asked for."""

        def __len__(self) -> int:
            return -(-len(kept) // BATCH)

        def __getitem__(self, index: int) -> tuple[Any]:
            parse = example_class_once().FromString
            return (np.stack([row_of(parse(record))["x"] for record in kept[index * BATCH : (index + 1) * BATCH]]),)

    example_class_once = partial(_first, [])
    return Examples()


def _first(made: list[Any]) -> Any:
    """The class of examples, made once."""
    if not made:
        made.append(example_class())
    return made[0]


# ---- steps whose batch is there already


def _steps_torch(count: int) -> Work:
    from torch.utils.data import DataLoader

    import distinput as di

    view = di.interop.torch.IterableView(di.data.Dataset.from_tensor_slices(_small(count)), rank=0, world_size=1)
    loader: Any = DataLoader(view, batch_size=None)
    return delivering(lambda: loader)


def _small(count: int) -> Any:
    return np.zeros((count, 8), np.float32)


def _steps_jax(count: int) -> Work:
    sharding = _sharding()
    import distinput as di

    dataset = di.data.Dataset.from_tensor_slices(_small(count))
    return delivering(lambda: (batch for batch, _ in di.interop.jax.batches(dataset, sharding)), plain=np.asarray)


def _steps_device_put(count: int) -> Work:
    sharding = _sharding()
    import jax

    small = _small(count)
    return delivering(lambda: (jax.device_put(batch, sharding) for batch in small), plain=np.asarray)
