# SPDX-License-Identifier: Apache-2.0
"""A file that is cut short, or written to, while it is read is a `DataLossError`, and no end of the data or of the process."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.formats import npy, span_format
from distinput.formats.format import Format
from distinput.formats.tfrecord import TFRecords

ROWS = 4096


def write_npy(path: Path) -> None:
    np.save(path, np.arange(256 * ROWS).reshape(ROWS, 256))


def write_arrow(path: Path) -> None:
    di.io.write_arrow(path, {"x": np.arange(256 * ROWS).reshape(ROWS, 256)}, batch_rows=ROWS // 8)


def write_text(path: Path) -> None:
    path.write_bytes(b"".join(b"%07d\n" % number for number in range(ROWS)))


def write_records(path: Path) -> None:
    with di.io.TFRecordWriter(path) as writer:
        for number in range(ROWS):
            writer.write(b"%07d" % number)


MAPPED: dict[str, tuple[Callable[[Path], None], Callable[[str], Any]]] = {
    "npy": (write_npy, di.data.NpyDataset),
    "arrow": (write_arrow, di.data.ArrowDataset),
}

# A file of 8 MB is cut to 64 KB when a part of its elements was seen: in a process of its own, which may end over it.
PROGRAM = """
import os, sys
import distinput as di
kind, path, way = sys.argv[1:]
dataset = {"npy": di.data.NpyDataset, "arrow": di.data.ArrowDataset}[kind](path)
if way == "shuffled":
    dataset = dataset.global_shuffle(seed=1)
try:
    for number, element in enumerate(dataset):
        row = element["x"] if kind == "arrow" else element
        if number == 10:
            os.truncate(path, 1 << 16)
            break_at = len(row)
        # What was handed out before may be gone: only what comes later is looked at.
        if number > 3500 or way == "shuffled" and number > 10:
            row.sum()
except di.errors.DataLossError as error:
    print("DataLossError", error)
"""


@pytest.mark.parametrize("kind", MAPPED)
def test_a_mapped_file_that_is_cut_between_blocks(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    MAPPED[kind][0](path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind, str(path), "in order"], capture_output=True, check=False
    )
    assert done.returncode == 0, done
    assert f"DataLossError {path}: changed while it was read: it had ".encode() in done.stdout


@pytest.mark.parametrize("kind", MAPPED)
def test_rows_fetched_from_a_mapped_file_that_was_cut(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    MAPPED[kind][0](path)
    node = MAPPED[kind][1](str(path)).node
    rows = np.array([ROWS - 1, 0, ROWS // 2])
    node.fetch(rows, 0)
    os.truncate(path, 1 << 16)
    with pytest.raises(di.errors.DataLossError, match=rf"{path.name}"):
        node.fetch(rows, 0)


@pytest.mark.parametrize("kind", MAPPED)
def test_a_file_that_is_replaced_is_read_to_its_end(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    write, dataset = MAPPED[kind]
    write(path)
    other.write_bytes(b"short")
    seen = 0
    for _ in dataset(str(path)):
        if not seen:
            os.replace(other, path)
        seen += 1
    assert seen == ROWS


def read_cut(format: Format, path: Path, size: int) -> int:
    """How many records come of a file that is cut to a size when the first of them are there."""
    seen = 0
    for block, _ in format.read(str(path)):
        if not seen:
            os.truncate(path, size)
        seen += block.size
    return seen


@pytest.mark.parametrize("lines", [100, 2000])
def test_lines_and_records_do_not_end_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    from distinput.formats.fixed_length import FixedLengthRecords
    from distinput.formats.text import TextLines

    for name in ("FIRST_BYTES", "CHUNK_BYTES"):
        monkeypatch.setattr(span_format, name, 1 << 12)
    for format, write, each in (
        (TextLines(), write_text, 8),
        (FixedLengthRecords(8), write_text, 8),
        (TFRecords(), write_records, 23),
    ):
        path = tmp_path / f"{format.name} {lines}"
        write(path)
        with pytest.raises(di.errors.DataLossError, match=r"had \d+ bytes when it was opened, but ends after \d+"):
            read_cut(format, path, lines * each)  # where a record ends


def test_a_file_that_grows_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    from distinput.formats.text import TextLines

    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    blocks = TextLines().read(str(path))
    with path.open("ab") as file:
        file.write(b"two\n")
    assert [line for block, _ in blocks for line in block.elements()] == [b"one", b"two"]


def test_the_check_costs_a_look_at_the_file_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npy"
    write_npy(path)
    looks = []
    real = npy.check_unchanged
    monkeypatch.setattr(npy, "check_unchanged", lambda *given: (looks.append(given), real(*given)))
    blocks = len(list(npy.Npy().read(str(path))))
    assert len(looks) == blocks


def test_a_parquet_file_that_is_replaced_is_not_read_with_the_footer_of_another(tmp_path: Path) -> None:
    from distinput.files.source import stamp_of
    from distinput.formats.parquet_file import Readers

    path, other = str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")
    di.io.write_parquet(path, {"x": np.arange(100)})
    di.io.write_parquet(other, {"x": np.arange(100, 200)})
    readers = Readers(path, stamp_of(path))
    with readers.lent(at_once=True) as first:
        os.replace(other, path)
        assert first.row_group(0, None)["x"].to_pylist() == list(range(100))  # which was opened before
        with (
            pytest.raises(di.errors.DataLossError, match=r"a\.parquet: changed while it was read"),
            readers.lent(at_once=True),
        ):
            pass
    readers.close()
