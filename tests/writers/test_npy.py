# SPDX-License-Identifier: Apache-2.0
"""NumPy reads what is written, in every dtype and shape."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError

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
