# SPDX-License-Identifier: Apache-2.0
"""Files that a page names are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BESIDE = ("", "distinput", "distinput/distribute", "tests", "docs")
"""Pages name files from the root, or from the room that they are about."""
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if "adr" not in path.parts)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    named = re.findall(r"`((?:[\w.]+/)+[\w.]+\.py)`", page.read_text(encoding="utf-8"))
    assert [path for path in named if not any((ROOT / room / path).exists() for room in BESIDE)] == []
