# SPDX-License-Identifier: Apache-2.0
"""From the words of a command line to a command, and from its errors to messages and an exit status.

Nothing heavy is imported before the command is known: `distinput --help` takes about as long as Python itself.
"""

import argparse
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib import import_module
from shutil import copyfileobj
from typing import TYPE_CHECKING, Any

from distinput import __version__
from distinput.cli.commands import COMMANDS, FAILED, FINE, GROUPS, INTERRUPTED, USAGE, Command
from distinput.cli.visible import visible
from distinput.errors import DistinputError, InvalidArgumentError
from distinput.names.lazy import later
from distinput.url_secrets import scrub

if TYPE_CHECKING:
    from distinput import formats
    from distinput.formats import recognise
else:  # words of help are there before formats are loaded
    formats, recognise = later("distinput.formats"), later("distinput.formats.recognise")


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
    parser = argparse.ArgumentParser(
        prog=f"distinput {command.name}", description=f"{command.help[0].upper()}{command.help[1:]}.".replace("?.", "?")
    )
    _part(command, "arguments")(parser)
    return parser


def _part(command: Command, part: str) -> Callable[[Any], Any]:
    """`count_arguments`, say, or `count_command`, of the module of the command."""
    module, name = import_module(f"distinput.cli.{command.module}"), command.name.replace("-", "_")
    function: Callable[[Any], Any] = getattr(module, f"{name}_{part}")
    return function


def _run(command: Command, words: list[str]) -> int:
    given = parser_of(command).parse_args(words)
    format = getattr(given, "format", None)
    try:
        with copied_pipes(given) as pipes:
            if pipes and command.name == "index":
                raise InvalidArgumentError(
                    f"{pipes[0]}: an index is kept beside a file, and a pipe is none; name a file"
                )
            return int(_part(command, "command")(given))
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (DistinputError, OSError) as error:
        sys.stdout.flush()
        if format:
            with suppress(DistinputError, TypeError, ValueError):  # of a format that needs more
                recognise.tell_format(error, formats.format_named(format))
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


# ----------------------------------------------------------------------------
# Pipes among the files of a command: `-`, `/dev/stdin`, FIFOs and what shells put in the place of `<(...)`.
#
# Commands look at a file several times, and a pipe can be read once. So it is copied first, from its beginning to its end,
# to a temporary file, which is removed when the command ends.
# ----------------------------------------------------------------------------

_OF_FILES = ("files", "against")
"""The arguments of commands that name files."""

_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


@contextmanager
def copied_pipes(given: argparse.Namespace) -> Iterator[list[str]]:
    """Put copies in the place of pipes, for as long as the `with` lasts, which has the words of the pipes.

    Raises:
      InvalidArgumentError: standard input is named, but is a terminal.
      OSError: a pipe cannot be read, or there is no room for the copy.
    """
    words_of = {name: words for name in _OF_FILES if isinstance(words := getattr(given, name, None), list)}
    pipes = [word for words in words_of.values() for word in words if _is_pipe(word)]
    if not pipes:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="distinput-pipes-") as folder:
        copies = {
            word: os.path.join(folder, f"{place}-{_shown(word)}") for place, word in enumerate(dict.fromkeys(pipes))
        }
        for word, path in copies.items():
            _copy(word, path)
        for name, words in words_of.items():
            setattr(given, name, [copies.get(word, word) for word in words])
        yield pipes


def _is_pipe(word: str) -> bool:
    """Whether a word names what can only be read from front to back."""
    if word == "-":
        return True
    try:
        mode = os.stat(word).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISBLK(mode))


def _shown(word: str) -> str:
    return "stdin" if word in _STDIN else os.path.basename(word)


def _copy(word: str, path: str) -> None:
    """Read a pipe to its end."""
    of_stdin = word in _STDIN
    if of_stdin and sys.stdin is not None and sys.stdin.isatty():
        raise InvalidArgumentError(f"{word}: standard input is a terminal; pipe a file into the command, or name one")
    name = 0 if of_stdin else word
    with open(name, "rb", buffering=0, closefd=not of_stdin) as pipe, open(path, "xb") as copy:
        copyfileobj(pipe, copy, 1 << 20)
