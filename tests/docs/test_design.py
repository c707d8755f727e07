# SPDX-License-Identifier: Apache-2.0
"""The design notes are two pages each, architecture.md leads to them, and what they name is in the code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTES = sorted((ROOT / "docs" / "design").glob("*.md"))
CODE = re.compile(r"^```.*?^```$|(?<!`)`([^`\n]+)`(?!`)", re.MULTILINE | re.DOTALL)


def named(text: str) -> set[str]:
    """The names of a page in backticks, of dotted ones and of calls the last part before the arguments."""
    spans = {span.partition("(")[0].partition("=")[0] for span in CODE.findall(text)}
    return {span.rpartition(".")[2] for span in spans if re.fullmatch(r"[A-Za-z_][\w.]+", span)}


@pytest.fixture(scope="module")
def words() -> set[str]:
    """All names that the package uses."""
    files = (ROOT / "distinput").rglob("*.py")
    return {word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)
def test_what_a_note_names_is_there(note: Path, words: set[str]) -> None:
    names = named(note.read_text(encoding="utf-8"))
    assert len(names) > 10
    assert sorted(names - words) == []


def test_names_are_found_where_they_are() -> None:
    text = "`Run.by_element`, `map(rng=True)`, `rows`, `a note`, `tests/x`\n```text\n`no`\n```\n`take_over(x)`\n"
    assert named(text) == {"by_element", "map", "rows", "take_over"}


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)
def test_a_note_has_two_pages_and_ends_with_its_history(note: Path) -> None:
    text = note.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    history = text.rpartition("\nDecided and refused: ")[2]
    assert len(re.findall(r"\]\(\.\./adr/\d{4}-", history)) >= 5


def test_the_architecture_leads_to_every_note() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(NOTES) == 5
    assert [note.name for note in NOTES if f"(design/{note.name})" not in page] == []
