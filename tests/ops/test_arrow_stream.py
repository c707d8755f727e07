# SPDX-License-Identifier: Apache-2.0
"""Rows of Arrow streams."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError

Dataset = di.data.Dataset

WANTED = [{"x": 1, "t": b"a"}, {"x": 2, "t": b"b"}, {"x": 3, "t": b"c"}]
TABLE = pa.table({"x": [1, 2, 3], "t": ["a", "b", "c"]})


class Counted:
    """Batches made one at a time, counted."""

    def __init__(self, batches: int) -> None:
        self.batches, self.made, self.closed = batches, 0, 0

    def __call__(self) -> Any:
        def batches() -> Iterator[Any]:
            try:
                for number in range(self.batches):
                    self.made += 1
                    yield pa.RecordBatch.from_pydict({"x": [2 * number, 2 * number + 1]})
            finally:
                self.closed += 1

        return pa.RecordBatchReader.from_batches(pa.schema([("x", pa.int64())]), batches())


def test_batches_of_a_stream_are_read_when_they_are_wanted() -> None:
    source = Counted(100)
    dataset = Dataset.from_arrow(source)
    assert dataset.cardinality() == di.data.UNKNOWN_CARDINALITY
    assert source.made == 0
    with iter(dataset) as iterator:
        assert [next(iterator)["x"] for _ in range(3)] == [0, 1, 2]
        assert source.made <= 3
        state = iterator.state()
    assert [row["x"] for row in dataset.restore(state)] == list(range(3, 200))
    assert len(dataset.to_list()) == 200


def test_a_reader_is_read_once_and_belongs_to_one_dataset() -> None:
    reader = TABLE.to_reader()
    dataset = Dataset.from_arrow(reader)
    with pytest.raises(InvalidArgumentError, match=r"this RecordBatchReader can be read once.*give a function"):
        Dataset.from_arrow(reader)
    assert dataset.to_list() == WANTED
    with pytest.raises(InvalidArgumentError, match="can be read once, and another pass or dataset has it"):
        dataset.to_list()


def reader_of_three_batches() -> Any:
    batches = [pa.RecordBatch.from_pydict({"x": [2 * number, 2 * number + 1]}) for number in range(3)]
    return pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))


def test_a_pass_over_a_reader_goes_on_where_it_stopped() -> None:
    for row in range(7):
        dataset = Dataset.from_arrow(reader_of_three_batches())
        with iter(dataset) as iterator:
            assert [next(iterator)["x"] for _ in range(row)] == list(range(row))
            state = iterator.state()
            if 0 < row < 6:
                with pytest.raises(InvalidArgumentError, match="another pass or dataset has it"):
                    dataset.to_list()
        assert [element["x"] for element in dataset.restore(state)] == list(range(row, 6))


def test_a_reader_is_read_with_workers() -> None:
    for make in (
        lambda rows: rows.map(lambda row: row["x"]),
        lambda rows: rows.filter(lambda row: row["x"] >= 0).map(lambda row: row["x"]),
        lambda rows: rows.map(lambda row: row["x"]).batch(2).unbatch(),
    ):
        assert make(Dataset.from_arrow(reader_of_three_batches())).on_workers("threads:2").to_list() == list(range(6))


@pytest.mark.needs("duckdb")
def test_a_query_of_duckdb_runs_in_each_pass_and_leaves_the_connection_free() -> None:
    import duckdb

    connection = duckdb.connect()
    dataset = Dataset.from_arrow(connection.sql("select range as x, range % 2 = 0 as even from range(5000)"))
    assert connection.sql("select 1").fetchall() == [(1,)]
    for _ in range(2):
        assert sum(int(batch["x"].sum()) for batch in dataset.batch(7)) == sum(range(5000))
    assert connection.sql("select 1").fetchall() == [(1,)]


def test_errors_of_a_stream_are_told() -> None:
    def broken() -> Any:
        def batches() -> Iterator[Any]:
            yield TABLE.to_batches()[0]
            raise OSError("lost")

        return pa.RecordBatchReader.from_batches(TABLE.schema, batches())

    with pytest.raises((DataLossError, OSError), match="lost"):
        Dataset.from_arrow(broken).to_list()
    tables = iter([TABLE, TABLE.select(["x"])])
    changed = Dataset.from_arrow(lambda: next(tables))
    with pytest.raises(InvalidArgumentError, match=r"had the columns x: int64, t: string when .* has now x: int64"):
        changed.to_list()
    with pytest.raises(InvalidArgumentError, match="column 'x' has nulls, the first in row 4"):
        Dataset.from_arrow(lambda: pa.table({"x": pa.chunked_array([[1, 2, 3], [4, None]])}).to_reader()).to_list()
    shorter = iter([TABLE.to_reader(1), TABLE.to_reader(1), TABLE.slice(0, 1).to_reader()])
    dataset = Dataset.from_arrow(lambda: next(shorter))
    with iter(dataset) as iterator:
        next(iterator), next(iterator)
        state = iterator.state()
    with pytest.raises(DataLossError, match="has 1 rows, but reading must continue at row 2"):
        list(dataset.restore(state))
