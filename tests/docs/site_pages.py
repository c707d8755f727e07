# SPDX-License-Identifier: Apache-2.0
"""What a page of the site leads to and what it loads, read from its HTML; and what a reader sees of it in a browser."""

import json
import re
import shutil
import subprocess
from functools import cache, partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

__all__ = ["broken", "fetched", "visited"]

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


@cache
def _pages(site: Path) -> dict[Path, _Page]:
    """The pages of a site, which are read once."""
    return {file.resolve(): _Page(file.read_text(encoding="utf-8")) for file in site.rglob("*.html")}


def fetched(site: Path) -> set[str]:
    """What the pages and style sheets of a site load from a network."""
    found: set[str] = set()
    for page in _pages(site).values():
        found |= {load for load in page.loads if urlsplit(load).netloc}
    for file in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        loads = _STYLE.findall(file.read_text(encoding="utf-8"))
        found |= {load for load in loads if urlsplit(load).netloc}
    return found


def broken(site: Path) -> set[tuple[str, str]]:
    """Page and target of links, pictures and anchors that lead nowhere within the site."""
    pages = _pages(site)
    wrong = set()
    for file, page in pages.items():
        folder = file.parent
        for target in {*page.links, *page.loads}:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            start = site if parts.path.startswith("/") else folder  # the page for what is not found starts at the root
            there = _there(start, parts.path) if parts.path else file
            known = pages[there].ids if there in pages else {unquote(parts.fragment)}
            missing = there not in pages and not there.exists()
            if missing or (parts.fragment and unquote(parts.fragment) not in known):
                wrong.add((file.relative_to(site.resolve()).as_posix(), target))
    return wrong


@cache
def _there(start: Path, path: str) -> Path:
    """The file that a link names: the navigation of each page of a folder names the same ones."""
    there = (start / unquote(path).lstrip("/")).resolve()
    return there / "index.html" if there.is_dir() else there


def visited(site: Path, **asked: Any) -> Any:
    """What visit.html saw of the site, in a browser without a window.

    Args:
      site: the folder of the site; the page is put beside the others.
      **asked: what the page is to look at.
    """
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("no Chromium is on this machine")
    shutil.copyfile(Path(__file__).with_name("visit.html"), site / "visit.html")
    (site / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    told: Queue[Any] = Queue()

    class Pages(SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with (
        TemporaryDirectory() as profile,
        ThreadingHTTPServer(("127.0.0.1", 0), partial(Pages, directory=str(site))) as server,
    ):
        Thread(target=server.serve_forever, daemon=True).start()
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"]
        address = f"http://127.0.0.1:{server.server_port}/visit.html"
        command += [f"--user-data-dir={profile}", address]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return told.get(timeout=120)
        except Empty:
            raise AssertionError("the browser said nothing within two minutes") from None
        finally:
            browser.kill()
            browser.wait()
            server.shutdown()
