# SPDX-License-Identifier: Apache-2.0
"""The pages about errors name messages and classes that there are, and all classes."""

import re
from pathlib import Path

import pytest

import distinput as di

ROOT = Path(__file__).parents[2]


def first_cells(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    return [row for row in rows if "`" in row]


def source() -> str:
    """All text of the package, with the seams of string literals taken out."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "distinput").rglob("*.py"))]
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(texts))


def test_every_message_of_the_page_is_in_the_source() -> None:
    text = source()
    phrases = [
        part.strip()
        for cell in first_cells("troubleshooting.md")
        for phrase in re.findall(r"`([^`]+)`", cell)
        for part in phrase.split("...")
        if part.strip()
    ]
    assert len(phrases) > 15
    # The number of a worker is filled in when the message is made.
    assert [phrase for phrase in phrases if re.sub(r": worker 2$", "", phrase) not in text] == []


@pytest.mark.parametrize("name", [name for name in di.errors.__all__ if not name.isupper() and name != "OpError"])
def test_every_class_is_on_the_page_of_errors(name: str) -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert f"`{name}`" in text


def test_the_bases_that_the_page_of_errors_names_are_theirs() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (`.*?`) \|", text, re.MULTILINE)
    assert len(rows) > 20
    for name, bases in rows:
        for base in re.findall(r"`(\w+)`", bases):
            wanted = getattr(di.errors, base, None) or __builtins__[base]  # type: ignore[index]
            assert issubclass(getattr(di.errors, name), wanted), (name, base)
