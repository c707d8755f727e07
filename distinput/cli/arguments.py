# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands take, and the kinds of values they have."""

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from distinput.errors import InvalidArgumentError


class at_least:  # noqa: N801 (used as argparse's `type=`, whose name is in its messages)
    """The kind of an argument: an integer that is not below a number.

    >>> at_least(2)("3")
    3
    """

    def __init__(self, least: int, why: str = "") -> None:
        self.least = least
        self.why = why

    def __call__(self, text: str) -> int:
        number = int(text)
        if number < self.least:
            raise argparse.ArgumentTypeError(f"must be at least {self.least}{self.why}, got {number}")
        return number

    def __repr__(self) -> str:
        return "integer"  # argparse says "invalid integer value"


def directory(text: str) -> Path:
    """The kind of an argument: a directory, there or to be made."""
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f"must be a directory, but {text} is a file")
    return path


def add_json(parser: argparse.ArgumentParser) -> None:
    """Let a command print JSON, for programs, instead of text for people."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_pairs(parser: argparse.ArgumentParser, word: str, metavar: str, text: str) -> None:
    """Let a command take a name with a value, any number of times; see `pair`."""
    parser.add_argument(word, action="append", default=[], type=pair, metavar=metavar, help=text)


def pair(text: str) -> tuple[str, Any]:
    """The kind of an argument: a name and a value, which is JSON, or else text.

    >>> pair("rows=3"), pair("delimiter=;")
    (('rows', 3), ('delimiter', ';'))
    """
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def free_names(word: str, pairs: Iterable[tuple[str, Any]], function: Callable[..., Any]) -> dict[str, Any]:
    """Pairs that are handed on to a function, whose own arguments have words of their own.

    Args:
      word: of the command line, that gave the pairs.
      pairs: names and values.
      function: takes them beside its own arguments.

    Raises:
      InvalidArgumentError: a name is that of an argument of the function.

    >>> free_names("--option", [("rows", 3)], lambda files, **options: None)
    {'rows': 3}
    """
    own = [name for name, one in signature(function).parameters.items() if one.kind is not one.VAR_KEYWORD]
    for name, _ in pairs:
        if name in own:
            raise InvalidArgumentError(f"{word} {name}: is no such option, but has a word of its own; see --help")
    return dict(pairs)


def add_examples(parser: argparse.ArgumentParser, most: int) -> None:
    """Let a command be told how many messages to look at."""
    text = f"find the features in the first N Examples of the first file; 0: in all Examples of all files (default: {most})"
    parser.add_argument("--scan", type=at_least(0), default=most, metavar="N", help=text)


def suggest(action: argparse.Action, words: Sequence[str] = (), files: Sequence[str] = ()) -> argparse.Action:
    """Tell shells what an argument may be, where its parser does not hold it to that.

    Args:
      action: what `add_argument` returned.
      words: some of its values.
      files: the ends of names of files that it may be, without the dot; "*" for all files, "/" for directories.

    Returns:
      The action.
    """
    action.suggested = (tuple(words), tuple(files))  # type: ignore[attr-defined]
    return action


def numbers(text: str) -> list[int]:
    """The kind of an argument: integers from 1 on, with commas between them.

    >>> numbers("1,2,8")
    [1, 2, 8]
    """
    try:
        return [at_least(1)(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be numbers with commas between them, such as 1,2,4, got {text!r}"
        ) from None


def seconds(text: str) -> float:
    """The kind of an argument: a time in seconds, 0 or more.

    >>> seconds("0.5")
    0.5
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0 on, such as 2.5, got {text!r}")
    return number
