# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Iterator
from functools import partialmethod
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec import filesystem
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.errors import DataLossError, DistinputError
from distinput.files.source import read_spans, stamp_of
from distinput.formats import parquet_pages
from distinput.formats.parquet import Parquet, write_parquet
from distinput.formats.parquet_file import opened
from distinput.formats.parquet_pages import pages_of, taken_rows
from distinput.ops import global_shuffle
from tests.depth import cases, crossed
from tests.formats.reading import flipped, plain

ROWS = 600


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    """Row groups of any size are read by pages, and few pages at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_pages, "_SMALL_BYTES", 0)
        patch.setattr(parquet_pages, "_LOT_BYTES", 1 << 10)
        yield


def table() -> pa.Table:
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "int": numbers,
            "half": pa.array(numbers.astype(np.float16)),
            "text": [f"{n:020}" for n in numbers],
            "few": pa.array([f"{n % 7}" for n in numbers]),
            "word": pa.array([b"%d" % (n % 5) for n in numbers]).dictionary_encode(),
            "null": pa.array([None if n % 3 else float(n) for n in numbers]),
            "list": pa.array([list(range(n % 4)) for n in numbers], pa.list_(pa.int32())),
            "fixed": pa.array([[n, n + 1] for n in numbers], pa.list_(pa.float32(), 2)),
            "struct": pa.array([{"x": n, "y": f"{n}"} for n in numbers]),
            "one": pa.array([{"x": [n]} for n in numbers]),
            "time": pa.array(numbers, pa.timestamp("us")),
            "bool": numbers % 2 == 0,
        }
    )


KINDS: dict[str, dict[str, Any]] = {
    "index": {"write_page_index": True},
    "headers": {},
    "second version": {"data_page_version": "2.0"},
    "plain": {"use_dictionary": False, "write_page_index": True, "compression": "none"},
    "zstd": {"compression": "zstd", "write_page_checksum": True},
    "deltas": {
        "use_dictionary": False,
        "column_encoding": {"int": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY"},
        "write_page_index": True,
    },
    "a dictionary that ends": {
        "dictionary_pagesize_limit": 1000,
        "write_page_index": True,
        "write_page_checksum": True,
    },
    "no schema of Arrow": {"store_schema": False, "write_page_index": True},
    "int96": {"use_deprecated_int96_timestamps": True},
}


def written(path: str, kind: str) -> None:
    pq.write_table(table(), path, row_group_size=250, data_page_size=200, write_batch_size=16, **KINDS[kind])


@pytest.mark.parametrize("where, kind", crossed(["local", "memory"], KINDS, together=1))
def test_rows_are_those_of_whole_row_groups(kind: str, where: str, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    written(path, kind)
    if where == "memory":
        content, path = Path(path).read_bytes(), f"memory://pages/{kind.replace(' ', '-')}.parquet"
        filesystem("memory").pipe(path, content)
    reader = Parquet(nulls={"null": -1.0})
    whole = [plain(element) for block, _ in reader.read(path) for element in block.elements()]
    assert len(whole) == ROWS

    @settings(max_examples=cases(8, 2000))
    @given(st.lists(st.integers(0, ROWS - 1), max_size=12))
    def check(rows: list[int]) -> None:
        found = reader.fetch(path, np.array(rows, np.int64))
        assert [plain(element) for element in found.elements()] == [whole[row] for row in rows]

    check()


@pytest.mark.parametrize(
    "kind, paged, not_paged",
    [
        ("index", ["int", "text", "few", "null", "list", "fixed", "one", "time"], ["struct"]),
        ("headers", ["int", "text", "few", "null"], ["list", "fixed", "struct"]),
        ("second version", ["int", "text", "list", "fixed"], ["struct"]),
    ],
)
def test_pages_that_are_known(kind: str, paged: list[str], not_paged: list[str], tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    written(path, kind)
    for name in paged:
        pages = pages_of(path, stamp_of(path), 1, name)
        assert pages is not None
        assert pages.rows[-1] == 250
    assert [pages_of(path, stamp_of(path), 1, name) for name in not_paged] == [None] * len(not_paged)


def test_only_pages_that_hold_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(table().select(["text"]), path, data_page_size=200, write_batch_size=16, use_dictionary=False)
    asked: list[int] = []

    def counted(path: str, starts: Any, sizes: Any, out: Any) -> Any:
        asked.append(int(sizes.sum()))
        return read_spans(path, starts, sizes, out)

    monkeypatch.setattr(parquet_pages, "read_spans", counted)
    assert Parquet().fetch(path, np.array([300])).row(0) == {"text": b"%020d" % 300}
    assert len(asked) == 1
    assert asked[0] < 1000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
def test_slices_are_those_of_whole_row_groups(
    kind: str, kept: bool, small_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_pages, "_SMALL_BYTES", small_bytes)
    path = str(tmp_path / "a.parquet")
    written(path, kind)
    whole = pq.ParquetFile(path).read_row_group(1).to_pylist()
    with opened(path, stamp_of(path)) as reader:
        for first, stop in [(0, 250), (0, 1), (3, 90), (90, 100), (100, 249), (249, 250), (40, 42)]:
            found = taken_rows(reader, 1, None, np.arange(first, stop), threads=False, kept=kept)
            assert found.to_pylist() == whole[first:stop]


def unlike(tmp_path: Path) -> str:
    """A file of text whose first values are in a dictionary, and whose last ones are not."""
    path = str(tmp_path / "a.parquet")
    pq.write_table(
        table().select(["text"]), path, data_page_size=200, write_batch_size=16, dictionary_pagesize_limit=4000,
        compression="none", write_page_index=True, write_page_checksum=True,
    )  # fmt: skip
    return path


def test_a_dictionary_is_read_for_pages_that_refer_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unlike(tmp_path)
    pages = pages_of(path, stamp_of(path), 0, "text")
    assert pages is not None
    assert pages.dictionary[1] > 4000
    asked: list[int] = []

    def counted(path: str, starts: Any, sizes: Any, out: Any) -> Any:
        asked.append(int(sizes.sum()))
        return read_spans(path, starts, sizes, out)

    monkeypatch.setattr(parquet_pages, "read_spans", counted)
    assert Parquet().fetch(path, np.array([ROWS - 1])).row(0) == {"text": b"%020d" % (ROWS - 1)}
    assert sum(asked) < 1000
    assert Parquet().fetch(path, np.array([0])).row(0) == {"text": b"%020d" % 0}
    assert asked[-1] == pages.dictionary[1]


def test_pages_are_compared_with_their_checksums_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unlike(tmp_path)
    compared: list[bool] = []

    class Noted(pq.ParquetReader):  # type: ignore[misc]
        def open(self, *args: Any, page_checksum_verification: bool = False, **options: Any) -> None:
            compared.append(page_checksum_verification)
            super().open(*args, page_checksum_verification=page_checksum_verification, **options)

    with opened(path, stamp_of(path)) as reader:
        monkeypatch.setattr(pq, "ParquetReader", Noted)
        for first in (0, 2, 4, 500, 502, 0):
            assert taken_rows(reader, 0, None, np.arange(first, first + 2), threads=False).num_rows == 2
        assert compared == [True, False, False, True, False, True]
        os.utime(path, (1, 1))  # whoever changes the file, another time is that of its change
        taken_rows(reader, 0, None, np.arange(2), threads=False)
        assert compared[6:] == [True]


def test_row_groups_are_compared_with_their_checksums_once(tmp_path: Path) -> None:
    path = unlike(tmp_path)
    with opened(path, stamp_of(path)) as reader:
        first = reader.row_group(0, None)
        assert not reader.compares(None, [0])
        assert reader.compares(("text",), [0])
        assert reader.row_group(0, None).equals(first)
        assert reader.row_group(0, None, end=7).equals(first.slice(0, 7))
        assert reader.row_group(0, None, end=ROWS + 1).equals(first)
        assert reader.row_group(0, []).num_columns == 0


def test_each_slice_of_a_damaged_page_is_an_error(tmp_path: Path) -> None:
    path = unlike(tmp_path)
    pages = pages_of(path, stamp_of(path), 0, "text")
    assert pages is not None
    content = bytearray(Path(path).read_bytes())
    place = int(np.searchsorted(pages.rows, 500, "right")) - 1
    content[int(pages.starts[place] + pages.sizes[place]) - 1] ^= 1  # a letter of the last value
    Path(path).write_bytes(content)
    rows = range(*pages.rows[place : place + 2].tolist())
    with opened(path, stamp_of(path)) as reader:
        assert taken_rows(reader, 0, None, np.arange(2), threads=False).num_rows == 2
        for first in (rows.start, rows.start + 1, rows.stop - 1, rows.start):
            with pytest.raises(DataLossError, match=r"a\.parquet"):
                taken_rows(reader, 0, None, np.arange(first, rows.stop), threads=False)


def test_headers_of_pages_may_be_long(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    texts = [f"{row:03000}" for row in range(60)]
    pq.write_table(pa.table({"text": texts}), path, data_page_size=9000, write_batch_size=2, use_dictionary=False)
    assert [row["text"] for row in Parquet().fetch(path, np.array([7, 31])).elements()] == [
        texts[row].encode() for row in (7, 31)
    ]


def test_large_row_groups_without_pages_are_decoded_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(table().select(["list", "struct", "int"]), path, data_page_size=200, write_batch_size=16)
    want = [plain(element) for block, _ in Parquet().read(path) for element in block.elements()]
    monkeypatch.setattr(parquet_pages, "_WHOLE_BYTES", 0)
    for rows in ([599, 3, 3, 400, 0], range(ROWS), [0, 0, *range(2, ROWS)]):
        found = Parquet().fetch(path, np.array(rows))
        assert [plain(element) for element in found.elements()] == [want[row] for row in rows]


def test_damage_is_an_error_or_changes_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = {"i": np.arange(64), "s": [b"%d" % i for i in range(64)], "l": [[i] * (i % 3) for i in range(64)]}
    arrays = {name: pa.array(column) for name, column in columns.items()}
    pq.write_table(
        pa.table(arrays), path, data_page_size=64, write_batch_size=4, write_page_index=True, write_page_checksum=True,
        use_dictionary=False,
    )  # fmt: skip
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    rows = np.array([1, 40, 63])
    want = [plain(element) for element in Parquet().fetch(str(path), rows).elements()]
    errors: list[str] = []
    for damaged in (each + content[footer:] for each in islice(flipped(content[:footer]), 0, None, cases(41, 1))):
        path.write_bytes(damaged)
        try:
            found = [plain(element) for element in Parquet().fetch(str(path), rows).elements()]
        except DistinputError as error:
            errors.append(str(error))
        else:
            assert found == want
    assert errors
    assert all(str(path) in error for error in errors)


@given(st.integers(1, 40), st.integers(0, 3), st.integers(1, 7))
def test_a_global_shuffle_is_that_of_rows_in_memory(rows: int, seed: int, batch: int) -> None:
    path = "memory://pages/shuffled.parquet"
    write_parquet(path, {"i": np.arange(rows), "s": [b"%d" % i for i in range(rows)]}, row_group_size=9)
    order = di.data.Dataset.range(rows).global_shuffle(seed=seed).to_list()
    found = di.data.ParquetDataset(path).global_shuffle(seed=seed).batch(batch)
    assert [(int(i), s) for each in found for i, s in zip(each["i"], each["s"], strict=True)] == [
        (i, b"%d" % i) for i in order
    ]


@pytest.mark.parametrize("ahead", [1 << 20, 100])
@given(st.integers(1, 60), st.integers(0, 3), st.integers(0, 20))
def test_how_many_rows_a_global_shuffle_reads_together_changes_nothing(
    ahead: int, rows: int, seed: int, begin: int
) -> None:
    path = f"memory://pages/{ahead}.parquet"
    with filesystem("memory").open(path, "wb") as file:
        columns = {"fixed": table()["fixed"][:rows], "list": table()["list"][:rows]}
        pq.write_table(pa.table(columns), file, row_group_size=25, data_page_size=16, write_batch_size=1)
    order = di.data.Dataset.range(rows).global_shuffle(seed=seed).skip(begin).to_list()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(global_shuffle, "_AHEAD_BYTES", ahead)
        patch.setattr(global_shuffle, "free_memory", lambda: 0)
        for columns in (["fixed"], ["fixed", "list"]):
            shuffled = di.data.ParquetDataset(path, columns=columns).global_shuffle(seed=seed).skip(begin)
            assert [int(row["fixed"][0]) for row in shuffled] == order


@pytest.mark.parametrize(
    "free, index, sizes",
    [
        (None, False, [ROWS]),
        (1 << 30, False, [ROWS]),
        (200 * ROWS, False, [1, 64, 468, 67]),
        (1 << 30, True, [1, 64, ROWS - 65]),
    ],
)
def test_rows_are_decoded_once_where_there_is_memory(
    free: int | None, index: bool, sizes: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(table().select(["fixed"]), path, data_page_size=200, write_batch_size=16, write_page_index=index)
    if free is not None:
        monkeypatch.setattr(global_shuffle, "_AHEAD_BYTES", ROWS)
    monkeypatch.setattr(global_shuffle, "free_memory", lambda: free)
    seen = []
    monkeypatch.setattr(Parquet, "fetch", partialmethod(_noting, seen, Parquet.fetch))
    dataset = di.data.ParquetDataset(path).global_shuffle(seed=1)
    assert len(list(dataset.batch(7))) == -(-ROWS // 7)
    assert seen == sizes


def test_a_few_texts_do_not_tell_how_long_the_others_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": [b"text"] * 10_000}), path)
    seen: list[int] = []
    monkeypatch.setattr(Parquet, "fetch", partialmethod(_noting, seen, Parquet.fetch))
    assert len(list(di.data.ParquetDataset(path).global_shuffle(seed=1).batch(100))) == 100
    assert seen == [1, 64, 4096, 5839]  # and not all that would fit if they were as short as the first ones


def _noting(self: Parquet, seen: list[int], fetch: Any, path: str, rows: Any) -> Any:
    seen.append(len(rows))
    return fetch(self, path, rows)
