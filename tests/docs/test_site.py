# SPDX-License-Identifier: Apache-2.0
"""The site: every page is in its navigation once, nothing leads nowhere, nothing is fetched from a network."""

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.site_pages import broken, fetched, visited

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """docs/make_site.py, which is a script and not part of a package."""
    spec = importlib.util.spec_from_file_location("make_site", DOCS / "make_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_site"] = module  # where its dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_the_navigation_once(script: ModuleType) -> None:
    inside = [page for group in script.navigation() for page in group.paths() if page.is_relative_to(DOCS)]
    missing = {page.relative_to(DOCS).as_posix() for page in {*DOCS.rglob("*.md")} - {*inside}}
    assert missing == set(), "give each a row in a table of docs/index.md"
    assert {page.parent.name for page in {*inside} - {*DOCS.rglob("*.md")}} == {"performance", "reference"}
    assert [page.relative_to(DOCS).as_posix() for page, rows in Counter(inside).items() if rows > 1] == []


def test_the_groups_of_the_navigation(script: ModuleType) -> None:
    groups = script.navigation()
    titles = [group.title for group in groups]
    assert [title for title in titles if title != "Tutorials"] == [
        "Start",
        "Guides",
        "Coming from",
        "Reference",
        "Inside",
    ]
    assert groups[0].entries[0].path == DOCS / "index.md"


def test_an_index_becomes_groups(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "README.md").write_text(
        "See [no](../a.md).\n\n* [`x`](x.md): one, [no](z.md)\n* [a](../a.md)\n"
    )
    index = "# T\n## G\n| p | q |\n|---|---|\n| [a](a.md), [b](b.md) | [no](c.md) |\n## H\n### I\n| [m](more/README.md) | |\n"
    (tmp_path / "index.md").write_text(f"{index}## Words\n[no](d.md)\n")
    first, second = script.navigation(tmp_path / "index.md")
    assert [entry.title for entry in first.entries] == ["distinput", "A", "B"]
    assert (second.title, second.entries, second.groups[0].title) == ("H", [], "I")
    assert [page.relative_to(tmp_path).as_posix() for page in second.paths()] == ["more/README.md", "more/x.md"]
    assert second.groups[0].entries[0].below[0].title == "x"


def pages() -> list[Path]:
    return [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *(ROOT / name / "README.md" for name in ("benchmarks", "examples")),
    ]


