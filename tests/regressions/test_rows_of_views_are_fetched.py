# SPDX-License-Identifier: Apache-2.0
"""Views of text and of lists, as other programs write them to Parquet files, are reached by position like any other column."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import distinput as di

KINDS = {
    "string": (pa.string_view(), ["a", "a text that is not short", "", "é"]),
    "binary": (pa.binary_view(), [b"a", b"a text that is not short", b"", b"\0"]),
    "strings": (pa.list_(pa.string_view()), [["a"], [], ["b", "a text that is not short"], ["é"]]),
    "struct": (
        pa.struct([("x", pa.string_view())]),
        [{"x": "a"}, {"x": "b"}, {"x": ""}, {"x": "a text that is not short"}],
    ),
    "list": (pa.list_view(pa.int64()), [[1, 2], [], [3], [4]]),
    "large list": (pa.large_list_view(pa.string()), [["a"], [], ["b", "c"], ["d"]]),
    "pairs": (pa.list_(pa.string_view(), 2), [["a", "b"], ["c", "d"], ["e", "f"], ["", "a text that is not short"]]),
}


@pytest.mark.parametrize("name", KINDS)
def test_rows_of_views_are_fetched(tmp_path: Path, name: str) -> None:
    kind, values = KINDS[name]
    path = tmp_path / "a.parquet"
    column = pa.array(values * 3, kind)
    group = 12 if name == "struct" else 5  # of which pyarrow writes no slices
    pyarrow.parquet.write_table(pa.table({"n": pa.array(range(12)), "c": column}), path, row_group_size=group)
    dataset = di.data.ParquetDataset(str(path))
    found = [repr(row) for row in dataset]
    assert [repr(dataset[at]) for at in range(12)] == found
    assert sorted(map(repr, dataset.global_shuffle(seed=1))) == sorted(found)


def test_a_null_in_a_view_names_its_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"c": pa.array(["a", None, "b"], pa.string_view())}), path)
    dataset = di.data.ParquetDataset(str(path), nulls="error")
    assert dataset[2] == {"c": b"b"}
    with pytest.raises(
        di.errors.InvalidArgumentError, match=r"column 'c' has nulls in row group 0 \(first in its row 1\)"
    ):
        dataset[1]
