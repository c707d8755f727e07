# SPDX-License-Identifier: Apache-2.0
"""Tables of other libraries: columns keep their names, nulls follow one rule, and nothing is copied without need."""

import datetime as dt
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.testing import check_dataset

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make test")
pd = pytest.importorskip("pandas", reason="pandas is not installed: make test")
pl = pytest.importorskip("polars", reason="polars is not installed: make test")

Dataset = di.data.Dataset

WANTED = [{"x": 1, "t": b"a"}, {"x": 2, "t": b"b"}, {"x": 3, "t": b"c"}]
TABLE = pa.table({"x": [1, 2, 3], "t": ["a", "b", "c"]})


def plain(element: Any) -> Any:
    if isinstance(element, dict):
        return {name: plain(value) for name, value in element.items()}
    if isinstance(element, di.RaggedTensor):
        return element.to_list()
    return element.tolist() if isinstance(element, np.ndarray | np.generic) else element


class Exports:
    """A table of a library that nobody knows."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class ExportsArray:
    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.batch.__arrow_c_array__(requested_schema)


TABLES: dict[str, Any] = {
    "pyarrow.Table": TABLE,
    "pyarrow.RecordBatch": TABLE.to_batches()[0],
    "pyarrow chunks": pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "pyarrow.StructArray": TABLE.to_struct_array(),
    "pandas": TABLE.to_pandas(),
    "pandas with Arrow's types": TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas categories": TABLE.to_pandas().astype({"t": "category"}),
    "polars": pl.DataFrame({"x": [1, 2, 3], "t": ["a", "b", "c"]}),
    "polars categories": pl.DataFrame({"x": [1, 2, 3], "t": pl.Series(["a", "b", "c"], dtype=pl.Categorical)}),
    "polars chunks": pl.concat([pl.from_arrow(TABLE.slice(0, 2)), pl.from_arrow(TABLE.slice(2))], rechunk=False),
    "a dict of columns": {"x": np.array([1, 2, 3]), "t": pl.Series(["a", "b", "c"])},
    "a stream": Exports(TABLE),
    "an array": ExportsArray(TABLE.to_batches()[0]),
    "a function": lambda: TABLE.to_reader(1),
    "a reader": TABLE,
    "DuckDB": TABLE,
}


def opened(name: str) -> Any:
    if name == "a reader":
        return TABLE.to_reader()
    if name == "DuckDB":
        connection = duckdb.connect()
        connection.register("given", TABLE)
        return connection.sql("select x, t from given order by x")
    return TABLES[name]


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_a_table_are_dicts_of_its_columns(name: str) -> None:
    dataset = Dataset.from_arrow(opened(name))
    assert dataset.element_spec == {"x": di.TensorSpec([], "int64"), "t": di.TensorSpec([], "string")}
    assert list(dataset.element_spec) == ["x", "t"]
    assert dataset.to_list() == WANTED


@pytest.mark.parametrize("name", [name for name in TABLES if name != "a function" and "array" not in name.lower()])
def test_slices_of_a_table_are_the_same(name: str) -> None:
    assert Dataset.from_tensor_slices(opened(name)).to_list() == WANTED


def test_a_table_in_a_nest_is_a_dict() -> None:
    labels = np.array([7, 8, 9])
    for table in (TABLE, TABLE.to_pandas(), TABLES["polars chunks"]):
        found = Dataset.from_tensor_slices((table, labels)).to_list()
        assert found == [(row, label) for row, label in zip(WANTED, [7, 8, 9], strict=True)]
        whole = Dataset.from_tensors((table, labels)).get_single_element()[0]
        assert plain(whole) == {"x": [1, 2, 3], "t": [b"a", b"b", b"c"]}
    lists = pa.table({"l": [[1], [], [2, 3]]})
    assert Dataset.from_tensor_slices((lists, labels)).to_list()[2] == ({"l": [2, 3]}, 9)


def test_functions_and_generators_may_give_tables() -> None:
    frame = pd.DataFrame({"x": [1, 2], "y": [0.5, 1.5]})
    mapped = Dataset.range(2).map(lambda i: frame)
    assert mapped.to_list() == [{"x": [1, 2], "y": [0.5, 1.5]}] * 2
    spec = {"x": di.TensorSpec([None], "int64"), "t": di.TensorSpec([None], "string")}
    frames = [pl.DataFrame({"x": [1], "t": ["a"]}), pa.table({"x": [2, 3], "t": ["b", "c"]})]
    made = Dataset.from_generator(lambda: iter(frames), output_signature=spec)
    assert made.unbatch().to_list() == WANTED


def test_a_single_column_of_pandas_is_its_values() -> None:
    assert Dataset.from_arrow(pd.Series([1, 2], name="x")).to_list() == [1, 2]
    assert Dataset.from_arrow(pd.Series(["a", "b"])).to_list() == [b"a", b"b"]
    with pytest.raises(
        di.errors.InvalidArgumentError, match="a single array has no columns that nulls or valid could name"
    ):
        Dataset.from_arrow(pd.Series([1, 2]), nulls={"x": 0})


TYPES: dict[str, tuple[Any, Any]] = {
    "bool": (pa.array([True, False, True]), [True, False, True]),
    "half": (pa.array(np.array([1, 2, 3], np.float16)), [1.0, 2.0, 3.0]),
    "binary": (pa.array([b"\xff", b"", b"\0"]), [b"\xff", b"", b"\0"]),
    "binary view": (pa.array([b"\xff", b"", b"x" * 40], pa.binary_view()), [b"\xff", b"", b"x" * 40]),
    "fixed binary": (pa.array([b"ab", b"cd", b"ef"], pa.binary(2)), [b"ab", b"cd", b"ef"]),
    "dictionary": (pa.array(["u", "v", "u"]).dictionary_encode(), [b"u", b"v", b"u"]),
    "lists": (pa.array([[1], [], [2, 3]]), [[1], [], [2, 3]]),
    "texts": (pa.array([["a"], [], ["b", "c"]]), [[b"a"], [], [b"b", b"c"]]),
    "fixed lists": (pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int8(), 2)), [[1, 2], [3, 4], [5, 6]]),
    "lists of lists": (pa.array([[[1], []], [], [[2, 3]]]), [[[1], []], [], [[2, 3]]]),
    "structs": (pa.array([{"a": 1, "b": "x"}] * 3), [{"a": 1, "b": b"x"}] * 3),
}


@pytest.mark.parametrize("name", TYPES)
def test_columns_of_each_type_in_chunks_and_slices(name: str) -> None:
    array, wanted = TYPES[name]
    table = pa.table({"c": array})
    for part, rows in (
        (table, wanted),
        (table.slice(1), wanted[1:]),
        (pa.concat_tables([table.slice(0, 1), table.slice(1), table]), wanted * 2),
        (table.slice(0, 0), []),
        (pa.concat_tables([table.slice(0, 0), table.slice(2)]), wanted[2:]),
    ):
        dataset = Dataset.from_arrow(part)
        assert [plain(row["c"]) for row in dataset] == rows
        assert dataset.element_spec == Dataset.from_arrow(table).element_spec
        assert len(dataset) == len(rows)


def test_times_are_times_of_numpy_and_utc() -> None:
    day, moment = dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, tzinfo=dt.UTC)
    frame = pl.DataFrame({"d": [day, None], "m": [moment, None], "l": [dt.timedelta(seconds=1), None]})
    for table in (frame, frame.to_pandas(), frame.to_arrow()):
        first, second = Dataset.from_arrow(table)
        assert first["d"].astype("datetime64[D]") == np.datetime64("2020-01-02")
        assert first["m"] == np.datetime64("2020-01-02T03")
        assert first["l"] == np.timedelta64(1, "s")
        assert all(np.isnat(value) for value in second.values())


@pytest.mark.parametrize(
    "table, message",
    [
        (
            pa.table({"x": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([5])])}),
            r"column 'x' is of type sparse_union.*cast it to another type, or leave it out",
        ),
        (pa.table([[1], [2]], names=["a", "a"]), "several columns have the same name"),
        (pl.DataFrame({"o": [{1, 2}]}), "column 'o' holds Python objects"),
        (pl.Series("o", [{1, 2}]), "column 'o' holds Python objects"),
        (pl.LazyFrame({"x": [1]}), "a LazyFrame is a query; give its result"),
        (duckdb.connect().execute("select 1"), "a DuckDBPyConnection is not a table; give its .to_arrow_table"),
        (pd.DataFrame({"x": [1, "a"]}), "column 'x' of a DataFrame cannot become an array"),
        ({}, "at least one column"),
        ({"a": [1], "b": [1, 2]}, "all components must have the same first dimension"),
        ([1, 2], "expected a table .* got list"),
        (Exports(pa.array([1])), "cannot open the stream"),
    ],
)
def test_what_is_no_table_is_refused(table: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"from_arrow: .*{message}"):
        Dataset.from_arrow(table)


COLUMNS = {
    "i": pa.array(range(40)),
    "t": pa.array([None if i % 7 == 0 else str(i) for i in range(40)]),
    "f": pa.array([[float(i), None] for i in range(40)]),
    "l": pa.array([list(range(i % 4)) for i in range(40)]),
    "n": pa.array([[["x"] * (i % 2), []] * (i % 3) for i in range(40)]),
    "s": pa.array([{"a": i, "b": [str(i)]} for i in range(40)]),
}


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 40), max_size=4),
    st.sets(st.sampled_from(sorted(COLUMNS)), min_size=1),
    st.lists(st.integers(0, 39), max_size=12),
)
def test_chunks_are_as_good_as_one(cuts: list[int], names: set[str], rows: list[int]) -> None:
    table = pa.table({name: COLUMNS[name] for name in sorted(names)})
    edges = [0, *sorted(cuts), 40]
    parts = [table.slice(a, b - a) for a, b in pairwise(edges)]
    nulls = {"t": "?"} if "t" in names else None
    whole = Dataset.from_arrow(table, nulls=nulls)
    chunks = Dataset.from_arrow(pa.concat_tables(parts), nulls=nulls)
    stream = Dataset.from_arrow(lambda: pa.concat_tables(parts).to_reader(), nulls=nulls)
    assert str(whole.to_list()) == str(chunks.to_list()) == str(stream.to_list())
    assert whole.element_spec == chunks.element_spec == stream.element_spec
    wanted = [plain(element) for element in whole]
    picked = chunks.node.fetch(np.array(rows, np.int64), 0)
    assert str([plain(element) for element in picked.elements()]) == str([wanted[row] for row in rows])
    assert str([plain(e) for e in chunks.global_shuffle(seed=3)]) == str(
        [plain(e) for e in whole.global_shuffle(seed=3)]
    )


def test_the_laws_hold() -> None:
    table = pa.concat_tables([TABLE, TABLE.slice(1), TABLE])
    check_dataset(lambda: Dataset.from_arrow(table))
    check_dataset(lambda: Dataset.from_arrow(lambda: table.to_reader()))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], None]),
        pa.array([{"a": 1, "t": "x"}, None]),
        pa.array([5, None], pa.date32()),
        pa.array([[5, 6], None], pa.list_(pa.int8(), 2)),
        pa.chunked_array([["a"], [None]]),
    ],
)
def test_a_dict_of_columns_tells_nulls_as_a_table_does(array: Any) -> None:
    for valid in ({"x": "known"}, ["x"]):
        rows = di.data.Dataset.from_arrow({"x": array}, valid=valid).to_list()
        assert rows == di.data.Dataset.from_arrow(pa.table({"x": array}), valid=valid).to_list()


def test_nulls_in_lists_are_not_told_by_the_mark_of_the_lists() -> None:
    lists = pa.array([[1, None], None])
    for columns in ({"x": lists}, pa.table({"x": lists})):
        with pytest.raises(InvalidArgumentError, match=r"valid=\['x\[\]'\]"):
            di.data.Dataset.from_arrow(columns, valid={"x": "known"}).to_list()


def test_names_of_columns_may_be_numbers() -> None:
    rows = di.data.Dataset.from_arrow({0: pa.array([1, 2]), 1: pa.array([3, None])}, nulls={1: 7}).to_list()
    assert rows == [{0: 1, 1: 3}, {0: 2, 1: 7}]


@pytest.mark.parametrize(
    "said",
    [
        {"nulls": {"s": {"a": 7, "b": "q"}, "l": 3}},
        {"nulls": {"s.a": 7, "s.b": "q", "l": 3}},
        {"nulls": {"s.b": "q"}, "valid": ["s", "s.a", "l[]"]},
        {"nulls": {"s.b": "q", "l": 3}, "valid": {"s": "there", "s.a": "known"}},
    ],
)
def test_fields_and_items_in_a_dict_of_columns_are_named_as_those_of_a_table(said: dict[str, Any]) -> None:
    columns = {"s": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}]), "l": pa.array([[1, None], [], [2]])}
    rows = Dataset.from_arrow(columns, **said).to_list()
    assert list(map(plain, rows)) == list(map(plain, Dataset.from_arrow(pa.table(columns), **said).to_list()))


@pytest.mark.parametrize("said", [{"nulls": {"a.b": 7}}, {"valid": ["a.b"]}, {"valid": {"a.b": "known"}}])
@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b", "a")])
def test_a_column_may_be_named_like_a_field_of_another_one(names: tuple[str, str], said: dict[str, Any]) -> None:
    arrays = {"a": pa.array([1, 2]), "a.b": pa.array([1, None])}
    columns = {name: arrays[name] for name in names}
    rows = Dataset.from_arrow(columns, **said).to_list()
    assert rows == Dataset.from_arrow(pa.table(columns), **said).to_list()


def test_columns_of_structs_in_a_dict_are_those_of_a_table() -> None:
    structs = pa.array([{"x": 1, "y": {"z": "a"}}, {"x": 2, "y": {"z": "b"}}, {"x": 3, "y": {"z": "c"}}])
    lists = pa.array([[{"x": 1}], [], [{"x": 2}, {"x": 3}]])
    for column in (structs, lists, pa.chunked_array([structs[:1], structs[1:]])):
        columns = {"s": column, "n": pa.array([1, 2, 3])}
        whole = di.data.Dataset.from_arrow(pa.table(columns))
        for made in (di.data.Dataset.from_arrow(columns), di.data.Dataset.from_tensor_slices(columns)):
            assert made.to_list() == whole.to_list()
            assert made.element_spec == whole.element_spec
    missing = pa.array([{"x": 1}, {"x": None}])
    filled = di.data.Dataset.from_arrow({"s": missing}, nulls={"s": {"x": 7}})
    assert filled.to_list() == [{"s": {"x": 1}}, {"s": {"x": 7}}]
    with pytest.raises(InvalidArgumentError, match=r"from_tensor_slices: .*s.*x.* has 1 nulls"):
        di.data.Dataset.from_tensor_slices({"s": missing})
