# SPDX-License-Identifier: Apache-2.0
"""NumPy reads what is written, in every dtype and shape."""

import errno
import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.writers import npy

Dataset = di.data.Dataset


@given(
    st.sampled_from(["i1", "u2", "f4", "f8", "c8", "?", "M8[s]", "m8[ns]"]),
    st.lists(st.integers(0, 3), max_size=2),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_numpy_reads_it(
    tmp_path_factory: pytest.TempPathFactory, dtype: str, shape: list[int], rows: int, shard: int
) -> None:
    folder = tmp_path_factory.mktemp("npy")
    array = np.arange(rows * int(np.prod(shape))).reshape(rows, *shape).astype(dtype)
    written = Dataset.from_tensor_slices(array).write(str(folder), "npy", shard_rows=shard)
    found = np.concatenate([np.load(path) for path in written.paths])
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


def test_files_end_at_a_size(tmp_path: Path) -> None:
    written = Dataset.from_tensor_slices(np.zeros((1000, 1024))).write(str(tmp_path), "npy", shard_bytes=1 << 20)
    assert len(written.files) == 2  # blocks are of about 4 MiB
    assert written.rows == 1000


@pytest.mark.parametrize("data", [["text"], {"x": [1]}])
def test_other_elements_are_refused(tmp_path: Path, data: object) -> None:
    with pytest.raises(InvalidArgumentError, match="an npy file is one array of numbers"):
        Dataset.from_tensor_slices(data).write(str(tmp_path), "npy")


def test_values_wait_where_the_file_will_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "a small disk that is not there"))
    assert di.data.Dataset.range(3).write(tmp_path / "a", "npy").rows == 3


def test_an_error_of_the_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(npy, "TemporaryFile", lambda **_: Full())
    with pytest.raises(OSError, match="No space left on device") as caught:
        di.data.Dataset.range(3).write(tmp_path / "a", "npy")
    assert any("part-00000.npy" in note for note in caught.value.__notes__)
