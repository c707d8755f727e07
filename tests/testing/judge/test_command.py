# SPDX-License-Identifier: Apache-2.0
"""`python -m distinput.testing.judge`."""

import json
import os
from pathlib import Path

import pytest

from distinput.testing.judge.command import main

RIGHT = "tests.testing.judge.toys:right"
SOME = ["--records", "17", "--ranks", "1,2", "--law", "exactly once", "--law", "equal steps"]


def test_the_status_says_whether_a_law_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([RIGHT, *SOME]) == 0
    assert "no law is broken" in capsys.readouterr().out
    assert main(["tests.testing.judge.toys:unequal", *SOME]) == 1
    assert "[3, 2] steps" in capsys.readouterr().out


def test_json_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, kept = tmp_path / "report.html", tmp_path / "kept"
    page.write_text("old")
    os.link(page, kept)
    assert main([RIGHT, *SOME, "--json", "--output", str(page)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["ok"]
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert kept.read_text() == "old"  # what was there is replaced as a whole


def test_known_loaders_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "distinput"]) == 0
    assert "known: distinput, `shard_batches`" in capsys.readouterr().out


def test_known_loaders_are_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--all", "--only", "shard_batches", "--law", "exactly once"]) == 0
    assert "kept     exactly once" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "name a function, MODULE:FUNCTION, or use --all"),
        (["json:nothing"], "has no function 'nothing'"),
        (["no_such_module:f"], "no_such_module"),
        ([RIGHT, "--output", "report.pdf"], "must end in .html"),
        ([RIGHT, "--law", "speed"], "invalid choice"),
    ],
)
def test_wrong_words(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
