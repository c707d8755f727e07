# SPDX-License-Identifier: Apache-2.0
"""What goes from pyarrow to a sink is copied, since pyarrow may use its memory again; what a table cannot hold is refused."""

from pathlib import Path

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.files.sink import WRITTEN_ALONE, Sink
from distinput.writers.arrow import as_text, target


def test_what_is_written_is_copied(tmp_path: Path) -> None:
    data = bytearray(b"abc")
    with Sink(str(tmp_path / "a")) as sink:
        file = target(sink)
        file.write(data)
        data[:] = b"xyz"
        file.close()
        assert not sink.closed
    assert (tmp_path / "a").read_bytes() == b"abc"


def test_names_of_text_columns() -> None:
    assert as_text(["a", "b"]) == ("a", "b")
    assert as_text(True) is True


def test_what_is_large_may_change_once_it_was_written(tmp_path: Path) -> None:
    data = bytearray(b"a" * WRITTEN_ALONE)
    with Sink(str(tmp_path / "a")) as sink:
        file = target(sink)
        for letter in (b"b", b"c"):
            file.write(data)
            data[:] = letter * WRITTEN_ALONE
        file.close()
    assert (tmp_path / "a").read_bytes() == b"a" * WRITTEN_ALONE + b"b" * WRITTEN_ALONE


@pytest.mark.parametrize("format", ["parquet", "arrow", "jsonl", "csv"])
def test_a_component_that_is_none_is_refused(tmp_path: Path, format: str) -> None:
    spec = {"x": di.TensorSpec([], "int64"), "y": None}
    nones = di.data.Dataset.range(1).map(lambda x: {"x": x, "y": None}, output_signature=spec)
    with pytest.raises(InvalidArgumentError, match=r"no column for component \['y'\], which is None in every element"):
        nones.write(str(tmp_path / "out"), format=format)
    nones.write(str(tmp_path / "out"), format="elements")
    assert di.data.Dataset.load(str(tmp_path / "out")).to_list() == [{"x": 0, "y": None}]
