# SPDX-License-Identifier: Apache-2.0
"""The guides of `docs/from` and the calls of `docs/tensorflow.md`: what they say to write exists, and takes these words."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.errors import EngineMissing

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted((DOCS / "from").glob("*.md"))
GUIDES = [page for page in PAGES if page.stem != "cheat_sheet"]
# What a `.method` in a table may be a method of.
OWNERS = (
    di.data.Dataset,
    di.data.DatasetIterator,
    di.data.Options,
    di.distribute.Strategy,
    di.distribute.DistributedDataset,
    di.distribute.DistributedIterator,
    di.io.TFRecordWriter,
)


def rows(page: str) -> Iterator[list[str]]:
    """The cells of each row of the tables of a page with a column `here`, which is put last; the header is not among them."""
    ours: int | None = None
    for line in page.split("\n"):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if not cells:
            ours = None
        elif "here" in cells:
            ours = cells.index("here")
        elif ours is not None and set(cells[ours]) != {"-"}:
            yield [*cells[:ours], *cells[ours + 1 :], cells[ours]]


def wrong(cell: str) -> list[str]:
    """What does not exist of the code in a cell: spans in backticks that begin with `di.` or with a dot."""
    found = []
    for span in re.findall(r"`((?:di)?\.[a-z][^`]*)`", cell):
        tree = ast.parse(span if span.startswith("di") else f"ds{span}", mode="eval")
        called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and (id(node) in called or id(node) not in inner):
                call = called.get(id(node))
                names = {word.arg for word in call.keywords if word.arg} if call else set()
                values = _values(node)
                if not values:
                    found.append(f"{span}: there is no {ast.unparse(node)}")
                elif not any(_takes(value, names) for value in values):
                    found.append(f"{span}: {ast.unparse(node)} does not take {sorted(names)}")
    return found


def _values(node: ast.Attribute) -> list[Any]:
    """What an attribute may be; [None] if the package that it belongs to is not installed."""
    path = ast.unparse(node)
    if not re.fullmatch(r"di(\.\w+)+", path):
        return [getattr(owner, node.attr) for owner in OWNERS if hasattr(owner, node.attr)]
    value: Any = di
    for part in path.split(".")[1:]:
        try:
            value = getattr(value, part)
        except EngineMissing:
            return [None]
        except AttributeError:
            return []
    return [value]


def _takes(value: Any, names: set[str]) -> bool:
    if not names or value is None:
        return True
    parameters = inspect.signature(value).parameters
    return names <= {*parameters} or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def calls(page: Path) -> str:
    """The text of a guide; of the page about TensorFlow, the part that has the same form."""
    text = page.read_text(encoding="utf-8")
    return text if page in PAGES else text.split("## The calls that most programs make", 1)[1].split("\n## ", 1)[0]


@pytest.mark.parametrize("page", [*PAGES, DOCS / "tensorflow.md"], ids=lambda page: page.stem)
def test_what_a_table_says_to_write_exists(page: Path) -> None:
    cells = [row[-1] for row in rows(calls(page))]
    assert 15 <= len(cells) <= 30
    assert sum("`" in cell for cell in cells) > len(cells) / 2
    assert [each for cell in cells for each in wrong(cell)] == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_the_guides_have_one_form(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == ["There and here", "What behaves differently", "A program", "When to stay"]
    program = text.split("## A program", 1)[1]
    assert program.count("<!-- not run: ") == 1
    assert program.count("\n```python\n") == 2


@pytest.mark.parametrize(
    "cell, says",
    [
        ("`.batch(4, drop_remainder=True)` and `di.data.Dataset.range(3).batch(2)`", []),
        ("`.batsh(4)`", [".batsh(4): there is no ds.batsh"]),
        ("`di.data.Nothing`", ["di.data.Nothing: there is no di.data.Nothing"]),
        ("`.skip(1).batch(4, drop_last=True)`", ["does not take ['drop_last']"]),
        ("`di.data.Dataset.range(3).nothing()`", ["there is no di.data.Dataset.range(3).nothing"]),
        ("`.element_spec`, 4 of `them`", []),
    ],
)
def test_a_name_that_is_wrong_is_found(cell: str, says: list[str]) -> None:
    found = wrong(cell)
    assert len(found) == len(says)
    assert all(part in each for part, each in zip(says, found, strict=True))


def test_rows_are_those_of_tables_about_here() -> None:
    page = "| a | b |\n|---|---|\n| 1 | 2 |\n\n| there | here |\n|---|---|\n| 3 | 4 |\n| 5 | `x \\| y` |\n\n| 7 | 8 |\n"
    assert [*rows(page)] == [["3", "4"], ["5", "`x \\| y`"]]
