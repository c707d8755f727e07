# SPDX-License-Identifier: Apache-2.0
"""`distinput head`: the first records of files."""

import argparse

from distinput.cli.arguments import add_json, at_least
from distinput.cli.exit_status import FINE
from distinput.cli.files import add_files, add_records, opened
from distinput.cli.records import print_records
from distinput.inspect.records import head

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput head`."""
    parser.description = (
        "Show the first records of each file, of any format; little more of a file is read than what holds them. Records of "
        "bytes that are tf.train.Example messages are shown with their features."
    )
    add_files(parser)
    parser.add_argument("-n", type=at_least(0), default=5, metavar="N", help="how many of each file (default: 5)")
    add_records(parser)
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Show the first records."""
    several = len(given.files) > 1
    for files in opened(given):
        for path in files.paths:
            found = head(files.only(path), given.n, records=given.records)
            print_records(found, json=given.json, title=path if several or len(files.paths) > 1 else None)
    return FINE
