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
            Contender("read + crc32c", "limit", lambda: _reading(files), reach=0.35),
            Contender("tf.data", "peer", tensorflow, ("tensorflow",), 8.0, 10.0),
            Contender("Python loop + protobuf", "peer", lambda: _by_protobuf(files, padded), ("tensorflow",), 30.0),
        ],
    )


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


def _reading(files: list[str]) -> Work:
    """All bytes read into one small buffer and summed up."""
    buffer = np.empty(CHUNK, np.uint8)

    def once() -> None:
        for file in files:
            with open(file, "rb", buffering=0) as opened:
                checksum = 0
                while read := opened.readinto(buffer):  # type: ignore[arg-type]
                    checksum = google_crc32c.extend(checksum, buffer[:read])

    return Work(once)
