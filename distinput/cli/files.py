# SPDX-License-Identifier: Apache-2.0
"""The words by which commands name files, and the formats and options that they have."""

import argparse
import json
from typing import Any

from distinput.cli.arguments import suggest
from distinput.errors import InvalidArgumentError
from distinput.formats import FORMATS
from distinput.inspect.files import Files, open_files

__all__ = ["add_files", "add_records", "opened", "pair", "together"]


def add_files(parser: argparse.ArgumentParser, what: str = "files") -> None:
    """Let a command take files, and how they are read."""
    text = f"{what}: paths, patterns, directories; local, or URLs such as s3://; - or a pipe is read once, to its end"
    suggest(parser.add_argument("files", nargs="+", metavar="FILE", help=text), files=("*",))
    text = "their format; by default their names or first bytes tell it"
    suggest(parser.add_argument("--format", metavar="NAME", help=text), words=list(FORMATS))
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=pair,
        metavar="NAME=VALUE",
        help="an option of the format, such as delimiter=';' or columns='[\"x\"]'; JSON or text",
    )
    parser.add_argument(
        "--storage-option",
        action="append",
        default=[],
        type=pair,
        metavar="NAME=VALUE",
        help="for the file systems that URLs name, such as anon=true",
    )


def add_records(parser: argparse.ArgumentParser) -> None:
    """Let a command be told what records of bytes are."""
    parser.add_argument(
        "--records",
        choices=("example", "sequence_example", "bytes"),
        help="what records of bytes are; by default the first ones are looked at",
    )


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


def opened(given: argparse.Namespace) -> list[Files]:
    """What each of the words stands for."""
    return [_open(given, [word]) for word in given.files]


def together(given: argparse.Namespace) -> Files:
    """All files, which must have one format."""
    return _open(given, given.files)


def _open(given: argparse.Namespace, words: list[str]) -> Files:
    try:
        return open_files(
            words if len(words) > 1 else words[0],
            given.format,
            storage_options=dict(given.storage_option) or None,
            **dict(given.option),
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, OSError | InvalidArgumentError):
            raise
        raise InvalidArgumentError(str(error)) from error
