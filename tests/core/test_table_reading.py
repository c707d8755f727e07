# SPDX-License-Identifier: Apache-2.0
"""What becomes of nulls, and the options that say so."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

Dataset = di.data.Dataset


def plain(element: Any) -> Any:
    if isinstance(element, di.RaggedTensor):
        return element.to_list()
    return element.tolist() if isinstance(element, np.ndarray | np.generic) else element


def test_the_rule_for_nulls() -> None:
    floats = pa.table({"x": [1.0, None], "l": [[1.0, None], [2.0]], "s": [{"f": 1.0}, None]})
    first, second = Dataset.from_arrow(floats)
    assert np.isnan(second["x"])
    assert np.isnan(first["l"][1])
    assert np.isnan(second["s"]["f"])
    for column in ([1, None], ["a", None], [True, None], [[1], None], [[1], [None]], [{"a": 1}, None]):
        with pytest.raises(InvalidArgumentError, match=r"column 'c.*has nulls, the first in row [12].*valid=\['c"):
            Dataset.from_arrow(pa.table({"c": [column[0], *column]}), nulls="error")
    with pytest.raises(InvalidArgumentError, match=r"from_tensor_slices: column 'c' has nulls, the first in row 1"):
        Dataset.from_tensor_slices(pa.table({"c": [1, None]}))
    with pytest.raises(InvalidArgumentError, match=r"column 'c' has nulls, the first in row 4, and .* of type int64"):
        Dataset.from_arrow(pa.table({"c": pa.chunked_array([[1, 2, 3], [4, None]])}), nulls="error")


def test_files_follow_the_same_rule(tmp_path: Any) -> None:
    table = {"x": pa.array([1.0, None]), "d": pa.array([dt.date(2020, 1, 1), None])}
    di.io.write_parquet(tmp_path / "a.parquet", table)
    di.io.write_arrow(tmp_path / "a.arrow", table)
    for dataset in (
        di.data.ParquetDataset(tmp_path / "a.parquet"),
        di.data.ArrowDataset(tmp_path / "a.arrow"),
        Dataset.from_arrow(pa.table(table)),
    ):
        first, second = dataset
        assert (first["x"], first["d"]) == (1.0, np.datetime64("2020-01-01"))
        assert np.isnan(second["x"])
        assert np.isnat(second["d"])


def test_nulls_are_replaced_or_told_by_another_column() -> None:
    for table in (pa.table({"x": [1, None]}), {"x": pa.array([1, None])}):
        assert Dataset.from_arrow(table, nulls={"x": -1}).to_list() == [{"x": 1}, {"x": -1}]
        told = Dataset.from_arrow(table, valid={"x": "known"})
        assert told.to_list() == [{"x": 1, "known": True}, {"x": 0, "known": False}]
        both = Dataset.from_arrow(table, nulls={"x": 5}, valid={"x": "known"})
        assert both.to_list()[1] == {"x": 5, "known": False}
    mixed = pa.table({"t": ["a", None], "l": [[1], None], "c": pa.array(["u", None]).dictionary_encode()})
    told = Dataset.from_arrow(mixed, valid={"t": "t_known", "l": "l_known", "c": "c_known"})
    assert [plain(told.skip(1).get_single_element()[name]) for name in "tlc"] == [b"", [], b""]
    floats = Dataset.from_arrow(
        pa.table({"l": [[1.0, None], None], "b": [True, None]}), valid={"l": "known", "b": "b_known"}
    )
    first, second = floats.to_list()
    assert (str(first["l"]), second["l"], second["known"], second["b"]) == ("[1.0, nan]", [], False, False)


@pytest.mark.needs("polars")
def test_nulls_of_polars_are_those_of_arrow() -> None:
    import polars as pl

    frame = pl.DataFrame({"x": [1, None]})
    for table in (frame, {"x": frame["x"]}):
        assert Dataset.from_arrow(table, nulls={"x": -1}).to_list() == [{"x": 1}, {"x": -1}]
        assert Dataset.from_arrow(table, valid={"x": "known"}).to_list()[1] == {"x": 0, "known": False}
    with pytest.raises(InvalidArgumentError, match=r"from_tensor_slices: column 'x' has nulls, the first in row 1"):
        Dataset.from_tensor_slices(frame)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"nulls": {"y": 1}}, "nulls: there is no column 'y'; the columns are x"),
        ({"valid": {"y": "z"}}, "valid: there is no column 'y'"),
        ({"valid": {"x": "x"}}, "valid: the mark 'x' has the name of a column"),
        ({"nulls": {"x": "text"}}, "nulls: column 'x' is of type int64, and 'text' is not"),
        ({"nulls": 0}, "nulls must be a dict by column, got 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"from_arrow: {message}"):
        Dataset.from_arrow(pa.table({"x": [1, None]}), **options)
