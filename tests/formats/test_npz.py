# SPDX-License-Identifier: Apache-2.0
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.formats import npy
from distinput.formats.npy import Npz
from distinput.testing import check_format
from tests.formats.reading import records

ARRAYS = {
    "x": np.arange(12, dtype=">i4").reshape(6, 2),
    "y": np.arange(6) / 4,
    "z": np.asfortranarray(np.arange(18).reshape(6, 3)),
}
ROWS = [{name: array[row].tolist() for name, array in ARRAYS.items()} for row in range(6)]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_rows_as_numpy_saves_them(tmp_path: Path, save: Any) -> None:
    def write(folder: Path) -> list[str]:
        for name, rows in (("a", 6), ("b", 1), ("c", 0)):
            save(folder / f"{name}.npz", **{key: array[:rows] for key, array in ARRAYS.items()})
        return [str(folder / f"{name}.npz") for name in "abc"]

    native = {name: array.astype(array.dtype.newbyteorder("=")) for name, array in ARRAYS.items()}
    rows = [{name: array[row] for name, array in native.items()} for row in range(6)]
    check_format(Npz(), write, [rows, rows[:1], []])


def test_remote_archives_and_columns(tmp_path: Path) -> None:
    import fsspec

    file = io.BytesIO()
    np.savez(file, **ARRAYS)
    fsspec.filesystem("memory").pipe("/npz/a.npz", file.getvalue())
    assert records(Npz(), "memory://npz/a.npz") == ROWS
    assert records(Npz(("y",)), "memory://npz/a.npz") == [{"y": row["y"]} for row in ROWS]
    assert (
        di.data.NpzDataset("memory://npz/a.npz", ["y"]).global_shuffle(seed=2).batch(6).element_spec["y"].shape[1:]
        == ()
    )


@pytest.mark.parametrize("before", [b"#!/bin/sh\n", b"MZ" + bytes(1000)])
def test_a_program_may_stand_before_an_archive(tmp_path: Path, before: bytes) -> None:
    file = io.BytesIO()
    np.savez(file, **ARRAYS)
    path = tmp_path / "b.npz"
    path.write_bytes(before + file.getvalue())
    assert records(Npz(), str(path)) == ROWS


def test_the_first_member_may_have_been_deleted(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("old.npy", bytes(100))
        for name, array in ARRAYS.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.save(member, array)
        del archive.filelist[0]
    assert records(Npz(), str(path)) == ROWS


class Harm:
    def __reduce__(self) -> Any:
        return pytest.fail, ("it was executed",)


def test_what_has_no_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    for arrays, error, says in (
        (
            {"x": np.arange(3), "y": np.arange(2)},
            InvalidArgumentError,
            r"different numbers of rows, \{'x': 3, 'y': 2\}",
        ),
        ({"x": np.float64(3)}, InvalidArgumentError, "array 'x' is a scalar"),
        ({"x": np.array(["a"])}, UnimplementedError, "array 'x' holds values of dtype <U1"),
        ({"x": np.array([Harm()], object)}, UnimplementedError, "array 'x' holds values of dtype object"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(error, match=says):
            records(Npz(), path)
    with pytest.raises(InvalidArgumentError, match="has no array 'w'; it has x"):
        records(Npz(("w",)), path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../x.txt", b"text")
    with pytest.raises(InvalidArgumentError, match=r"holds '\.\./x\.txt', which is no array"):
        records(Npz(), path)
    np.savez_compressed(path, x=np.zeros(1000))
    monkeypatch.setattr(npy, "MOST_BYTES", 8000)
    with pytest.raises(InvalidArgumentError, match="take 8128 bytes in memory, more than 8000"):
        records(Npz(), path)


def test_an_index_that_leads_elsewhere_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(3))
    content = path.read_bytes()
    path.write_bytes(b"QQ" + content[2:])
    with pytest.raises(DataLossError, match="damaged"):
        records(Npz(), path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_second_array_behind_the_first_one_is_an_error(tmp_path: Path, compression: int) -> None:
    content, path = io.BytesIO(), str(tmp_path / "both.npz")
    np.save(content, np.arange(3))
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("x.npy", 2 * content.getvalue())
    with pytest.raises(
        DataLossError, match=r"both\.npz: array 'x': .*another array begins at byte 152, behind the first one"
    ):
        di.data.NpzDataset(path).to_list()
