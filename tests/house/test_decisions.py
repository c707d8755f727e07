# SPDX-License-Identifier: Apache-2.0
"""The table of decisions names every record, and only those."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "adr"


def test_the_table_names_every_record() -> None:
    named = re.findall(
        r"^\| \[\d{4}\]\(([\w.-]+\.md)\)", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(named) == sorted(path.name for path in FOLDER.glob("[0-9]*.md"))


def test_numbers_are_given_once() -> None:
    numbers = [path.name[:4] for path in FOLDER.glob("[0-9]*.md")]
    assert len(numbers) == len(set(numbers))
