# SPDX-License-Identifier: Apache-2.0
"""`distinput convert`: files of one format as files of another."""

import argparse

from distinput.cli.arguments import add_json, at_least
from distinput.cli.exit_status import FINE
from distinput.cli.files import add_files, add_records, pair, together
from distinput.cli.output import print_json
from distinput.cli.progress import Progress
from distinput.cli.visible import visible
from distinput.inspect.conversion import convert
from distinput.url_secrets import without_secrets
from distinput.writers import WRITERS

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput convert`."""
    parser.description = (
        "Write the records of files as files of another format, in a folder with a manifest. Interrupted or killed, the same "
        "command goes on after the last complete file. What the format cannot hold exactly is refused."
    )
    add_files(parser, "files of one format")
    parser.add_argument("--to", required=True, choices=list(WRITERS), help="the format to write")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where to write")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--shards", type=at_least(1), metavar="N", help="so many files")
    size.add_argument("--shard-rows", type=at_least(1), metavar="N", help="so many records a file")
    size.add_argument(
        "--shard-bytes", type=at_least(1), metavar="N", help="about so many bytes a file (default: 256 MiB)"
    )
    parser.add_argument("--compression", metavar="NAME", help="of the files that are written")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace a dataset that is there, once this one is complete"
    )
    parser.add_argument(
        "--value", metavar="COLUMN", help="the column that becomes the record itself: for text, npy, TFRecord"
    )
    parser.add_argument(
        "--cast",
        action="append",
        default=[],
        type=pair,
        metavar="COLUMN=DTYPE",
        help="write a column with another dtype, such as x=float32",
    )
    parser.add_argument(
        "--null",
        action="append",
        default=[],
        type=pair,
        metavar="COLUMN=VALUE",
        help="what to put in the place of nulls",
    )
    parser.add_argument(
        "--scan",
        type=at_least(0),
        default=0,
        metavar="N",
        help="how many Examples of the first file to decode, to find their features; 0: all of all files (default: 0)",
    )
    parser.add_argument(
        "--writer-option", action="append", default=[], type=pair, metavar="NAME=VALUE", help="an option of the writer"
    )
    add_records(parser)
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Convert, with a progress bar."""
    if given.null:
        given.option.append(("nulls", dict(given.null)))
    options = dict(given.writer_option)
    if given.compression is not None:
        options["compression"] = given.compression
    files = together(given)
    known = [files.format.rows(path) for path in files.paths] if files.format.counts_rows else [None]
    total = None if None in known else sum(filter(None, known))
    with Progress(total, "records") as progress:
        written = convert(
            files,
            given.output,
            given.to,
            shards=given.shards,
            shard_rows=given.shard_rows,
            shard_bytes=given.shard_bytes,
            overwrite=given.overwrite,
            records=given.records,
            scan=given.scan or None,
            value=given.value,
            casts=dict(given.cast),
            progress=progress.reach,
            **options,
        )
    if given.json:
        folder, paths = without_secrets(written.directory), [without_secrets(path) for path in written.paths]
        print_json({"directory": folder, "records": written.rows, "bytes": written.bytes, "files": paths})
    else:
        count = len(written.files)
        print(
            f"{written.rows:,} records, {written.bytes:,} bytes in {count} file{'s' * (count != 1)}: "
            f"{visible(written.directory)}"
        )
    return FINE
