# SPDX-License-Identifier: Apache-2.0
"""Datasets that are made of formats are classes like others."""

import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.data import file_datasets
from distinput.formats import FORMATS


@pytest.mark.parametrize("name", file_datasets.DATASETS)
def test_a_dataset_is_a_class_that_is_made_once(name: str) -> None:
    made = getattr(di.data, name)
    assert issubclass(made, di.data.Dataset)
    assert made is getattr(file_datasets, name)
    assert pickle.loads(pickle.dumps(made)) is made
    assert (made.__name__, made.__qualname__, made.__module__) == (name, name, "distinput.data.file_datasets")
    assert made.__init__.__qualname__ == f"{name}.__init__"


@pytest.mark.parametrize("name", file_datasets.DATASETS)
def test_every_argument_is_documented_and_every_option_has_an_order(name: str) -> None:
    made = getattr(di.data, name)
    for argument in inspect.signature(made).parameters:
        assert f"\n  {argument}: " in (inspect.getdoc(made) or "")
    inner: Any = FORMATS.find(file_datasets.DATASETS[name].format)
    # The one is for FileDataset alone, the other is how `nulls` is kept.
    options = set(inspect.signature(inner).parameters) - {"batch_rows", "tells"}
    assert options <= set(inspect.signature(made).parameters)


@pytest.mark.parametrize(
    "args, kwargs, says",
    [
        (
            ("a",),
            {"compression": ""},
            r"TFRecordDataset: unexpected argument 'compression', did you mean compression_type\?",
        ),
        (("a",), {"zzz": ""}, "TFRecordDataset: unexpected argument 'zzz', it takes filenames, compression_type, "),
        ((), {}, "TFRecordDataset: missing a required argument: 'filenames'"),
        (("a",), {"filenames": "b"}, "TFRecordDataset: multiple values for argument 'filenames'"),
        (("a", "", 1, 2, "name", True), {}, "TFRecordDataset: too many positional arguments"),
    ],
)
def test_wrong_arguments(args: tuple[Any, ...], kwargs: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        di.data.TFRecordDataset(*args, **kwargs)


def test_a_class_of_the_user_derives_from_one(tmp_path: Path) -> None:
    class Words(di.data.TextLineDataset):
        """Lines of one compression."""

        def __init__(self, path: Path) -> None:
            super().__init__(str(path), compression_type="")

    (tmp_path / "a.txt").write_text("one\ntwo\n")
    words = Words(tmp_path / "a.txt")
    assert isinstance(words, di.data.TextLineDataset)
    assert words.to_list() == [b"one", b"two"]


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nowhere'"):
        file_datasets.Nowhere  # type: ignore[attr-defined]  # noqa: B018 - asked for to be refused
