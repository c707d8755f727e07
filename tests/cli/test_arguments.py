# SPDX-License-Identifier: Apache-2.0
"""The kinds of arguments refuse what they cannot be, in words."""

import argparse
from pathlib import Path

import pytest

from distinput.cli.arguments import add_json, at_least, directory


def test_at_least_takes_its_least_and_refuses_less() -> None:
    assert at_least(2)("2") == 2
    with pytest.raises(argparse.ArgumentTypeError, match="must be at least 2, so that one can go, got 1"):
        at_least(2, ", so that one can go")("1")


def test_a_directory_may_be_missing_but_no_file(tmp_path: Path) -> None:
    assert directory(str(tmp_path / "new")) == tmp_path / "new"
    (tmp_path / "file").touch()
    with pytest.raises(argparse.ArgumentTypeError, match="is a file"):
        directory(str(tmp_path / "file"))


def test_json_is_off_until_it_is_asked_for() -> None:
    parser = argparse.ArgumentParser()
    add_json(parser)
    assert (parser.parse_args([]).json, parser.parse_args(["--json"]).json) == (False, True)
