# SPDX-License-Identifier: Apache-2.0
"""What is saved is loaded exactly, counted, from any position, and never half."""

import json
import threading
from dataclasses import dataclass, is_dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.testing import check_positions, check_restart, check_spec
from distinput.testing.elements import exact
from distinput.testing.pipelines import Pipeline, pipelines
from distinput.values.nullable import Nullable
from distinput.writers import open_file
from distinput.writers.manifest import MANIFEST
from tests.depth import cases

Dataset = di.data.Dataset


@settings(max_examples=cases(6, 400))
@given(pipelines(most_ops=4))
def test_any_pipeline_comes_back(tmp_path_factory: Any, pipeline: Pipeline) -> None:
    folder = tmp_path_factory.mktemp("saved")
    dataset = pipeline.build()
    if not pipeline.tensors:
        with pytest.raises(InvalidArgumentError, match=r"save: .* is a dataset; flat_map or zip it first"):
            dataset.save(folder)
        return
    dataset.save(folder)
    loaded = Dataset.load(folder, dataset.element_spec)
    assert loaded.element_spec == Dataset.load(folder).element_spec == dataset.element_spec
    again = list(map(exact, loaded))
    assert len(loaded) == len(again)
    if pipeline.exact:
        assert again == list(map(exact, pipeline.elements))


def test_loaded_elements_keep_the_laws(tmp_path: Path) -> None:
    ragged = Dataset.range(9).map(lambda n: np.arange(n), output_signature=di.TensorSpec([None], "int64"))
    Dataset.zip({"n": Dataset.range(9), "r": ragged}).save(tmp_path / "a")
    for loaded in (
        Dataset.load(tmp_path / "a"),
        Dataset.load(tmp_path / "a").global_shuffle(seed=1),
        Dataset.load(tmp_path / "a").shard(2, 1),
    ):
        check_spec(loaded)
        check_restart(loaded)
        check_positions(loaded)
    assert sorted(x["n"] for x in Dataset.load(tmp_path / "a").global_shuffle(seed=1)) == list(range(9))


@dataclass
class Point:
    x: Any
    y: Any


def chats(folder: Path) -> Any:
    """Text, decimals, and lists of structs in lists of structs, one of them null, as Python's values."""
    pq.write_table(
        pa.table(
            {
                "price": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
                "messages": [
                    [
                        {"role": "é", "calls": [{"name": "a", "n": 1}, {"name": "b", "n": None}]},
                        {"role": "tool", "calls": []},
                    ],
                    [],
                ],
                "turns": pa.array([[[{"id": 1}], []], None], pa.list_(pa.list_(pa.struct({"id": pa.int64()})))),
            }
        ),
        folder / "chats.parquet",
    )
    return di.data.ParquetDataset(folder / "chats.parquet", nulls=None, text="str", nested="rows", decimals="decimal")


@pytest.mark.parametrize("stated", [False, True])
def test_text_and_rows_of_python_come_back(tmp_path: Path, stated: bool) -> None:
    dataset = chats(tmp_path)
    wanted = dataset.to_list()
    assert wanted[0]["messages"][0] == {"role": "é", "calls": [{"name": "a", "n": 1}, {"name": "b", "n": None}]}
    dataset.save(tmp_path / "saved")
    loaded = Dataset.load(tmp_path / "saved", dataset.element_spec if stated else None)
    assert loaded.to_list() == wanted
    assert repr(loaded.element_spec) == repr(dataset.element_spec)
    assert type(loaded.element_spec["turns"]) is Nullable
    assert repr(loaded.node.spec.structure) == repr(dataset.node.spec.structure)
    assert loaded.ragged_batch(2).to_list() == dataset.ragged_batch(2).to_list()
    assert loaded.to_arrow().equals(dataset.to_arrow())


def test_what_a_reader_told_of_columns_comes_back(tmp_path: Path) -> None:
    pq.write_table(pa.table({"price": [Decimal("1.50")], "rows": [[{"id": 1}]]}), tmp_path / "a.parquet")
    di.data.ParquetDataset(tmp_path / "a.parquet").save(tmp_path / "saved")
    loaded = Dataset.load(tmp_path / "saved")
    assert loaded.to_list() == [{"price": b"1.50", "rows": {"id": [1]}}]
    assert loaded.as_decimal().as_rows().to_list() == [{"price": Decimal("1.50"), "rows": [{"id": 1}]}]


