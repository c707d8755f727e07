# SPDX-License-Identifier: Apache-2.0
"""docs/conventions.md and the tests of this folder name the same lines."""

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = (FOLDER.parents[1] / "docs" / "conventions.md").read_text(encoding="utf-8")


def functions_of(path: Path) -> list[str]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


FILES = {path.name: functions_of(path) for path in FOLDER.glob("test_*.py") if path != Path(__file__)}


def test_every_test_is_on_the_page_once_and_every_name_on_the_page_is_a_test() -> None:
    named = re.findall(r"\| `(test_\w+)` \|$", PAGE, re.MULTILINE)
    assert sorted(named) == sorted(name for names in FILES.values() for name in names)


def test_every_heading_has_a_file_of_its_own_with_the_tests_below_it() -> None:
    found = {}
    for section in PAGE.split("\n## ")[1:]:
        names = re.findall(r"`tests/conventions/(test_\w+\.py)`", section)
        if not section.startswith("What cannot hold"):
            assert len(names) == 1, section.splitlines()[0]
            found[names[0]] = set(re.findall(r"`(test_\w+)` \|$", section, re.MULTILINE))
    assert found.keys() == FILES.keys()
    assert all(names <= set(FILES[file]) for file, names in found.items())


def test_a_line_that_cannot_hold_says_why_and_what_holds_instead() -> None:
    (section,) = [each for each in PAGE.split("\n## ") if each.startswith("What cannot hold")]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    assert rows
    for line, why, instead, test in rows:
        assert len(why.split()) > 10, line
        assert len(instead.split()) > 1, line
        assert test.strip("`") in {name for names in FILES.values() for name in names}
