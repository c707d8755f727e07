# SPDX-License-Identifier: Apache-2.0
"""TensorFlow reads what is written here: TFRecord files, Examples and SequenceExamples."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.engines.processes import ROOT
from tests.formats.hostile.hunt import environment
from tests.interop.tensorflow_reads import COMPRESSIONS, plain

pytestmark = pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed: make peers")

RECORDS = [b"", b"first", b"\0" * 40, b"long" * 50_000, "ü".encode()]
EXAMPLES: list[dict[str, Any]] = [
    {"label": [3], "image": [0.5, 1.5, -2.5, 0.0], "words": [b"ab", b"", b"c"]},
    {"label": [-(2**63)], "image": [1e-30, 3e38, 1.0, 2.0], "words": []},
    {"label": [2**63 - 1], "image": [0.25] * 4, "words": [b"\xff\0"]},
]
SEQUENCES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"id": [7]}, {"frame": [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], "name": [[b"a"], [], [b"b", b"c"]]}),
    ({"id": [-1]}, {"frame": [], "name": [[b"alone"]]}),
]


def write(path: Path, records: list[bytes], compression: str = "") -> None:
    with di.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("read")
    for name, compression in COMPRESSIONS.items():
        write(folder / name, RECORDS, compression)
    write(folder / "examples", [di.io.encode_example(example) for example in EXAMPLES])
    write(folder / "sequences", [di.io.encode_sequence_example(*sequence) for sequence in SEQUENCES])
    rows = {"a": np.arange(10), "x": np.arange(20.0, dtype=np.float32).reshape(10, 2)}
    di.data.Dataset.from_tensor_slices(rows).write(str(folder / "written"), "tfrecord", shards=3)
    command = [sys.executable, "-m", "tests.interop.tensorflow_reads", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_records(found: dict[str, Any], name: str) -> None:
    assert found[name] == plain(RECORDS)


def test_examples_are_its_messages(found: dict[str, Any]) -> None:
    def same(example: dict[str, Any]) -> dict[str, Any]:
        return {**plain(example), "image": np.float32(example["image"]).tolist()}

    assert found["messages"] == [same(example) for example in EXAMPLES]
    assert found["same bytes"] == [True] * len(EXAMPLES)


def test_examples_are_parsed_to_the_same_values(found: dict[str, Any]) -> None:
    features = {
        "label": di.io.FixedLenFeature([], "int64"),
        "image": di.io.FixedLenFeature([2, 2], "float32"),
        "words": di.io.VarLenFeature("string"),
    }
    ours = di.io.parse_example([di.io.encode_example(example) for example in EXAMPLES], features)
    words = [list(EXAMPLES[i]["words"]) + [b""] * (3 - len(EXAMPLES[i]["words"])) for i in range(3)]
    assert found["examples"]["label"] == ours["label"].tolist() == [3, -(2**63), 2**63 - 1]
    assert found["examples"]["image"] == ours["image"].tolist()
    assert found["examples"]["words"] == plain(words)


def test_sequence_examples(found: dict[str, Any]) -> None:
    assert found["sequences"] == [
        [{"id": 7}, {"frame": SEQUENCES[0][1]["frame"], "name": plain([[b"a", b""], [b"", b""], [b"b", b"c"]])}],
        [{"id": -1}, {"frame": [], "name": plain([[b"alone"]])}],
    ]


def test_datasets_that_are_written(found: dict[str, Any]) -> None:
    rows = [row for name in sorted(found["written"]) for row in found["written"][name]]
    assert len(found["written"]) == 3
    assert rows == [{"a": [i], "x": [2.0 * i, 2.0 * i + 1]} for i in range(10)]
