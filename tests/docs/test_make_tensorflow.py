# SPDX-License-Identifier: Apache-2.0
"""The page of TensorFlow's names says what the library says."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """docs/make_tensorflow.py, which is a script and not part of a package."""
    spec = importlib.util.spec_from_file_location("make_tensorflow", ROOT / "docs" / "make_tensorflow.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(script: ModuleType) -> None:
    page = (ROOT / "docs" / "tensorflow.md").read_text(encoding="utf-8")
    assert page == script.written(), "run python docs/make_tensorflow.py"


def test_every_name_has_a_row(script: ModuleType) -> None:
    listed = [name for _, prefix, _ in script.SECTIONS for name in script.names_of(prefix)]
    assert set(listed) >= set(script.FACTS["names"])
    assert len(listed) == len(set(listed))


def test_what_differs_is_there(script: ModuleType) -> None:
    names = {*script.FACTS["names"], *script.FACTS["methods"]}
    assert sorted(set(script.DIFFERS) - names) == []


def test_a_name_is_the_same_differs_or_is_declined(script: ModuleType) -> None:
    assert script.said("data.Dataset.batch") == "same"
    assert script.said("data.Dataset.random").startswith("differs: other numbers")
    assert (
        script.said("io.write_graph") == "declined: there are no graphs to write: dataset.explain() prints the pipeline"
    )
