# SPDX-License-Identifier: Apache-2.0
"""The commands over files of any format: they read, describe, check and convert records."""

import argparse
from dataclasses import asdict
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.cli.arguments import add_examples, add_json, add_pairs, at_least, free_names
from distinput.cli.commands import FINE, FOUND
from distinput.cli.files import add_files, add_records, named, opened, print_records, together
from distinput.cli.output import print_json, print_table
from distinput.cli.visible import visible
from distinput.errors import InvalidArgumentError
from distinput.formats import FORMATS, write_index
from distinput.inspect.column_statistics import ColumnStatistics, NumericStatistics, statistics
from distinput.inspect.counts import count
from distinput.inspect.description import Description, describe
from distinput.inspect.records import head, sample
from distinput.names.lazy import later
from distinput.url_secrets import without_secrets
from distinput.writers import WRITERS

if TYPE_CHECKING:
    from distinput.data import progress
    from distinput.inspect import conversion, verification
else:
    verification = later("distinput.inspect.verification")  # a look at a few records is over before datasets are loaded
    conversion = later("distinput.inspect.conversion")  # the same
    progress = later("distinput.data.progress")  # the same


# ----------------------------------------------------------------------------
# `distinput head`: the first records of files.
# ----------------------------------------------------------------------------


def head_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput head`."""
    parser.description = (
        "Show the first records of each file, of any format; little more of a file is read than what holds them. Records of "
        "bytes that are tf.train.Example messages are shown with their features."
    )
    add_files(parser)
    text = "how many records of each file (default: 5)"
    parser.add_argument("-n", type=at_least(0), default=5, metavar="N", help=text)
    add_records(parser)
    add_json(parser)


def head_command(given: argparse.Namespace) -> int:
    """Show the first records."""
    for files in opened(given):
        for path in files.paths:
            found = head(files.only(path), given.n, records=given.records)
            alone = len(given.files) == len(files.paths) == 1
            print_records(found, json=given.json, title=None if alone else path, asked=given.n)
    return FINE


# ----------------------------------------------------------------------------
# `distinput sample`: records of files at random.
# ----------------------------------------------------------------------------


def sample_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput sample`."""
    parser.description = (
        "Show records at random, each as likely as any other, in the order of the files. The same seed gives the same "
        "records, in whatever format they are. All files are read, once."
    )
    add_files(parser, "files of one format")
    parser.add_argument("-n", type=at_least(0), default=5, metavar="N", help="how many records (default: 5)")
    parser.add_argument("--seed", type=at_least(0), default=0, metavar="N", help="seed of the choice (default: 0)")
    add_records(parser)
    add_json(parser)


def sample_command(given: argparse.Namespace) -> int:
    """Show some records."""
    files = together(given)
    found = sample(files, given.n, seed=given.seed, records=given.records)
    if given.json or not found or len(files.paths) == 1:
        print_records(found, json=given.json, asked=given.n)
        return FINE
    for path in dict.fromkeys(record.file for record in found):
        print_records([record for record in found if record.file == path], json=False, title=path)
    return FINE


# ----------------------------------------------------------------------------
# `distinput info`: what files are, and what their records look like.
# ----------------------------------------------------------------------------


def info_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput info`."""
    parser.description = (
        "Say what files are: their format and what told it, their size, how many records they have if that is known "
        "without reading them, and the columns or features of a record."
    )
    add_files(parser)
    add_examples(parser, 1000)
    add_records(parser)
    add_json(parser)


def info_command(given: argparse.Namespace) -> int:
    """Describe the files of each word."""
    for place, files in enumerate(opened(given)):
        found = describe(files, records=given.records, scan=given.scan or None)
        if given.json:
            print_json(asdict(found))
            continue
        if place:
            print()
        _print_description(found)
    return FINE


def _print_description(found: Description) -> None:
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
        print_table(["column", "dtype", "shape"], rows) if rows else print("no columns")
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


# ----------------------------------------------------------------------------
# `distinput schema`: the columns or features of the records of files.
# ----------------------------------------------------------------------------


