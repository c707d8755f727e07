# SPDX-License-Identifier: Apache-2.0
"""`MODULE:ds` finds datasets in modules, files and attributes; what is wrong is said, with the lines of the user's program."""

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from distinput.cli.loading import is_name, load, load_dataset, user_code
from distinput.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnknownError,
)

NUMBERS = count()
PROGRAM = """
import distinput as di

ds = di.data.Dataset.range(3)

def make():
    return ds.take(2)

def sized(size):
    return ds.take(size)

def broken():
    return {}["records"]

def wrong_call():
    return sized()

class model:
    dataset = ds.take(1)

several = [ds]
"""


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module in the current directory; another one for each test, since Python loads a module once."""
    word = f"pipelines_of_test_{next(NUMBERS)}"
    (tmp_path / f"{word}.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield word
    sys.modules.pop(word, None)


@pytest.mark.parametrize("what, elements", [("ds", [0, 1, 2]), ("make", [0, 1]), ("model.dataset", [0])])
@pytest.mark.parametrize("module", ["{}", "{}.py", "./{}.py", "./{}"])
def test_datasets_functions_and_attributes(name: str, module: str, what: str, elements: list[int]) -> None:
    assert load_dataset(f"{module.format(name)}:{what}").to_list() == elements


def test_a_file_elsewhere_finds_its_neighbours(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{name}_beside.py").write_text(f"from {name} import ds\nmine = ds.skip(2)\n", encoding="utf-8")
    monkeypatch.chdir("/")
    assert load_dataset(f"{tmp_path / name}_beside.py:mine").to_list() == [2]


def test_a_package_is_imported_by_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}_package").mkdir()
    (tmp_path / f"{name}_package" / "train.py").write_text(PROGRAM, encoding="utf-8")
    assert load_dataset(f"{name}_package.train:ds").to_list() == [0, 1, 2]


@pytest.mark.parametrize(
    "word, kind, says",
    [
        ("{}", InvalidArgumentError, "the dataset must be named by"),
        ("{}:", InvalidArgumentError, "the dataset must be named by"),
        ("{}:d s", InvalidArgumentError, "the dataset must be named by"),
        ("{}:dss", NotFoundError, "did you mean ds"),
        ("{}:xyzzy", NotFoundError, "it has broken, ds, make, sized, wrong_call"),
        ("{}:several", InvalidArgumentError, "must be a Dataset, or a function that returns one, got list"),
        ("{}:model", InvalidArgumentError, r"got model; it has a dataset in it: \S+:model.dataset"),
        ("{}:sized", InvalidArgumentError, "without arguments .*missing 1 required positional argument: 'size'"),
        ("no_such_module:ds", NotFoundError, "no module no_such_module"),
        ("no.such.module:ds", NotFoundError, "no module no"),
        ("./no_such_file.py:ds", NotFoundError, "no file ./no_such_file.py, seen from"),
    ],
)
def test_what_is_not_there_is_said(name: str, word: str, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        load_dataset(word.format(name))


@pytest.mark.parametrize(
    "what, line", [("broken", 'in broken: return {}["records"]'), ("wrong_call", "in wrong_call: return sized()")]
)
def test_a_function_that_fails_is_shown_with_its_lines(name: str, what: str, line: str) -> None:
    with pytest.raises(FailedPreconditionError, match=r"KeyError: 'records'|TypeError") as raised:
        load(f"{name}:{what}")
    assert [note.endswith(line) for note in raised.value.__notes__] == [True]


@pytest.mark.parametrize(
    "program, says, note",
    [
        ("x = 1\n1 / 0\n", "importing .* failed: ZeroDivisionError", ":2, in <module>: 1 / 0"),
        ("import no_such_module_at_all\n", "ModuleNotFoundError", ":1, in <module>: import no_such_module_at_all"),
        ("x = = 1\n", "SyntaxError", ":1: x = = 1"),
    ],
)
def test_a_module_that_fails_is_shown_with_its_lines(name: str, program: str, says: str, note: str) -> None:
    Path(f"{name}.py").write_text(program, encoding="utf-8")
    with pytest.raises(FailedPreconditionError, match=says) as raised:
        load(f"{name}:ds")
    assert raised.value.__notes__[0].endswith(note)


def test_a_module_that_ends_the_program_is_told_how_not_to(name: str) -> None:
    Path(f"{name}.py").write_text("raise SystemExit(4)\n", encoding="utf-8")
    with pytest.raises(FailedPreconditionError, match="if __name__ == '__main__'"):
        load(f"{name}:ds")


def test_a_file_with_the_name_of_a_loaded_module_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "argparse.py").write_text(PROGRAM, encoding="utf-8")
    with pytest.raises(FailedPreconditionError, match=r"another module argparse loaded.*another name"):
        load(f"{tmp_path / 'argparse.py'}:ds")


def test_errors_of_the_library_pass_and_others_are_named() -> None:
    with pytest.raises(DataLossError, match=r"^lost$"), user_code("train:ds"):
        raise DataLossError("lost")
    error = ValueError("negative")
    error.add_note("map, made at train.py:3")
    with pytest.raises(UnknownError, match=r"^train:ds: ValueError: negative\n") as raised, user_code("train:ds"):
        raise error
    assert raised.value.__notes__[-1] == "map, made at train.py:3"


def test_a_file_that_is_there_is_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_name("a:b")
    Path("a:b").touch()
    assert not is_name("a:b")