@pytest.mark.parametrize("nest", ["a", ("a", {3: "b"}), Point(x="a", y=["b"])])
def test_text_comes_back_in_any_nest(tmp_path: Path, nest: Any) -> None:
    dataset = Dataset.from_tensors(nest).as_text()
    dataset.save(tmp_path / "saved")
    stated = dataset.element_spec if is_dataclass(nest) else None
    assert list(map(exact, Dataset.load(tmp_path / "saved", stated))) == list(map(exact, dataset))


@pytest.mark.parametrize(
    "more, message",
    [
        ({"made": "int"}, "'int' is made of no 'string'"),
        ({"made": 1}, "'made' must be str, got 1"),
        ({"rows": {"name": "a", "rank": -1, "form": {"rows": ["leaf"]}}}, "'rank' must be a number of dimensions"),
        ({"rows": {"name": "a", "rank": 1, "form": {"rows": []}}}, "'rows' must have 1 items"),
        ({"rows": {"name": "a", "rank": 1, "form": "leaf"}}, "a form of rows must be dict, got 'leaf'"),
        ({"rows": {"name": "a", "rank": 1}}, "it has no 'form'"),
        ({"rows": []}, "'rows' must be dict"),
        ({"told": ["rows"]}, "'told' must be str"),
    ],
)
def test_what_cannot_be_made_is_damage(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    Dataset.from_tensors({"a": {"b": ["c"]}}).save(tmp_path / "saved")
    manifest = tmp_path / "saved" / MANIFEST
    found = json.loads(manifest.read_text())
    layout = json.loads(found["options"]["layout"])
    (layout["dict"][0][1] if "rows" in more else layout["dict"][0][1]["dict"][0][1]).update(more)
    found["options"]["layout"] = json.dumps(layout)
    manifest.write_text(json.dumps(found))
    with pytest.raises(DataLossError, match=f"the spec of the elements is damaged: .*{message}"):
        Dataset.load(tmp_path / "saved")


def test_no_text_is_made_of_what_is_an_optional(tmp_path: Path) -> None:
    Dataset.from_tensors(di.data.experimental.Optional.from_value("a")).save(tmp_path / "saved")
    manifest = tmp_path / "saved" / MANIFEST
    found = json.loads(manifest.read_text())
    found["options"]["layout"] = json.dumps(json.loads(found["options"]["layout"]) | {"made": "str"})
    manifest.write_text(json.dumps(found))
    with pytest.raises(DataLossError, match="the spec of the elements is damaged: 'str' is made of no None"):
        Dataset.load(tmp_path / "saved")


def test_a_new_dataset_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    Dataset.range(3).save(tmp_path)
    old = Dataset.load(tmp_path)
    with iter(old) as elements:
        assert next(elements) == 0
        Dataset.range(5).map(lambda x: x * 2).save(tmp_path)
        assert [int(x) for x in elements] == [1, 2]  # its files are open
    assert Dataset.load(tmp_path).to_list() == [0, 2, 4, 6, 8]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("compression", [None, "AUTO", "GZIP", "SNAPPY", "lz4", "zstd"])
def test_compressions_have_tensorflows_names_too(tmp_path: Path, compression: str | None) -> None:
    Dataset.range(3).save(tmp_path, compression)
    assert Dataset.load(tmp_path, None, compression).to_list() == [0, 1, 2]


def test_shard_func_says_where_an_element_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = Dataset.zip(Dataset.range(6), Dataset.range(6))
    made = pairs.save(tmp_path, None, lambda x, y: (x + y) % 4)
    assert [file.name for file in made.files] == ["elements-00000.arrow", "elements-00002.arrow"]
    assert Dataset.load(tmp_path).to_list() == [(0, 0), (2, 2), (4, 4), (1, 1), (3, 3), (5, 5)]
    for wrong in (-1, 1.0, True, None, "a"):
        with pytest.raises(
            InvalidArgumentError, match="shard_func must return the number of a file, an integer from 0"
        ):
            pairs.save(tmp_path, shard_func=lambda *_, wrong=wrong: wrong)
    monkeypatch.setattr(open_file, "_MOST_OPEN", 4)
    with pytest.raises(
        InvalidArgumentError, match="shard_func may name 4 files, which are open at once; it named more"
    ):
        Dataset.range(6).save(tmp_path / "b", shard_func=int)
    assert len(Dataset.load(tmp_path)) == 6


def test_shard_func_goes_on_after_the_last_complete_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_file, "SHARD_BYTES", 1)
    calls: list[int] = []

    fails = [True]

    def checked(x: int) -> int:
        if fails and x == 10:
            fails.clear()  # a change that the function makes itself does not make another pipeline of it
            raise ValueError("element 10")
        calls.append(int(x))
        return x

    def checked_dataset() -> Any:
        made = Dataset.range(4)
        for begin in range(4, 20, 4):
            made = made.concatenate(Dataset.range(begin, begin + 4))
        return made.map(checked, output_signature=di.TensorSpec([], "int64"))

    with pytest.raises(ValueError, match="element 10"):
        checked_dataset().save(tmp_path, shard_func=lambda x: x % 3)
    calls.clear()
    made = checked_dataset().save(tmp_path, shard_func=lambda x: x % 3)
    assert calls == list(range(8, 20))
    assert (made.rows, made.order, len(made.pieces), sum(made.pieces)) == (20, "shard_func", 3, len(made.files))
    assert Dataset.load(tmp_path).to_list() == sorted(range(20), key=lambda x: (x % 3, x))
    files = Dataset.load(tmp_path, reader_func=lambda files: files.flat_map(lambda file: file.take(2)))
    assert files.to_list() == [0, 3, 1, 4, 2, 5]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([MANIFEST, *[file.name for file in made.files]])
    di.io.verify_files(str(tmp_path))


