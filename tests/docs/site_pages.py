# SPDX-License-Identifier: Apache-2.0
"""What a page of the site leads to and what it loads, read from its HTML."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["broken", "fetched"]

_STYLE = re.compile(r"(?:url\(|@import )[\"']?([^)\"']+)")

_TAG = re.compile(r"<(?!span )(\w+) ([^<>]+)>")
_ATTRIBUTE = re.compile(r"([\w-]+)=[\"']?([^\"'\s]*)")


class _Page:
    """The ids of a page, what it links to, and what a browser fetches to show it."""

    def __init__(self, text: str) -> None:
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = _STYLE.findall(text)
        for tag, attributes in _TAG.findall(text):
            given = {name: unescape(value) for name, value in _ATTRIBUTE.findall(attributes)}
            self.ids |= {given[name] for name in ("id", "name") if name in given}
            if tag == "a" and "href" in given:
                self.links.append(given["href"])
            self.loads += [given[name] for name in ("src", "srcset", "data", "poster") if name in given]
            if tag == "link" and given.get("rel") not in ("next", "prev", "canonical"):
                self.loads.append(given["href"])


def fetched(site: Path) -> set[str]:
    """What the pages and style sheets of a site load from a network."""
    found: set[str] = set()
    for file in site.rglob("*.html"):
        found |= {load for load in _Page(file.read_text(encoding="utf-8")).loads if urlsplit(load).netloc}
    for file in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        loads = _STYLE.findall(file.read_text(encoding="utf-8"))
        found |= {load for load in loads if urlsplit(load).netloc}
    return found


def broken(site: Path) -> set[tuple[str, str]]:
    """Page and target of links, pictures and anchors that lead nowhere within the site."""
    pages = {file.resolve(): _Page(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}
    wrong = set()
    for file, page in pages.items():
        for target in [*page.links, *page.loads]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            start = (
                site if parts.path.startswith("/") else file.parent
            )  # the page for what is not found starts at the root
            there = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else file
            there = there / "index.html" if there.is_dir() else there
            known = pages[there].ids if there in pages else {unquote(parts.fragment)}
            if not there.exists() or (parts.fragment and unquote(parts.fragment) not in known):
                wrong.add((file.relative_to(site.resolve()).as_posix(), target))
    return wrong
