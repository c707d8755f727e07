# SPDX-License-Identifier: Apache-2.0
"""TensorFlow reads what is written here, and what it writes is read here: as recorded, and as the installed one answers.

`python -m tests.interop.tensorflow_exchange record` records the answers anew, where TensorFlow is installed.
"""

import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from tests.engines.processes import ROOT
from tests.formats.hostile.hunt import environment
from tests.interop.tensorflow_exchange import (
    COLUMNS,
    COMPRESSIONS,
    EXAMPLES,
    KEPT,
    LINES,
    RECORDS,
    ROWS,
    SEQUENCES,
    TABLE,
    TENSORS,
    context_features,
    features,
    step_features,
    told,
    write_ours,
)

DTYPES = {"int64": "int64", "float": "float32", "bytes": "object"}
PLAIN: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.decompress, ".zz": zlib.decompress}


@pytest.fixture(scope="module", params=["recorded", "installed"])
def answers(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "recorded":
        found: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
        return found
    if find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed: make peers")
    command = [sys.executable, "-m", "tests.interop.tensorflow_exchange"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told_by_it: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told_by_it


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_ours(tmp_path_factory.mktemp("ours"))


def given(values: tuple[str, list[Any]]) -> Any:
    """The values of a feature with their kind, which an empty list does not tell."""
    kind, items = values
    array = np.empty(len(items), DTYPES[kind])
    array[:] = items
    return array


def steps(values: tuple[str, list[list[Any]]]) -> list[Any]:
    return [given((values[0], one)) for one in values[1]]


def file(tmp_path: Path, content: str) -> str:
    (tmp_path / "theirs").write_bytes(bytes.fromhex(content))
    return str(tmp_path / "theirs")


def same(found: Any, wanted: Any) -> None:
    """Through JSON, which has no tuples."""
    assert json.loads(json.dumps(told(found))) == wanted


def test_the_record_is_of_the_version_that_the_names_are_of() -> None:
    assert json.loads(KEPT.read_text(encoding="utf-8"))["version"].startswith("2.21.")


def test_messages_are_the_same_bytes(answers: dict[str, Any]) -> None:
    examples = [di.io.encode_example({key: given(one) for key, one in each.items()}) for each in EXAMPLES]
    assert [one.hex() for one in examples] == answers["wrote"]["examples"]
    sequences = [
        di.io.encode_sequence_example(
            {key: given(one) for key, one in context.items()}, {key: steps(one) for key, one in lists.items()}
        )
        for context, lists in SEQUENCES
    ]
    assert [one.hex() for one in sequences] == answers["wrote"]["sequences"]
    assert [di.io.serialize_tensor(one).hex() for one in TENSORS] == answers["wrote"]["tensors"]


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_files_of_records_are_the_same_bytes(answers: dict[str, Any], ours: dict[str, str], ending: str) -> None:
    theirs = bytes.fromhex(answers["wrote"][f"records{ending}"])
    mine = Path(ours[f"records{ending}"]).read_bytes()
    assert PLAIN[ending](mine) == PLAIN[ending](theirs)


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_its_records_are_read(answers: dict[str, Any], tmp_path: Path, ending: str) -> None:
    for compression in (COMPRESSIONS[ending], "AUTO"):
        if compression == "AUTO" and ending == ".zz":
            continue  # zlib has no first bytes of its own
        name = file(tmp_path, answers["wrote"][f"records{ending}"])
        if compression == "AUTO":
            name = str(Path(name).rename(tmp_path / f"theirs{ending}"))
        assert di.data.TFRecordDataset(name, compression).to_list() == RECORDS


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_its_examples_are_parsed(answers: dict[str, Any], tmp_path: Path, ending: str) -> None:
    name = file(tmp_path, answers["wrote"][f"examples{ending}.tfrecord"])
    dataset = di.data.TFRecordDataset(name, COMPRESSIONS[ending])
    same(di.io.parse_example(dataset.to_list(), features(di)), answers["parsed"]["examples"])
    (batch,) = dataset.batch(9).parse_example(features(di))
    same(batch, answers["parsed"]["examples"])


def test_its_sequences_and_tensors_are_parsed(answers: dict[str, Any]) -> None:
    for message, wanted in zip(answers["wrote"]["sequences"], answers["parsed"]["sequences"], strict=True):
        same(
            di.io.parse_single_sequence_example(bytes.fromhex(message), context_features(di), step_features(di)), wanted
        )
    for message, array in zip(answers["wrote"]["tensors"], TENSORS, strict=True):
        found = di.io.parse_tensor(bytes.fromhex(message), array.dtype)
        assert told(found) == told(array)


def test_what_it_decodes(answers: dict[str, Any]) -> None:
    parsed = answers["parsed"]
    same(di.io.decode_raw([b"abcd", b"efgh"], di.int16), parsed["raw"])
    same(tuple(di.io.decode_csv(['1,0.5,"a,b"', ",2,c"], [[7], [0.0], [""]])), parsed["csv"])
    same(di.io.decode_base64(["YWJj", "YQ"]), parsed["base64"])
    # It writes these lists number by number, which is another form of the same message.
    text = '{"features":{"feature":{"x":{"int64List":{"value":["1","2"]}}}}}'
    wanted = di.io.parse_single_example(bytes.fromhex(parsed["json"]), {"x": di.io.VarLenFeature(di.int64)})
    found = di.io.parse_single_example(di.io.decode_json_example(text), {"x": di.io.VarLenFeature(di.int64)})
    assert found["x"].tolist() == wanted["x"].tolist() == [1, 2]


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_it_reads_our_records(answers: dict[str, Any], ours: dict[str, str], ending: str) -> None:
    assert answers["read"][f"records{ending}"] == [told(record) for record in RECORDS]
    for row, wanted in zip(answers["read"][f"rows{ending}"], di.data.Dataset.from_tensor_slices(ROWS), strict=True):
        assert row == json.loads(json.dumps(told(wanted)))


def test_it_reads_our_tables_and_lines(answers: dict[str, Any]) -> None:
    rows = [
        [told(row["n"]), told(row["f"]), told(row["t"]), told(b"true" if row["b"] else b"false")]
        for row in di.data.Dataset.from_tensor_slices(TABLE)
    ]
    assert answers["read"]["csv"] == rows
    (batch,) = answers["read"]["csv in batches"]
    assert list(batch) == list(COLUMNS)
    assert {name: batch[name][2] for name in COLUMNS} == {
        name: [row[place][2][0] for row in rows] for place, name in enumerate(COLUMNS)
    }
    assert answers["read"]["text"] == [told(line.encode()) for line in LINES]


def test_we_write_what_it_has_read(answers: dict[str, Any], ours: dict[str, str]) -> None:
    # So that the recorded answers are about the files that are written today.
    for name, content in answers["read"]["ours"].items():
        decompress = PLAIN[Path(name).suffix]
        assert decompress(Path(ours[name]).read_bytes()) == decompress(bytes.fromhex(content)), name
