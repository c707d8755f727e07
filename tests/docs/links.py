# SPDX-License-Identifier: Apache-2.0
"""The links of a page of Markdown, and the anchors of its headings, by the rules of repositories and of the site alike."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["anchors", "broken", "links"]

_CODE = re.compile(r"^(```+).*?^\1$|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} (.*?)(?: #*)?$", re.MULTILINE)


def links(text: str) -> Iterator[str]:
    """The targets that a page links to or shows, without those in code."""
    for one, other in _LINK.findall(_CODE.sub(_blank, text)):
        yield one or other


def _blank(code: re.Match[str]) -> str:
    return "`" * (code[0].count("\n") == 0) + "\n" * code[0].count("\n")


def anchors(text: str) -> set[str]:
    """The anchors of the headings that are the same in a repository and on the site.

    Repositories make them as GitHub does: spaces become dashes one by one, other marks go. The site makes them as
    Python-Markdown does: one dash for any number of spaces. Of headings of the same text only the first can be linked
    to: the numbers that the others get differ.
    """
    fences = re.sub(r"^(```+).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    said = [re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", heading) for heading in _HEADING.findall(fences)]
    hers = [re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in said]
    plain = [unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode() for heading in said]
    ours = [re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in plain]
    return {one for one, other in zip(hers, ours, strict=True) if one == other}


def broken(page: Path) -> list[str]:
    """The links of a page that lead to no file, or to no anchor of a page."""
    wrong = []
    for link in links(page.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        file = page.parent / target if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in _anchors(file.resolve())):
            wrong.append(link)
    return wrong


@cache
def _anchors(page: Path) -> set[str]:
    return anchors(page.read_text(encoding="utf-8"))
