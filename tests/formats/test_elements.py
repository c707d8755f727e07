# SPDX-License-Identifier: Apache-2.0
"""Elements of any spec in Arrow files: read, counted, reached by position, and checked."""

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import distinput as di
from distinput.errors import DataLossError
from distinput.formats.elements import Elements, column_names
from distinput.testing import check_format
from distinput.testing.elements import exact
from distinput.values.nest import structure_of
from distinput.values.spec_json import spec_json

Dataset = di.data.Dataset


class Pair(NamedTuple):
    x: Any
    y: Any


def lists(n: int) -> "di.data.Dataset[Any]":
    return Dataset.range(n).map(np.arange, output_signature=di.TensorSpec([None], "int64"))


DATASETS: dict[str, "di.data.Dataset[Any]"] = {
    "numbers": Dataset.range(5),
    "floats": Dataset.from_tensor_slices(np.arange(2.0)),
    "nothing": Dataset.range(0),
    "no leaves": Dataset.range(3).map(lambda _: ()),
    "dicts": Dataset.from_tensor_slices({"b": np.arange(6.0).reshape(3, 2), "a": ["x", "", "z"]}),
    "nested": Dataset.range(3).map(lambda x: Pair(x, {"b": (None, x * 2), "a": ()})),
    "lists": lists(5),
    "ragged": lists(5).ragged_batch(2),
    "loose": lists(5).ragged_batch(2).unbatch(),
    "any rank": Dataset.range(3).map(
        lambda n: np.zeros((2,) * int(n), "c8"), output_signature=di.TensorSpec(None, "c8")
    ),
}


def written(dataset: Any, folder: Path, **options: Any) -> "di.data.Dataset[Any]":
    made = dataset.write(str(folder), "elements", **options)
    return di.data.FileDataset(made.paths, "elements", **made.options)


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_elements_come_back_exactly(tmp_path: Path, name: str, compression: str | None) -> None:
    dataset = DATASETS[name]
    back = written(dataset, tmp_path / "a", shard_rows=2, compression=compression)
    wanted = list(map(exact, dataset))
    assert back.element_spec == dataset.element_spec
    assert list(map(exact, back)) == wanted
    assert len(back) == len(wanted)
    assert [exact(back[i]) for i in range(len(wanted))] == wanted
    assert list(map(exact, back.skip(3))) == wanted[3:]


BITS = st.sampled_from(["M8[us]", "m8[ns]", ">M8[ms]", "M8[h]", "m8[D]", "f2", ">f8", "c8", ">u4", "?"]).map(np.dtype)


@given(arrays(BITS, st.tuples(st.integers(0, 4), st.integers(0, 2))), st.integers(1, 3), st.booleans())
def test_nan_and_nat_and_all_other_bits_come_back(rows: Any, count: int, ragged: bool) -> None:
    dataset = Dataset.from_tensor_slices((rows, rows[:, :1]))
    dataset = (
        dataset.ragged_batch(count).map(lambda *xs: tuple(map(di.RaggedTensor.from_tensor, xs))) if ragged else dataset
    )
    wanted = list(map(exact, dataset))
    with tempfile.TemporaryDirectory() as folder:
        back = written(dataset, Path(folder) / "a", shard_rows=count)
        assert list(map(exact, back)) == wanted
        assert [exact(back[i]) for i in range(len(wanted))] == wanted


def test_numbers_are_views_of_the_file(tmp_path: Path) -> None:
    back = written(DATASETS["dicts"], tmp_path / "a")
    assert back.node.random_access
    block = next(iter(back.iter_blocks()))
    assert not block.columns[1].array.flags.owndata  # type: ignore[attr-defined]


def test_the_suite_for_formats(tmp_path: Path) -> None:
    spec = Dataset.from_tensor_slices(np.zeros((1, 2), np.int32)).node.spec

    def write(folder: Path) -> list[Path]:
        paths = []
        for name, rows in (("a", 5), ("b", 0), ("c", 1)):
            dataset = Dataset.from_tensor_slices(np.arange(2 * rows, dtype=np.int32).reshape(rows, 2))
            paths += map(Path, dataset.write(str(folder / name), "elements").paths)
        return paths

    assert "damage" in check_format(Elements(json.dumps(spec_json(spec, "save"))), write)


def test_a_file_of_other_columns_is_refused(tmp_path: Path) -> None:
    layout = DATASETS["dicts"].write(str(tmp_path / "a"), "elements").options
    paths = DATASETS["numbers"].write(str(tmp_path / "b"), "elements").paths
    with pytest.raises(
        DataLossError, match=r"part-00000\.arrow: has the columns .* and must have .*; it is another file"
    ):
        di.data.FileDataset(paths, "elements", **layout).to_list()


