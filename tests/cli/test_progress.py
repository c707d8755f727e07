# SPDX-License-Identifier: Apache-2.0
"""Progress is shown on a terminal alone."""

import io
import sys

import pytest

from distinput.cli.output import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("total", [10, None])
def test_a_terminal_sees_it(monkeypatch: pytest.MonkeyPatch, total: int | None) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress(total, "records") as progress:
        progress.reach(4)
    assert "4 of 10 records" in screen.getvalue() if total else "4 records" in screen.getvalue()
    assert screen.getvalue().endswith("\r\033[K")


@pytest.mark.parametrize("drawn", ["a line", "tqdm"])
def test_a_bound_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch, drawn: str) -> None:
    if drawn == "tqdm":
        pytest.importorskip("tqdm", reason="the extra `progress`")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress(10, "records", exact=False) as progress:
        progress.reach(4)
    assert "at most" in screen.getvalue()


def test_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with Progress(10, "records") as progress:
        progress.reach(10)
    assert pipe.getvalue() == ""


def test_tqdm_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm", reason="the extra `progress`")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress(10, "records") as progress:
        progress.reach(4)
        progress.reach(10)
    assert "records" in screen.getvalue()
