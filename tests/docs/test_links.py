# SPDX-License-Identifier: Apache-2.0
"""Links of all pages lead to a file, and to a heading of it."""

from pathlib import Path

import pytest

from tests.docs.links import anchors, broken, links

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / folder / "README.md" for folder in ("benchmarks", "examples")),
]


@pytest.mark.parametrize(
    "folder", sorted({page.parent for page in PAGES}), ids=lambda path: str(path.relative_to(ROOT))
)
def test_links_lead_somewhere(folder: Path) -> None:
    wrong = {page.name: broken(page) for page in PAGES if page.parent == folder}
    assert {page: found for page, found in wrong.items() if found} == {}


def test_links_are_found_where_they_are_and_not_in_code() -> None:
    page = '[a](b.md), ![c](d.svg) `[e](f.md)` ``[`](g.md)``\n```\n[h](i.md)\n```\n[j\nk](l.md#m) <img src="n.svg">\n'
    assert list(links(page)) == ["b.md", "d.svg", "l.md#m", "n.svg"]


@pytest.mark.parametrize(
    "heading, anchor",
    [
        ("# One `two` three", "one-two-three"),
        ("## What is `a_b(c=1)`?", "what-is-a_bc1"),
        ("### [A page](page.md), linked", "a-page-linked"),
        ("## Ten-fold", "ten-fold"),
    ],
)
def test_an_anchor(heading: str, anchor: str) -> None:
    assert anchors(f"{heading}\n\ntext\n") == {anchor}


@pytest.mark.parametrize("heading", ["## a & b", "## here - there", "## naïve"])
def test_an_anchor_that_differs_on_the_site_is_none(heading: str) -> None:
    assert anchors(heading) == set()


def test_a_heading_in_code_has_no_anchor() -> None:
    assert anchors("```sh\n# a comment\n```\n# A title\n") == {"a-title"}


def test_a_link_that_leads_nowhere_is_found_out(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](#one) [b](#two) [c](none.md) [d](other.md#three) [e](other.md) [f](https://x.org/#y)\n")
    (tmp_path / "other.md").write_text("# Two\n")
    assert broken(page) == ["#two", "none.md", "other.md#three"]
