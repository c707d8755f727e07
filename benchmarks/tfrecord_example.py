# SPDX-License-Identifier: Apache-2.0
"""How fast do TFRecord files of tf.train.Example become batches of columns?"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "4 TFRecord files, both checksums, Example (int64, float[64], bytes, int64 of varying length), batch(1024)"
FILES, BATCH, CHUNK = 4, 1024, 1 << 20

NOTES = """
`kernels alone` reads into one buffer of 4 MB; it checks, finds and decodes by the same compiled code on one thread, and has
Arrow make the bytes objects. It is our time without a pipeline that can be stopped, saved and combined. A third of it is the
copy out of the page cache, which is most of `read + crc32c`.
"""


def prepare(folder: Path, scale: float) -> None:
    """The files."""
    import distinput as di

    random = np.random.default_rng(SEED)
    each = scaled(25_000, scale, 700)
    for number in range(FILES):
        ids = random.integers(0, 2**40, each).tolist()
        vectors = random.standard_normal((each, 64), np.float32)
        with di.io.TFRecordWriter(folder / f"{number}.tfrecord") as writer:
            for row in range(each):
                name = random.bytes(int(random.integers(8, 24)))
                tags = random.integers(0, 50_000, int(random.integers(0, 16)))
                example = {"id": [ids[row]], "vector": vectors[row], "name": [name], "tags": tags}
                writer.write(di.io.encode_example(example))


def cases(folder: Path, scale: float) -> list[Case]:
    """Features of fixed length, and all of them with the varying one padded."""
    files = [str(folder / f"{number}.tfrecord") for number in range(FILES)]
    records = FILES * scaled(25_000, scale, 700)
    size = sum(Path(file).stat().st_size for file in files)
    return [_case(name, files, records, size, padded) for name, padded in (("fixed length", False), ("padded", True))]


def _case(name: str, files: list[str], records: int, size: int, padded: bool) -> Case:
    def ours() -> Work:
        import distinput as di

        fixed = di.io.FixedLenFeature
        features: dict[str, Any] = {
            "id": fixed([], "int64"),
            "vector": fixed([64], "float32"),
            "name": fixed([], "string"),
        }
        if padded:
            features["tags"] = di.io.VarLenFeature("int64")
        parsed = di.data.TFRecordDataset(files).parse_example(features)
        dataset = parsed.padded_batch(BATCH) if padded else parsed.batch(BATCH)
        return delivering(lambda: dataset.prefetch(di.data.AUTOTUNE))

    def tensorflow() -> Work:
        import tensorflow as tf

        fixed = tf.io.FixedLenFeature
        features = {"id": fixed([], tf.int64), "vector": fixed([64], tf.float32), "name": fixed([], tf.string)}
        if padded:
            features["tags"] = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
        dataset = (
            tf.data.TFRecordDataset(files)
            .batch(BATCH)
            .map(lambda batch: tf.io.parse_example(batch, features), tf.data.AUTOTUNE)
            .prefetch(tf.data.AUTOTUNE)
        )
        return delivering(lambda: dataset)

    return Case(
        name,
        {"record": records, "byte": size},
        [
            Contender("distinput", "ours", ours),
            Contender("read + crc32c", "limit", lambda: reading(files), reach=0.35),
            Contender("kernels alone", "limit", lambda: _by_kernels(files, padded)),
            Contender("tf.data", "peer", tensorflow, ("tensorflow",), 8.0, 10.0),
            Contender("Python loop + protobuf", "peer", lambda: _by_protobuf(files, padded), ("tensorflow",), 30.0),
        ],
    )


def _by_kernels(files: list[str], padded: bool) -> Work:
    """The compiled kernels one after the other on one thread, with all memory made before, and Arrow's objects of strings.

    Nothing can stop or be saved here, and no record may be damaged, long or lack a feature.
    """
    from distinput.columns.column import objects_between
    from distinput.kernels.checksums import scan_records
    from distinput.kernels.example_messages import locate_features
    from distinput.kernels.example_values import ANY, BYTES, FLOAT, INT64
    from distinput.kernels.spans import pad_spans

    rows = 8 * BATCH
    columns, places, size = [], [], 0
    for kind, number, each, room in ((INT64, 1, 8, 0), (FLOAT, 64, 4, 0), (BYTES, 1, 16, 32), (INT64, ANY, 16, 128)):
        columns += [kind, number, size, room * rows]
        places.append(size)
        size += (number * each if number != ANY else each) * rows + room * rows
    keys = (b"id", b"vector", b"name", b"tags")[: 4 if padded else 3]
    wanted = np.array(columns[: 4 * len(keys)])
    joined, ends = np.frombuffer(b"".join(keys), np.uint8), np.cumsum([0, *map(len, keys)])
    kinds, nowhere = np.empty(len(keys) * rows, np.uint8), np.empty(0, np.int64)
    outs = [np.empty(size, np.uint8) for _ in range(3)]  # a batch is in use while the next ones are made
    zero = np.zeros(8, np.uint8)

    def view(out: Any, key: int, dtype: str, *shape: int) -> Any:
        return np.ndarray(shape, dtype, out, places[key])

    def made(data: Any, starts: Any, sizes: Any, out: Any) -> Iterator[dict[str, Any]]:
        n = len(starts)
        # The layout is that of `rows` messages, so fewer of them are filled up with empty ones.
        more = np.zeros(rows - n, np.int64)
        starts, sizes = np.concatenate((starts, more)), np.concatenate((sizes, more))
        status, _ = locate_features(data, starts, sizes, joined, ends, wanted, kinds, nowhere, nowhere, out)
        if status:
            raise ValueError("a record is not as it should be")
        begins, lengths = view(out, 2, "i8", 2, rows)
        texts = out[places[2] + 16 * rows :]
        names = objects_between(texts, np.append(begins[:n], begins[n - 1] + lengths[n - 1]))
        for a in range(0, n, BATCH):
            b = min(a + BATCH, n)
            batch = {
                "id": view(out, 0, "i8", rows)[a:b],
                "vector": view(out, 1, "f4", rows, 64)[a:b],
                "name": names[a:b],
            }
            if padded:
                begins, lengths = view(out, 3, "i8", 2, rows)[:, a:b]
                values = out[places[3] + 16 * rows :]
                width = lengths.max(keepdims=True)
                batch["tags"] = np.empty((b - a, int(width[0])), np.int64)
                target = batch["tags"].reshape(-1).view(np.uint8)
                pad_spans(values, begins, lengths, np.array([b - a]), width, target, zero)
            yield batch

    def batches() -> Iterator[dict[str, Any]]:
        buffer, (starts, sizes) = np.empty(4 * CHUNK, np.uint8), np.empty((2, rows), np.int64)
        end, number = 0, 0
        for last, file in enumerate(files, 1 - len(files)):
            with open(file, "rb", buffering=0) as opened:
                while True:
                    read = opened.readinto(buffer[end:])  # type: ignore[arg-type]
                    end += read
                    at = 0
                    while True:
                        count, after, *_ = scan_records(buffer[:end], at, starts, sizes)
                        whole = count if not read and last == 0 else count // BATCH * BATCH
                        if not whole:
                            break
                        yield from made(buffer, starts[:whole], sizes[:whole], outs[number % 3])
                        number, at = number + 1, after if whole == count else int(starts[whole]) - 12
                    buffer[: end - at] = buffer[at:end].copy()
                    end -= at
                    if not read:
                        break

    return delivering(batches)


def _by_protobuf(files: list[str], padded: bool) -> Work:
    """Records read by a loop in Python, and parsed by protobuf's C code (upb) under Python's `tf.train.Example`."""
    import tensorflow as tf

    parse = tf.train.Example.FromString

    def made(examples: list[Any]) -> dict[str, Any]:
        features = [example.features.feature for example in examples]
        names = np.empty(len(features), object)
        names[:] = [each["name"].bytes_list.value[0] for each in features]
        batch = {
            "id": np.array([each["id"].int64_list.value[0] for each in features], np.int64),
            "vector": np.array([each["vector"].float_list.value for each in features], np.float32),
            "name": names,
        }
        if padded:
            rows: list[Any] = [each["tags"].int64_list.value for each in features]
            tags = batch["tags"] = np.zeros((len(rows), max(map(len, rows))), np.int64)
            for i, row in enumerate(rows):
                tags[i, : len(row)] = row
        return batch

    def batches() -> Iterator[dict[str, Any]]:
        examples: list[Any] = []
        for record in _records(files):
            examples.append(parse(record))
            if len(examples) == BATCH:
                yield made(examples)
                examples = []
        if examples:
            yield made(examples)

    return delivering(batches)


def _records(files: list[str]) -> Iterator[bytes]:
    """The records one by one, both checksums of each compared."""
    for file in files:
        with open(file, "rb") as opened:
            while header := opened.read(12):
                length, crc = struct.unpack("<QI", header)
                record = opened.read(length)
                if _masked(header[:8]) != crc or _masked(record) != int.from_bytes(opened.read(4), "little"):
                    raise ValueError(f"{file} is damaged")
                yield record


def _masked(data: bytes) -> int:
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def reading(files: list[str]) -> Work:
    """All bytes read into one small buffer and summed up."""
    buffer = np.empty(CHUNK, np.uint8)

    def once() -> None:
        for file in files:
            with open(file, "rb", buffering=0) as opened:
                checksum = 0
                while read := opened.readinto(buffer):  # type: ignore[arg-type]
                    checksum = google_crc32c.extend(checksum, buffer[:read])

    return Work(once)
