# SPDX-License-Identifier: Apache-2.0
"""What the pages show is what happens."""

import re
from pathlib import Path

import pytest

import distinput
from tests.docs.pages import run_page, snippets

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# The pages of the reference are written from docstrings, whose examples run as doctests.
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "reference" not in path.parts)]
ALL = [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *PAGES]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_examples_of_a_page_do_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = run_page(page)
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    reasons = [snippet.reason for snippet in snippets(text) if snippet.reason is not None]
    assert all(len(reason.split()) > 2 for reason in reasons)
    assert len(reasons) == text.count("<!-- not run"), (
        "a comment `not run` stands right before the block that it is about"
    )


@pytest.mark.parametrize("page", ALL, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [
        target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target and target != "NNNN-name.md"
    ]
    missing = [target for target in targets if not (page.parent / target.split("#")[0]).exists()]
    assert missing == []


def test_the_index_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\(([^)#\s]+)\)", (DOCS / "index.md").read_text(encoding="utf-8")))
    pages = {path.name for path in DOCS.glob("*.md")} - {"index.md"}
    assert pages | {"adr/README.md", "reference/README.md"} <= linked


def test_what_is_said_not_to_exist_does_not() -> None:
    """The list in porting.md is of names as TensorFlow has them; whoever adds one takes it off the list."""
    page = (DOCS / "porting.md").read_text(encoding="utf-8")
    table = page.split("## Not there yet", 1)[1].split("\n## ", 1)[0]
    names = re.findall(r"`tf\.([\w.]+)`", table)
    assert len(names) > 10
    assert [missing for missing in names if exists(missing)] == []


def exists(dotted: str) -> bool:
    value: object = distinput
    for part in dotted.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def test_a_name_that_is_there_is_found_to_exist() -> None:
    assert exists("data.Dataset.map")
    assert exists("distribute.MirroredStrategy")


@pytest.mark.parametrize(
    "page, says",
    [
        ("```python\n>>> 1 + 1\n3\n```\n", "Expected:\n    3\nGot:\n    2\n"),
        ('```python\nprint("a")\n```\n\n```text\nb\n```\n', "says that it prints\nb\nbut prints\na\n"),
        ("a\n\n```python\n>>> x = 1\n```\n\n```python\n>>> x\n2\n```\n", "line 8"),
    ],
)
def test_a_page_that_is_wrong_is_found_out(page: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(page)
    (wrong,) = run_page(path)
    assert says in wrong


def test_an_error_in_a_block_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("```python\nraise ValueError('said')\n```\n")
    with pytest.raises(ValueError, match="said"):
        run_page(path)


def test_a_block_that_is_not_run_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("<!-- not run: it would fail -->\n```python\nraise ValueError\n```\n```sh\nmake\n```\n")
    assert run_page(path) == []
    assert [snippet.reason for snippet in snippets(path.read_text())] == ["it would fail"]
