# SPDX-License-Identifier: Apache-2.0
"""`distinput completion`: a script that completes words of this command in a shell.

The script has a table of all words in it, made from the parsers when it is printed: completing a word runs no Python.
"""

import argparse

from distinput.cli.arguments import add_json
from distinput.cli.completion.bash import bash_script
from distinput.cli.completion.fish import fish_script
from distinput.cli.completion.words import table
from distinput.cli.completion.zsh import zsh_script
from distinput.cli.exit_status import FINE
from distinput.cli.main import parser_of
from distinput.cli.output import print_json

__all__ = ["add_arguments", "run"]

_SCRIPTS = {"bash": bash_script, "fish": fish_script, "zsh": zsh_script}
_EPILOG = """
bash:  distinput completion bash > ~/.local/share/bash-completion/completions/distinput
zsh:   distinput completion zsh > ~/.zfunc/_distinput   (a folder of $fpath)
fish:  distinput completion fish > ~/.config/fish/completions/distinput.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput completion`."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=sorted(_SCRIPTS), help="the shell that the script is for")
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Print the script, or the table that it is made from."""
    words = table(parser_of)
    print_json(words) if given.json else print(_SCRIPTS[given.shell](words), end="")
    return FINE