def schema_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput schema`."""
    parser.description = (
        "Print the columns of the records of files: name, dtype, shape; of tf.train.Example messages the features that they "
        "have, and with --code the argument of parse_example."
    )
    add_files(parser, "files of one format")
    add_examples(parser, 1000)
    add_records(parser)
    parser.add_argument("--code", action="store_true", help="print the features as Python, for parse_example")
    add_json(parser)


def schema_command(given: argparse.Namespace) -> int:
    """Print the columns."""
    description = describe(together(given), records=given.records, scan=given.scan or None)
    if given.code and not description.looked_at:
        raise InvalidArgumentError(
            f"{description.files[0]}: its records are not tf.train.Example messages, so there are no features for --code to "
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


# ----------------------------------------------------------------------------
# `distinput count`: how many records files have.
# ----------------------------------------------------------------------------


def count_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput count`."""
    parser.description = (
        "Count the records of each file, and of all. Parquet, Arrow, npy, npz and ArrayRecord files say it themselves; others "
        "are read, without decoding values."
    )
    add_files(parser)
    add_json(parser)


def count_command(given: argparse.Namespace) -> int:
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


# ----------------------------------------------------------------------------
# `distinput stats`: what is missing, lengths, ranges and histograms of the columns of files.
# ----------------------------------------------------------------------------


_TIMES = (date, datetime, timedelta, np.datetime64, np.timedelta64)

_LEVELS = "▁▂▃▄▅▆▇█"
_WIDTH = 40


def stats_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput stats`."""
    parser.description = (
        "Read all records once and print, for each column or feature: how many values are missing, how long lists and texts "
        "are, the range and mean of numbers, and their histogram."
    )
    add_files(parser, "files of one format")
    add_records(parser)
    text = "print the histogram of this column in full"
    parser.add_argument("--column", action="append", default=[], metavar="NAME", help=text)
    add_json(parser)


def stats_command(given: argparse.Namespace) -> int:
    """Print the statistics."""
    columns = statistics(together(given), records=given.records)
    missing = [name for name in given.column if name not in columns]
    if missing:
        raise InvalidArgumentError(f"there is no column {missing[0]}; the columns are {', '.join(columns)}")
    if given.json:
        print_json([column.to_json() for column in columns.values()])
        return FINE
    rows = [line for column in columns.values() for line in _lines(column)]
    names = ["column", "type", "rows", "missing", "of", "min", "mean", "max", "histogram"]
    print_table(names, rows) if rows else print("no columns")
    for name in given.column:
        for what, numbers in (("lengths", columns[name].lengths), ("values", columns[name].values)):
            if numbers is not None and numbers.histogram.counts:
                print(f"\n{visible(name)}, {what}")
                _print_bars(numbers)
    return FINE


def _lines(column: ColumnStatistics) -> list[list[object]]:
    cells: list[object] = [column.name, column.type, column.rows, column.missing]
    lines = []
    for what, numbers in (("lengths", column.lengths), ("values", column.values)):
        if numbers is not None:
            mean = "" if isinstance(numbers.least, _TIMES) or not numbers.histogram.counts else f"{numbers.mean:.6g}"
            least, most = _shown_value(numbers.least), _shown_value(numbers.most)
            lines.append([*cells, what, least, mean, most, bars(numbers.histogram.counts)])
    return lines or [[*cells, "", "", "", "", ""]]


def _shown_value(value: Any) -> str:
    if isinstance(value, _TIMES):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else f"{value:,}"


