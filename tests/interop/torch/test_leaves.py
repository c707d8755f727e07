# SPDX-License-Identifier: Apache-2.0
"""NumPy elements as tensors: the same memory, the same nest, and a stated rule for what PyTorch lacks."""

import warnings
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

import distinput as di
from distinput.errors import ElementTypeError
from distinput.interop.torch import Loader, MapView
from distinput.interop.torch.map_view import converter

Spec = di.TensorSpec


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass
class Record:
    x: Any
    y: Any


def tensor(array: Any, *, shared: bool = False) -> Any:
    return converter(Spec(array.shape, array.dtype), "test", shared=shared)(array)


@pytest.mark.parametrize("writable, shared", [(True, False), (True, True), (False, True)])
def test_memory_is_shared(writable: bool, shared: bool) -> None:
    array = np.arange(6.0).reshape(2, 3)
    array.flags.writeable = writable
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = tensor(array[:, 1:], shared=shared)
    assert made.data_ptr() == array[:, 1:].__array_interface__["data"][0]
    assert made.tolist() == [[1, 2], [4, 5]]
    del array
    assert made.sum() == 12  # it keeps the memory alive


def test_what_others_see_is_copied() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    made = tensor(array)
    made += 1
    assert array.tolist() == [0, 1, 2]
    assert made.tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", ["array", "npy", "cache"])
def test_a_loop_that_changes_its_tensors_changes_no_later_epoch(kind: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(8.0))
    ds: di.data.Dataset[Any] = {
        "array": lambda: di.data.Dataset.from_tensor_slices(np.arange(8.0)),
        "npy": lambda: di.data.NpyDataset(tmp_path / "x.npy"),
        "cache": lambda: di.data.Dataset.range(8).map(float).cache(),
    }[kind]()
    for loader in (di.interop.torch.Loader(ds.batch(4)), di.interop.torch.MapView(ds.batch(4))):
        for _ in range(2):
            steps = [loader[i] for i in range(2)] if isinstance(loader, di.interop.torch.MapView) else list(loader)
            assert [step.tolist() for step in steps] == [[0, 1, 2, 3], [4, 5, 6, 7]]
            for step in steps:
                step.mul_(2)


@pytest.mark.parametrize("writable", [True, False])
def test_arrays_that_run_backwards_are_copied(writable: bool) -> None:
    array = np.arange(3)
    array.flags.writeable = writable
    assert tensor(array[::-1]).tolist() == [2, 1, 0]


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 0)])
def test_arrays_without_rows_and_scalars_keep_shape_and_dtype(shape: tuple[int, ...]) -> None:
    for array in (np.zeros(shape, np.float32), np.broadcast_to(np.float32(0), shape)):
        made = tensor(array)
        assert made.shape == shape
        assert made.dtype == torch.float32
    assert tensor(np.int16(7)).dtype == torch.int16


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "uint32", "uint64", "float16", "float64", "complex64"])
def test_every_dtype_of_both_is_kept(dtype: str) -> None:
    made = converter(Spec([None], dtype), "test")(np.zeros(2, dtype))
    assert str(made.dtype) == f"torch.{dtype}"


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_short_floats_of_ml_dtypes_are_those_of_pytorch(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -2], getattr(ml_dtypes, name))
    made = converter(Spec([None], array.dtype), "test")(array)
    assert made.dtype == getattr(torch, name)
    assert made.float().tolist() == [1.5, -2]
    assert made.data_ptr() == array.__array_interface__["data"][0]


@pytest.mark.parametrize(
    "nest, element",
    [
        (Spec([None], "int64"), np.arange(2)),
        ((Spec([None], "int64"), Spec([], "int64")), (np.arange(2), np.int64(1))),
        ({"b": Spec([None], "int64"), "a": Spec([None], "int64")}, {"b": np.arange(2), "a": np.arange(3)}),
        ({"a": (Spec([None], "int64"), Spec([], "int64"))}, {"a": (np.arange(2), np.int64(1))}),
        (Pair(Spec([None], "int64"), Spec([], "int64")), Pair(np.arange(2), np.int64(1))),
        (OrderedDict(a=Spec([None], "int64")), OrderedDict(a=np.arange(2))),
    ],
    ids=str,
)
def test_the_nest_stays(nest: Any, element: Any) -> None:
    made = converter(nest, "test")(element)
    assert type(made) is type(element) or isinstance(made, torch.Tensor)
    if isinstance(element, dict):
        assert list(made) == list(element)
    leaves = torch.utils._pytree.tree_leaves(made)
    assert all(isinstance(leaf, torch.Tensor) for leaf in leaves)
    assert [leaf.tolist() for leaf in leaves] == [leaf.tolist() for leaf in torch.utils._pytree.tree_leaves(element)]


def test_dataclasses_stay_too() -> None:
    made = converter(Record(Spec([None], "int64"), Spec([], "float32")), "test")(Record(np.arange(2), np.float32(1)))
    assert isinstance(made, Record)
    assert made.x.tolist() == [0, 1]
    assert made.y.item() == 1


