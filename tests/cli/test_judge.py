# SPDX-License-Identifier: Apache-2.0
"""`distinput judge`: what the judge says, with the exit statuses of all commands."""

import json

import pytest

from distinput.cli import main

SOME = ["--records", "17", "--ranks", "1,2", "--law", "equal steps"]


def test_the_status_says_whether_a_law_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "tests.testing.judge.toys:right", *SOME]) == 0
    assert "no law is broken" in capsys.readouterr().out
    assert main(["judge", "tests.testing.judge.toys:unequal", *SOME, "--json"]) == 3
    assert not json.loads(capsys.readouterr().out)[0]["ok"]


def test_a_loader_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "json:nothing"]) == 2
    assert capsys.readouterr().err == "distinput judge: judge: module 'json' has no function 'nothing'\n"
    assert main(["judge", "train.py:loader"]) == 2
    assert "such as train:loader, got 'train.py:loader'" in capsys.readouterr().err


def test_the_known_loaders_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "--list", "--json", "--only", "ElasticIterator"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "exactly once" in found["laws"]
    assert [each["name"].partition(",")[0] for each in found["known"]] == ["Grain"]
    for words in ["--list"], ["--all"]:
        assert main(["judge", *words, "--only", "no such loader"]) == 2
