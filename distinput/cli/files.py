# SPDX-License-Identifier: Apache-2.0
"""The words by which commands name files, and how their records are shown."""

import argparse
import os
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import Any

import numpy as np

from distinput.cli.arguments import add_pairs, free_names, suggest
from distinput.cli.output import as_json, print_json, shortened
from distinput.cli.visible import visible
from distinput.errors import InvalidArgumentError
from distinput.formats import FORMATS
from distinput.inspect.files import Files, open_files
from distinput.inspect.records import Record

# ----------------------------------------------------------------------------
# The words by which commands name files, and the formats and options that they have.
# ----------------------------------------------------------------------------


def add_files(parser: argparse.ArgumentParser, what: str = "files") -> None:
    """Let a command take files, and how they are read."""
    text = f"{what}: paths, patterns, directories; local, or URLs such as s3://; - or a pipe is read once, to its end"
    suggest(parser.add_argument("files", nargs="+", metavar="FILE", help=text), files=("*",))
    text = "their format; by default their names or first bytes tell it"
    suggest(parser.add_argument("--format", metavar="NAME", help=text), words=list(FORMATS))
    text = "an option of the format, such as delimiter=';' or columns='[\"x\"]'; JSON or text"
    add_pairs(parser, "--option", "NAME=VALUE", text)
    add_pairs(parser, "--storage-option", "NAME=VALUE", "for the file systems that URLs name, such as anon=true")


def add_records(parser: argparse.ArgumentParser) -> None:
    """Let a command be told what records of bytes are."""
    parser.add_argument(
        "--records",
        choices=("example", "sequence_example", "bytes"),
        help="what records of bytes are; by default the first ones are looked at",
    )


def opened(given: argparse.Namespace) -> list[Files]:
    """What each of the words stands for."""
    return [_open(given, [word]) for word in given.files]


def together(given: argparse.Namespace) -> Files:
    """All files, which must have one format."""
    return _open(given, given.files)


def named(words: Sequence[str]) -> str | list[str]:
    """What words of files mean: one as it is; of several, those of local folders stand for the files in these."""
    return words[0] if len(words) == 1 else [f"{word}/" if os.path.isdir(word) else word for word in words]


def _open(given: argparse.Namespace, words: list[str]) -> Files:
    options = free_names("--option", given.option, files_of)
    return files_of(words, given.format, storage_options=dict(given.storage_option) or None, **options)


def files_of(
    filenames: Sequence[str], format: str | None, *, storage_options: Mapping[str, Any] | None = None, **options: Any
) -> Files:
    """What words of files mean, in a format with options; what is wrong with these is an error of a command.

    Raises:
      InvalidArgumentError: there is no such format, or it has no such option.
    """
    try:
        return open_files(named(filenames), format, storage_options=storage_options, **options)
    except (TypeError, ValueError) as error:
        if isinstance(error, OSError | InvalidArgumentError):
            raise
        raise InvalidArgumentError(str(error)) from error


# ----------------------------------------------------------------------------
# Records, printed for people and for programs.
# ----------------------------------------------------------------------------


_ITEMS = 8
_BYTES = 64


def print_records(records: Sequence[Record], json: bool, title: str | None = None, asked: int = 1) -> None:
    """Print records: a line of JSON each, or for people a line for each part.

    Args:
      records: what is printed.
      json: for programs: objects of "file", "record" (its number) and "value".
      title: the name of the file, to stand above.
      asked: how many were wanted; where there are none of them, people are told so.
    """
    if json:
        for record in records:
            print_json({"file": record.file, "record": record.row, "value": as_json(record.value)})
        return
    if title is not None:
        print(f"==> {visible(title)} <==")
    width = get_terminal_size((120, 24)).columns
    if asked and not records:
        print("no records")
    for record in records:
        if not isinstance(record.value, dict):
            print(shortened(f"{record.row}: {value_text(record.value)}", width))
            continue
        print(f"{record.row}:")
        named = [(visible(name), value) for name, value in record.value.items()]
        longest = max((len(name) for name, _ in named), default=0)
        for name, value in named:
            print(shortened(f"  {name:{longest}}  {value_text(value)}", width))
    if title is not None:
        print()


def value_text(value: Any) -> str:
    """A value in a few words: arrays with dtype and shape, long ones shortened; bytes as text if they are UTF-8.

    >>> value_text(np.arange(20)), value_text(b"abc"), value_text(None)
    ('int64[20] 0 1 2 3 4 5 6 7 …', "'abc'", 'null')
    """
    if value is None:
        return "null"
    if isinstance(value, np.ndarray):
        flat = value.reshape(-1)
        kind = "bytes" if value.dtype.hasobject else str(value.dtype)
        first = flat[:_ITEMS] if value.dtype.kind in "mM" else flat[:_ITEMS].tolist()
        items = " ".join(map(value_text, first))
        more = " …" if flat.size > _ITEMS else ""
        return f"{kind}[{','.join(map(str, value.shape))}] {items}{more}".rstrip()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    if isinstance(value, np.generic):
        return value_text(value.item())
    if isinstance(value, bytes):
        return _bytes_text(value)
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{visible(key)}: {value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        more = ", …" if len(value) > _ITEMS else ""
        return f"[{', '.join(map(value_text, value[:_ITEMS]))}{more}]"
    return visible(value)


def _bytes_text(value: bytes) -> str:
    more = f"… ({len(value):,} bytes)" if len(value) > _BYTES else ""
    try:
        return repr(value[:_BYTES].decode()) + more
    except UnicodeDecodeError as error:
        if more and error.start >= _BYTES - 3:  # the last character is cut
            return repr(value[: error.start].decode()) + more
        return f"{value[: _BYTES // 2]!r}" + (f"… ({len(value):,} bytes)" if len(value) > _BYTES // 2 else "")
