# SPDX-License-Identifier: Apache-2.0
"""Statistics are those of all values at once, in whatever format and pieces they come."""

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError, UnimplementedError
from distinput.inspect.column_statistics import NumericStatistics, statistics
from tests.depth import cases
from tests.inspect import kept

values = st.lists(st.floats(-1e100, 1e100) | st.sampled_from([np.nan, np.inf, -np.inf]), max_size=60)


@given(values, st.integers(0, 60))
def test_ranges_are_those_of_all_values(numbers: list[float], cut: int) -> None:
    made, whole = NumericStatistics(), np.array(numbers)
    made.add(whole[:cut])
    made.add(whole[cut:])
    there, finite = whole[~np.isnan(whole)], whole[np.isfinite(whole)]
    assert (made.count, made.nan) == (len(there), len(whole) - len(there))
    assert (made.least, made.most) == ((there.min(), there.max()) if len(there) else (None, None))
    assert sum(made.histogram.counts) == len(finite)
    if len(finite):
        scale = np.abs(finite).max()
        np.testing.assert_allclose(made.mean, finite.mean(), rtol=1e-9, atol=1e-9 * scale)
        np.testing.assert_allclose(made.std, finite.std(), rtol=1e-6, atol=1e-6 * scale)


@settings(max_examples=cases(3, 100))
@given(rows=kept.rows)
def test_statistics_are_the_same_in_every_format(rows: list[Any]) -> None:
    numbers = np.array([row["n"] for row in rows])
    sizes = np.array([len(row["t"]) for row in rows])
    with tempfile.TemporaryDirectory() as name:
        for format in kept.TABLES:
            kept.write(Path(name, format), rows, format, shard_rows=7)
            found = statistics(str(Path(name, format)))
            assert sorted(found) == ["n", "t", "x"]
            n, t = found["n"], found["t"]
            assert (n.rows, n.missing, t.rows, t.missing) == (len(rows), 0, len(rows), 0)
            assert n.values is not None
            assert (n.values.least, n.values.most) == (numbers.min(), numbers.max())
            assert t.lengths is not None
            assert (t.lengths.least, t.lengths.most) == (sizes.min(), sizes.max())
            np.testing.assert_allclose(n.values.mean, numbers.mean(), rtol=1e-6, atol=1e-3)


