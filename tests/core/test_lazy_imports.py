# SPDX-License-Identifier: Apache-2.0
"""Names and files of a package are loaded when they are first named, and nothing hides what is wrong with one of them."""

import pickle
import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from distinput.data.dataset import Dataset, transformation
from distinput.names.lazy import later, lazy, library, placed
from tests.house.imports import lazy_names, module_name

ROOT = Path(__file__).parents[2]
PACKAGE = "lazily_loaded_for_a_test"

TEXT = f"""
from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from {PACKAGE} import good as good
    from {PACKAGE}.good import (
        a_long_name as a_long_name,
    )
    from {PACKAGE}.good import value, Kind as Kind
    from {PACKAGE}.inner import deep as deep
    from {PACKAGE}.needy import nothing as nothing

    other_name = value
else:
    __getattr__, __dir__, __all__ = lazy(__name__, own=("mine",), besides=("good",))

mine = 1
"""
PUBLIC = ["Kind", "a_long_name", "deep", "mine", "nothing", "other_name"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    folder = tmp_path / PACKAGE
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text(TEXT)
    (folder / "good.py").write_text("value = 7\na_long_name = 8\nclass Kind: pass\n")
    (folder / "plain.py").write_text("")
    (folder / "needy.py").write_text("import a_package_that_is_not_there\n")
    (folder / "inner" / "__init__.py").write_text("")
    (folder / "inner" / "deep.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module(PACKAGE)
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def test_names_are_those_of_the_block_for_type_checkers(package: Any) -> None:
    assert package.__all__ == PUBLIC
    assert {*PUBLIC, "good"} <= set(dir(package))
    assert f"{PACKAGE}.good" not in sys.modules


@pytest.mark.parametrize("name, original", [("a_long_name", "a_long_name"), ("other_name", "value"), ("Kind", "Kind")])
def test_a_name_is_loaded_when_it_is_named(package: Any, name: str, original: str) -> None:
    assert getattr(package, name) is getattr(sys.modules[f"{PACKAGE}.good"], original)
    assert name in vars(package)


@pytest.mark.parametrize("name", ["good", "plain", "deep"])
def test_a_file_is_loaded_when_it_is_named(package: Any, name: str) -> None:
    assert not [module for module in sys.modules if module.startswith(f"{PACKAGE}.")]
    assert getattr(package, name).__name__ in (f"{PACKAGE}.{name}", f"{PACKAGE}.inner.{name}")


@pytest.mark.parametrize("name", ["missing", "value", "_private", "__wrapped__"])
def test_a_name_that_is_not_there_is_no_attribute(package: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{PACKAGE}' has no attribute '{name}'"):
        getattr(package, name)
    assert not hasattr(package, name)


def test_the_error_says_what_was_probably_meant(package: Any) -> None:
    with pytest.raises(AttributeError, match="did you mean other_name"):
        package.other_nam  # noqa: B018


@pytest.mark.parametrize("name", ["needy", "nothing"])
def test_what_a_file_lacks_is_told_as_it_is(package: Any, name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        getattr(package, name)


def test_a_module_without_a_block_has_its_own_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain_for_a_test.py").write_text("if 1:\n    from os import path as path\nelse:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert lazy(import_module("plain_for_a_test").__name__, own=("x",))[2] == ["x"]


def test_a_module_that_is_used_later_is_loaded_when_a_name_of_it_is_asked_for(package: Any) -> None:
    good = later(f"{PACKAGE}.good")
    assert f"{PACKAGE}.good" not in sys.modules
    assert repr(good) == f"<{PACKAGE}.good, loaded when it is used>"
    again = pickle.loads(pickle.dumps(good))
    assert f"{PACKAGE}.good" not in sys.modules
    assert good.value == again.value == 7
    sys.modules[f"{PACKAGE}.good"].value = 8  # type: ignore[attr-defined]
    assert good.value == 8
    with pytest.raises(AttributeError, match="nowhere"):
        good.nowhere  # noqa: B018


def test_a_library_is_loaded_when_it_is_used_and_a_name_of_it_is_looked_up_once(package: Any) -> None:
    good = library(f"{PACKAGE}.good")
    assert f"{PACKAGE}.good" not in sys.modules
    assert good.value == 7
    sys.modules[f"{PACKAGE}.good"].value = 8  # type: ignore[attr-defined]
    assert good.value == 7
    assert "value" not in vars(pickle.loads(pickle.dumps(good)))


def test_a_place_names_a_module_and_what_is_in_it(package: Any) -> None:
    assert placed(f"{PACKAGE}.good:Kind.__name__") == "Kind"
    with pytest.raises(AttributeError, match="nowhere"):
        placed(f"{PACKAGE}.good:nowhere")


LAZY_MODULES = {
    module_name(path, ROOT): path
    for path in sorted((ROOT / "distinput").rglob("*.py"))
    if "    __getattr__, __dir__, " in path.read_text()
}


@pytest.mark.parametrize("name", LAZY_MODULES)
def test_no_name_that_is_loaded_later_is_that_of_a_file_of_the_package(name: str) -> None:
    """Whoever imports the file would find it in the place of the name."""
    module = import_module(name)
    source = LAZY_MODULES[name].read_text().splitlines()
    told = {source[number - 1].strip() for number in lazy_names(LAZY_MODULES[name].read_text())}
    files = {file.name for file in pkgutil.iter_modules(getattr(module, "__path__", ()))}
    names = {line.rpartition(" as ")[2]: line for line in told if " as " in line}
    assert {each: names[each] for each in files & {*names} if not names[each].startswith(f"from {name} ")} == {}


def test_a_method_whose_module_cannot_be_loaded_is_not_one_that_is_missing() -> None:
    def load() -> Any:
        return placed("fractions:NotThere")  # as of a module that a signal handler finds half loaded

    class Pipeline(Dataset):
        each = transformation(load)

    with pytest.raises(
        ImportError, match=r"Dataset\.each: its module cannot be loaded: .*'fractions' has no attribute"
    ):
        Pipeline(Dataset.range(3).node).each()
