# SPDX-License-Identifier: Apache-2.0
"""The table of words is what the parsers take: every word in it is accepted, and none is missing."""

import argparse

import pytest

from distinput.cli.arguments import suggest
from distinput.cli.commands import COMMANDS, Command
from distinput.cli.main import main, parser_of
from distinput.cli.tools import CommandWords, Completions, Option, table

TABLE = table(parser_of)


def test_every_command_is_there_once() -> None:
    assert [words.name for words in TABLE if " " not in words.name] == [command.name for command in COMMANDS]


@pytest.mark.parametrize("words", TABLE, ids=lambda words: words.name)
def test_the_help_of_a_command_names_every_word(words: CommandWords, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*words.name.split(), "--help"])
    shown = capsys.readouterr().out
    for option in words.options:
        assert all(name in shown for name in option.names)
        assert ", ".join(option.names) in " ".join(shown.split()) or option.value is not None
    assert "%" not in "".join(option.help for option in words.options).replace("100 %", "")


def test_actions_choices_files_and_flags_are_told_apart() -> None:
    def parser(command: Command) -> argparse.ArgumentParser:
        made = argparse.ArgumentParser()
        suggest(made.add_argument("file", metavar="FILE"), files=("csv",))
        made.add_argument("--to", metavar="FOLDER")
        made.add_argument("-n", "--number", type=int, default=3, help="how many\n  (default: %(default)s)")
        made.add_argument("--kind", choices=["a", "b"], help=argparse.SUPPRESS)
        actions = made.add_subparsers()
        suggest(actions.add_parser("go", help="start").add_argument("--name"), words=("x", "y"))
        return made

    help_option = Option(("-h", "--help"), "show this help message and exit", None)
    assert table(parser, [Command("do", "", "", "works")]) == [
        CommandWords(
            "do",
            "works",
            (
                help_option,
                Option(("--to",), "", Completions((), ("/",))),
                Option(("-n", "--number"), "how many (default: 3)", Completions()),
                Option(("--kind",), "", Completions(("a", "b"))),
            ),
            Completions(("go",), ("csv",)),
        ),
        CommandWords("do go", "start", (help_option, Option(("--name",), "", Completions(("x", "y")))), Completions()),
    ]