def test_lists_are_lists_on_the_site_as_well() -> None:
    """The site needs an empty line before a list, and four spaces before a list within a list."""
    wrong = []
    for page in pages():
        text = re.sub(r"^(```+).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for before, line in zip(text.split("\n"), text.split("\n")[1:], strict=False):
            glued = re.match(r"([*+-]|\d+\.) ", line) and re.match(r"(?!([*+-]|\d+\.) )\S", before)
            if glued or re.match(r" {1,3}([*+-]|\d+\.) ", line):
                wrong.append((page.name, line))
    assert wrong == []


def test_links_out_of_the_folder_of_pages_lead_to_copies(script: ModuleType, tmp_path: Path) -> None:
    groups = [script.Group("Inside", [script.Entry("changing", ROOT / "CONTRIBUTING.md")])]
    script.stage(tmp_path / "pages", groups)
    text = (tmp_path / "pages" / "repository" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "](../extending.md#how-many-files)" in text
    programs = (tmp_path / "pages" / "index.md").read_text(encoding="utf-8")
    assert "](repository/benchmarks/README.md)" in programs
    assert "```pycon\n>>> import numpy as np\n" in programs


@pytest.fixture(scope="module")
def staged(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of docs/ and the reference as the site has them."""
    folder = tmp_path_factory.mktemp("staged") / "pages"
    script.stage(folder, [])
    return folder


def test_long_names_are_short_beside_the_page(staged: Path) -> None:
    text = (staged / "reference" / "distinput.train.md").read_text(encoding="utf-8")
    own = (staged / "reference" / "distinput.train.Checkpoint.md").read_text(encoding="utf-8")
    assert '### `distinput.train.Checkpoint.save` { data-toc-label="save" }' in own
    assert '### `distinput.train.latest_checkpoint` { data-toc-label="latest_checkpoint" }' in text


def test_each_benchmark_is_a_page_of_the_site(staged: Path) -> None:
    front = (staged / "performance.md").read_text(encoding="utf-8")
    own = (staged / "performance" / "state.md").read_text(encoding="utf-8")
    assert "| [state](performance/state.md) |" in front
    assert "## state" not in front
    assert own.startswith("# state\n")
    assert "![state](state.svg)" in own
    assert "](performance/state.md)" in (staged / "index.md").read_text(encoding="utf-8")


def test_style_copies_code_alone_and_shows_pictures_as_the_page_is() -> None:
    rules = re.sub(r"\s+", " ", (DOCS / "site.css").read_text(encoding="utf-8"))
    assert "code[data-md-copying] .gp, code[data-md-copying] .go { display: none; }" in rules
    for scheme, colours in (("default", "light"), ("slate", "dark")):
        assert f'[data-md-color-scheme="{scheme}"] .md-typeset img[src$=".svg"] {{ color-scheme: {colours}; }}' in rules


def test_plots_can_be_read_on_dark_pages_and_on_phones() -> None:
    for plot in sorted((DOCS / "performance").glob("*.svg")):
        text = plot.read_text(encoding="utf-8")
        assert "prefers-color-scheme: dark" in text, plot.name
        assert 'font-size="12"' in text, plot.name
    assert re.search(
        r"@media[^{]*max-width[^{]*{[^@]*p > img {\s*max-width: none", (DOCS / "site.css").read_text("utf-8")
    )


@pytest.fixture(scope="module")
def site(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("zensical", reason="zensical is not installed")
    folder, said = script.build(tmp_path_factory.mktemp("site"))
    assert "No issues found" in said
    return folder


@pytest.mark.slow
def test_the_site(site: Path, script: ModuleType) -> None:
    """One test for all that is said of the built site, so that it is built once."""
    assert len([*site.rglob("*.html")]) > len([*DOCS.rglob("*.md")])
    assert broken(site) == set()
    assert fetched(site) == set()
    page = (site / "state.html").read_text(encoding="utf-8")
    assert all(f"(prefers-color-scheme: {scheme})" in page for scheme in ("dark", "light"))
    assert not any('class="mermaid"' in file.read_text(encoding="utf-8") for file in site.glob("*.html"))
    assert max(len(page.read_bytes()) for page in site.rglob("*.html")) < 400_000, "a page that nobody scrolls through"
    assert "What a state holds" in (site / "search.json").read_text(encoding="utf-8")
    for group in script.navigation():
        assert f">{group.title}" in re.sub(r">\s+", ">", page), group.title


WORDS = {
    "augmentation": "cookbook/images",
    "language model": "cookbook/language_model",
    "chat template": "cookbook/language_model",
    "evaluation": "cookbook/exact_evaluation",
    "time series": "cookbook/time_series",
    "k-fold": "cookbook/k_fold",
    "imbalance": "cookbook/imbalance",
    "speech": "cookbook/speech_buckets",
    "contrastive": "cookbook/contrastive_pairs",
    "S3": "cookbook/stream_from_a_store",
    "curriculum": "cookbook/curriculum",
    "hard examples": "cookbook/hard_examples",
    "predictions": "cookbook/predictions_in_order",
    "preprocessing": "preprocessing_on_machines",
    "preemption": "cookbook/preemption",
}
"""What readers look for, and the page that answers."""


@pytest.mark.slow
def test_a_reader_on_a_phone_searches_and_copies(site: Path) -> None:
    told = visited(site, pages=SEEN, phone=390, code=1, words=[*WORDS])
    assert told["errors"] == []
    assert told["wide"] == {}, "pages that are wider than a phone"
    assert told["copied"].startswith("import distinput as di\n")
    assert ">>>" not in told["session"]
    assert told["session"], "a session is copied without its prompts and what was printed, not empty"
    unfound = {words: links[:3] for words, links in told["found"].items() if not _leads_to(links, WORDS[words])}
    assert unfound == {}


SEEN = ["index.html", "install.html", "state.html", "performance.html", "performance/state.html", "reports.html",
        "cookbook/images.html", "from/cheat_sheet.html", "reference/distinput.data.html", "formats/index.html"]  # fmt: skip


def _leads_to(links: list[str], page: str) -> bool:
    return any(f"/{page}.html" in link for link in links)


@pytest.mark.parametrize("link, says", [("none.md", "page does not exist"), ("index.md#none", "anchor does not exist")])
def test_a_link_that_leads_nowhere_is_an_error(script: ModuleType, tmp_path: Path, link: str, says: str) -> None:
    pytest.importorskip("zensical", reason="zensical is not installed")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "site.css").touch()
    (tmp_path / "pages" / "index.md").write_text(f"# Title\n\n[a]({link})\n")
    with pytest.raises(RuntimeError, match=says):
        script.render(tmp_path, [script.Group("Start", [script.Entry("a", DOCS / "index.md")])])


@pytest.mark.parametrize(
    "html, leads, loads",
    [
        ('<a href="b.html#x">', {("a.html", "b.html#x")}, set()),
        ('<a href="b.html#y"><a href="#z" id="z">', set(), set()),
        ('<img src="c.svg"><a href="https://x.org">', {("a.html", "c.svg")}, set()),
        ('<script src="https://x.org/a.js"></script>', set(), {"https://x.org/a.js"}),
        ('<link rel="preconnect" href="//x.org">', set(), {"//x.org"}),
        ('<p style="background: url(http://x.org/a.png)">', set(), {"http://x.org/a.png"}),
    ],
)
def test_a_page_that_is_wrong_is_found_out(
    tmp_path: Path, html: str, leads: set[tuple[str, str]], loads: set[str]
) -> None:
    (tmp_path / "a.html").write_text(html)
    (tmp_path / "b.html").write_text('<h2 id="y">')
    assert broken(tmp_path) == leads
    assert fetched(tmp_path) == loads
