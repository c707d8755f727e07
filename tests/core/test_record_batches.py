# SPDX-License-Identifier: Apache-2.0
"""Elements of any spec become rows of Arrow tables and come back as they were."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.arrow.record_batches import arrow_schema, record_batch
from distinput.columns.block import ColumnBlock
from distinput.columns.ragged import Objects
from distinput.errors import InvalidArgumentError
from distinput.values.nest import LEAF
from distinput.values.spec import Spec

Dataset = di.data.Dataset

DTYPES = [
    "bool",
    "int8",
    "uint16",
    "int64",
    "float16",
    "float32",
    "float64",
    "M8[D]",
    "M8[us]",
    "M8[ns]",
    "m8[ms]",
    "object",
]


def array_of(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """Any values of a dtype, with NaN and NaT among them."""
    random = np.random.default_rng(seed)
    if dtype == "object":
        flat = np.empty(int(np.prod(shape)), object)
        flat[:] = [random.bytes(int(n)) for n in random.integers(0, 4, flat.size)]
        return flat.reshape(shape) if shape else flat[0]
    numbers = random.integers(0, 100, shape)
    made = (numbers % 2 == 0) if dtype == "bool" else np.asarray(numbers).astype(dtype)
    if dtype[0] in "fMm":
        made = np.where(numbers % 5 == 0, np.array("nan" if dtype[0] == "f" else "NaT", dtype), made)
    return made if shape else made[()]


Make = Callable[[int], Any]


@st.composite
def leaves(draw: st.DrawFn) -> tuple[di.TensorSpec, Make]:
    dtype = draw(st.sampled_from(DTYPES))
    inner = draw(st.lists(st.integers(1, 3), max_size=2))
    shape = draw(st.sampled_from([inner, [None, *inner], [0, *inner], [None, None, *inner]]))
    if shape[:2] == [None, None]:  # a ragged tensor

        def ragged(seed: int) -> Any:
            lengths = np.random.default_rng(seed).integers(0, 3, seed % 3)
            values = array_of(dtype, (int(lengths.sum()), *inner), seed)
            return di.RaggedTensor.from_row_lengths(values, lengths)

        return di.RaggedTensorSpec(shape, dtype, ragged_rank=1), ragged

    def make(seed: int) -> Any:
        sizes = [seed * 7 % 4 if size is None else size for size in shape]
        return array_of(dtype, tuple(sizes), seed)

    return di.TensorSpec(shape, dtype), make


def dicts(inner: Any) -> Any:
    items = st.dictionaries(st.sampled_from("zyxwv"), inner, min_size=1, max_size=4)
    return items.map(
        lambda made: (
            {key: spec for key, (spec, _) in made.items()},
            lambda seed: {key: make(seed + place) for place, (key, (_, make)) in enumerate(made.items())},
        )
    )


SPECS = dicts(st.one_of(leaves(), dicts(leaves())))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, bytes):
        return bool(a == b)
    if isinstance(a, di.RaggedTensor):
        return np.array_equal(a.row_splits, b.row_splits) and same(a.values, b.values)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype == object:
        return bool(a.tolist() == b.tolist())
    return bool(((a == b) | ((a != a) & (b != b))).all())


@settings(max_examples=30, deadline=None)
@given(SPECS, st.integers(0, 5), st.integers(1, 3))
def test_elements_of_any_spec_come_back(made: tuple[Any, Make], rows: int, size: int) -> None:
    spec, make = made
    elements = [make(seed) for seed in range(rows)]
    dataset = Dataset.from_generator(lambda: iter(elements), output_signature=spec)
    table = dataset.to_arrow()
    table.validate(full=True)
    assert table.schema == arrow_schema(Spec.of(spec))
    back = Dataset.from_arrow(table)
    assert all(same(a, b) for a, b in zip(elements, back, strict=True))
    for a, b in zip(Spec.of(spec).leaves, back.node.spec.leaves, strict=True):
        assert isinstance(a, di.TensorSpec)
        assert b == a.with_shape([size or None for size in a.shape or ()])  # a size of 0 becomes an unknown one
    # The same from blocks of other forms: batches taken apart, and rows gathered by number.
    shuffled = back.global_shuffle(seed=1, reshuffle_each_iteration=False)
    assert repr(Dataset.from_arrow(shuffled.to_arrow()).to_list()) == repr(shuffled.to_list())
    if all(None not in leaf.shape and 0 not in leaf.shape for leaf in dataset.node.spec.tensors("test")):  # type: ignore[operator]
        batches = dataset.batch(size)
        again = Dataset.from_arrow(batches.to_arrow())
        assert all(same(a, b) for a, b in zip(batches, again, strict=True))


class Pair(NamedTuple):
    b: Any
    a: Any


@dataclass
class Point:
    y: int
    x: int


def test_names_of_columns() -> None:
    def names(element: Any) -> list[str]:
        return list(Dataset.from_tensors(element).to_arrow().column_names)

    assert names(1) == ["value"]
    assert names({"b": 1, "a": 2}) == ["b", "a"]
    assert names((1, None, b"")) == ["0", "2"]
    assert names(Pair(1, 2)) == ["b", "a"]
    assert names(Point(1, 2)) == ["y", "x"]
    nested = Dataset.from_tensors({"p": Pair(1, (2, b"x")), "e": {}}).to_arrow()
    assert nested.to_pylist() == [{"p": {"b": 1, "a": {"0": 2, "1": b"x"}}, "e": {}}]


def test_text_is_what_the_caller_calls_text() -> None:
    dataset = Dataset.from_tensor_slices({"t": ["a", "ä"], "b": [b"\xff", b""], "l": np.array([["x"], ["y"]])})
    assert dataset.to_arrow().schema.field("t").type == pa.large_binary()
    table = dataset.to_arrow(text=["t", "l"])
    assert table["t"].to_pylist() == ["a", "ä"]
    assert table["l"].to_pylist() == [["x"], ["y"]]
    assert table["b"].to_pylist() == [b"\xff", b""]
    with pytest.raises(InvalidArgumentError, match=r"column 'b' cannot become large_string.*stay binary without text="):
        dataset.to_arrow(text=True)
    with pytest.raises(InvalidArgumentError, match="text: there is no column 'x'; the columns are b, l, t"):
        dataset.to_arrow(text=["x"])
    with pytest.raises(InvalidArgumentError, match="text must be True, False or a list"):
        dataset.to_arrow(text="t")


@pytest.mark.parametrize(
    "dataset, message",
    [
        (Dataset.range(4).window(2), "column 'value' is a dataset"),
        (Dataset.from_tensors(1j), "column 'value' is of dtype complex128, for which Arrow has no type"),
        (
            Dataset.range(1).map(lambda x: x, output_signature=di.TensorSpec(None, "int64")),
            "the number of dimensions of column 'value' is unknown",
        ),
        (Dataset.from_tensors({1: 1, "1": 2}), "several items of the element would have the same name: 1, 1"),
        (Dataset.from_tensors({"a": {1: 1, "1": 2}}), "several items of column 'a' would have the same name"),
        (Dataset.range(3).repeat(), "the dataset is infinite; take"),
    ],
)
def test_what_has_no_columns_is_refused(dataset: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"to_arrow: {message}"):
        dataset.to_arrow()


def test_ragged_tensors_are_lists_of_lists() -> None:
    values = [di.RaggedTensor.from_list([[1, 2], []]), di.RaggedTensor.from_list([[3]])]
    spec = Spec.of(di.RaggedTensorSpec([None, None], "int32"))
    batch = record_batch(ColumnBlock(LEAF, [Objects(values, np.dtype("int32"))], 2), arrow_schema(spec))
    batch.validate(full=True)
    assert batch["value"].to_pylist() == [[[1, 2], []], [[3]]]
    deep = [di.RaggedTensor.from_list([[[b"a"], []], []])]
    spec = Spec.of(di.RaggedTensorSpec([None, None, None], object))
    batch = record_batch(ColumnBlock(LEAF, [Objects(deep, np.dtype(object))], 1), arrow_schema(spec))
    assert batch["value"].to_pylist() == [[[[b"a"], []], []]]


def test_numbers_are_where_they_were() -> None:
    values = np.arange(600_000.0).reshape(-1, 3)  # small arrays are copied
    table = Dataset.from_tensor_slices({"m": values, "i": np.arange(200_000)}).to_arrow()
    assert table["m"].chunk(0).flatten().buffers()[1].address == values.ctypes.data
    back = Dataset.from_arrow(table)
    assert next(iter(back.batch(4)))["m"].ctypes.data == values.ctypes.data
    foreign = Dataset.from_tensor_slices(values.astype(">f8")).to_arrow()
    assert foreign["value"].to_pylist() == values.tolist()
