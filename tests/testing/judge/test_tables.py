# SPDX-License-Identifier: Apache-2.0
"""Reports of several loaders side by side."""

import json
from html.parser import HTMLParser

from distinput.testing import judge
from distinput.testing.judge.report import WRITERS
from tests.testing.judge import toys

REPORTS = [
    judge(toys.maker(kind), 17, ranks=(1, 2), batch=4, laws=["exactly once", "equal steps"], name=name)
    for kind, name in ((toys.Right, "right"), (toys.Unequal, "<unequal>"))
]


def test_a_table_of_markdown_has_a_row_for_each_loader() -> None:
    lines = WRITERS["markdown"](REPORTS).splitlines()
    assert lines[:4] == [
        "| loader | exactly once | equal steps |",
        "|---|---|---|",
        "| [right](#right) | [kept](#right) | [kept](#right) |",
        "| [<unequal>](#unequal) | [kept](#unequal) | [**broken**](#unequal) |",
    ]
    assert "* equal steps, **broken**: 17 records, 2 ranks, batches of 4: the ranks have [3, 2] steps" in lines
    assert "* exactly once, kept: each record once; in 2 jobs" in lines


def test_json_is_a_list() -> None:
    assert [each["ok"] for each in json.loads(WRITERS["json"](REPORTS))] == [True, False]


def test_text_is_one_report_after_the_other() -> None:
    assert WRITERS["text"](REPORTS) == f"{REPORTS[0]}\n\n{REPORTS[1]}"


class _Page(HTMLParser):
    """Looks at tags: all are closed, and nothing is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


def test_a_page_of_html_needs_nothing_else() -> None:
    page = _Page()
    page.feed(WRITERS["html"](REPORTS))
    assert page.open == []
    assert "<unequal>" in page.cells
    assert page.cells.count("broken") == 2