def test_nulls_lists_structs_and_times(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    columns = {
        "v": pa.array([[1, 2], None, []]),
        "s": pa.array([{"a": 1.5, "b": "x"}, None, {"a": None, "b": "yz"}]),
        "d": pa.array([0, 1, None], pa.timestamp("s")),
        "b": pa.array([True, False, True]),
        "e": pa.array(["a", "b", None]).dictionary_encode(),
        "l": pa.array([[{"k": 1}, {"k": 2}], [], None]),
    }
    pa.parquet.write_table(pa.table(columns), path)
    found = statistics(path)
    assert {name: column.missing for name, column in found.items()} == {
        "v": 1, "s.a": 2, "s.b": 1, "d": 1, "b": 0, "e": 1, "l": 1, "l[].k": 0,
    }  # fmt: skip
    assert found["v"].lengths is not None
    assert (found["v"].lengths.least, found["v"].lengths.most) == (0, 2)
    assert found["v"].values is not None
    assert found["v"].values.mean == 1.5
    assert found["b"].values is not None
    assert found["b"].values.mean == pytest.approx(2 / 3)
    assert str(found["d"].values.most) == "1970-01-01 00:00:01"  # type: ignore[union-attr]
    assert found["l[].k"].values is not None
    assert found["l[].k"].values.most == 2
    assert found["v"].to_json()["values"]["histogram"]["counts"]


def test_features_that_some_messages_lack(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with di.io.TFRecordWriter(path) as writer:
        for number in range(10):
            writer.write(di.io.encode_example({"n": number} | ({"late": [1.0, 2.0]} if number > 7 else {})))
    found = statistics(path)
    assert (found["late"].rows, found["late"].missing) == (10, 8)
    assert found["late"].lengths is not None
    assert found["late"].lengths.most == 2
    assert found["n"].lengths is None
    with di.io.TFRecordWriter(path) as writer:
        writer.write(di.io.encode_example({"n": 1}))
        writer.write(di.io.encode_example({"n": "one"}))
    with pytest.raises(DataLossError, match="record 1: feature 'n' is string, and int64 in a record before"):
        statistics(path)
    with di.io.TFRecordWriter(path) as writer:
        writer.write(di.io.encode_sequence_example({}, {"w": [["a"]]}))
    with pytest.raises(UnimplementedError, match="records='bytes'"):
        statistics(path)
    assert statistics(path, records="bytes")["value"].rows == 1


def test_columns_of_another_type_in_another_file_are_compared_as_they_are(tmp_path: Path) -> None:
    def file(name: str, values: Any) -> str:
        pa.parquet.write_table(pa.table({"x": values}), tmp_path / name)
        return str(tmp_path / name)

    floats, small = file("f", pa.array([-0.5, 2.75])), file("s", pa.array([1, 2], pa.uint8()))
    large = file("l", pa.array([-300, 2**63 - 1]))
    for paths in ([floats, small], [small, floats]):
        assert (statistics(paths)["x"].values.least, statistics(paths)["x"].values.most) == (-0.5, 2.75)
    for paths in ([large, small, floats], [floats, small, large]):
        assert (statistics(paths)["x"].values.least, statistics(paths)["x"].values.most) == (-300, 2**63 - 1)
    days = file("d", pa.array([0, 3], pa.date32()))
    seconds = file("t", pa.array([86400 * 3 + 1, 5], pa.timestamp("ms")))
    for paths in ([days, seconds], [seconds, days]):
        found = statistics(paths)["x"].values
        assert np.datetime64(found.least) == np.datetime64(0, "D")
        assert np.datetime64(found.most) == np.datetime64(3, "D")
    with pytest.raises(UnimplementedError, match="times and numbers"):
        statistics([days, floats])


@pytest.mark.parametrize("base", [2**63 - 9, 2**53, -(2**63), 2**60 - 5, 10**18, 1e9, 1e16, 1.7e308, -0.1])
def test_large_numbers_that_are_close_have_their_mean_and_deviation(tmp_path: Path, base: float) -> None:
    values = [base + 2 * (n % 5) for n in range(1000)]
    pa.parquet.write_table(pa.table({"x": pa.array(values)}), tmp_path / "a.parquet", row_group_size=137)
    found = statistics(str(tmp_path / "a.parquet"))["x"].values
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / len(exact)
    assert found.mean == pytest.approx(float(mean), rel=1e-15)
    assert found.std == pytest.approx(float(variance) ** 0.5, rel=1e-12)


def test_the_largest_integers_have_a_deviation(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"x": pa.array([2**64 - 1, 2**64 - 5], pa.uint64())}), tmp_path / "a.parquet")
    found = statistics(str(tmp_path / "a.parquet"))["x"].values
    assert (found.std, found.to_json()["max"]) == (2.0, 2**64 - 1)


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_files_without_records_have_their_columns(format: str, tmp_path: Path) -> None:
    schema = pa.schema({"x": pa.float64(), "words": pa.list_(pa.string()), "at": pa.struct({"day": pa.date32()})})
    path = str(tmp_path / f"a.{format}")
    if format == "parquet":
        pa.parquet.write_table(schema.empty_table(), path)
    else:
        with pa.ipc.new_file(path, schema) as writer:
            writer.write_table(schema.empty_table())
    for paths in (path, [path, path]):
        found = statistics(paths)
        assert list(found) == ["x", "words", "at.day"]
        assert {(column.rows, column.missing) for column in found.values()} == {(0, 0)}
    assert statistics(path)["x"].to_json()["values"]["count"] == 0
    assert statistics(path, columns=["words"])["words"].lengths.to_json()["mean"] is None


LARGE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1.7e308, -1.7e308, 1e200, 1e145])


@settings(max_examples=cases(50, 2000))
@given(st.lists(LARGE, min_size=1, max_size=8), st.integers(0, 8))
def test_means_and_deviations_of_the_largest_floats_are_those_of_fractions(numbers: list[float], cut: int) -> None:
    found = NumericStatistics()
    for part in (numbers[:cut], numbers[cut:]):
        found.add(np.array(part, np.float64))
    exact = [Fraction(number) for number in numbers]
    mean, largest = sum(exact) / len(exact), max(map(abs, exact))
    squares = sum((number - mean) ** 2 for number in exact) / len(exact)
    assert abs(Fraction(found.mean) - mean) <= largest / 10**12
    assert abs(Fraction(found.std) ** 2 - squares) <= largest**2 / 10**12 + Fraction(5e-324)
