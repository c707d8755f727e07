# SPDX-License-Identifier: Apache-2.0
"""Patterns and folders of web servers, whose pages link to more than files."""

from collections.abc import Callable

import pytest

import distinput as di

pytest.importorskip("aiohttp", reason="the web needs aiohttp")

from tests.files.strange_server import Answer, StrangeServer

Dataset = di.data.Dataset

STYLES = {
    "nginx": ('<a href="../">../</a>', ""),
    "apache": ('<a href="?C=N;O=D">Name</a> <a href="?C=M;O=A">Date</a> <a href="/">Parent Directory</a>', ""),
    "caddy": ('<a href="./?sort=name&order=desc">Name</a> <a href="..">up</a> <a href="#top">top</a>', "./"),
    "others": ('<a href="mailto:me@host">mail</a> <a href="javascript:top()">top</a> <a href="/e/c.txt">other</a>', ""),
}
FILES = ["a.txt", "b%20c.txt", "x&amp;y.txt"]


def pages(style: str, broken: bool = False) -> Callable[[Answer], None]:
    head, before = STYLES[style]

    def change(answer: Answer) -> None:
        path = answer.path.partition("?")[0]
        if path in ("/d", "/d/sub"):
            answer.status, answer.headers, answer.body = 301, {"Location": f"{path}/", "Content-Length": "0"}, b""
        elif path == "/d/sub/" and broken:
            answer.fail(403)
        elif path in ("/d/", "/d/sub/"):
            links = [*FILES, "sub/"] if path == "/d/" else ["z.txt"]
            text = head + "".join([f'<a href="{before}{link}">{link}</a>' for link in links])
            answer.body = f"<html>{text}</html>".encode()
            answer.headers = {"Content-Type": "text/html", "Content-Length": str(len(answer.body))}

    return change


@pytest.mark.parametrize("style", STYLES)
def test_files_are_what_is_linked_to_below_the_folder(style: str) -> None:
    with StrangeServer(b"line\n", pages(style)) as server:
        here, below = ["a.txt", "b%20c.txt", "x&y.txt"], ["a.txt", "b%20c.txt", "sub/z.txt", "x&y.txt"]
        for pattern, found in (("*", [*here[:2], "sub", here[2]]), ("*.txt", here), ("**/*.txt", below), ("", below)):
            names = Dataset.list_files(f"{server.url}/d/{pattern}", shuffle=False)
            assert names.to_list() == [f"{server.url}/d/{name}".encode() for name in found]
        for pattern, count in (("*", 3), ("**", 4), ("", 4)):
            assert di.data.TextLineDataset(f"{server.url}/d/{pattern}").to_list() == [b"line"] * count


def test_queries_are_listed_where_the_pattern_has_one() -> None:
    with StrangeServer(b"line\n", pages("apache")) as server:
        names = Dataset.list_files(f"{server.url}/d/?C=*", shuffle=False).to_list()
        assert names == [f"{server.url}/d/?C={query}".encode() for query in ("M;O=A", "N;O=D")]


@pytest.mark.parametrize("pattern", ["**", "**/*.txt", ""])
def test_a_folder_that_cannot_be_listed_is_an_error(pattern: str) -> None:
    with StrangeServer(b"line\n", pages("nginx", broken=True)) as server:
        with pytest.raises(Exception, match="403"):
            di.data.TextLineDataset(f"{server.url}/d/{pattern}").to_list()
        assert di.data.TextLineDataset(f"{server.url}/d/*").to_list() == [b"line"] * 3
