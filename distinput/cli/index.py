# SPDX-License-Identifier: Apache-2.0
"""`distinput index`: write the indices of files, by which records are counted and reached at once."""

import argparse

from distinput.cli.arguments import add_json
from distinput.cli.exit_status import FINE
from distinput.cli.files import add_files, opened
from distinput.cli.output import print_json
from distinput.cli.visible import visible
from distinput.errors import InvalidArgumentError
from distinput.formats import FORMATS
from distinput.formats.write_index import write_index
from distinput.url_secrets import without_secrets

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput index`."""
    parser.description = (
        "Write the index of each file, with which index=True counts its records and reaches any of them at once. One that is "
        "there and is still right is kept. Formats that know their records by themselves need none."
    )
    add_files(parser)
    parser.add_argument(
        "--folder", metavar="PATH", help="where to keep the indices (default: hidden, beside each file)"
    )
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Write the indices."""
    total, names, needless = 0, list[str](), list[str]()
    for files in opened(given):
        name, options = files.recognised.format, dict(files.recognised.options)
        if files.format.counts_rows:
            needless += files.paths
            continue
        if f"indexed_{name}" not in FORMATS:
            raise InvalidArgumentError(f"{files.paths[0]}: files of format {name} have no index")
        total += write_index(list(files.paths), name, folder=given.folder, **options)
        names += files.paths
    if given.json:
        shown = [[without_secrets(name) for name in each] for each in (names, needless)]
        print_json({"records": total, "files": shown[0], "without": shown[1]})
        return FINE
    if names:
        print(f"{total:,} records in {len(names)} file{'s' * (len(names) > 1)} have an index")
    for path in needless:
        print(f"{visible(path)}: needs no index; its format says where records are")
    return FINE