def test_text_passes_as_it_is() -> None:
    convert = converter({"text": Spec([None], "string"), "x": Spec([None], "int64")}, "test")
    text = np.array([b"a", b"bc"], object)
    made = convert({"text": text, "x": np.arange(2)})
    assert made["text"] is text
    assert made["x"].tolist() == [0, 1]


@pytest.mark.parametrize(
    "dtype, instead",
    [("datetime64[ns]", "int64"), ("timedelta64[s]", "int64"), ("longdouble", "float64"), (">i4", "int32")],
)
def test_what_pytorch_lacks_is_refused_by_name(dtype: str, instead: str) -> None:
    if dtype == "longdouble" and np.dtype("longdouble") == np.dtype("float64"):
        pytest.skip("a long double is a double here")
    with pytest.raises(ElementTypeError, match=rf"test: component \['when'\] has dtype .*such as {instead}"):
        converter({"when": Spec([None], dtype)}, "test")


def test_a_dataset_is_no_tensor() -> None:
    windows = di.data.Dataset.range(4).window(2)
    with pytest.raises(ElementTypeError, match=r"the element is DatasetSpec.* flat_map it first"):
        converter(windows.element_spec, "test")


def test_rows_of_different_lengths_become_a_nested_tensor_over_the_same_memory() -> None:
    ragged = di.RaggedTensor.from_list([[1.0, 2.0], [], [3.0]])
    made = converter({"x": di.RaggedTensorSpec([None, None], ragged.dtype)}, "test")({"x": ragged})["x"]
    assert [row.tolist() for row in made.unbind()] == [[1, 2], [], [3]]
    assert made.values().data_ptr() == ragged.values.__array_interface__["data"][0]
    none = converter(di.RaggedTensorSpec([None, None, 2], "int16", ragged_rank=1), "test")(
        di.RaggedTensor.from_row_lengths(np.zeros((0, 2), np.int16), [])
    )
    assert none.size(0) == 0
    assert none.dtype == torch.int16


def test_ragged_text_stays_and_two_ragged_dimensions_are_refused() -> None:
    text = di.RaggedTensor.from_list([["a"], []])
    assert converter(di.RaggedTensorSpec([None, None], "string"), "test")(text) is text
    with pytest.raises(ElementTypeError, match=r"the element has 2 ragged dimensions.*value\.to_padded\(\)"):
        converter(di.RaggedTensorSpec([None, None, None], "int64"), "test")


def test_text_of_python_is_lists_of_str_and_rows_are_as_they_are() -> None:
    chats = {"m": {"a": [[1, 2], [3, 4]], "t": [["x", "y"], ["z", "é"]]}, "t": ["p", "q"], "n": [5, 6]}
    ds = di.data.Dataset.from_tensor_slices(chats).as_rows(["m"]).as_text()
    for view in (Loader(ds), MapView(ds)):
        second = list(view)[1]
        assert second == {"m": [{"a": 3, "t": "z"}, {"a": 4, "t": "é"}], "t": "q", "n": torch.tensor(6)}
    (batch,) = Loader(ds.batch(2))
    assert batch["t"] == ["p", "q"]
    assert batch["m"][0] == [{"a": 1, "t": "x"}, {"a": 2, "t": "y"}]


def test_bytes_of_text_are_nested_tensors() -> None:
    (batch,) = Loader(di.data.Dataset.from_tensor_slices(["Ada", "", "Zoë"]).batch(3).as_uint8(), 0, 1)
    assert [bytes(text.numpy()).decode() for text in batch.unbind()] == ["Ada", "", "Zoë"]


def test_rows_and_texts_that_were_made_are_cut_and_filled_up_on_several_ranks() -> None:
    chats = di.data.Dataset.from_tensor_slices({"m": {"a": [[1, 2], [3, 4]]}, "n": [5, 6]}).as_rows(["m"]).batch(2)
    (step,) = Loader(chats, 0, 2)
    assert (step["m"], step["n"].tolist()) == ([[{"a": 1}, {"a": 2}]], [5])
    with pytest.raises(di.errors.UnimplementedError, match=r"tail='pad': a step cannot be filled up with dicts"):
        iter(Loader(chats, 0, 2, tail="pad"))
    texts = di.data.Dataset.from_tensor_slices({"t": ["p", "q", "r"], "n": [1, 2, 3]}).as_text().batch(2)
    full, short = [(step["t"], mask.tolist()) for step, mask in Loader(texts, 0, 1, tail="pad")]
    assert (full, short) == ((["p", "q"], [True, True]), (["r", ""], [True, False]))


def test_decimals_are_filled_up_with_decimals_also_on_ranks_without_rows() -> None:
    table = pa.table({"x": pa.array([Decimal(1), Decimal(2), Decimal(3)])})
    dataset = di.data.Dataset.from_arrow(table).as_decimal().batch(2)
    for rank, there in enumerate([[Decimal(3)], [Decimal(0)]]):
        *_, (step, mask) = Loader(dataset, rank, 2, tail="pad")
        assert (list(step["x"]), mask.tolist()) == (there, [rank == 0])
