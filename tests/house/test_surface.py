# SPDX-License-Identifier: Apache-2.0
"""The public names and the reference name the same things."""

import importlib.util
import inspect
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
MODULES = (
    "distinput",
    "distinput.data",
    "distinput.data.experimental",
    "distinput.distribute",
    "distinput.distribute.experimental",
    "distinput.extend",
    "distinput.inspect",
    "distinput.io",
    "distinput.reports",
    "distinput.testing",
)


@cache
def writer() -> ModuleType:
    """docs/make_reference.py, which is a script and not part of a package."""
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def headings() -> frozenset[str]:
    return frozenset(
        match.group(1)
        for page in writer().pages().values()
        for match in re.finditer(r"^### `([\w.]+)`$", page, re.MULTILINE)
    )


def public_path(name: str) -> object:
    """What a user gets by writing this dotted name, having imported the module that it is in."""
    value: object = importlib.import_module("distinput")
    parts = name.split(".")
    for index, part in enumerate(parts[1:], start=2):
        if (
            hasattr(value, "__path__")
            and not hasattr(value, part)
            and importlib.util.find_spec(".".join(parts[:index]))
        ):
            importlib.import_module(".".join(parts[:index]))
        value = getattr(value, part)
    return value


def is_method(value: object) -> bool:
    return inspect.isroutine(value) or isinstance(value, property)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    names = {f"{module}.{name}" for name in writer().public_names(public_path(module))}
    assert sorted(names - headings()) == []


def test_every_public_method_of_a_dataset_is_in_the_reference() -> None:
    dataset = public_path("distinput.data.Dataset")
    methods = [name for name in dir(dataset) if not name.startswith("_") and is_method(getattr(dataset, name))]
    names = {f"distinput.data.Dataset.{name}" for name in methods}
    assert len(names) > 40
    assert sorted(names - headings()) == []


def test_every_heading_of_the_reference_exists() -> None:
    missing = []
    for name in sorted(headings()):
        try:
            public_path(name)
        except AttributeError:
            missing.append(name)
    assert missing == []


def test_the_reference_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "distinput.gone.md").touch()
    written = [page.name for page in writer().write(tmp_path)]
    assert written == sorted(page.name for page in tmp_path.iterdir())
    assert {*written} == {*writer().pages(), "README.md"}
    listed = re.findall(r"^\* \[`\S*`\]\((\S*)\)", (tmp_path / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    classes = [f"{name}.md" for module in writer().public_modules() for name in writer().class_pages(module)]
    assert sorted([*listed, *classes, "README.md"]) == written
    assert {"distinput.data.Dataset.md", "distinput.train.Checkpoint.md"} <= {*classes}


def test_a_class_with_members_has_a_page_that_its_module_links_to() -> None:
    page, own = writer().pages()["distinput.data.md"], writer().pages()["distinput.data.Dataset.md"]
    assert "### `distinput.data.Dataset`" in page
    assert "](distinput.data.Dataset.md)" in page
    assert "### `distinput.data.Dataset.take`" not in page
    assert "### `distinput.data.Dataset.take`" in own


def test_signatures_are_read_without_scrolling() -> None:
    blocks = re.findall(
        r"^### .*\n\n```python\n((?:[^`>].*\n)+?)```$", "\n".join(writer().pages().values()), re.MULTILINE
    )
    assert len(blocks) > 400
    assert [line for block in blocks for line in block.splitlines() if len(line) > writer().WIDE] == []


def test_every_public_name_says_what_it_is() -> None:
    silent = [
        name
        for _, name, value in writer().entries()
        if (inspect.isclass(value) or is_method(value)) and not inspect.getdoc(getattr(value, "__func__", value))
    ]
    assert silent == []


def test_a_public_name_can_be_listed_and_found() -> None:
    for name, module in writer().public_modules().items():
        names = module.__all__
        assert len(names) == len(set(names)), name
        assert set(names) <= set(dir(module)), f"{name}: __dir__ does not show {sorted(set(names) - set(dir(module)))}"
