# SPDX-License-Identifier: Apache-2.0
"""Tables and streams of Hugging Face, with the real package."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.sharding.policies import auto_shard
from distinput.testing import check_dataset

datasets = pytest.importorskip("datasets")
hf = di.interop.huggingface

Dataset = di.data.Dataset


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def table(rows: int = 20) -> Any:
    return datasets.Dataset.from_dict({"x": list(range(rows)), "t": [str(i) for i in range(rows)]})


def numbers(dataset: Any) -> list[int]:
    return [int(row["x"]) for row in dataset]


def test_rows_of_a_dataset() -> None:
    made = hf.from_hf(table())
    assert made.element_spec == {"x": di.TensorSpec([], "int64"), "t": di.TensorSpec([], "string")}
    assert len(made) == 20
    assert made.take(2).to_list() == [{"x": 0, "t": b"0"}, {"x": 1, "t": b"1"}]
    assert sorted(numbers(made.global_shuffle(seed=1))) == list(range(20))
    assert Dataset.from_arrow(table()).to_list() == made.to_list()
    assert Dataset.from_tensor_slices(table()).to_list() == made.to_list()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.shuffle(seed=3),
        lambda d: d.select([5, 3, 3, 0]),
        lambda d: d.select(range(4, 9)),
        lambda d: d.filter(lambda row: row["x"] % 3 == 0),
        lambda d: d.select(range(19, -1, -1)),
        lambda d: datasets.concatenate_datasets([d, d.select([1])]),
        lambda d: d.select([]),
        lambda d: d.map(lambda row: {"x": row["x"] * 2}),
    ],
)
def test_what_was_chosen_is_what_comes(change: Any) -> None:
    chosen = change(table())
    made = hf.from_hf(chosen)
    assert numbers(made) == list(chosen["x"][:])
    assert len(made) == len(chosen)
    assert sorted(numbers(made.global_shuffle(seed=1))) == sorted(chosen["x"])


def test_files_of_a_dataset_are_mapped_and_laws_hold(tmp_path: Any) -> None:
    table(9).save_to_disk(tmp_path / "saved", num_shards=3)
    loaded = datasets.load_from_disk(tmp_path / "saved")
    check_dataset(lambda: hf.from_hf(loaded.shuffle(seed=1)))
    first = next(iter(hf.from_hf(loaded).batch(2)))["x"]
    stored = loaded.data.table["x"].chunk(0).buffers()[1].address
    assert stored <= first.ctypes.data < stored + loaded.data.table["x"].chunk(0).buffers()[1].size


@pytest.mark.parametrize(
    "arrays, shape, message",
    [
        ([[[1, 2, 3], [4]]], (2, 2), r"column 'x' holds arrays that have not the shape \(2, 2\)"),
        ([[[1, 2], [3, 4, 5]]], (None, 2), r"column 'x' holds arrays that have not the shape \(None, 2\)"),
        ([[[1, 2], [3, 4]], None], (2, 2), "column 'x' has nulls in an array"),
        ([[[1, 2], None]], (2, 2), "column 'x' has nulls in an array"),
        ([[[1, 2], [3, None]]], (None, 2), "column 'x' has nulls in an array"),
    ],
)
def test_arrays_of_another_shape_are_refused(arrays: Any, shape: Any, message: str) -> None:
    features = datasets.Features({"x": datasets.Array2D(shape, "int32")})
    given = datasets.Dataset.from_dict({"x": arrays}, features=features)
    with pytest.raises(InvalidArgumentError, match=message):
        hf.from_hf(given)


def test_features_say_what_columns_are() -> None:
    features = datasets.Features(
        {
            "label": datasets.ClassLabel(names=["no", "yes"]),
            "image": datasets.Array2D((2, 3), "float32"),
            "frames": datasets.Array3D((None, 1, 2), "int8"),
            "pair": datasets.List(datasets.Value("int16"), length=2),
            "words": datasets.List(datasets.Value("string")),
            "languages": datasets.Translation(["de", "en"]),
        }
    )
    row: dict[str, Any] = {
        "label": "yes",
        "image": np.arange(6).reshape(2, 3).tolist(),
        "frames": [[[1, 2]], [[3, 4]]],
        "pair": [1, 2],
        "words": ["a", "b"],
        "languages": {"de": "ja", "en": "yes"},
    }
    other = {**row, "frames": [[[5, 6]]], "words": []}
    whole = datasets.Dataset.from_list([row, other, row], features=features)
    streams = [
        whole.to_iterable_dataset(num_shards=2),
        datasets.IterableDataset.from_generator(lambda: iter([row, other, row]), features=features),
    ]
    for given in (whole, whole.select([0, 1, 2, 0]).select(range(3)), *streams):
        made = hf.from_hf(given)
        assert made.element_spec == {
            "label": di.TensorSpec([], "int64"),
            "image": di.TensorSpec([2, 3], "float32"),
            "frames": di.TensorSpec([None, 1, 2], "int8"),
            "pair": di.TensorSpec([2], "int16"),
            "words": di.TensorSpec([None], "string"),
            "languages": {"de": di.TensorSpec([], "string"), "en": di.TensorSpec([], "string")},
        }
        first, second, _ = made.to_list()
        assert first == {
            **row,
            "label": 1,
            "words": [b"a", b"b"],
            "languages": {"de": b"ja", "en": b"yes"},
        }
        assert (second["frames"], second["words"]) == ([[[5, 6]]], [])


def test_images_that_are_not_decoded_are_bytes_and_path() -> None:
    features = datasets.Features({"image": datasets.Image(decode=False)})
    rows = pa.table({"image": pa.array([{"bytes": b"\x89", "path": None}], features.arrow_schema.field(0).type)})
    made = hf.from_hf(datasets.Dataset(rows, info=datasets.DatasetInfo(features=features)))
    assert made.to_list() == [{"image": {"bytes": b"\x89", "path": b""}}]


@pytest.mark.parametrize(
    "given, message",
    [
        (lambda: table().with_format("torch"), "format 'torch' asks for something else.*with_format"),
        (lambda: table().with_format("numpy", dtype=np.float32), "format 'numpy' with options"),
        (lambda: table().with_transform(lambda rows: rows), "format 'custom'.*map the function over the result"),
        (lambda: table().to_iterable_dataset().with_format("torch"), "format 'torch' asks"),
        (lambda: datasets.DatasetDict(train=table()), "choose one of the splits 'train'"),
        (lambda: [1, 2], "expected a datasets.Dataset or a datasets.IterableDataset, got list"),
        (
            lambda: datasets.Dataset.from_dict({"i": [None]}, features=datasets.Features({"i": datasets.Image()})),
            r"column 'i' holds a Image, which is decoded.*cast_column\('i', datasets.Image\(decode=False\)\)",
        ),
        (lambda: datasets.IterableDataset.from_generator(lambda: iter(())), "the stream is empty"),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"from_hf: .*{message}"):
        hf.from_hf(given())


def test_formats_that_change_no_value_and_columns_are_respected() -> None:
    for kind in ("numpy", "arrow", "pandas", "polars"):
        assert hf.from_hf(table().with_format(kind)).to_list() == hf.from_hf(table()).to_list()
    assert list(hf.from_hf(table().with_format("numpy", columns=["t"])).element_spec) == ["t"]


def test_nulls_of_rows_that_were_not_chosen_do_not_matter() -> None:
    given = table(4).add_column("n", [1, None, 3, None])
    kept = hf.from_hf(given.filter(lambda row: row["n"] is not None))
    assert [int(row["n"]) for row in kept] == [1, 3]
    with pytest.raises(InvalidArgumentError, match="column 'n' has nulls, the first in row 3"):
        hf.from_hf(given.select([0, 3]), nulls="error").to_list()
    assert hf.from_hf(given.select([0, 3])).to_list()[1]["n"] == {"value": 0, "valid": False}
    assert [int(row["n"]) for row in hf.from_hf(given, nulls={"n": -1})] == [1, -1, 3, -1]
    assert [bool(row["known"]) for row in hf.from_hf(given, valid={"n": "known"})] == [True, False, True, False]


def shards(numbers: list[int]) -> Iterator[dict[str, Any]]:
    for number in numbers:
        for place in range(7):
            yield {"x": 10 * number + place, "words": ["w"] * (place % 3)}


def stream(count: int = 4) -> Any:
    return datasets.IterableDataset.from_generator(shards, gen_kwargs={"numbers": list(range(count))})


@pytest.mark.parametrize(
    "given",
    [
        stream,
        lambda: table(28).to_iterable_dataset(num_shards=4),
        lambda: stream().map(lambda row: {"x": row["x"] + 1}).filter(lambda row: row["x"] % 2),
        lambda: table(28).to_iterable_dataset(num_shards=4).shuffle(seed=1, buffer_size=5),
        lambda: stream(1),
    ],
)
def test_a_stream_gives_its_rows_and_restarts_anywhere(given: Any) -> None:
    made = hf.from_hf(given())
    rows = [row["x"] for row in given()]
    whole = numbers(made)
    assert sorted(whole) == sorted(rows)
    assert numbers(made) == whole
    for count in (0, 3, min(9, len(rows) - 1), len(rows)):
        with iter(made) as iterator:
            assert [int(next(iterator)["x"]) for _ in range(count)] == whole[:count]
            state = iterator.state()
        assert numbers(hf.from_hf(given()).restore(state)) == whole[count:]


def test_laws_of_a_stream() -> None:
    check_dataset(lambda: hf.from_hf(stream(2)))


@pytest.mark.parametrize("policy", ["FILE", "BALANCED", "AUTO", "DATA"])
def test_shards_of_a_stream_are_divided_among_workers(policy: str) -> None:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = getattr(di.data.experimental.AutoShardPolicy, policy)
    made = hf.from_hf(stream().select_columns(["x"])).batch(4).with_options(options)
    applied = "FILE" if policy == "AUTO" else policy
    assert applied in made.explain(num_workers=2)
    workers = [auto_shard(made.node, 2, worker, 2) for worker in range(2)]
    parts = [[int(x) for batch in Dataset(node) for x in batch["x"]] for node in workers]
    assert sorted(parts[0] + parts[1]) == [10 * shard + place for shard in range(4) for place in range(7)]
    if policy != "DATA":
        assert {len(part) for part in parts} == {14}
        with iter(Dataset(workers[1])) as iterator:
            next(iterator)
            state = iterator.state()
        assert [int(x) for batch in Dataset(workers[1]).restore(state) for x in batch["x"]] == parts[1][4:]


def test_more_workers_than_shards() -> None:
    with pytest.raises(InvalidArgumentError, match=r"only has 1 file\(s\)"):
        auto_shard(hf.from_hf(stream(1)).node, 2, 0, 2, policy=di.data.experimental.AutoShardPolicy.FILE)


@pytest.mark.parametrize("rows", [3, 250])
def test_a_generator_that_begins_once_gives_the_rows_that_showed_the_features(rows: int) -> None:
    left = iter(range(rows))
    made = hf.from_hf(datasets.IterableDataset.from_generator(lambda: ({"x": number} for number in left)))
    assert numbers(made) == list(range(rows))
    assert numbers(made) == []
    again = hf.from_hf(datasets.IterableDataset.from_generator(lambda: iter([{"x": number} for number in range(rows)])))
    assert numbers(again) == numbers(again) == numbers(again.skip(0)) == list(range(rows))


def test_features_of_a_stream_may_be_given() -> None:
    features = datasets.Features({"x": datasets.Value("int16"), "words": datasets.List(datasets.Value("string"))})
    made = hf.from_hf(stream(), features=features)
    assert made.element_spec["x"] == di.TensorSpec([], "int16")
    wrong = datasets.Features({"x": datasets.Value("int16"), "words": datasets.List(datasets.Value("int8"))})
    with pytest.raises(InvalidArgumentError, match="rows do not fit the features"):
        hf.from_hf(stream(), features=wrong).to_list()
    missing = datasets.Features({"y": datasets.Value("int16")})
    with pytest.raises(InvalidArgumentError, match="rows have no column 'y'"):
        hf.from_hf(stream(), features=missing).to_list()


def test_and_back() -> None:
    rows = {"x": np.arange(6).reshape(3, 2), "t": ["a", "b", "ä"], "n": np.array([1.5, np.nan, 2.0])}
    given = Dataset.from_tensor_slices(rows)
    made = hf.to_hf(given, text=["t"])
    assert isinstance(made, datasets.Dataset)
    assert made.features["t"].dtype == "large_string"
    assert made[2]["x"] == [4, 5]
    assert str(hf.from_hf(made).to_list()) == str(given.to_list())
    assert hf.to_hf(given).features["t"].dtype == "large_binary"
    assert hf.to_hf(Dataset.from_arrow(pa.table({"s": [{"a": 1}], "l": [[1, 2]]})))[0] == {"s": {"a": 1}, "l": [1, 2]}


def test_lists_of_objects_are_lists_of_their_fields_and_nulls_are_told() -> None:
    chats = [[{"role": "user", "n": 1}, {"role": None, "n": 2}], []]
    rows = datasets.Dataset.from_dict({"messages": chats, "x": [None, 3]})
    first, second = di.interop.huggingface.from_hf(rows, nulls="valid")
    assert first["messages"]["role"].tolist() == [b"user", b""]
    assert first["messages"]["role_valid"].tolist() == [True, False]
    assert second["messages"]["n"].tolist() == []
    assert [(row["x"].item(), row["x_valid"].item()) for row in (first, second)] == [(0, False), (3, True)]
    with pytest.raises(di.errors.InvalidArgumentError, match="read in parts; name the columns with valid="):
        di.interop.huggingface.from_hf(rows.to_iterable_dataset(), nulls="valid")


def test_rows_of_python_are_those_that_hugging_face_has() -> None:
    chats = [
        [{"role": "user", "content": "hi"}, {"role": "bot", "content": None}],
        [],
        [{"role": "user", "content": "yo"}],
    ]
    given = datasets.Dataset.from_dict({"messages": chats, "text": ["é", None, "c"]})
    made = hf.from_hf(given).as_rows(["messages"]).as_text()
    assert [row["messages"] for row in made] == [row["messages"] for row in given] == chats
    assert made.select(["text"]).to_list()[1] == {"text": {"value": "", "valid": False}}
