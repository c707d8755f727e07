# SPDX-License-Identifier: Apache-2.0
"""`distinput verify`: whether files are what they should be."""

import argparse
from dataclasses import asdict

from distinput.cli.arguments import add_json, at_least
from distinput.cli.exit_status import FINE, FOUND
from distinput.cli.files import add_files
from distinput.cli.output import print_json
from distinput.cli.visible import visible
from distinput.inspect.verification import verify

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput verify`."""
    parser.description = (
        "Check that files are as their manifest says, that every record can be read with its checksums, and that the workers "
        "of a job together read each record once. The exit status is 3 if something does not hold."
    )
    add_files(parser, "a folder that was written, or files of one format")
    parser.add_argument(
        "--manifest", metavar="PATH", help="a list of files, with sizes and versions, that save_manifest saved"
    )
    parser.add_argument(
        "--workers",
        type=at_least(0),
        nargs="*",
        default=[2],
        metavar="W",
        help="numbers of workers to try; none or 0 leaves this out (default: 2)",
    )
    parser.add_argument(
        "--against", nargs="+", metavar="FILE", help="other files, of any format, with the same records"
    )
    parser.add_argument("--against-format", metavar="NAME", help="the format of those")
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Check, and say all that was found."""
    result = verify(
        given.files if len(given.files) > 1 else given.files[0],
        given.format,
        manifest=given.manifest,
        workers=[number for number in given.workers if number],
        against=given.against if given.against is None or len(given.against) > 1 else given.against[0],
        against_format=given.against_format,
        storage_options=dict(given.storage_option) or None,
        **dict(given.option),
    )
    if given.json:
        print_json(asdict(result))
    else:
        for check in result.checked:
            print(visible(f"checked: {check}"))
        for finding in result.findings:
            where = "" if finding.file is None else f"{finding.file}: "
            print(visible(f"{finding.check}: {where}{finding.problem}", lines=True))
        wrong = f"{len(result.findings)} found" if result.findings else "all is well"
        print(f"{result.files} file{'s' * (result.files != 1)}, {result.records:,} records: {wrong}")
    return FOUND if result.findings else FINE
