# SPDX-License-Identifier: Apache-2.0
"""`distinput graph` writes pictures in the language that the name of the file says."""

import json
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import distinput as di
from distinput.cli import main
from distinput.reports import graph_of, mermaid_of

PROGRAM = "import distinput as di\nds = di.data.Dataset.range(9).repeat(2).take(5).take(3).batch(2)\n"


@pytest.fixture(autouse=True)
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("train_to_draw.py").write_text(PROGRAM, encoding="utf-8")
    __import__("sys").modules.pop("train_to_draw", None)
    return "./train_to_draw.py:ds"


def test_mermaid_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", name]) == 0
    drawn = mermaid_of(graph_of(di.data.Dataset.range(9).repeat(2).take(5).take(3).batch(2)))
    assert capsys.readouterr().out == drawn + "\n"


def test_the_end_of_the_name_says_what_is_written(name: str) -> None:
    for file in ("a.svg", "a.md", "a.mmd", "a.json"):
        assert main(["graph", name, "-o", file]) == 0
    assert ET.parse("a.svg").getroot().tag.endswith("svg")
    assert Path("a.md").read_text(encoding="utf-8") == f"```mermaid\n{Path('a.mmd').read_text(encoding='utf-8')}```\n"
    assert [step["op"] for step in json.loads(Path("a.json").read_bytes())["steps"]] == [
        "range",
        "repeat",
        "take",
        "take",
        "batch",
    ]


def test_a_file_that_was_there_is_replaced_as_a_whole(name: str) -> None:
    old, kept = Path("a.svg"), Path("kept")
    old.write_text("old")
    os.link(old, kept)
    assert main(["graph", name, "-o", str(old)]) == 0
    assert (old.read_text()[:4], kept.read_text()) == ("<svg", "old")


def test_the_running_steps_and_a_kind_of_ones_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", name, "--running", "--json"]) == 0
    assert [step["op"] for step in json.loads(capsys.readouterr().out)["steps"]] == ["range", "repeat", "take", "batch"]
    assert main(["graph", name, "--kind", "svg", "-o", "a.txt"]) == 0
    assert Path("a.txt").read_text(encoding="utf-8").startswith("<svg")


def test_a_name_that_says_nothing_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", name, "-o", "a.txt"]) == 1
    assert "must end in one of .svg" in capsys.readouterr().err
    assert not Path("a.txt").exists()