TUPLES = '{"tuple": [' * 400 + '{"dtype": "<i8", "shape": []}' + "]}" * 400


@pytest.mark.parametrize("layout", ["", "{", "[" * 100_000, '{"dtype": "O", "shape": []}', TUPLES])
def test_a_damaged_layout_is_refused(layout: str) -> None:
    with pytest.raises(DataLossError, match=r"damaged|is not a dtype"):
        di.data.FileDataset("a", "elements", layout=layout).element_spec  # noqa: B018


def of_shape(shape: list[int]) -> "di.data.Dataset[Any]":
    spec = di.TensorSpec([None] * len(shape), "int64")
    return Dataset.from_generator(lambda: iter([np.zeros(shape, np.int64)] * 3), output_signature=spec)


RAGGED: dict[str, tuple[list[int], list[int]]] = {
    "rows": ([1, 2], [1, 1, 1]),
    "fewer rows": ([1, 2], [3]),
    "sizes": ([2, 2], [1, 3]),
}


@pytest.mark.parametrize("inner", [(), (None, 2)])
@pytest.mark.parametrize("lengths, others", RAGGED.values(), ids=RAGGED)
def test_ragged_tensors_of_other_sizes_than_the_spec_says_are_damage(
    inner: tuple[int | None, ...], lengths: list[int], others: list[int], tmp_path: Path
) -> None:
    def tensors(lengths: list[int], shape: list[int | None]) -> "di.data.Dataset[Any]":
        values = np.zeros((sum(lengths), *[2 for _ in inner]))
        tensor = di.RaggedTensor.from_row_lengths(values, lengths)
        spec = di.RaggedTensorSpec([*shape, *inner], "float64", 1)
        return Dataset.range(3).map(lambda _: tensor, output_signature=spec)

    stated = tensors(lengths, [2, 2 if lengths == [2, 2] else None])
    options = stated.write(str(tmp_path / "a"), "elements").options
    paths = tensors(others, [None, None]).write(str(tmp_path / "b"), "elements").paths
    damaged = di.data.FileDataset(paths, "elements", **options)
    for read in (damaged.to_list, lambda: damaged[1]):
        with pytest.raises(DataLossError, match=r"part-00000\.arrow: damaged: .* and the spec says"):
            read()


def test_arrays_of_other_shapes_than_the_spec_says_are_damage(tmp_path: Path) -> None:
    written = of_shape([2, 3]).write(str(tmp_path / "a"), "elements")
    layout = json.dumps({"dtype": "<i8", "shape": [None, None]})
    assert [each.shape for each in di.data.FileDataset(written.paths, "elements", layout=layout)] == [(2, 3)] * 3
    for shape in ([None, None, 2], [3, None], [None]):
        spec = json.dumps({"dtype": "<i8", "shape": shape})
        with pytest.raises(
            DataLossError, match=r"part-00000\.arrow: (damaged: an array has the shape|has the columns)"
        ):
            di.data.FileDataset(written.paths, "elements", layout=spec).to_list()


def test_nulls_are_damage(tmp_path: Path) -> None:
    layout = DATASETS["floats"].write(str(tmp_path / "a"), "elements").options
    di.io.write_arrow(tmp_path / "b.arrow", {"value": pa.array([1.0, None])})
    with pytest.raises(DataLossError, match=r"b\.arrow: damaged: record batch 0 holds nulls, and elements have none"):
        di.data.FileDataset([str(tmp_path / "b.arrow")], "elements", **layout).to_list()


@pytest.mark.parametrize("shape", [(), (3,)])
def test_optionals_without_a_value_fit_any_spec(shape: tuple[int, ...], tmp_path: Path) -> None:
    tensor = di.RaggedTensor.from_row_lengths(np.zeros((3, *shape)), [1, 2])
    of, spec = di.data.experimental.Optional, di.RaggedTensorSpec([2, None, *shape], "float64", 1)
    back = written(Dataset.from_tensors((of.from_value(tensor), of.empty(spec))), tmp_path / "a").to_list()
    assert [each.has_value() for each in back[0]] == [True, False]


def test_columns_have_names_that_say_what_they_are() -> None:
    assert column_names(structure_of(1)) == ("value",)
    assert column_names(structure_of({"x": 1, "y": 2})) == ("x", "y")
    assert column_names(structure_of({"x": (1, 2), "y": 2})) == ("['x'][0]", "['x'][1]", "['y']")
    assert column_names(structure_of((1, 2))) == ("[0]", "[1]")
