# SPDX-License-Identifier: Apache-2.0
"""The page that compares loaders says what running them gives; loaders without processes of their own are run again."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
QUICK = ("torch", "accelerate")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """docs/make_comparison.py, which is a script and not part of a package."""
    spec = importlib.util.spec_from_file_location("make_comparison", ROOT / "docs" / "make_comparison.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_comparison"] = module  # its dataclasses look for their module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("which", [0, 1])
def test_the_page_says_what_running_gives(script: ModuleType, which: int, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    said = (ROOT / "docs" / "feeds" / "compared.md").read_text(encoding="utf-8").split("\n## ")[1 + which]
    rows = {line.split(" | ")[0].removeprefix("| "): line.split(" | ")[1:] for line in said.splitlines() if "|" in line}
    data = script.Data(script.FILES[which], tmp_path)
    data.write()
    shapes = [shape for shape in script.SHAPES if shape[1] == 0]
    for loader in script.LOADERS:
        if not set(loader.needs) <= set(QUICK) or importlib.util.find_spec(loader.needs[0]) is None:
            continue
        for shape in shapes:
            cell = rows[loader.name][script.SHAPES.index(shape)].removesuffix(" |")
            assert str(script.outcome(loader, data, *shape)) == cell, (loader.name, shape)


def test_an_outcome_is_said_in_words(script: ModuleType) -> None:
    assert str(script.Outcome(0, 0, (3, 3))) == "exact"
    assert str(script.Outcome(1, 2, (3, 2))) == "1 lost; 2 twice or more; steps 3/2"
