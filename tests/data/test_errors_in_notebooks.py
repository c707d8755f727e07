# SPDX-License-Identifier: Apache-2.0
"""In a notebook a traceback begins with the function of the user's; everywhere else, and for errors of ours, it is whole."""

import sys
import traceback
from types import SimpleNamespace
from typing import Any

import pytest

import distinput as di
from distinput.errors import DataLossError


def fails(x: Any) -> Any:
    return 1 // (int(x) - 3)


def files_of(dataset: di.data.Dataset) -> list[str]:
    """The files of the frames of the error that a pass ends with, from the loop to what raised it."""
    try:
        list(dataset)
    except (ZeroDivisionError, DataLossError) as error:
        return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    raise AssertionError("it did not fail")


def ours(files: list[str]) -> int:
    return sum("/distinput/" in file and "/tests/" not in file for file in files)


@pytest.fixture
def _notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: object()))  # type: ignore[arg-type]


DATASETS = [
    di.data.Dataset.range(5).map(fails).batch(2),
    di.data.Dataset.range(5).map(fails, num_parallel_calls=2),
    di.data.Dataset.range(3, 5).filter(fails),
]


@pytest.mark.parametrize("dataset", DATASETS, ids=str)
def test_elsewhere_an_error_has_all_frames(dataset: di.data.Dataset) -> None:
    assert ours(files_of(dataset)) > 4


@pytest.mark.usefixtures("_notebook")
@pytest.mark.parametrize("dataset", DATASETS, ids=str)
def test_in_a_notebook_it_has_few_of_ours(dataset: di.data.Dataset) -> None:
    files = files_of(dataset)
    assert files[-1] == __file__
    assert ours(files) <= 3


@pytest.mark.usefixtures("_notebook")
def test_an_error_that_is_raised_in_the_library_keeps_them(tmp_path: Any) -> None:
    path = tmp_path / "damaged.tfrecord"
    path.write_bytes(b"x" * 40)
    assert ours(files_of(di.data.TFRecordDataset(str(path)))) > 4


@pytest.mark.usefixtures("_notebook")
def test_what_was_noted_stays() -> None:
    with pytest.raises(ZeroDivisionError) as found:
        list(di.data.Dataset.range(5).map(fails))
    assert any("on element" in note for note in found.value.__notes__)
