# SPDX-License-Identifier: Apache-2.0
"""From the words of a command line to a command, and from its errors to messages and an exit status.

Nothing heavy is imported before the command is known: `distinput --help` takes about as long as Python itself.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

from distinput import __version__
from distinput.cli.commands import COMMANDS, GROUPS, Command
from distinput.cli.exit_status import FAILED, FINE, INTERRUPTED, USAGE
from distinput.cli.pipes import copied_pipes
from distinput.cli.visible import visible
from distinput.errors import DistinputError
from distinput.url_secrets import scrub

__all__ = ["main", "parser_of"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `distinput`.

    Args:
      arguments: the words after the command's name; None takes those of this process.

    Returns:
      The exit status: 0 when all went well, 1 when something failed, 2 when the words are wrong, 3 when a check found
      something, 130 when it was interrupted.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0].startswith("-"):
        _overview().parse_args(words)
        _overview().print_help()
        return FINE
    command = next((command for command in COMMANDS if command.name == words[0]), None)
    if command is None:
        print(f"distinput: there is no command {words[0]}{_meant(words[0])}", file=sys.stderr)
        return USAGE
    return _run(command, words[1:])


def parser_of(command: Command) -> argparse.ArgumentParser:
    """The parser of a command's words, with all its arguments."""
    parser = argparse.ArgumentParser(prog=f"distinput {command.name}", description=command.help)
    import_module(f"distinput.cli.{command.module}").add_arguments(parser)
    return parser


def _run(command: Command, words: list[str]) -> int:
    given = parser_of(command).parse_args(words)
    try:
        with copied_pipes(given):
            return int(import_module(f"distinput.cli.{command.module}").run(given))
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (DistinputError, OSError) as error:
        sys.stdout.flush()
        scrub(error)
        told = visible(error, lines=True)
        print(f"\ndistinput {command.name} failed: {type(error).__name__}: {told}", file=sys.stderr)
        for note in getattr(error, "__notes__", ()):
            print(f"  {visible(note, lines=True)}", file=sys.stderr)
        return FAILED
    except Exception as error:  # a defect, of ours or of the program's
        scrub(error)
        raise
    except KeyboardInterrupt:
        print("\ndistinput: interrupted", file=sys.stderr)
        return INTERRUPTED


def _overview() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="distinput",
        usage="distinput COMMAND ...",
        description="Input pipelines and exact data distribution over replicas. `distinput COMMAND --help` has more.",
        epilog="\n".join(_overview_of_commands()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"distinput {__version__}")
    return parser


def _overview_of_commands() -> list[str]:
    width = max(len(command.name) for command in COMMANDS)
    lines = []
    for group in GROUPS:
        of_group = [command for command in COMMANDS if command.group == group]
        lines += [f"{group}:", *(f"  {command.name:{width}}  {command.help}" for command in of_group), ""]
    return lines[:-1]


def _meant(word: str) -> str:
    close = get_close_matches(word, [command.name for command in COMMANDS], n=1)
    return f"; did you mean {close[0]}?" if close else "; `distinput --help` lists all"
