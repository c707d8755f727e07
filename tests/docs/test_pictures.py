# SPDX-License-Identifier: Apache-2.0
"""The pictures of the pages show what distinput does and what the pages say."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "pictures"
DRAWN = sorted(path.stem for path in FOLDER.glob("*.svg") if path.with_suffix(".py").exists())
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def make() -> Iterator[ModuleType]:
    """docs/pictures/make.py, found as it finds its pictures."""
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module("pictures.make")
    sys.path.remove(str(DOCS))


def test_every_picture_of_the_script_is_there(make: ModuleType) -> None:
    assert sorted(make.PICTURES) == DRAWN


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_up_to_date(make: ModuleType, name: str) -> None:
    assert make.draw(name) == (FOLDER / f"{name}.svg").read_text(encoding="utf-8"), "run python docs/pictures/make.py"


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_can_be_read_by_everybody(name: str) -> None:
    text = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    root = ET.fromstring(text)
    title = root.find(f"{SVG}title")
    assert title is not None
    assert len(str(title.text).split()) > 4, "who does not see the picture reads its title"
    assert "prefers-color-scheme: dark" in text
    assert [part.tag for part in root.iter() if "fill" in part.attrib and part.get("fill") != "none"] == []
    assert not re.search(r"(?:href|src)=|url\(", text), "a picture fetches nothing"


@pytest.mark.parametrize("name", DRAWN)
def test_texts_lie_inside_their_picture(name: str) -> None:
    root = ET.fromstring((FOLDER / f"{name}.svg").read_text(encoding="utf-8"))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    outside = []
    for text in root.iter(f"{SVG}text"):
        letter = 6.6 if "small" in text.attrib["class"] else 8.0  # pixels, on average
        long = letter * len(text.text or "")
        left = float(text.attrib["x"]) - {"start": 0.0, "middle": long / 2, "end": long}[text.attrib["text-anchor"]]
        if not (left >= 0 and left + long <= width and 10 <= float(text.attrib["y"]) <= height - 3):
            outside.append(text.text)
    assert outside == []


def test_the_cut_that_is_shown_is_exact(make: ModuleType) -> None:
    module = importlib.import_module("pictures.cut")
    found = module.cut()
    shown = [record for step in found.whole for part in step for record in part]
    assert sorted(shown) == list(range(sum(module.SIZES)))
    assert {len(step) for step in found.whole} == {module.BEFORE}
    assert [record for step in found.rest for part in step for record in part] == shown[2 * module.BATCH :]
    assert {len(step) for step in found.rest} == {module.AFTER}
    assert found.rest[-1][-1] == [], "the picture shows a replica without rows"


def test_the_plot_has_every_row_of_the_overview(make: ModuleType) -> None:
    module = importlib.import_module("pictures.peers")
    page = module.PAGE.read_text(encoding="utf-8")
    overview = page.split("## What is reached")[1].split("\n## ")[0]
    rows = [line for line in overview.splitlines() if line.startswith("| [")]
    assert len(module.ROW.findall(page)) == len(rows) > 10
    assert {row.benchmark for row in module.ranges(page)} <= set(module.WORDS)


def test_rows_of_one_library_are_one_bar(make: ModuleType) -> None:
    module = importlib.import_module("pictures.peers")
    page = "\n".join(
        [
            "| [a](#a) | tf.data | 2 | 3.5x to 1,350x |",
            "| [a](#a) | tf MirroredStrategy | 1 | 0.5x |",
            "| [a](#a) | torch, by samples | 1 | 2x |",
            "| [a](#a) | for line in file | 1 | 4x |",
        ]
    )
    found = {row.library: (row.low, row.high) for row in module.ranges(page)}
    assert found == {"TensorFlow": (0.5, 1350.0), "PyTorch": (2.0, 2.0), module.OTHERS: (4.0, 4.0)}
