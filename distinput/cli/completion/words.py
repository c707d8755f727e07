# SPDX-License-Identifier: Apache-2.0
"""The words that may stand in a command line, as plain values, read off the parsers of all commands."""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

from distinput.cli.commands import COMMANDS, Command

__all__ = ["CommandWords", "Completions", "Option", "table"]

_FILES = {"DIR": ("/",), "FILE": ("*",), "FOLDER": ("/",)}
"""What the name of a value in the help says of it, where nothing else was suggested."""


class Completions(NamedTuple):
    """What may stand somewhere.

    Attributes:
      words: some, or all, of the words.
      files: ends of names of files, without the dot; "*" for all files, "/" for directories.
    """

    words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Option(NamedTuple):
    """An option of a command.

    Attributes:
      names: `--workers`, or `-o` and `--output`.
      help: what it does, in a line.
      value: what follows it; None if nothing does.
    """

    names: tuple[str, ...]
    help: str
    value: Completions | None


class CommandWords(NamedTuple):
    """The words of a command.

    Attributes:
      name: of the command; with a space between them, of a command and an action of it.
      help: what it does, in a line.
      options: in the order of the help.
      rest: what its other arguments may be, all of them together.
    """

    name: str
    help: str
    options: tuple[Option, ...]
    rest: Completions


def table(
    parser_of: Callable[[Command], argparse.ArgumentParser], commands: Sequence[Command] = COMMANDS
) -> list[CommandWords]:
    """The words of all commands.

    Args:
      parser_of: makes the parser of a command, which loads what the command needs.
      commands: those of `distinput`.
    """
    found: list[CommandWords] = []
    for command in commands:
        found += _of(command.name, command.help, parser_of(command))
    return found


def _of(name: str, text: str, parser: argparse.ArgumentParser) -> list[CommandWords]:
    options: list[Option] = []
    words: list[str] = []
    files: list[str] = []
    below: list[CommandWords] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for word, inner in action.choices.items():
                words.append(word)
                below += _of(f"{name} {word}", helps.get(word, ""), inner)
        elif action.option_strings:
            value = None if action.nargs == 0 else _place(action)
            options.append(Option(tuple(action.option_strings), _help(action), value))
        else:
            place = _place(action)
            words += place.words
            files += place.files
    return [CommandWords(name, text, tuple(options), Completions(tuple(words), tuple(dict.fromkeys(files)))), *below]


def _place(action: argparse.Action) -> Completions:
    words, files = getattr(action, "suggested", ((), _FILES.get(str(action.metavar), ())))
    return Completions(tuple(map(str, action.choices)) if action.choices else tuple(words), tuple(files))


def _help(action: argparse.Action) -> str:
    if not action.help or action.help == argparse.SUPPRESS:
        return ""
    text = action.help.replace("%(default)s", str(action.default)).replace("%%", "%")
    return " ".join(text.split())
