# SPDX-License-Identifier: Apache-2.0
"""Pipes among the files of a command: `-`, `/dev/stdin`, FIFOs and what shells put in the place of `<(...)`.

Commands look at a file several times, and a pipe can be read once. So it is copied first, from its beginning to its end, to a
temporary file, which is removed when the command ends.
"""

import argparse
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import copyfileobj

from distinput.errors import InvalidArgumentError

__all__ = ["copied_pipes"]

_OF_FILES = ("files", "against")
"""The arguments of commands that name files."""

_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


@contextmanager
def copied_pipes(given: argparse.Namespace) -> Iterator[None]:
    """Put copies in the place of pipes, for as long as the `with` lasts.

    Raises:
      InvalidArgumentError: standard input is named, but is a terminal.
      OSError: a pipe cannot be read, or there is no room for the copy.
    """
    named = {name: words for name in _OF_FILES if isinstance(words := getattr(given, name, None), list)}
    pipes = [word for words in named.values() for word in words if _is_pipe(word)]
    if not pipes:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="distinput-pipes-") as folder:
        copies = {
            word: os.path.join(folder, f"{place}-{_shown(word)}") for place, word in enumerate(dict.fromkeys(pipes))
        }
        for word, path in copies.items():
            _copy(word, path)
        for name, words in named.items():
            setattr(given, name, [copies.get(word, word) for word in words])
        yield


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
