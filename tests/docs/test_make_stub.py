# SPDX-License-Identifier: Apache-2.0
"""What editors know of the methods of a dataset is what the ops say, and of datasets of files what formats say."""

import importlib.util
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from distinput.data import Dataset, file_datasets
from distinput.data.dataset import adds_an_op

SCRIPT = Path(__file__).parents[2] / "docs" / "make_stub.py"


@cache
def writer() -> ModuleType:
    """docs/make_stub.py, which is a script and not part of a package."""
    spec = importlib.util.spec_from_file_location("make_stub", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_stub"] = module
    spec.loader.exec_module(module)
    return module


def test_the_stub_is_what_the_ops_say() -> None:
    assert writer().STUB.read_text(encoding="utf-8") == writer().written(), "run `make docs`"


def test_the_stub_of_datasets_is_what_the_formats_say() -> None:
    text = writer().datasets_written()
    assert writer().DATASETS_STUB.read_text(encoding="utf-8") == text, "run `make docs`"
    for name in file_datasets.DATASETS:
        summary = (inspect.getdoc(getattr(file_datasets, name)) or "").splitlines()[0]
        assert re.search(rf'class {name}\(Dataset\[.*\]\):\n    r?"""{re.escape(summary)}\n', text)


def test_every_method_is_there_with_its_documentation() -> None:
    text = writer().written()
    names = [name for name, method in vars(Dataset).items() if adds_an_op(method)]
    assert len(names) > 25
    for name in names:
        assert f"    def {name}(" in text
        summary = (inspect.getdoc(getattr(Dataset, name)) or "").splitlines()[0]
        assert f'"""{summary}' in text


def test_a_face_of_a_method_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(writer().FACES, "gone", [])
    with pytest.raises(KeyError, match="no method has these names: gone"):
        writer().written()
