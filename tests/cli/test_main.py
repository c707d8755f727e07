# SPDX-License-Identifier: Apache-2.0
"""Words become commands; what is wrong with them is said; nothing heavy is loaded before the command is known."""

import subprocess
import sys

import pytest

import distinput as di
from distinput.cli import main
from distinput.cli.commands import COMMANDS, GROUPS
from distinput.cli.main import parser_of


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"distinput {di.__version__}\n"


def test_the_help_names_every_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out == shown
    lines = shown.splitlines()
    for command in COMMANDS:
        assert sum(line.split()[:1] == [command.name] for line in lines) == 1
        assert command.group in GROUPS


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_a_help(command: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command.name, "--help"])  # type: ignore[attr-defined]
    assert end.value.code == 0
    assert f"usage: distinput {command.name}" in capsys.readouterr().out  # type: ignore[attr-defined]
    description = parser_of(command).description or ""  # type: ignore[arg-type]
    assert description[0].isupper()
    assert description.endswith((".", "?"))


def test_a_word_that_is_no_command_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demoo"]) == 2
    assert capsys.readouterr().err == "distinput: there is no command demoo; did you mean demo?\n"
    assert main(["xyzzy"]) == 2
    assert "`distinput --help` lists all" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, says",
    [
        (
            "plan a.csv --workers two",
            "argument --workers: must be numbers with commas between them, such as 1,2,4, got 'two'",
        ),
        ("plan a.csv --workers 1,0", "argument --workers: must be at least 1, got 0"),
        ("bench a:ds --seconds x", "argument --seconds: must be a number of seconds from 0 on, such as 2.5, got 'x'"),
        ("bench a:ds --seconds -1", "argument --seconds: must be a number of seconds from 0 on, such as 2.5, got '-1'"),
    ],
)
def test_a_wrong_value_is_told_with_a_right_one(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(words.split())
    assert end.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {says}\n")


@pytest.mark.fresh_process
def test_the_help_loads_neither_numpy_nor_what_commands_need() -> None:
    program = """
import sys
from distinput.cli import main
main([])
print(sorted(name for name in sys.modules if name.startswith(("numpy", "pyarrow", "distinput"))), file=sys.stderr)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert (
        run.stderr
        == str(
            [
                "distinput",
                "distinput.cli",
                "distinput.cli.commands",
                "distinput.cli.main",
                "distinput.cli.visible",
                "distinput.errors",
                "distinput.names",
                "distinput.names.lazy",
                "distinput.url_secrets",
            ]
        )
        + "\n"
    )
