# SPDX-License-Identifier: Apache-2.0
import importlib
import importlib.resources
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from distinput.names.lazy import when_imported


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package that can be imported and has not been."""
    name = "imported_by_a_test"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("value = 3\n")
    (tmp_path / name / "note.txt").write_text("a resource")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.meta_path)
    yield name
    sys.modules.pop(name, None)
    sys.meta_path[:] = before


def test_the_function_is_called_once_after_the_import(package: str) -> None:
    calls: list[int] = []
    when_imported(package, lambda: calls.append(sys.modules[package].value))
    assert calls == []
    importlib.import_module(package)
    importlib.import_module(package)
    assert calls == [3]


def test_a_package_that_is_there_is_not_waited_for(package: str) -> None:
    importlib.import_module(package)
    finders, calls = list(sys.meta_path), []
    when_imported(package, lambda: calls.append(1))
    assert calls == [1]
    assert sys.meta_path == finders


def test_looking_for_a_package_is_no_import(package: str) -> None:
    calls: list[int] = []
    when_imported(package, lambda: calls.append(1))
    assert find_spec(package) is not None
    assert calls == []
    importlib.import_module(package)
    assert calls == [1]


def test_several_may_wait_for_one_package(package: str) -> None:
    calls: list[str] = []
    when_imported(package, lambda: calls.append("first"))
    when_imported(package, lambda: calls.append("second"))
    importlib.import_module(package)
    assert sorted(calls) == ["first", "second"]


def test_nothing_of_it_is_left_afterwards(package: str) -> None:
    finders = list(sys.meta_path)
    when_imported(package, lambda: None)
    module = importlib.import_module(package)
    assert sys.meta_path == finders
    assert "exec_module" not in vars(module.__spec__.loader)
    assert importlib.resources.files(module).joinpath("note.txt").read_text() == "a resource"


def test_a_missing_package_is_missing_as_always(package: str) -> None:
    when_imported("a_package_that_nobody_has", lambda: None)
    with pytest.raises(ModuleNotFoundError, match="a_package_that_nobody_has"):
        importlib.import_module("a_package_that_nobody_has")


def test_an_import_that_fails_is_waited_for_again(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / package / "__init__.py").write_text("raise RuntimeError('broken')\n")
    calls: list[int] = []
    when_imported(package, lambda: calls.append(1))
    with pytest.raises(RuntimeError, match="broken"):
        importlib.import_module(package)
    assert calls == []
    (tmp_path / package / "__init__.py").write_text("value = 3\n")
    importlib.import_module(package)
    assert calls == [1]
