# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.ops.iterating import until_error


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    for name, content in [("a", "1\n2\n3\n"), ("b", "4\n"), ("c", "5\n6\n")]:
        (tmp_path / name).write_text(content)
    return [str(tmp_path / name) for name in "abc"]


def test_one_name_a_list_or_a_data_set_of_names(texts: list[str]) -> None:
    assert di.data.TextLineDataset(texts[0]).to_list() == [b"1", b"2", b"3"]
    assert di.data.TextLineDataset(texts[1:]).to_list() == [b"4", b"5", b"6"]
    names = di.data.Dataset.from_tensor_slices(texts[1:])
    assert di.data.TextLineDataset(names).to_list() == [b"4", b"5", b"6"]
    assert di.data.TextLineDataset(Path(texts[1])).to_list() == [b"4"]


@pytest.mark.parametrize(
    "reads, want",
    [(1, [1, 2, 3, 4, 5, 6]), (2, [1, 4, 2, 3, 5, 6]), (3, [1, 4, 5, 2, 6, 3]), (di.data.AUTOTUNE, [1, 4, 5, 2, 6, 3])],
)
def test_parallel_reads_take_turns(texts: list[str], reads: int, want: list[int]) -> None:
    made = di.data.TextLineDataset(texts, num_parallel_reads=reads)
    assert [int(x) for x in made] == want


def test_the_cardinality_of_records_is_unknown(texts: list[str]) -> None:
    assert di.data.TextLineDataset(texts).cardinality() == di.data.UNKNOWN_CARDINALITY


def test_it_stays_a_data_set_like_any_other(texts: list[str]) -> None:
    made = di.data.TextLineDataset(texts).map(lambda x: np.int64(x)).batch(4)
    assert made.to_list() == [[1, 2, 3, 4], [5, 6]]


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB", "", None])
def test_records_come_back_as_written(tmp_path: Path, compression: str | None) -> None:
    path = str(tmp_path / "a")
    with di.io.TFRecordWriter(path, compression) as writer:
        for record in (b"one", b"", b"three"):
            writer.write(record)
    assert di.data.TFRecordDataset(path, compression_type=compression).to_list() == [b"one", b"", b"three"]


def test_a_compression_must_be_known(texts: list[str]) -> None:
    with pytest.raises(InvalidArgumentError, match="BZIP"):
        di.data.TextLineDataset(texts, compression_type="BZIP").to_list()


@pytest.mark.parametrize(
    "args, want",
    [((2,), [b"HE", b"AD", b"aa", b"bb", b"FT"]), ((2, 4, 2), [b"aa", b"bb"]), ((4, 4, 2), [b"aabb"]), ((2, 6, 4), [])],
)
def test_records_of_fixed_length(tmp_path: Path, args: Any, want: list[bytes]) -> None:
    (tmp_path / "a").write_bytes(b"HEADaabbFT")
    assert di.data.FixedLengthRecordDataset(str(tmp_path / "a"), *args).to_list() == want


def test_a_body_that_is_no_whole_number_of_records(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"HEADaab")
    before, error = until_error(di.data.FixedLengthRecordDataset(str(tmp_path / "a"), 2, header_bytes=4))
    assert before == []
    assert isinstance(error, InvalidArgumentError)
    assert str(tmp_path / "a") in str(error)


def test_columns_of_parquet_files(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    di.io.write_parquet(path, {"x": np.arange(2), "y": np.array(["a", "b"], object)})
    assert di.data.ParquetDataset(path).to_list() == [{"x": 0, "y": b"a"}, {"x": 1, "y": b"b"}]
    assert di.data.ParquetDataset(path, columns=["y"]).to_list() == [{"y": b"a"}, {"y": b"b"}]
