# SPDX-License-Identifier: Apache-2.0
"""`distinput info`: what files are, and what their records look like."""

import argparse
from dataclasses import asdict
from typing import Any

from distinput.cli.arguments import add_json, at_least
from distinput.cli.exit_status import FINE
from distinput.cli.files import add_files, add_records, opened
from distinput.cli.output import print_json, print_table
from distinput.cli.visible import visible
from distinput.inspect.description import Description, describe

__all__ = ["add_arguments", "add_scan", "print_columns", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput info`."""
    parser.description = (
        "Say what files are: their format and what told it, their size, how many records they have if that is known "
        "without reading them, and the columns or features of a record."
    )
    add_files(parser)
    add_scan(parser)
    add_records(parser)
    add_json(parser)


def add_scan(parser: argparse.ArgumentParser) -> None:
    """Let a command be told how many messages to look at."""
    parser.add_argument(
        "--scan",
        type=at_least(0),
        default=1000,
        metavar="N",
        help="how many Examples of the first file to decode, to find their features; 0: all of all files (default: 1000)",
    )


def run(given: argparse.Namespace) -> int:
    """Describe the files of each word."""
    for place, files in enumerate(opened(given)):
        found = describe(files, records=given.records, scan=given.scan or None)
        if given.json:
            print_json(asdict(found))
            continue
        if place:
            print()
        _print(found)
    return FINE


def _print(found: Description) -> None:
    several = f" and {len(found.files) - 1} more" if len(found.files) > 1 else ""
    unknown = "not known without reading; `distinput count` counts them"
    told: dict[str, Any] = {
        "files": found.files[0] + several,
        "format": f"{found.format} ({found.how})",
        "compression": found.compression or "none",
        "bytes": f"{found.bytes:,}",
        "records": unknown if found.records is None else f"{found.records:,}",
        "a record is": found.record,
        **found.details,
    }
    for name, value in told.items():
        print(f"{name + ':':13} {visible(value)}")
    print()
    print_columns(found)


def print_columns(found: Description) -> None:
    """Print the columns or features of a description."""
    rows = [[one.name, one.dtype, _shape(one.shape)] for one in found.columns]
    if not found.looked_at:
        print_table(["column", "dtype", "shape"], rows)
        left = [one.name for one in found.columns if not one.held]
        if left:
            print(f"\nno array can hold: {', '.join(left)}; name the columns to read without them with columns=")
        return
    print_table(
        ["feature", "dtype", "shape", f"in of {found.looked_at:,}", "declaration"],
        [[*row, one.present or 0, one.declaration or ""] for row, one in zip(rows, found.columns, strict=True)],
    )


def _shape(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"
