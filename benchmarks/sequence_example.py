# SPDX-License-Identifier: Apache-2.0
"""How fast do tf.train.SequenceExample records become columns?"""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "SequenceExample records (an id, 5 to 40 steps of a number, of 8 floats and of a word), padded_batch(256)"
NOTES = """
`steps` is the mean number of steps in each list of a record. Every contender pads the steps of a batch to its longest
record. The kernels alone find and decode the same lists in blocks of messages that are in memory.
"""
BATCH, WIDTH = 256, 8


def prepare(folder: Path, scale: float) -> None:
    """The file."""
    import distinput as di

    random = np.random.default_rng(SEED)
    with di.io.TFRecordWriter(folder / "sequences.tfrecord") as writer:
        for number in range(_count(scale)):
            steps = int(random.integers(5, 41))
            tokens = random.integers(0, 50_000, (steps, 1))
            vectors = random.standard_normal((steps, WIDTH), np.float32)
            words = [[random.bytes(int(size))] for size in random.integers(3, 13, steps)]
            lists: dict[str, Any] = {"token": tokens, "vector": vectors, "word": words}
            writer.write(di.io.encode_sequence_example({"id": number}, lists))


def _count(scale: float) -> int:
    return scaled(20_000, scale, 600)


def cases(folder: Path, scale: float) -> list[Case]:
    """Numbers alone, and all lists."""
    path = folder / "sequences.tfrecord"
    return [_case(name, path, scale, words) for name, words in (("numbers", False), ("numbers and words", True))]


def _case(name: str, path: Path, scale: float, words: bool) -> Case:
    def ours() -> Work:
        import distinput as di

        steps: dict[str, Any] = {
            "token": di.io.FixedLenSequenceFeature([], "int64"),
            "vector": di.io.FixedLenSequenceFeature([WIDTH], "float32"),
        }
        if words:
            steps["word"] = di.io.FixedLenSequenceFeature([], "string")
        context = {"id": di.io.FixedLenFeature([], "int64")}
        parsed = di.data.TFRecordDataset(str(path)).parse_sequence_example(context, steps).padded_batch(BATCH)
        return delivering(lambda: parsed.prefetch(di.data.AUTOTUNE))

    def tensorflow() -> Work:
        import tensorflow as tf

        steps = {
            "token": tf.io.FixedLenSequenceFeature([], tf.int64),
            "vector": tf.io.FixedLenSequenceFeature([WIDTH], tf.float32),
        }
        if words:
            steps["word"] = tf.io.FixedLenSequenceFeature([], tf.string)
        context = {"id": tf.io.FixedLenFeature([], tf.int64)}

        def parse(batch: Any) -> Any:
            return tf.io.parse_sequence_example(batch, context, steps)[:2]

        dataset = tf.data.TFRecordDataset(str(path)).batch(BATCH).map(parse, tf.data.AUTOTUNE)
        return delivering(lambda: dataset.prefetch(tf.data.AUTOTUNE))

    return Case(
        name,
        {"record": _count(scale), "byte": path.stat().st_size},
        [
            Contender("distinput", "ours", ours),
            Contender("kernels alone", "limit", lambda: _kernels(path, words)),
            Contender("tf.data", "peer", tensorflow, ("tensorflow",), 1.0),
        ],
    )


def _kernels(path: Path, words: bool) -> Work:
    """Blocks of messages in memory to columns, on one thread, neither cut into batches nor padded."""
    import distinput as di
    from distinput.formats.sequence_example import SequenceExampleParser

    steps: dict[str, Any] = {
        "token": di.io.FixedLenSequenceFeature([], "int64"),
        "vector": di.io.FixedLenSequenceFeature([WIDTH], "float32"),
    }
    if words:
        steps["word"] = di.io.FixedLenSequenceFeature([], "string")
    parser = SequenceExampleParser({"id": di.io.FixedLenFeature([], "int64")}, steps)
    with di.data.TFRecordDataset(str(path)).iter_blocks() as blocks:
        messages: list[Any] = [block.columnar().columns[0] for block in blocks]

    def once() -> None:
        for each in messages:
            parser(each)

    return Work(once)
