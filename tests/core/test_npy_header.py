# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distinput.decoders.arrays import (
    MalformedArchive,
    MalformedArray,
    ObjectsError,
    content_of,
    npy_array,
    npy_header,
    reading_archive,
)
from tests.traced_memory import peak_memory


def saved(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.float32(3),
        np.empty((0, 4)),
        np.arange(3, dtype=">i2"),
    ],
    ids=["rows", "columns", "scalar", "nothing", "big"],
)
def test_an_array_is_that_of_its_file(array: Any) -> None:
    content = saved(array)
    found = npy_array(content)
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype
    header = npy_header(content)
    assert (header.shape, header.dtype) == (np.shape(array), array.dtype)
    assert header.start + np.asarray(array).nbytes == len(content)


def test_a_header_that_python_failed_to_parse_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read, failures = np.lib.format.read_array_header_1_0, [SystemError("AST constructor recursion depth mismatch")]

    def fails_once(file: Any) -> Any:
        found = read(file)
        if failures:
            raise failures.pop()
        return found

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", fails_once)
    assert npy_header(saved(np.arange(3))).shape == (3,)


@pytest.mark.parametrize("size", [0, 5, 6, 9, 40, 127])
def test_a_part_of_a_header_is_none(size: int) -> None:
    with pytest.raises(MalformedArray):
        npy_header(saved(np.arange(3))[:size])


def test_damage_is_told_by_one_error() -> None:
    content = saved(np.arange(3))
    for at in range(128):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[at] ^= 1 << bit
            with contextlib.suppress(MalformedArray):
                npy_array(bytes(damaged))
    with pytest.raises(MalformedArray, match=r"an array int64\[3\] does not fit into 20 bytes"):
        npy_array(content[:-4])
    with pytest.raises(MalformedArray, match=r"its version is 9\.0"):
        npy_header(content[:6] + b"\x09" + content[7:])
    with pytest.raises(ObjectsError):
        npy_array(saved(np.array([{}], object)))


def test_only_errors_of_archives_are_damage() -> None:
    with pytest.raises(MalformedArchive), reading_archive():
        zipfile.ZipFile(io.BytesIO(b"nothing"))
    for error in (IndexError("own"), KeyError("own"), TypeError("own"), PermissionError(13, "no")):
        with pytest.raises(type(error)) as caught, reading_archive():
            raise error
        assert caught.value is error


def test_a_member_is_in_memory_once(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(1 << 25, np.uint8))

    def read() -> None:
        with zipfile.ZipFile(path) as archive:
            assert len(content_of(archive, "x.npy")) == (1 << 25) + 128

    assert peak_memory(read) < 1.7 * (1 << 25)
    content = path.read_bytes()
    at = content.find(b"x.npy") + 60
    damaged = zipfile.ZipFile(io.BytesIO(content[:at] + b"\xff" * 8 + content[at + 8 :]))
    with damaged, pytest.raises(MalformedArchive):
        content_of(damaged, "x.npy")
