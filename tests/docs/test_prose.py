# SPDX-License-Identifier: Apache-2.0
"""Pages and docstrings are plain English: sentences that one can read aloud, without words that say nothing."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.imports import nodes_of

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "distinput"

LONGEST = 40
"""Words of a sentence. A part behind a colon or a semicolon counts as one of its own."""

AVOIDED = {
    "aforementioned": "name it",
    "as it were": "leave it out",
    "at this point in time": "now",
    "be it": "such as, also",
    "but that": "except",
    "due to the fact": "because",
    "e.g.": "for example",
    "easily": "leave it out, or say how",
    "essentially": "leave it out",
    "etc.": "and others, or the whole list",
    "for ever": "forever",
    "how many times as long": "their time divided by ours",
    "i.e.": "that is",
    "is to be had": "is there",
    "leverage": "use",
    "lest": "so that ... not",
    "obviously": "leave it out",
    "point in time": "time",
    "powerful": "say what it does",
    "prior to": "before",
    "robust": "say what it withstands",
    "save that there": "except that there",
    "seamless": "say what it does",
    "simply": "leave it out",
    "so to say": "leave it out",
    "state-of-the-art": "say what it does",
    "subsequent to": "after",
    "that there are,": "name them: real rows, those found",
    "therein": "in it",
    "thereof": "of it",
    "trivially": "leave it out",
    "utilise": "use",
    "utilize": "use",
    "walked to a node": "name the file or the step",
    "wherein": "in which",
    "whilst": "while",
}
"""Words and phrases that hide what is meant, and what to write in their place."""

_DOUBLED = re.compile(r"(?<![\w-])([a-z]{2,}) \1(?![\w-])")
_AVOIDED = re.compile(r"(?<![\w-])(?:" + "|".join(re.escape(words) for words in AVOIDED) + r")(?![\w-])", re.IGNORECASE)


def pages() -> Iterator[Path]:
    """All pages but the decisions, which are a record."""
    yield from sorted(ROOT.glob("*.md"))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page.parent.name != "adr":
            yield page


def docstrings() -> Iterator[tuple[str, str]]:
    """Where a docstring stands, and its text without examples; each line of arguments is a paragraph."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in nodes_of(path.read_text(encoding="utf-8")):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    text = re.sub(r"^ *(?:>>>|\.\.\.).*$", "", text, flags=re.MULTILINE)
                    text = re.sub(r"^ *[\w*, ]+: ", "\n\n", text, flags=re.MULTILINE)
                    yield f"{path.relative_to(ROOT)} {getattr(node, 'name', '')}".strip(), text


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page or a docstring, without code, tables, headings and pictures."""
    text = re.sub(r"^(```+).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[*+-]|\d+\.) )", text):
        if not paragraph.lstrip().startswith(("|", "#", "!")):
            plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "x", paragraph))
            yield from filter(None, re.split(r"(?<=[.;:?!])\s+", " ".join(plain.split())))


def complaints(text: str) -> Iterator[str]:
    """What is wrong with a text, and what to do."""
    for sentence in sentences(text):
        if len(sentence.split()) > LONGEST:
            yield f"{len(sentence.split())} words, make two sentences: {sentence}"
        for words in _AVOIDED.findall(sentence):
            yield f"{words!r} ({AVOIDED[words.lower()]}): {sentence}"
        for word in _DOUBLED.findall(sentence):
            yield f"{word!r} stands twice: {sentence}"


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in pages()])
def test_a_page_is_plain_english(page: Path) -> None:
    assert list(complaints(page.read_text(encoding="utf-8"))) == []


def test_docstrings_are_plain_english() -> None:
    assert [f"{where}: {wrong}" for where, text in docstrings() for wrong in complaints(text)] == []


@pytest.mark.parametrize(
    "text, says",
    [
        ("a word " * 20 + "more", "41 words"),
        ("It is simply so.", "'simply' (leave it out)"),
        ("* Utilize it.\n", "'Utilize' (use)"),
        ("It is is so.", "'is' stands twice"),
        ("Seen [here, e.g. there](x.md).", "'e.g.'"),
    ],
)
def test_what_is_no_plain_english_is_named(text: str, says: str) -> None:
    (wrong,) = complaints(text)
    assert says in wrong


@pytest.mark.parametrize(
    "text",
    [
        "`simply`",
        "```\nsimply\n```\n",
        "| simply |\n|---|\n",
        "a word " * 20,
        "a word " * 15 + "; " + "a word " * 15,
        "The bus.",
    ],
)
def test_code_tables_and_short_sentences_are_let_be(text: str) -> None:
    assert list(complaints(text)) == []
