# SPDX-License-Identifier: Apache-2.0
"""The script for fish: a line for each word, and what fish offers by it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from distinput.cli.main import parser_of
from distinput.cli.tools import CommandWords, Completions, Option, fish_script, table


def test_a_line_for_each_word() -> None:
    words = [
        CommandWords(
            "go",
            "it's good",
            (
                Option(("-k", "--kind"), "which", Completions(("a", "b"))),
                Option(("--to",), "", Completions((), ("*",))),
            ),
            Completions((), ("py",)),
        ),
        CommandWords("go up", "", (Option(("--fast",), "", None),), Completions()),
    ]
    assert fish_script(words).splitlines()[1:] == [
        "complete -c distinput -f",
        r"complete -c distinput -n __fish_use_subcommand -a go -d 'it\'s good'",
        "complete -c distinput -n '__fish_seen_subcommand_from go' -s k -l kind -x -a 'a b' -d 'which'",
        "complete -c distinput -n '__fish_seen_subcommand_from go' -l to -r -F -d ''",
        "complete -c distinput -n '__fish_seen_subcommand_from go' -F",
        "complete -c distinput -n '__fish_seen_subcommand_from go; and __fish_seen_subcommand_from up' -l fast -d ''",
    ]


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_what_fish_offers(tmp_path: Path) -> None:
    (tmp_path / "completion.fish").write_text(fish_script(table(parser_of)), encoding="utf-8")
    ask = 'source completion.fish; for line in $argv; complete -C "$line" | string replace -r "\\t.*" ""; end'
    asked = subprocess.run(
        [
            "fish",
            "--no-config",
            "-c",
            ask,
            "distinput pla",
            "distinput plan --policy bal",
            "distinput cluster start --w",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert asked.stdout.split() == ["plan", "balanced", "--workers"]
