# SPDX-License-Identifier: Apache-2.0
"""Arrow arrays become columns of the same values, wherever a slice begins, and what no column can hold is refused."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.arrow.arrow import (
    ArrowDamageError,
    FillError,
    NullsError,
    UnsupportedTypeError,
    block_of,
    columns_of,
    names_of,
    one_batch,
    schema_spec,
    to_column,
    to_columns,
    without_views,
)
from distinput.columns.column import Dense
from distinput.errors import UnimplementedError
from distinput.values.nest import structure_of

TEXTS = [b"a", b"", b"bcd", b"ef"]
LISTS = [[1, 2], [], [3], [4, 5, 6]]
PAIRS = [[1, 2], [3, 4], [5, 6], [7, 8]]
NESTED = [PAIRS[:1], [], PAIRS, PAIRS[1:]]

DEEP: list[list[list[int]]] = [[[1, 2], []], [], [[3]], [[], [4], [5, 6]]]
ARRAYS: dict[str, tuple[Any, list[Any]]] = {
    "int8": (pa.array([1, 2, 3, 4], pa.int8()), [1, 2, 3, 4]),
    "float16": (pa.array(np.arange(4, dtype=np.float16)), [0, 1, 2, 3]),
    "bool": (pa.array([True, False, True, True]), [True, False, True, True]),
    "text": (pa.array(TEXTS, pa.string()), TEXTS),
    "large bytes": (pa.array(TEXTS, pa.large_binary()), TEXTS),
    "fixed bytes": (pa.array([b"ab", b"cd", b"ef", b"gh"], pa.binary(2)), [b"ab", b"cd", b"ef", b"gh"]),
    "text views": (pa.array(TEXTS, pa.binary_view()), TEXTS),
    "words": (pa.array(["a", "b", "a", "a"]).dictionary_encode(), [b"a", b"b", b"a", b"a"]),
    "lists": (pa.array(LISTS, pa.list_(pa.int32())), LISTS),
    "large lists": (pa.array(LISTS, pa.large_list(pa.int32())), LISTS),
    "list views": (pa.array(LISTS, pa.list_view(pa.int32())), LISTS),
    "lists of texts": (pa.array([["a"], [], ["b", "c"], ["d"]]), [[b"a"], [], [b"b", b"c"], [b"d"]]),
    "pairs": (pa.array(PAIRS, pa.list_(pa.int32(), 2)), PAIRS),
    "pairs of texts": (
        pa.array([["a", "b"], ["c", ""], ["", "d"], ["e", "f"]], pa.list_(pa.string(), 2)),
        [[b"a", b"b"], [b"c", b""], [b"", b"d"], [b"e", b"f"]],
    ),
    "lists of lists": (pa.array(DEEP, pa.list_(pa.large_list(pa.int32()))), DEEP),
    "lists of lists of texts": (pa.array([[["a"], []], [], [[]], [["b", "c"]]]), [[[b"a"], []], [], [[]], [[b"b", b"c"]]]),
    "lists of list views": (pa.array(DEEP, pa.list_(pa.list_view(pa.int32()))), DEEP),
    "pairs of lists": (pa.array([row[:2] + [[]] * (2 - len(row)) for row in DEEP], pa.list_(pa.list_(pa.int8()), 2)), [
        row[:2] + [[]] * (2 - len(row)) for row in DEEP
    ]),
    "lists of pairs": (pa.array(NESTED, pa.list_(pa.list_(pa.int32(), 2))), NESTED),
}  # fmt: skip


@given(st.sampled_from(sorted(ARRAYS)), st.integers(0, 4), st.integers(0, 4))
def test_a_slice_has_the_values_of_the_slice(kind: str, start: int, stop: int) -> None:
    array, values = ARRAYS[kind]
    column = to_column(array.slice(start, max(0, stop - start)), "x")
    found = [value if isinstance(value, bytes | int | float) else value.tolist() for value in column.values()]
    assert found == values[start:stop]
    assert len(column) == len(found)


@pytest.mark.parametrize("kind", sorted(ARRAYS))
def test_the_spec_is_that_of_the_values(kind: str) -> None:
    array, _ = ARRAYS[kind]
    (leaf,) = schema_spec(pa.schema([("x", array.type)])).leaves
    column = to_column(array, "x")
    assert leaf.dtype == column.dtype
    for value in column.values():
        assert len(np.shape(value)) == len(leaf.shape)
        assert all(size in (None, actual) for size, actual in zip(leaf.shape, np.shape(value), strict=True))


def test_chunks_are_joined() -> None:
    column = to_column(pa.chunked_array([pa.array([1, 2]), pa.array([], pa.int64()), pa.array([3])]), "x")
    assert list(column.values()) == [1, 2, 3]
    assert len(to_column(pa.chunked_array([], pa.int32()), "x")) == 0


def test_numbers_share_memory_with_the_array() -> None:
    values = np.arange(5)
    column = to_column(pa.array(values).slice(1, 3), "x")
    assert isinstance(column, Dense)
    assert np.shares_memory(column.array, values)


@pytest.mark.parametrize(
    "kind, dtype",
    [
        (pa.timestamp("us"), "datetime64[us]"),
        (pa.date32(), "datetime64[D]"),
        (pa.date64(), "datetime64[ms]"),
        (pa.duration("s"), "timedelta64[s]"),
        (pa.time32("ms"), "timedelta64[ms]"),
        (pa.time64("ns"), "timedelta64[ns]"),
    ],
)
def test_times_keep_their_unit(kind: Any, dtype: str) -> None:
    days = 2 if kind == pa.date32() else 2 * 86_400_000 if kind == pa.date64() else 2
    stored = pa.int32() if kind.bit_width == 32 else pa.int64()
    array = pa.array([days, 0], stored).cast(kind)
    column = to_column(array, "x")
    assert isinstance(column, Dense)
    assert str(column.array.dtype) == dtype
    assert column.array.astype(np.int64).tolist() == [days, 0]


def test_structs_are_dicts_of_columns() -> None:
    batch = pa.RecordBatch.from_pylist([{"a": 1, "s": {"b": "x", "c": [1]}}, {"a": 2, "s": {"b": "y", "c": []}}])
    found = columns_of(batch, {})
    assert list(found["a"].values()) == [1, 2]
    assert list(found["s"]["b"].values()) == [b"x", b"y"]
    assert [value.tolist() for value in found["s"]["c"].values()] == [[1], []]
    spec = schema_spec(batch.schema)
    block = block_of(batch.slice(1), spec.structure, {})
    assert block.size == 1
    assert block.structure == structure_of({"a": 0, "s": {"b": b"", "c": np.zeros(0)}})
    assert block.row(0)["s"]["b"] == b"y"


NULLS = [
    (pa.array([1, None, 3]), 7, [1, 7, 3]),
    (pa.array(["a", None]), "b", [b"a", b"b"]),
    (pa.array([[1], None, [2]]), 0, [[1], [], [2]]),
    (pa.array([[1], None, [None]]), 9, [[1], [], [9]]),
    (pa.array([[1], None, [2, 3]], pa.list_view(pa.int64())), 0, [[1], [], [2, 3]]),
    (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), 5, [[1, 2], [5, 5]]),
]


@pytest.mark.parametrize("array, fill, wanted", NULLS)
def test_nulls_are_replaced_or_refused(array: Any, fill: Any, wanted: list[Any]) -> None:
    batch = pa.RecordBatch.from_arrays([array], ["x"])
    found = columns_of(batch, {"x": fill})["x"]
    assert [
        value.tolist() if isinstance(value, np.ndarray | np.generic) else value for value in found.values()
    ] == wanted
    with pytest.raises(NullsError, match="column 'x' has 1 nulls, the first in row 1") as caught:
        columns_of(batch, {})
    assert (caught.value.column, caught.value.count, caught.value.row) == ("x", 1, 1)


def test_a_replacement_of_another_type_is_refused() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1, None])], ["x"])
    with pytest.raises(TypeError, match="column 'x' is of type int64, and 'text' is not"):
        columns_of(batch, {"x": "text"})


@pytest.mark.parametrize(
    "array",
    [
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([5])]),
        pa.array([[{"a": 1}]]),
        pa.array([{"a": 1}]),
    ],
)
def test_what_no_column_can_hold_is_refused(array: Any) -> None:
    with pytest.raises(UnsupportedTypeError, match="column 'x' "):
        to_column(array, "x")


def test_a_nested_column_is_named_by_its_path() -> None:
    union = pa.sparse_union([pa.field("i", pa.int8())])
    schema = pa.schema([("s", pa.struct([("t", pa.struct([("u", union)]))]))])
    with pytest.raises(UnsupportedTypeError, match=r"column 's\.t\.u' is of type sparse_union"):
        schema_spec(schema)


def test_damage_is_found_before_it_is_followed() -> None:
    offsets = np.zeros(2, np.int32)
    damaged = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab")])
    offsets[1] = 99  # later, since pyarrow makes no array from wrong ones
    with pytest.raises(ArrowDamageError, match="column 'x'"):
        to_column(damaged, "x")


def test_a_null_list_is_empty_whatever_its_offsets_say() -> None:
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, 1, 3, 4], np.int32))]  # the second of three is null
    array = pa.Array.from_buffers(pa.list_(pa.int64()), 3, buffers, children=[pa.array([1, 2, 3, 4])])
    found = columns_of(pa.RecordBatch.from_arrays([array], ["x"]), {"x": 0})["x"]
    assert [value.tolist() for value in found.values()] == [[1], [], [4]]


def test_tensors_of_one_shape_are_arrays_of_this_shape() -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    array = pa.FixedShapeTensorArray.from_numpy_ndarray(values)
    for part, wanted in ((array, values), (array.slice(1, 2), values[1:3]), (array.slice(0, 0), values[:0])):
        batch = pa.RecordBatch.from_arrays([part], ["x"])
        column = columns_of(batch, {})["x"]
        assert isinstance(column, Dense)
        np.testing.assert_array_equal(column.array, wanted)
        assert schema_spec(batch.schema).leaves[0].shape == (2, 3)
    assert np.shares_memory(column.array, values) or not len(column)
    storage = pa.array([[1, 2], None], pa.list_(pa.int64(), 2))
    nulls = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int64(), [1, 2]), storage)
    with pytest.raises(NullsError, match="column 'x' has 1 nulls, the first in row 1"):
        to_column(nulls, "x")
    turned = pa.fixed_shape_tensor(pa.int64(), [1, 2], permutation=[1, 0])
    assert schema_spec(pa.schema([("x", turned)])).leaves[0].shape == (2,)


NULLS_IN_LISTS = {
    "list": pa.array([[1, 2], None, [], [3, 4, None]], pa.list_(pa.int64())).slice(2),
    "large": pa.array([[], [3, 4, None]], pa.large_list(pa.int64())),
    "list_view": pa.array([[], [3, 4, None]], pa.list_view(pa.int64())),
    "fixed": pa.array([[1, 2], [3, None]], pa.list_(pa.int64(), 2)),
    "nested": pa.array([[[1], []], [[2, 3], [4, None]]], pa.list_(pa.list_(pa.int64()))),
    "null list": pa.array([[[1], []], [[2, 3], None]], pa.list_(pa.list_(pa.int64()))),
    "fixed in a list": pa.array([[[1, 2]], [[2, 3], [4, None]]], pa.list_(pa.list_(pa.int64(), 2))),
    "text": pa.array([["a"], ["b", "c", None]], pa.list_(pa.string())),
    "views of text": pa.array([["a"], ["b", "c", None]], pa.list_(pa.string_view())),
    "truth": pa.array([[True], [True, False, None]], pa.list_(pa.bool_())),
    "dictionary": pa.array([["a"], ["b", None]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    "struct": pa.array([{"l": [1, 2, 3]}, {"l": [4, None]}], pa.struct({"l": pa.list_(pa.int64())})),
}


@pytest.mark.parametrize("array", NULLS_IN_LISTS.values(), ids=NULLS_IN_LISTS)
def test_a_null_inside_a_list_is_told_by_the_row_of_the_list(array: Any) -> None:
    with pytest.raises(NullsError) as caught:
        to_columns(array, "x")
    assert (caught.value.row, caught.value.count) == (1, 1)
    fill = b"?" if "str" in str(array.type) and "struct" not in str(array.type) else 0
    to_columns(array, "x", False if "bool" in str(array.type) else fill)


def test_a_null_among_floats_in_a_list_is_nan() -> None:
    column = to_column(pa.array([[1.0], [2.0, None]]), "x")
    assert np.isnan(column.row(1)[1])


def test_what_lies_below_a_null_list_is_no_null() -> None:
    offsets, items = pa.array([0, 2, 4], pa.int32()), pa.array([1, 2, 3, None])
    array = pa.ListArray.from_arrays(offsets, items, mask=pa.array([False, True]))
    assert [row.tolist() for row in to_column(array, "x", 0).values()] == [[1, 2], []]
    views = pa.ListViewArray.from_arrays(pa.array([0], pa.int32()), pa.array([2], pa.int32()), items)
    assert [row.tolist() for row in to_column(views, "x").values()] == [[1, 2]]
    truth = pa.array([True, None])
    views = pa.ListViewArray.from_arrays(pa.array([0], pa.int32()), pa.array([1], pa.int32()), truth)
    assert [row.tolist() for row in to_column(views, "x").values()] == [[True]]


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64()])
def test_dictionaries_have_nulls_among_indices_and_entries(index: Any) -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], index), pa.array(["a", None]))
    assert list(to_column(array, "x", b"?").values()) == [b"a", b"?", b"?", b"a"]
    with pytest.raises(NullsError) as caught:
        to_column(array, "x")
    assert (caught.value.row, caught.value.count) == (1, 2)


@pytest.mark.parametrize("deep", [False, True])
def test_a_null_struct_may_hold_indices_of_a_dictionary_without_entries(deep: bool) -> None:
    kind = pa.struct([("x", pa.dictionary(pa.int8(), pa.string())), ("y", pa.int8())])
    array = pa.array([[None], None], pa.list_(kind)) if deep else pa.array([None, None], kind)
    ds = di.data.Dataset.from_arrow(pa.table({"a": array}))
    assert ds.to_arrow()["a"].to_pylist() == array.to_pylist()
    assert ds.global_shuffle(seed=1).to_arrow()["a"].null_count == array.null_count


def test_fields_of_structs_have_replacements_of_their_own() -> None:
    batch = pa.RecordBatch.from_pylist([{"s": {"a": 1, "b": {"c": "x"}}}, {"s": None}])
    structure = schema_spec(batch.schema).structure
    for fill in ({"s.a": 0, "s.b.c": b"?"}, {"s": {"a": 0, "b": {"c": b"?"}}}, {"s": {"b": {"c": b"?"}}, "s.a": 0}):
        assert block_of(batch, structure, fill).row(1) == {"s": {"a": 0, "b": {"c": b"?"}}}
    with pytest.raises(NullsError, match=r"column 's\.b\.c' has 1 nulls, the first in row 1"):
        block_of(batch, structure, {"s.a": 0})
    with pytest.raises(FillError, match=r"column 's\.a' is of type int64, and 'zero' is not"):
        block_of(batch, structure, {"s": {"a": "zero"}})
    assert names_of(batch.schema) == ["s", "s.a", "s.b", "s.b.c"]


@pytest.mark.parametrize("ends", [[0, 3], [2, 2], [3, 1], [-1, 3], [1, 2]])
def test_runs_whose_ends_lead_outside_are_damage(ends: list[int]) -> None:
    numbers = np.array([1, 3], np.int32)
    run_ends = pa.Array.from_buffers(pa.int32(), 2, [None, pa.py_buffer(numbers)])
    damaged = pa.RunEndEncodedArray.from_arrays(run_ends, pa.array([5, 6]))
    assert to_column(damaged, "x").materialize().array.tolist() == [5, 6, 6]
    numbers[:] = ends  # later, since pyarrow makes no array from wrong ones
    with pytest.raises(ArrowDamageError, match="column 'x'"):
        to_column(damaged, "x")


@pytest.mark.parametrize("first, stop", [(0, 0), (0, 1), (2, 5), (3, 6), (6, 6)])
def test_slices_of_runs_begin_within_them(first: int, stop: int) -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 6], pa.int16()), pa.array([7, 8, 9]))
    assert (
        to_column(runs.slice(first, stop - first), "x").materialize().array.tolist() == [7, 7, 8, 9, 9, 9][first:stop]
    )


def test_runs_in_structs_and_lists_that_are_null() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array([5, 6]))
    structs = pa.StructArray.from_arrays([runs], ["a"], mask=pa.array([False, True, False, False]))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 4, 4], pa.int32()), runs, mask=pa.array([False] * 3 + [True]))
    rows = di.data.Dataset.from_arrow(pa.table({"s": structs, "l": lists}))
    assert rows.to_arrow().to_pylist() == [
        {"s": {"a": 5}, "l": [5, 5]},
        {"s": None, "l": []},
        {"s": {"a": 6}, "l": [6, 6]},
        {"s": {"a": 6}, "l": None},
    ]
    assert di.data.Dataset.range(1).map(lambda _: runs[3]).to_list() == [6]


def test_text_that_arrow_leaves_in_chunks_is_one_batch() -> None:
    """As of more than 2 GiB, which the offsets of text cannot reach."""
    table = pa.table({"t": pa.chunked_array([["a"], ["bc", None]]), "x": pa.chunked_array([[1, 2, 3]])})
    left = SimpleNamespace(combine_chunks=lambda: table, to_batches=table.to_batches)
    made = one_batch(left)
    assert (made.to_pydict(), made.schema.field("t").type) == (table.to_pydict(), pa.large_string())
    assert one_batch(table.slice(0, 0)).num_rows == 0


@pytest.mark.parametrize("value, kind", [(7, pa.int64()), ("?", pa.string()), (0.5, pa.float32())])
def test_nulls_of_lists_of_lists_of_one_size_are_replaced(value: Any, kind: Any) -> None:
    rows = [[[value] * 2, None], None, [[value] * 2] * 2]
    array = pa.array([[[value] * 2] * 2, *rows], pa.list_(pa.list_(kind, 2), 2))[1:]
    whole = value.encode() if isinstance(value, str) else value
    made: Any = to_column(array, "x", value)
    assert made.whole().tolist() == [[[whole] * 2] * 2] * 3


class OldView:
    """An array of views of text, as pyarrow 17 has it."""

    type = pa.string_view()

    def cast(self, kind: Any) -> Any:
        raise pa.ArrowNotImplementedError(f"Unsupported cast from string_view to {kind}")


def test_views_of_text_that_pyarrow_cannot_read_say_what_is_needed() -> None:
    with pytest.raises(UnimplementedError, match=r"arrays of string_view need a newer pyarrow than \d+"):
        without_views(OldView())
