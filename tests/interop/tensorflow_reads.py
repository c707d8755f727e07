# SPDX-License-Identifier: Apache-2.0
"""TensorFlow reads files of ours, and says what it found: python -m tests.interop.tensorflow_reads FOLDER"""

import json
import sys
from pathlib import Path
from typing import Any

COMPRESSIONS = {"plain": "", "gzip": "GZIP", "zlib": "ZLIB"}


def plain(value: Any) -> Any:
    """A value that JSON can hold; bytes in hexadecimal digits."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


def main() -> None:
    import tensorflow as tf

    folder = Path(sys.argv[1])

    def records(path: Path, compression: str = "") -> list[bytes]:
        return [record.numpy() for record in tf.data.TFRecordDataset(str(path), compression)]

    def message(example: Any) -> dict[str, Any]:
        kinds = {key: (value, value.WhichOneof("kind")) for key, value in example.feature.items()}
        return {key: [] if kind is None else list(getattr(value, kind).value) for key, (value, kind) in kinds.items()}

    def values(found: dict[str, Any]) -> dict[str, Any]:
        tensors = {k: tf.sparse.to_dense(v) if isinstance(v, tf.SparseTensor) else v for k, v in found.items()}
        return {key: tensor.numpy().tolist() for key, tensor in tensors.items()}

    features = {
        "label": tf.io.FixedLenFeature([], tf.int64),
        "image": tf.io.FixedLenFeature([2, 2], tf.float32),
        "words": tf.io.VarLenFeature(tf.string),
    }
    context = {"id": tf.io.FixedLenFeature([], tf.int64)}
    steps = {"frame": tf.io.FixedLenSequenceFeature([2], tf.float32), "name": tf.io.VarLenFeature(tf.string)}
    examples, sequences = records(folder / "examples"), records(folder / "sequences")
    told: dict[str, Any] = {name: records(folder / name, how) for name, how in COMPRESSIONS.items()}
    told["written"] = {
        path.name: [message(tf.train.Example.FromString(record).features) for record in records(path)]
        for path in sorted(folder.glob("written/*.tfrecord*"))
    }
    told["messages"] = [message(tf.train.Example.FromString(record).features) for record in examples]
    told["same bytes"] = [
        tf.train.Example.FromString(record).SerializeToString(deterministic=True) == record for record in examples
    ]
    told["examples"] = values(tf.io.parse_example(examples, features))
    told["sequences"] = []
    for record in sequences:
        found = tf.io.parse_single_sequence_example(record, context, steps)
        told["sequences"].append([values(part) for part in found])
    print("\n" + json.dumps(plain(told)), flush=True)


if __name__ == "__main__":
    main()
