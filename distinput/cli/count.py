# SPDX-License-Identifier: Apache-2.0
"""`distinput count`: how many records files have."""

import argparse

from distinput.cli.arguments import add_json
from distinput.cli.exit_status import FINE
from distinput.cli.files import add_files, opened
from distinput.cli.output import print_json, print_table
from distinput.inspect.counts import count

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput count`."""
    parser.description = (
        "Count the records of each file, and of all. Parquet, Arrow, npy, npz and ArrayRecord files say it themselves; others "
        "are read, without decoding values."
    )
    add_files(parser)
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Print the numbers."""
    found = [each for files in opened(given) for each in count(files)]
    total = sum(each.records for each in found)
    if given.json:
        told = [{"file": each.file, "records": each.records, "bytes": each.bytes} for each in found]
        print_json({"records": total, "files": told})
        return FINE
    rows = [[each.records, each.bytes, each.file] for each in found]
    if len(found) > 1:
        rows.append([total, sum(each.bytes for each in found), "total"])
    print_table(["records", "bytes", "file"], rows)
    return FINE
