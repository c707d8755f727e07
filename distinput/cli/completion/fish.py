# SPDX-License-Identifier: Apache-2.0
"""The script for fish: a line of `complete` for each word."""

from collections.abc import Sequence

from distinput.cli.completion.words import CommandWords, Completions, Option

__all__ = ["fish_script"]


def fish_script(commands: Sequence[CommandWords]) -> str:
    """The script.

    Args:
      commands: all words.

    Source: `complete` in the manual of fish.
    """
    lines = ["# fish completion for distinput; made by `distinput completion fish`", "complete -c distinput -f"]
    first = "complete -c distinput -n __fish_use_subcommand"
    lines += [f"{first} -a {one.name} -d {_quoted(one.help)}" for one in commands if " " not in one.name]
    for command in commands:
        where = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.name.split())
        start = f"complete -c distinput -n '{where}'"
        lines += [f"{start} {_option(option)}" for option in command.options]
        if command.rest.words or command.rest.files:
            lines.append(f"{start} {_value(command.rest)}")
    return "\n".join(lines) + "\n"


def _option(option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = "" if option.value is None else " -x" if not option.value.files else " -r"
    given = "" if option.value is None else f" {_value(option.value)}".rstrip()
    return f"{names}{value}{given} -d {_quoted(option.help)}"


def _value(place: Completions) -> str:
    found = []
    if place.words:
        found.append(f"-a {_quoted(' '.join(place.words))}")
    if place.files:
        found.append("-F")
    return " ".join(found)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
