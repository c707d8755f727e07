# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.data import ParquetDataset
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.formats.parquet import Parquet, write_parquet
from distinput.formats.parquet_file import chunks_of
from tests.formats.reading import cut_short, flipped


def told(path: Path) -> dict[str, int]:
    content = path.read_bytes()
    footer = content[max(0, len(content) - 8 - int.from_bytes(content[-8:-4], "little")) : -8]
    found: dict[str, int] = {}
    for chunk in (chunk for group in chunks_of(str(path), footer, len(content)) for chunk in group):
        found[chunk.column] = found.get(chunk.column, 0) + chunk.stop - chunk.start
    return found


@given(rows=st.integers(0, 50), group=st.integers(1, 20), names=st.lists(st.text(max_size=3), max_size=20, unique=True))
def test_the_bytes_are_those_that_pyarrow_tells(
    tmp_path_factory: pytest.TempPathFactory, rows: int, group: int, names: list[str]
) -> None:
    path = tmp_path_factory.mktemp("columns") / "a.parquet"
    nested = pa.array([{"x": row, "y": [b"%d" % row, None]} for row in range(rows)], NESTED)
    pq.write_table(
        pa.table([nested, *[np.arange(rows)] * len(names)], ["of.two", *names]), path, group, compression="zstd"
    )
    footer = pq.read_metadata(path)
    want = dict.fromkeys(["of.two", *names], 0) if rows else {}
    for groups in (footer.row_group(number) for number in range(footer.num_row_groups)):
        sizes = [groups.column(number).total_compressed_size for number in range(2 + len(names))]
        for name, nbytes in zip(["of.two", "of.two", *names], sizes, strict=True):
            want[name] = want.get(name, 0) + nbytes
    assert told(path) == want


NESTED = pa.struct({"x": pa.int64(), "y": pa.list_(pa.binary())})


def test_damage_is_an_error_and_not_the_end_of_the_process(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path, {"i": np.arange(6), "s": [b"%d" % i for i in range(6)]}, row_group_size=3)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    errors: list[str] = []
    for damaged in (*cut_short(content), *(content[:footer] + each for each in flipped(content[footer:]))):
        path.write_bytes(damaged)
        try:
            found = told(path)
        except DataLossError as error:
            errors.append(str(error))
        else:
            assert all(0 <= nbytes <= 2 * len(content) for nbytes in found.values())
    assert len(errors) > len(content)
    assert all(f"{path}: not a Parquet file, or damaged: its footer: " in error for error in errors)


def test_a_number_without_end_is_an_error_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    footer = b"\x15" + b"\xff" * (1 << 20)
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(DataLossError, match="a number of more than 64 bits"):
        told(path)


def test_bytes_of_the_columns_that_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path, {"a": np.arange(1000), "b": np.zeros(1000)})
    size = path.stat().st_size
    each = [Parquet(columns=[name]).bytes_read(str(path), size) for name in "ab"]
    assert Parquet(columns=["b", "a"]).bytes_read(str(path), size) == sum(each) < size
    assert Parquet().bytes_read(str(path), size) == size
    assert Parquet(columns=["a"]).bytes_read(str(path), 0) == 0  # where nobody knows it


def rewritten(path: Path, *changes: tuple[bytes, bytes]) -> None:
    """Change what the footer of a file says."""
    content = path.read_bytes()
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[at:-8]
    for before, after in changes:
        assert footer.count(before) == 1
        footer = footer.replace(before, after)
    path.write_bytes(content[:at] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def test_a_struct_without_fields_has_no_values(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [7, 8]}), path, compression="none", store_schema=False)
    schema = b"\x35\x00\x18\x06schema\x15"  # then the number of columns; before, the number of entries
    of_structs = b"\x35\x02\x18\x01s\x15\x02\x00" + b"\x35\x02\x18\x01t\x15\x00\x00"  # s, in which t is, of no fields
    rewritten(path, (b"\x2c" + schema + b"\x02\x00", b"\x4c" + schema + b"\x04\x00" + of_structs))
    assert pq.ParquetFile(path).schema_arrow.names == ["s", "a"]
    found = ParquetDataset(str(path))
    assert found.to_list() == pq.ParquetFile(path).read().to_pylist() == [{"a": 7}, {"a": 8}]
    assert found.skip(1).to_list() == [found[1]] == [{"a": 8}]
    with pytest.raises(InvalidArgumentError, match="'s'"):
        ParquetDataset(str(path), columns=["s"]).to_list()


def test_a_struct_ends_where_no_kind_stands(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [7, 8]}), path, compression="none", store_schema=False)
    content = path.read_bytes()
    path.write_bytes(content[:-9] + b"\x10" + content[-8:])  # as pyarrow has it
    assert ParquetDataset(str(path)).to_list() == pq.read_table(path).to_pylist()
    assert list(told(path)) == ["a"]
