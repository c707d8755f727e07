# SPDX-License-Identifier: Apache-2.0
"""Other libraries take a dataset as a stream of Arrow, and frames of it are what they would have made themselves."""

import gc
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make test")
pd = pytest.importorskip("pandas", reason="pandas is not installed: make test")
pl = pytest.importorskip("polars", reason="polars is not installed: make test")

Dataset = di.data.Dataset

ROWS = [{"x": 0, "t": b"a"}, {"x": 1, "t": b"bb"}, {"x": 2, "t": b""}]


def small() -> Any:
    return Dataset.from_tensor_slices({"x": np.arange(3), "t": ["a", "bb", ""]})


def test_other_libraries_take_a_dataset() -> None:
    dataset = small()
    assert pa.table(dataset).to_pylist() == ROWS
    assert pa.schema(dataset) == dataset.to_arrow().schema
    assert pl.DataFrame(dataset).to_dicts() == ROWS
    assert pl.Series(dataset).to_list() == ROWS
    assert duckdb.sql("select x, t from dataset order by x").fetchall() == [(0, b"a"), (1, b"bb"), (2, b"")]
    assert Dataset.from_arrow(dataset).to_list() == dataset.to_list()
    if hasattr(pd.DataFrame, "from_arrow"):
        assert pd.DataFrame.from_arrow(dataset).to_dict("records") == ROWS


def test_a_consumer_may_ask_for_other_types() -> None:
    wanted = pa.schema([("x", pa.int32()), ("t", pa.string())])
    stream = pa.RecordBatchReader._import_from_c_capsule(small().__arrow_c_stream__(wanted.__arrow_c_schema__()))
    assert stream.schema == wanted
    assert stream.read_all()["t"].to_pylist() == ["a", "bb", ""]


def test_frames() -> None:
    frame = small().to_pandas(text=True)
    assert isinstance(frame, pd.DataFrame)
    assert frame.to_dict("list") == {"x": [0, 1, 2], "t": ["a", "bb", ""]}
    assert small().to_pandas().to_dict("list")["t"] == [b"a", b"bb", b""]
    made = small().to_polars(text=["t"])
    assert made.schema == {"x": pl.Int64, "t": pl.String}
    assert small().to_polars().schema["t"] == pl.Binary
    for back in (frame, made, small().to_polars(), small().to_pandas()):
        assert Dataset.from_arrow(back).to_list() == small().to_list()


def test_frames_keep_numbers_beside_nulls() -> None:
    table = pa.table({"x": [2**62 + 1, None], "b": [None, True], "u": pa.array([7, 8], pa.uint8()), "k": [1, 2]})
    frame = di.data.Dataset.from_arrow(table, valid=["x", "b", "u"]).to_pandas()
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "boolean", "UInt8", "int64"]
    assert int(frame["x"][0]) == 2**62 + 1
    assert frame.isna().to_numpy().tolist() == [[False, True, False, False], [True, False, False, False]]
    assert di.data.Dataset.from_arrow(frame).to_arrow().to_pylist() == table.to_pylist()


