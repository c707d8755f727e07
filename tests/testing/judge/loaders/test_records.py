# SPDX-License-Identifier: Apache-2.0
"""The records that known loaders are tried with."""

import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.testing.judge.loaders.records import FILES, NumberedRecords, spans, tar_files, text_files


@given(st.integers(0, 200))
def test_files_have_all_records_in_order(records: int) -> None:
    assert [each for span in spans(records) for each in span] == list(range(records))
    assert len(spans(records)) == FILES


def test_text_and_tar_files_have_the_same_records() -> None:
    lines = [int(line) for path in text_files(11) for line in Path(path).read_text("utf-8").splitlines()]
    assert lines == list(range(11))
    found = []
    for path in tar_files(11):
        with tarfile.open(path) as archive:
            found += [int(archive.extractfile(member).read()) for member in archive]  # type: ignore[union-attr]
    assert found == lines


def test_numbers_end() -> None:
    assert list(NumberedRecords(3)) == [0, 1, 2]
    with pytest.raises(IndexError):
        NumberedRecords(3)[3]
