# SPDX-License-Identifier: Apache-2.0
"""Lines of text come back, and what would come back as something else is refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.errors import InvalidArgumentError

Dataset = di.data.Dataset


@given(st.lists(st.binary(max_size=5), min_size=1, max_size=10), st.sampled_from([None, "GZIP"]))
def test_lines_come_back_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], compression: str | None
) -> None:
    folder = tmp_path_factory.mktemp("text")
    dataset = Dataset.from_tensor_slices(np.array([*lines, b""], object)[:-1])
    wrong = next((line for line in lines if b"\n" in line or line.endswith(b"\r")), None)
    if wrong is None:
        dataset.write(str(folder), "text", compression=compression)
        assert di.data.FileDataset(str(folder)).to_list() == lines
    else:
        with pytest.raises(InvalidArgumentError, match=f"element {lines.index(wrong)} contains a line end"):
            dataset.write(str(folder), "text", compression=compression)


def test_the_file_is_text(tmp_path: Path) -> None:
    written = Dataset.from_tensor_slices([b"one", b"", b"two"]).write(str(tmp_path), "text")
    assert Path(written.paths[0]).read_bytes() == b"one\n\ntwo\n"
    with pytest.raises(InvalidArgumentError, match="a line of text is one byte string"):
        Dataset.range(3).write(str(tmp_path / "b"), "text")
