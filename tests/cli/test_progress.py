# SPDX-License-Identifier: Apache-2.0
"""Commands show on a terminal alone how far they are."""

import io
import sys
from pathlib import Path

import pytest

from distinput.cli.main import main


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def converted(monkeypatch: pytest.MonkeyPatch, folder: Path, screen: io.StringIO) -> str:
    """What standard error gets while ten lines become Parquet."""
    monkeypatch.setattr(sys, "stderr", screen)
    (folder / "lines.txt").write_text("a\n" * 10, encoding="utf-8")
    assert main(["convert", str(folder / "lines.txt"), "--to", "parquet", "-o", str(folder / "made")]) == 0
    return screen.getvalue()


def test_a_terminal_sees_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "rich", None)
    shown = converted(monkeypatch, tmp_path, Terminal())
    assert "10 records" in shown
    assert shown.endswith("\r\033[K")


def test_nobody_else_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert converted(monkeypatch, tmp_path, io.StringIO()) == ""


def test_tqdm_where_it_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("tqdm", reason="the extra `progress`")
    assert "records" in converted(monkeypatch, tmp_path, Terminal())
