# SPDX-License-Identifier: Apache-2.0
"""What bash offers, by its own completion function; no Python runs for it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from distinput.cli import main
from distinput.cli.commands import COMMANDS
from distinput.cli.main import parser_of
from distinput.cli.tools import CommandWords, Completions, Option, bash_script, table

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash")
ASK = """
source "$1"
shift
for line in "$@"; do
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
    COMPREPLY=()
    _distinput
    (IFS=' '; echo "${COMPREPLY[*]}")
done
"""


def offered(script: str, folder: Path, *lines: str) -> list[list[str]]:
    """What is offered for the last word of each line, in that folder, where no program can be started."""
    path = folder / "completion.sh"
    path.write_text(script, encoding="utf-8")
    asked = subprocess.run(
        [str(BASH), "--norc", "-c", ASK, "ask", path.name, *lines],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={"PATH": ""},
        timeout=300,
    )
    assert asked.stderr == ""
    return [line.split() for line in asked.stdout.splitlines()]


def test_commands_options_values_and_files(tmp_path: Path) -> None:
    (tmp_path / "pipe.py").touch()
    (tmp_path / "picture.svg").touch()
    (tmp_path / "pipelines").mkdir()
    script = bash_script(table(parser_of))
    everything, plan, policy, option, number, of_python, any_file, action, inner, shells = offered(
        script,
        tmp_path,
        "distinput ",
        "distinput pl",
        "distinput plan a --policy b",
        "distinput plan --po",
        "distinput plan --workers ",
        "distinput explain pi",
        "distinput plan pi",
        "distinput cluster s",
        "distinput cluster start --w",
        "distinput completion ",
    )
    assert everything == [*[command.name for command in COMMANDS], "--help", "--version"]
    assert (plan, policy, option, number) == (["plan"], ["balanced"], ["--policy"], [])
    assert sorted(of_python) == ["pipe.py", "pipelines"]
    assert sorted(any_file) == ["picture.svg", "pipe.py", "pipelines"]
    assert (action, inner) == (["start"], ["--workers"])
    assert shells[:3] == ["bash", "fish", "zsh"]


def test_a_quote_in_a_word_and_a_directory(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "into").touch()
    words = CommandWords("go", "", (Option(("--to",), "", Completions((), ("/",))),), Completions(("it's",)))
    assert offered(bash_script([words]), tmp_path, "distinput go --to in", "distinput go --t") == [["in"], ["--to"]]


def test_the_command_prints_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == bash_script(table(parser_of))
