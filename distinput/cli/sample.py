# SPDX-License-Identifier: Apache-2.0
"""`distinput sample`: records of files at random."""

import argparse

from distinput.cli.arguments import add_json, at_least
from distinput.cli.exit_status import FINE
from distinput.cli.files import add_files, add_records, together
from distinput.cli.records import print_records
from distinput.inspect.records import sample

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput sample`."""
    parser.description = (
        "Show records at random, each as likely as any other, in the order of the files. The same seed gives the same "
        "records, in whatever format they are. All files are read, once."
    )
    add_files(parser, "files of one format")
    parser.add_argument("-n", type=at_least(0), default=5, metavar="N", help="how many (default: 5)")
    parser.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="of the choice (default: 0)")
    add_records(parser)
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Show some records."""
    files = together(given)
    found = sample(files, given.n, seed=given.seed, records=given.records)
    if given.json or len(files.paths) == 1:
        print_records(found, json=given.json)
        return FINE
    for path in dict.fromkeys(record.file for record in found):
        print_records([record for record in found if record.file == path], json=False, title=path)
    return FINE
