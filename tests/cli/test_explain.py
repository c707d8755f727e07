# SPDX-License-Identifier: Apache-2.0
"""`distinput explain` prints what `Dataset.explain` says, or its parts."""

import json
from pathlib import Path

import pytest

import distinput as di
from distinput.cli import main

DATASET = di.data.Dataset.range(9).repeat(2).take(5).take(3).batch(2)
PROGRAM = "import distinput as di\nds = di.data.Dataset.range(9).repeat(2).take(5).take(3).batch(2)\n"


@pytest.fixture
def name(tmp_path: Path) -> str:
    (tmp_path / "train_to_explain.py").write_text(PROGRAM, encoding="utf-8")
    __import__("sys").modules.pop("train_to_explain", None)
    return f"{tmp_path / 'train_to_explain.py'}:ds"


def test_it_prints_what_explain_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name]) == 0
    assert capsys.readouterr().out == DATASET.explain() + "\n"
    assert main(["explain", name, "--workers", "2", "--policy", "off"]) == 0
    assert capsys.readouterr().out == DATASET.explain(2, policy=di.data.experimental.AutoShardPolicy.OFF) + "\n"


def test_its_parts_as_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name, "--json"]) == 0
    parts = json.loads(capsys.readouterr().out)
    assert (parts["rules"], parts["shards"]) == (["take_of_take"], None)