def bars(counts: list[int]) -> str:
    """A histogram in a line: a bar for each bin, at least the lowest for one that is not empty.

    >>> bars([1, 0, 8, 4])
    '▁ █▄'
    """
    most = max(counts, default=0)
    return "".join(" " if not number else _LEVELS[max(0, -(-number * 8 // most) - 1)] for number in counts)


def _print_bars(numbers: NumericStatistics) -> None:
    edges, counts = numbers.histogram.edges(), numbers.histogram.counts
    names = [f"[{low:.6g}, {high:.6g})" for low, high in pairwise(edges)]
    width, most = max(map(len, names)), max(counts)
    for name, number in zip(names, counts, strict=True):
        print(f"{name:{width}}  {'█' * (number * _WIDTH // most) or '▏' * (number > 0):{_WIDTH}}  {number:,}")


# ----------------------------------------------------------------------------
# `distinput verify`: whether files are what they should be.
# ----------------------------------------------------------------------------


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput verify`."""
    parser.description = (
        "Check that files are as their manifest says, that every record can be read with its checksums, and that the workers "
        "of a job together read each record once. The exit status is 3 if something does not hold."
    )
    add_files(parser, "a folder that was written, or files of one format")
    text = "a list of files, with sizes and versions, that save_manifest saved"
    parser.add_argument("--manifest", metavar="PATH", help=text)
    text = "numbers of workers to try; 0 leaves this check out (default: 2)"
    parser.add_argument("--workers", type=at_least(0), nargs="*", default=[2], metavar="W", help=text)
    text = "other files, of any format, with the same records"
    parser.add_argument("--against", nargs="+", metavar="FILE", help=text)
    parser.add_argument("--against-format", metavar="NAME", help="the format of the other files")
    add_json(parser)


def verify_command(given: argparse.Namespace) -> int:
    """Check, and say all that was found."""
    result = verification.verify(
        named(given.files),
        given.format,
        manifest=given.manifest,
        workers=[number for number in given.workers if number],
        against=given.against and named(given.against),
        against_format=given.against_format,
        storage_options=dict(given.storage_option) or None,
        **free_names("--option", given.option, verification.verify),
    )
    if given.json:
        print_json(asdict(result))
    else:
        for check in result.checked:
            print(visible(f"checked: {check}"))
        for finding in result.findings:
            where = "" if finding.file is None else f"{finding.file}: "
            print(visible(f"{finding.check}: {where}{finding.problem}", lines=True))
        number = len(result.findings)
        wrong = f"{number} fault{'s' * (number != 1)}" if number else "all is well"
        print(f"{result.files} file{'s' * (result.files != 1)}, {result.records:,} records: {wrong}")
    return FOUND if result.findings else FINE


# ----------------------------------------------------------------------------
# `distinput index`: write the indices of files, by which records are counted and reached at once.
# ----------------------------------------------------------------------------


def index_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput index`."""
    parser.description = (
        "Write the index of each file, with which index=True counts its records and reaches any of them at once. One that is "
        "there and is still right is kept. Formats that know their records by themselves need none."
    )
    add_files(parser)
    text = "where to keep the indices (default: hidden, beside each file)"
    parser.add_argument("--folder", metavar="PATH", help=text)
    add_json(parser)


def index_command(given: argparse.Namespace) -> int:
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


# ----------------------------------------------------------------------------
# `distinput convert`: files of one format as files of another.
# ----------------------------------------------------------------------------


def convert_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput convert`."""
    parser.description = (
        "Write the records of files as files of another format, in a folder with a manifest. Interrupted or killed, the same "
        "command goes on after the last complete file. What the format cannot hold exactly is refused."
    )
    add_files(parser, "files of one format")
    parser.add_argument("--to", required=True, choices=list(WRITERS), help="the format to write")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where to write")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--shards", type=at_least(1), metavar="N", help="write N files")
    size.add_argument("--shard-rows", type=at_least(1), metavar="N", help="write N records to a file")
    text = "write about N bytes to a file (default: 256 MiB)"
    size.add_argument("--shard-bytes", type=at_least(1), metavar="N", help=text)
    parser.add_argument("--compression", metavar="NAME", help="compression of the files that are written")
    text = "replace a dataset that is there, once this one is complete"
    parser.add_argument("--overwrite", action="store_true", help=text)
    text = "the column that becomes the record itself: for text, npy, TFRecord"
    parser.add_argument("--value", metavar="COLUMN", help=text)
    add_pairs(parser, "--cast", "COLUMN=DTYPE", "write a column with another dtype, such as x=float32")
    add_pairs(parser, "--null", "COLUMN=VALUE", "what to put in the place of nulls")
    add_examples(parser, 0)
    add_pairs(parser, "--writer-option", "NAME=VALUE", "an option of the writer")
    add_records(parser)
    add_json(parser)


def convert_command(given: argparse.Namespace) -> int:
    """Convert, with a progress bar."""
    if given.null:
        given.option.append(("nulls", dict(given.null)))
    options = free_names("--writer-option", given.writer_option, conversion.convert)
    if given.compression is not None:
        options["compression"] = given.compression
    files = together(given)
    with progress.ProgressBar(files.known_rows or 0, files.known_rows, unit="records", leave=False) as bar:
        written = conversion.convert(
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
            progress=bar.reach,
            **options,
        )
    if given.json:
        folder, paths = without_secrets(written.directory), [without_secrets(path) for path in written.paths]
        print_json({"directory": folder, "records": written.rows, "bytes": written.bytes, "files": paths})
    else:
        number = len(written.files)
        print(
            f"{written.rows:,} records, {written.bytes:,} bytes in {number} file{'s' * (number != 1)}: "
            f"{visible(written.directory)}"
        )
    return FINE
