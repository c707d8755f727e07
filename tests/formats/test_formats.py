# SPDX-License-Identifier: Apache-2.0
"""The table of formats: every format is in it, and datasets find them by name."""

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput import formats
from distinput.formats import FORMATS, format_named, register_format
from distinput.formats.format import Format
from distinput.formats.partitioned import Partitioned
from distinput.formats.text import TextLines


def test_every_format_is_in_the_table() -> None:
    found = set()
    for module in pkgutil.iter_modules(formats.__path__, "distinput.formats."):
        for _, kind in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(kind, Format) and kind.__module__ == module.name and not inspect.isabstract(kind):
                found.add(kind)
    known = {FORMATS.find(name): name for name in FORMATS}
    found.remove(Partitioned)  # which has the name of the format that it adds columns to
    # What a rewrite makes of a format keeps its name.
    assert {kind for kind in found if kind not in known and FORMATS.find(kind.name) not in kind.__mro__} == set()
    assert list(FORMATS) == sorted(FORMATS)


def test_a_dataset_of_files_of_a_named_format(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")
    assert di.data.FileDataset(str(path), "text").to_list() == [b"one", b"two"]
    assert di.data.FileDataset([str(path)] * 2, TextLines(), 2, "named").to_list() == [b"one", b"one", b"two", b"two"]
    di.io.write_parquet(str(tmp_path / "a.parquet"), {"x": np.arange(2), "y": np.arange(2)})
    rows = di.data.FileDataset(str(tmp_path / "a.parquet"), "parquet", columns=("x",))
    assert rows.to_list() == [{"x": 0}, {"x": 1}]


@pytest.mark.parametrize(
    "format, options, error, says",
    [
        ("txt", {}, ValueError, "unknown format 'txt'; known are array_record, arrow, "),
        (3, {}, TypeError, "format must be a name or a Format, got 3"),
        (TextLines(), {"a": 1}, TypeError, "text was given with its options, got a beside it"),
        ("text", {"a": 1}, TypeError, "'a'"),
        ("nothing", {}, TypeError, "'nothing' is registered as a format, but makes None, which is not a Format"),
    ],
)
def test_a_format_that_cannot_be_is_refused(
    format: Any, options: dict[str, Any], error: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMATS._known, "nothing", lambda: None)
    with pytest.raises(error, match=says):
        di.data.FileDataset("a", format, **options)


@pytest.mark.parametrize(
    "format, option, said",
    [
        ("csv", "colums", "csv: unexpected option 'colums', did you mean columns"),
        ("tar", "decode", "tar: unexpected option 'd"),
    ],
)
def test_an_option_that_a_format_has_not_is_named(format: str, option: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=said):
        di.data.FileDataset(tmp_path / "a.csv", format, **{option: ["a"]})


def test_a_taken_name_says_who_has_it() -> None:
    with pytest.raises(ValueError, match=r"format 'text': the name is taken by distinput\.formats\.text:TextLines"):
        register_format("text")(dict)


@pytest.mark.parametrize("format", ["parquet", "arrow", "npy", "npz"])
def test_what_lies_beside_the_files_of_a_folder_is_not_read(format: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        path = str(tmp_path / f"{name}.{format}")
        if format in ("npy", "npz"):
            (np.save if format == "npy" else np.savez)(path, np.arange(2))
        else:
            (di.io.write_parquet if format == "parquet" else di.io.write_arrow)(path, {"x": np.arange(2)})
    (tmp_path / f"a.{format}").rename(tmp_path / "a")  # known by its first bytes
    for name in ("_SUCCESS", ".b.crc", "README.md", "LICENSE", "b.sha256"):
        (tmp_path / name).write_text("text")
    assert len(di.data.FileDataset(str(tmp_path), format).to_list()) == 4
    assert len(di.data.FileDataset(f"{tmp_path}/", format).to_list()) == 4
    (tmp_path / f"b.{format}").unlink()
    assert len(di.data.FileDataset(str(tmp_path), format).to_list()) == 2
    (tmp_path / "other").write_text("text")
    with pytest.raises(di.errors.DistinputError, match=r"other"):  # nothing says what is meant
        di.data.FileDataset(str(tmp_path), format).to_list()


@pytest.mark.parametrize("given", [{"schema": 1}, [True], "yes"])
def test_an_option_that_is_true_or_false_is_nothing_else(given: Any) -> None:
    with pytest.raises(TypeError, match="csv: header must be True or False"):
        format_named("csv", header=given)
