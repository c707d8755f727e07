# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands take, and the kinds of values they have."""

import argparse
from collections.abc import Sequence
from pathlib import Path


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
    return [at_least(1)(word) for word in text.split(",")]


def seconds(text: str) -> float:
    """The kind of an argument: a time in seconds, 0 or more.

    >>> seconds("0.5")
    0.5
    """
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a time from 0 on, got {text}")
    return number
