# SPDX-License-Identifier: Apache-2.0
"""Files of a package are loaded when they are first named, and nothing hides what is wrong with one of them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from distinput.names.registry import files_of

PACKAGE = "lazily_loaded_for_a_test"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from distinput.names.registry import files_of\n__getattr__ = files_of(__name__)\n"
    )
    (folder / "good.py").write_text("value = 7\n")
    (folder / "needy.py").write_text("import a_package_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def test_a_file_is_loaded_when_it_is_named(package: Path) -> None:
    made = __import__(PACKAGE)
    assert f"{PACKAGE}.good" not in sys.modules
    assert made.good.value == 7
    assert f"{PACKAGE}.good" in sys.modules


def test_a_file_that_is_not_there_is_no_attribute(package: Path) -> None:
    with pytest.raises(AttributeError, match=f"module '{PACKAGE}' has no attribute 'missing'"):
        __import__(PACKAGE).missing  # noqa: B018
    assert not hasattr(__import__(PACKAGE), "missing")


def test_what_a_file_lacks_is_told_as_it_is(package: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        files_of(PACKAGE)("needy")
