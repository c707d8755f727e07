# SPDX-License-Identifier: Apache-2.0
"""The gallery shows every program of examples/, once, and every tutorial."""

from pathlib import Path

from tests.docs.links import links

ROOT = Path(__file__).parents[2]
LINKED = [
    (ROOT / "docs" / link).resolve() for link in links((ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))
]


def test_every_program_is_shown_once() -> None:
    assert sorted(path for path in LINKED if path.suffix == ".py") == sorted((ROOT / "examples").rglob("*.py"))


def test_every_tutorial_is_named() -> None:
    assert {*(ROOT / "docs" / "tutorials").glob("*.md")} <= {*LINKED}
