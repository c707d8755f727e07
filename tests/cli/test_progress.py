# SPDX-License-Identifier: Apache-2.0
"""Progress on a terminal, with tqdm and without."""

import io
import sys

import pytest

from distinput.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def bar(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(2, "training") as progress:
        progress.step("loss 1")
        progress.step("loss 0")
    return stream.getvalue()


def test_progress_says_nothing_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bar(monkeypatch, io.StringIO()) == ""


def test_progress_without_tqdm_is_one_line_that_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    shown = bar(monkeypatch, Terminal())
    assert "training: step 2 of 2, loss 0" in shown
    assert "\n" not in shown
    assert shown.endswith("\r\033[K")


def test_progress_with_tqdm_is_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm", reason="tqdm is an extra")
    shown = bar(monkeypatch, Terminal())
    assert "training:   0%" in shown
    assert "\n" not in shown
