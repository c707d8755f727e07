# SPDX-License-Identifier: Apache-2.0
"""Files and messages that TensorFlow writes, and what it reads in those of ours; not for machines without TensorFlow.

    python -m tests.interop.tensorflow_exchange                  prints the answers of the TensorFlow that is installed
    python -m tests.interop.tensorflow_exchange record           keeps them in tensorflow_exchange.json

The answers are `{"version", "wrote", "read", "parsed"}`: the bytes that TensorFlow wrote, the values that it read in files that
distinput wrote, and the values that it parsed from the messages. Bytes are in hexadecimal digits.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import distinput as di

KEPT = Path(__file__).with_suffix(".json")
COMPRESSIONS = {"": "", ".gz": "GZIP", ".zz": "ZLIB"}

RECORDS = [b"", b"first", bytes(range(256)), b"long" * 100, "ü".encode()]
EXAMPLES: list[dict[str, tuple[str, list[Any]]]] = [
    {
        "n": ("int64", [1, -(2**63)]),
        "f": ("float", [0.5, -0.0]),
        "v": ("float", [1e-45, 3e38, 0.1]),
        "t": ("bytes", [b"a\0"]),
    },
    {
        "t": ("bytes", ["ü".encode()]),
        "n": ("int64", [2**63 - 1, 128]),
        "f": ("float", [float("inf"), -1.5]),
        "v": ("float", []),
    },
    {
        "n": ("int64", [0, -1]),
        "f": ("float", [2.0, float("nan")]),
        "t": ("bytes", [b""]),
        "w": ("bytes", [b"x", b"", b"y" * 200]),
    },
    {"n": ("int64", [7, 8]), "f": ("float", [0.0, 1.0]), "b": ("int64", []), "w": ("bytes", [])},
]
SEQUENCES: list[tuple[dict[str, tuple[str, list[Any]]], dict[str, tuple[str, list[list[Any]]]]]] = [
    ({"id": ("int64", [7])}, {"x": ("float", [[0.5, 1.5], [2.5, -0.0]]), "w": ("bytes", [[b"a"], [], [b"b", b"c"]])}),
    ({"id": ("int64", [-1])}, {"x": ("float", []), "w": ("bytes", [[b"alone"]])}),
    ({}, {"x": ("float", [[1.0, 2.0]]), "w": ("bytes", [])}),
]
TENSORS: list[Any] = [
    *[
        np.array([[1, 0, 3], [0, 0, 0]], kind)
        for kind in ("uint8", "int16", "int64", "float16", "float32", "float64", "bool")
    ],
    np.array([np.iinfo("int64").min, -1, np.iinfo("int64").max]),
    np.array([np.nan, -0.0, np.inf, 5e-324]),
    np.zeros((0, 2), "float32"),
    np.array([b"a\0", "ü".encode(), b""], object),
    np.float32(0.1),
]
ROWS: dict[str, Any] = {
    "f": np.array([0.5, -0.0, 1e-30], "float32"),
    "n": np.array([1, -(2**63), 2**63 - 1]),
    "t": ["a", "", "ü"],
    "v": np.arange(6, dtype="float32").reshape(3, 2),
}
TABLE: dict[str, Any] = {
    "n": np.array([1, -(2**63), 2**63 - 1]),
    "f": np.array([0.1, -0.0, 1e300]),
    "t": ["a", 'quo"te, comma', "line\nend"],
    "b": np.array([True, False, True]),
}
LINES = ["a", "", "ü, and more"]
COLUMNS = {"n": "int64", "f": "float64", "t": "string", "b": "string"}


def features(module: Any) -> dict[str, Any]:
    """What is parsed from the Examples, with the classes of a module."""
    return {
        "n": module.io.FixedLenFeature([2], module.int64),
        "f": module.io.FixedLenFeature([1, 2], module.float32),
        "t": module.io.FixedLenFeature([], module.string, "none"),
        "v": module.io.FixedLenSequenceFeature([], module.float32, allow_missing=True, default_value=-1.0),
        "w": module.io.VarLenFeature(module.string),
        "b": module.io.RaggedFeature(module.int64),
        "d": module.io.FixedLenFeature([2], module.int64, [5, 6]),
    }


def context_features(module: Any) -> dict[str, Any]:
    """What is parsed from the contexts of the SequenceExamples."""
    return {"id": module.io.FixedLenFeature([], module.int64, 9)}


def step_features(module: Any) -> dict[str, Any]:
    """What is parsed from their steps."""
    return {"x": module.io.FixedLenSequenceFeature([2], module.float32), "w": module.io.RaggedFeature(module.string)}


def told(value: Any) -> Any:
    """A value in a form that JSON holds exactly, the same for arrays of both libraries: dtype, shape, values; or rows."""
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [told(item) for item in value]
    if hasattr(value, "to_list"):  # ragged tensors
        return ["rows", [[exact(item) for item in row] for row in value.to_list()]]
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if array.dtype.kind in "SO":
        array = array.astype(object)
    return [array.dtype.name, list(array.shape), [exact(item) for item in array.reshape(-1).tolist()]]


def exact(value: Any) -> Any:
    """A float by its shortest digits, bytes in hexadecimal ones, rows item by item."""
    if isinstance(value, list):
        return [exact(item) for item in value]
    return value.hex() if isinstance(value, bytes) else repr(value) if isinstance(value, float) else value


def write_ours(folder: Path) -> dict[str, str]:
    """Write files with distinput; the names of the samples, and their paths."""
    Dataset = di.data.Dataset
    found: dict[str, str] = {}
    for ending, compression in COMPRESSIONS.items():
        rows = Dataset.from_tensor_slices(ROWS)
        rows.write(folder / f"rows{ending}", "tfrecord", shards=1, compression=compression or None)
        (path,) = folder.glob(f"rows{ending}/part-*")
        found[f"rows{ending}"] = str(path)
        found[f"records{ending}"] = str(folder / f"records{ending}")
        with di.io.TFRecordWriter(found[f"records{ending}"], compression) as writer:
            for record in RECORDS:
                writer.write(record)
    Dataset.from_tensor_slices(TABLE).write(folder / "csv", "csv", shards=1)
    Dataset.from_tensor_slices(LINES).write(folder / "text", "text", shards=1)
    for name in ("csv", "text"):
        (path,) = folder.glob(f"{name}/part-*")
        found[name] = str(path)
    return found


def answers() -> dict[str, Any]:
    """What the TensorFlow that is installed writes, reads and parses."""
    import tensorflow as tf

    def feature(kind: str, values: list[Any]) -> Any:
        lists = {"int64": tf.train.Int64List, "float": tf.train.FloatList, "bytes": tf.train.BytesList}
        return tf.train.Feature(**{f"{kind}_list": lists[kind](value=values)})

    def message_of(example: dict[str, tuple[str, list[Any]]]) -> Any:
        return tf.train.Features(feature={key: feature(*values) for key, values in example.items()})

    def sequence(context: Any, steps: Any) -> bytes:
        lists = {
            key: tf.train.FeatureList(feature=[feature(kind, one) for one in values])
            for key, (kind, values) in steps.items()
        }
        parts: dict[str, Any] = {"feature_lists": tf.train.FeatureLists(feature_list=lists)}
        if context:  # one that is given is written, be it empty
            parts["context"] = message_of(context)
        return tf.train.SequenceExample(**parts).SerializeToString(deterministic=True)  # type: ignore[no-any-return]

    def in_file(path: Path, records: list[bytes], compression: str) -> str:
        with tf.io.TFRecordWriter(str(path), compression) as writer:
            for record in records:
                writer.write(record)
        return path.read_bytes().hex()

    examples = [tf.train.Example(features=message_of(one)).SerializeToString(deterministic=True) for one in EXAMPLES]
    sequences = [sequence(*one) for one in SEQUENCES]
    parsed = tf.io.parse_example(examples, features(tf))
    parsed["w"] = tf.RaggedTensor.from_sparse(parsed["w"])
    wrote: dict[str, Any] = {
        "examples": [one.hex() for one in examples],
        "sequences": [one.hex() for one in sequences],
        "tensors": [tf.io.serialize_tensor(tf.constant(one)).numpy().hex() for one in TENSORS],
    }
    read: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for ending, compression in COMPRESSIONS.items():
            wrote[f"records{ending}"] = in_file(folder / f"wrote{ending}", RECORDS, compression)
            wrote[f"examples{ending}.tfrecord"] = in_file(folder / f"wrote{ending}", examples, compression)
        ours = write_ours(folder)
        for ending, compression in COMPRESSIONS.items():
            rows = tf.data.TFRecordDataset(ours[f"rows{ending}"], compression)
            wanted = {
                "f": tf.io.FixedLenFeature([], tf.float32),
                "n": tf.io.FixedLenFeature([], tf.int64),
                "t": tf.io.FixedLenFeature([], tf.string),
                "v": tf.io.FixedLenFeature([2], tf.float32),
            }
            read[f"rows{ending}"] = [told(tf.io.parse_single_example(row, wanted)) for row in rows]
            read[f"records{ending}"] = [
                told(one) for one in tf.data.TFRecordDataset(ours[f"records{ending}"], compression)
            ]
        kinds = [getattr(tf, kind) for kind in COLUMNS.values()]
        read["csv"] = [told(row) for row in tf.data.experimental.CsvDataset(ours["csv"], kinds, header=True)]
        batches = tf.data.experimental.make_csv_dataset(
            ours["csv"], 3, column_defaults=kinds, num_epochs=1, shuffle=False
        )
        read["csv in batches"] = [told(dict(batch)) for batch in batches]
        read["text"] = [told(line) for line in tf.data.TextLineDataset(ours["text"])]
        read["ours"] = {name: Path(path).read_bytes().hex() for name, path in ours.items()}
    context_and_steps = [
        tf.io.parse_single_sequence_example(one, context_features(tf), step_features(tf)) for one in sequences
    ]
    return {
        "version": tf.__version__,
        "wrote": wrote,
        "read": read,
        "parsed": {
            "examples": told(parsed),
            "sequences": [[told(part) for part in one] for one in context_and_steps],
            "raw": told(tf.io.decode_raw([b"abcd", b"efgh"], tf.int16)),
            "csv": told(tuple(tf.io.decode_csv(["1,0.5,\"a,b\"", ",2,c"], [[7], [0.0], [""]]))),
            "base64": told(tf.io.decode_base64(["YWJj", "YQ"])),
            "json": tf.io.decode_json_example(
                '{"features":{"feature":{"x":{"int64List":{"value":["1","2"]}}}}}'
            ).numpy().hex(),
        },
    }  # fmt: skip


def main() -> None:
    found = answers()
    if sys.argv[1:] == ["record"]:
        KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    else:
        print("\n" + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
