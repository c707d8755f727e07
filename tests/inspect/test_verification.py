# SPDX-License-Identifier: Apache-2.0
"""A flipped byte, a lost file, a swapped record and workers that lose something are found; sound files are sound."""

import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.files.manifest import save_manifest
from distinput.inspect import verification
from distinput.inspect.conversion import convert
from distinput.inspect.verification import verify
from distinput.sharding.policies import auto_shard
from tests.depth import cases
from tests.inspect import kept

ROWS = [{"n": number, "x": number / 2, "t": b"t%d" % (number % 3)} for number in range(23)]


@pytest.mark.parametrize("format", [*kept.TABLES, "elements"])
def test_sound_files_are_sound(tmp_path: Path, format: str) -> None:
    kept.write(tmp_path / "a", ROWS, format, shards=3)
    found = verify(str(tmp_path / "a"), workers=[1, 2, 5])
    assert (found.files, found.records, found.findings) == (3, 23, ())
    assert len(found.checked) == 5


@settings(max_examples=cases(6, 300))
@given(format=st.sampled_from(kept.TABLES), data=st.data())
def test_a_flipped_bit_is_found(tmp_path_factory: pytest.TempPathFactory, format: str, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("flipped") / "a"
    path = Path(kept.write(folder, ROWS, format)[0])
    content = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    found = verify(str(folder)).findings
    assert (found[0].check, found[0].file) == ("checksum", str(path))
    if format == "tfrecord":  # whose records have checksums of their own
        assert [finding.check for finding in verify(str(path), format).findings] == ["records"]


def test_a_lost_file_is_found(tmp_path: Path) -> None:
    paths = kept.write(tmp_path / "a", ROWS, "parquet", shards=3)
    Path(paths[1]).unlink()
    found = verify(str(tmp_path / "a")).findings
    assert [(finding.check, finding.file) for finding in found] == [("manifest", paths[1]), ("records", paths[1])]


def test_a_file_too_many_and_a_cut_one_are_found(tmp_path: Path) -> None:
    paths = kept.write(tmp_path / "a", ROWS, "jsonl", shards=2)
    shutil.copy(paths[0], tmp_path / "a" / "more.jsonl")
    content = Path(paths[1]).read_bytes()
    Path(paths[1]).write_bytes(content[: content.rstrip(b"\n").rfind(b"\n") + 1])
    found = verify(str(tmp_path / "a")).findings
    assert [finding.check for finding in found] == ["size", "manifest", "records"]
    assert "has 10 records, and distinput-manifest.json says 11" in found[2].problem


@settings(max_examples=cases(3, 100))
@given(data=st.data(), format=st.sampled_from(kept.TABLES))
def test_a_swapped_record_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, format: str) -> None:
    folder = tmp_path_factory.mktemp("swapped")
    first = data.draw(st.integers(0, 21))
    second = data.draw(st.integers(first + 1, 22))
    swapped = list(ROWS)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    kept.write(folder / "a", ROWS, "parquet")
    kept.write(folder / "b", swapped, format)
    assert verify(str(folder / "a"), against=str(folder / "a"), workers=()).findings == ()
    (finding,) = verify(str(folder / "b"), against=str(folder / "a"), workers=()).findings
    assert finding.check == "against"
    assert f"record {first} is not record {first} of " in finding.problem


@pytest.mark.parametrize("to", ["arrow", "csv", "jsonl", "parquet"])
def test_decimals_and_dates_are_those_of_any_format(tmp_path: Path, to: str) -> None:
    prices = pa.array([Decimal("1.50"), Decimal("-0.01")], pa.decimal128(10, 2))
    days = pa.array([date(2024, 2, 29), date(1969, 12, 31)], pa.date64())
    for name, price in (("a", prices), ("b", prices[::-1])):
        pq.write_table(pa.table({"price": price, "day": days}), tmp_path / f"{name}.parquet")
    convert(str(tmp_path / "a.parquet"), str(tmp_path / "to"), to)
    assert verify(str(tmp_path / "to"), against=str(tmp_path / "a.parquet"), workers=()).findings == ()
    (finding,) = verify(str(tmp_path / "to"), against=str(tmp_path / "b.parquet"), workers=()).findings
    assert "'price' is" in finding.problem


def test_workers_that_lose_or_repeat_records_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write(tmp_path / "a", ROWS, "parquet")
    whole = auto_shard

    def problems() -> list[str]:
        found = verify(str(tmp_path / "a"), workers=[2]).findings
        return [finding.problem for finding in found if finding.check == "workers"]

    monkeypatch.setattr(verification, "auto_shard", lambda node, n, i: Dataset(whole(node, n, i)).skip(i).node)
    assert problems() == ["2 workers read 22 records of 23: [12, 10]"]
    monkeypatch.setattr(verification, "auto_shard", lambda node, n, i: Dataset(node).take(12 - i).node)
    assert problems() == ["2 workers read other records than those of the files, as many as there are"]


def test_a_list_of_files(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name}\n")
    listed = str(tmp_path / "list.json")
    save_manifest(listed, [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")])

    def problems() -> list[tuple[str, str]]:
        found = verify(str(tmp_path / "*.txt"), manifest=listed, workers=()).findings
        return [(Path(str(finding.file)).name, finding.check) for finding in found]

    assert problems() == [("c.txt", "manifest")]
    (tmp_path / "c.txt").unlink()
    assert problems() == []
    (tmp_path / "a.txt").write_text("longer\n")
    (tmp_path / "b.txt").unlink()
    assert problems() == [("a.txt", "size"), ("b.txt", "manifest")]


def test_what_cannot_be_checked_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        verify(str(tmp_path / "nothing.txt"), manifest=str(tmp_path / "none.json"))
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(InvalidArgumentError, match="workers must be at least 1"):
        verify(str(tmp_path / "a.txt"), workers=[0])


def test_nulls_are_no_damage_but_workers_cannot_read_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,a\n,b\n")
    (finding,) = verify(str(tmp_path / "a.csv"), nulls="error").findings
    assert finding.check == "workers"
    assert "nulls=" in finding.problem
    assert verify(str(tmp_path / "a.csv"), nulls={"x": 0}).findings == verify(str(tmp_path / "a.csv")).findings == ()


def test_public_names() -> None:
    missing: list[Any] = [name for name in di.inspect.__all__ if not hasattr(di.inspect, name)]
    assert missing == []


def test_nulls_of_lists_of_lists_of_one_size_are_no_damage(tmp_path: Path) -> None:
    kind = pa.list_(pa.list_(pa.int64(), 2), 2)
    di.io.write_parquet(str(tmp_path / "a.parquet"), {"f": pa.array([[[1, 2], [3, 4]], None], kind)})
    assert verify(str(tmp_path / "a.parquet")).findings == ()


def test_parquet_files_that_were_joined_are_found_however_small_they_are(tmp_path: Path) -> None:
    parts = []
    for seed in (1, 2):
        values = np.repeat((np.random.default_rng(seed).random(3_000) * 2**20).astype(np.int64), 20)
        pq.write_table(pa.table({f"x{n}": values for n in range(9)}), tmp_path / "a.parquet", compression="zstd")
        parts.append((tmp_path / "a.parquet").read_bytes())
    assert verify(str(tmp_path / "a.parquet")).findings == ()
    (tmp_path / "a.parquet").write_bytes(b"".join(parts))
    (found,) = verify(str(tmp_path / "a.parquet")).findings
    assert "holds several Parquet files one behind the other" in found.problem