@dataclass
class Record:
    a: Any


def test_dataclasses_are_made_for_those_who_ask(tmp_path: Path) -> None:
    dataset = Dataset.range(2).map(Record)
    dataset.save(tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"load: .*: its elements are objects of the dataclass"):
        Dataset.load(tmp_path)
    assert list(Dataset.load(tmp_path, dataset.element_spec)) == [Record(np.int64(0)), Record(np.int64(1))]


def test_the_expected_spec_is_checked_and_may_be_wider(tmp_path: Path) -> None:
    Dataset.from_tensor_slices(np.zeros((2, 3))).save(tmp_path)
    wider = di.TensorSpec(None, "float64")
    loaded = Dataset.load(tmp_path, wider)
    assert (loaded.element_spec, [x.shape for x in loaded]) == (wider, [(3,), (3,)])
    with pytest.raises(
        InvalidArgumentError, match=r"load: .*: the elements look like .*<f8.* and element_spec says .*<f4"
    ):
        Dataset.load(tmp_path, di.TensorSpec([3], "float32"))


@pytest.mark.parametrize(
    "arguments, error, says",
    [
        (
            {"path": "none"},
            NotFoundError,
            r"holds no complete dataset \(distinput-manifest\.json is missing\); save one there",
        ),
        (
            {"path": "csv"},
            InvalidArgumentError,
            r"holds files of format 'csv', which save did not write; read them with File",
        ),
        (
            {"compression": "GZIP"},
            InvalidArgumentError,
            "was saved with compression None, got 'GZIP'; leave compression out",
        ),
        (
            {"compression": "BZ2"},
            InvalidArgumentError,
            "compression must be None, 'AUTO', 'GZIP', 'SNAPPY', 'LZ4' or 'ZSTD'",
        ),
        ({"reader_func": 3}, TypeError, "load: reader_func must be a function, got 3"),
        ({"reader_func": lambda files: 3}, TypeError, "load: .*: reader_func must return a Dataset, got int"),
    ],
)
def test_what_cannot_be_loaded_is_refused(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    Dataset.range(3).save(tmp_path / "saved")
    Dataset.range(3).write(tmp_path / "csv", "csv")
    with pytest.raises(error, match=says):
        Dataset.load(tmp_path / arguments.pop("path", "saved"), **arguments)


def test_arguments_of_save_are_checked(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="save: checkpoint_args must be a dict of arguments, got 3"):
        Dataset.range(3).save(tmp_path, checkpoint_args=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="shard_func must be a function, got 3"):
        Dataset.range(3).save(tmp_path, shard_func=3)  # type: ignore[arg-type]
    Dataset.range(3).save(tmp_path, checkpoint_args={"directory": "x"})


def test_wait_returns_when_it_has_been_saved(tmp_path: Path) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(Dataset.load(tmp_path / "a", wait=True).to_list()))
    thread.start()
    Dataset.range(3).save(tmp_path / "a")
    thread.join(60)
    assert found == [0, 1, 2]
