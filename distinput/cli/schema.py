# SPDX-License-Identifier: Apache-2.0
"""`distinput schema`: the columns or features of the records of files."""

import argparse
from dataclasses import asdict

from distinput.cli.arguments import add_json
from distinput.cli.exit_status import FINE
from distinput.cli.files import add_files, add_records, together
from distinput.cli.info import add_scan, print_columns
from distinput.cli.output import print_json
from distinput.errors import InvalidArgumentError
from distinput.inspect.description import describe

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput schema`."""
    parser.description = (
        "Print the columns of the records of files: name, dtype, shape; of tf.train.Example messages the features that they "
        "have, and with --code the argument of parse_example."
    )
    add_files(parser, "files of one format")
    add_scan(parser)
    add_records(parser)
    parser.add_argument("--code", action="store_true", help="print the features as Python, for parse_example")
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Print the columns."""
    description = describe(together(given), records=given.records, scan=given.scan or None)
    if given.code and not description.looked_at:
        raise InvalidArgumentError(
            f"{description.files[0]}: its records are no tf.train.Example messages, so there are no features for --code to "
            "print"
        )
    if given.json:
        print_json([asdict(column) for column in description.columns])
    elif given.code:
        print("{")
        for column in description.columns:
            print(f"    {column.name!r}: {column.declaration},")
        print("}")
    else:
        print_columns(description)
    return FINE
