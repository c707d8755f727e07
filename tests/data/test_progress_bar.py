# SPDX-License-Identifier: Apache-2.0
"""Bars: what is known of the number is shown, by what is installed, where somebody watches."""

import io
import os
import sys

import pytest

from distinput.data import progress
from distinput.data.progress import ProgressBar
from distinput.errors import EngineMissing, InvalidArgumentError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(low: int, high: int | None, kind: str = "plain", steps: int = 3, leave: bool = True) -> str:
    stream = Terminal()
    with ProgressBar(low, high, "reading", "rows", kind, stream, leave) as bar:
        for i in range(steps):
            bar.step(f"note {i}")
    return stream.getvalue()


def test_nothing_where_nobody_watches() -> None:
    stream = io.StringIO()
    with ProgressBar(2, 2, stream=stream) as bar:
        bar.step()
    assert (stream.getvalue(), bar.done) == ("", 1)


@pytest.mark.parametrize(
    "low, high, text",
    [
        (1000, 1000, "3 of 1,000 rows"),
        (0, 1000, "3 of at most 1,000 rows"),
        (10, 1000, "3 of 10 to 1,000 rows"),
        (10, None, "3 of at least 10 rows"),
        (0, None, "3 rows"),
    ],
)
def test_bounds_are_said(low: int, high: int | None, text: str) -> None:
    last = shown(low, high).split("\r\033[K")[-1]
    assert last.startswith(f"reading: {text}")
    assert last.endswith("note 2\n")


def test_it_may_be_told_how_many_are_done() -> None:
    stream = Terminal()
    with ProgressBar(10, 10, unit="records", kind="plain", stream=stream) as bar:
        bar.reach(4)
    assert bar.done == 4
    assert "4 of 10 records" in stream.getvalue()


def test_a_line_that_does_not_stay_vanishes() -> None:
    text = shown(3, 3, leave=False)
    assert "\n" not in text
    assert text.endswith("\r\033[K")


def test_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 0.5, 1.0, 2.0, 2.0, 2.0, 2.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(times, 2.0))
    assert "2 of 10 rows, 1/s, 8 s left" in shown(10, 10, steps=2)


@pytest.mark.parametrize("kind", ["tqdm", "rich"])
def test_installed_packages_draw(kind: str) -> None:
    pytest.importorskip(kind, reason=f"{kind} is not installed")
    text = shown(0, 1000, kind)
    assert "reading" in text
    assert "1,000" in text or "1000" in text
    assert "at most" in text


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("watched", [True, False])
def test_what_is_printed_to_a_file_stays_out_of_the_bar(
    monkeypatch: pytest.MonkeyPatch, name: str, watched: bool
) -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    stream, printed = Terminal(), Terminal() if watched else io.StringIO()
    monkeypatch.setattr(sys, name, printed)
    with ProgressBar(2, 2, "reading", "rows", "rich", stream):
        print("a result", file=getattr(sys, name))
    assert ("a result" in stream.getvalue(), "a result" in printed.getvalue()) == (watched, not watched)


def test_a_stream_that_does_not_know_whether_it_is_watched_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    monkeypatch.setattr(sys, "stdout", None)
    assert "3 of 5 rows" in shown(5, 5, "rich")


def test_without_packages_it_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("tqdm", "rich"):
        monkeypatch.setitem(sys.modules, package, None)
    assert "\r\033[Kreading: 3 of 5 rows" in shown(5, 5, "auto")
    with pytest.raises(EngineMissing, match="rich is not installed"):
        ProgressBar(1, 1, kind="rich")


def test_a_terminal_that_rich_does_not_draw_on_sees_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setenv("TERM", "dumb")
    assert "\r\033[Kreading: 3 of 5 rows" in shown(5, 5, "auto", leave=False)


def test_a_line_stays_one_line_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Narrow(Terminal):
        def fileno(self) -> int:
            return 7

    stream = Narrow()
    monkeypatch.setattr(os, "get_terminal_size", lambda descriptor: os.terminal_size((descriptor + 8, 24)))
    with ProgressBar(0, 1000, "reading", "rows", "plain", stream) as bar:
        bar.step("note")
    assert stream.getvalue().split("\r\033[K")[-1] == "reading: 1 of \n"


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="must be one of auto, plain, rich, tqdm, got 'bar'"):
        ProgressBar(1, 1, kind="bar")


def test_the_last_note_is_shown_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, times = Terminal(), iter([0.0, 1.0, 1.01, 2.0, 2.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(times, 3.0))
    with ProgressBar(3, 3, "reading", "rows", "plain", stream) as bar:
        for note in ("old", "older", "new"):
            bar.step(note)
    assert stream.getvalue().endswith("new\n")