@pytest.mark.parametrize("name", ["to_arrow", "to_pandas", "to_polars"])
def test_an_infinite_dataset_is_refused_but_as_a_stream(name: str) -> None:
    endless = small().repeat()
    with pytest.raises(InvalidArgumentError, match=f"{name}: the dataset is infinite"):
        getattr(endless, name)()
    reader = pa.RecordBatchReader.from_stream(endless)
    rows = [row for _ in range(3) for row in reader.read_next_batch().to_pylist()]
    assert rows == small().to_arrow().to_pylist() * (len(rows) // 3)
    reader.close()


def test_batches_are_made_when_they_are_asked_for_and_a_pass_ends_with_its_reader() -> None:
    made = []
    dataset = Dataset.range(100).map(lambda x: (made.append(int(x)), x)[1], output_signature=di.TensorSpec([], "int64"))
    reader = pa.RecordBatchReader.from_stream(dataset.batch(5).unbatch())
    assert not made
    reader.read_next_batch()
    reader.close()
    del reader
    gc.collect()
    assert made


def test_each_stream_is_the_next_pass() -> None:
    shuffled = Dataset.range(50).shuffle(50, seed=1)
    first, second = [pa.table(shuffled)["value"].to_pylist() for _ in range(2)]
    again = Dataset.range(50).shuffle(50, seed=1)
    assert [first, second] == [[int(x) for x in again] for _ in range(2)]


def test_errors_of_the_pipeline_reach_the_consumer() -> None:
    def fails(x: Any) -> Any:
        if x == 2:
            raise ValueError("no 2")
        return x

    broken = Dataset.range(4).map(fails, output_signature=di.TensorSpec([], "int64"))
    with pytest.raises(ValueError, match="no 2"):
        broken.to_arrow()
    with pytest.raises(Exception, match="no 2"):
        pl.DataFrame(broken)


PRICES = [
    {"x": Decimal("1.50"), "l": [Decimal("12.125")], "s": {"a": Decimal("7.5")}},
    {"x": Decimal("-20.25"), "l": [], "s": {"a": Decimal(1000)}},
]


def prices(**options: Any) -> Any:
    kinds = {"x": pa.decimal128(9, 2), "l": pa.list_(pa.decimal128(9, 3)), "s": pa.struct({"a": pa.decimal128(9, 1)})}
    return Dataset.from_arrow(pa.Table.from_pylist(PRICES, pa.schema(kinds)), decimals="decimal", **options)


def test_decimals_are_decimals_in_tables() -> None:
    table = prices().to_arrow()
    assert table.to_pylist() == PRICES
    assert table.schema.field("x").type == pa.decimal128(4, 2)
    assert prices().to_polars().to_dicts() == PRICES
    assert prices().to_polars().schema["x"] == pl.Decimal(4, 2)
    assert prices().to_pandas()["x"].tolist() == [Decimal("1.50"), Decimal("-20.25")]
    assert prices().take(0).to_arrow().schema.field("x").type == pa.decimal128(1, 0)
    batched = prices().ragged_batch(2).to_arrow()
    assert batched["x"].to_pylist() == [[each["x"] for each in PRICES]]
    assert batched["l"].to_pylist() == [[each["l"] for each in PRICES]]
    assert Dataset.from_arrow(table, decimals="decimal").to_list() == prices().to_list()


def test_missing_decimals_are_nulls_of_tables() -> None:
    given = pa.table({"x": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2))})
    table = Dataset.from_arrow(given, decimals="decimal", valid=["x"]).to_arrow()
    assert table.to_pylist() == given.to_pylist()
    assert pa.types.is_decimal(table.schema.field("x").type)


def test_decimals_are_text_in_streams_and_where_text_is_asked_for() -> None:
    assert pa.schema(prices()).field("x").type == pa.string()
    assert pa.schema(prices()) == pa.table(prices()).schema
    assert pa.table(prices())["x"].to_pylist() == ["1.50", "-20.25"]
    assert prices().to_arrow(text=["x"])["x"].to_pylist() == ["1.50", "-20.25"]


@pytest.mark.parametrize("digits", ["NaN", "Infinity", "no number"])
def test_what_is_no_decimal_of_arrow_is_an_error(digits: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"to_arrow: column 'p' cannot become decimals: .*; leave it as text"
    ):
        Dataset.from_tensor_slices({"p": ["1.5", digits]}).as_decimal(["p"]).to_arrow()


def test_days_that_pandas_does_not_have_are_an_error_with_the_cure() -> None:

    days = di.data.Dataset.from_tensor_slices({"x": np.array(["0000-12-31"], "M8[D]")})
    with pytest.raises(
        InvalidArgumentError, match=r"to_pandas: year 0 is out of range; .* cast others to datetime64\[s\]"
    ):
        days.to_pandas()
    cured = days.map(lambda row: {"x": row["x"].astype("M8[s]")}).to_pandas()
    assert cured["x"].to_numpy().astype("M8[D]").tolist() == np.array(["0000-12-31"], "M8[D]").tolist()
