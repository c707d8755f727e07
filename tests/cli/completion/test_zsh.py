# SPDX-License-Identifier: Apache-2.0
"""The script for zsh: what it says, and that zsh reads it."""

import shutil
import subprocess

import pytest

from distinput.cli.main import parser_of
from distinput.cli.tools import CommandWords, Completions, Option, table, zsh_script

WORDS = [
    CommandWords(
        "go",
        "walks: it's good",
        (Option(("--kind",), "which [one]", Completions(("a", "b"))), Option(("--fast",), "", None)),
        Completions((), ("py", "csv")),
    ),
    CommandWords("go up", "", (), Completions(("high",))),
    CommandWords(
        "stay", "", (Option(("-o",), "", Completions((), ("/",))), Option(("-n",), "", Completions())), Completions()
    ),
]


def test_what_has_a_meaning_to_zsh_is_escaped() -> None:
    script = zsh_script(WORDS)
    assert r"'go:walks: it'\''s good'" in script
    assert r"'*--kind[which \[one\]]:value:(a b)'" in script
    assert "'*--fast[]'" in script
    assert "'*:argument:_files -g \"*.py *.csv\"'" in script
    assert "'*-o[]:value:_files -/'" in script
    assert "'*-n[]:value: '" in script


def test_an_action_is_looked_for_before_its_command() -> None:
    script = zsh_script(WORDS)
    assert script.index("'go up')") < script.index("        'go')\n")
    assert "shift 2 words; (( CURRENT -= 2 ))" in script


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_reads_it() -> None:
    for words in (WORDS, table(parser_of)):
        read = subprocess.run(
            ["zsh", "-f", "-n"], input=zsh_script(words), capture_output=True, text=True, check=False, timeout=300
        )
        assert (read.returncode, read.stderr) == (0, "")
