# SPDX-License-Identifier: Apache-2.0
"""`distinput stats`: what is missing, lengths, ranges and histograms of the columns of files."""

import argparse
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from distinput.cli.arguments import add_json
from distinput.cli.exit_status import FINE
from distinput.cli.files import add_files, add_records, together
from distinput.cli.output import print_json, print_table
from distinput.cli.visible import visible
from distinput.errors import InvalidArgumentError
from distinput.inspect.column_statistics import ColumnStatistics, NumericStatistics, statistics

__all__ = ["add_arguments", "bars", "run"]

_TIMES = (date, datetime, timedelta, np.datetime64, np.timedelta64)

_LEVELS = "▁▂▃▄▅▆▇█"
_WIDTH = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput stats`."""
    parser.description = (
        "Read all records once and print, for each column or feature: how many values are missing, how long lists and texts "
        "are, the range and mean of numbers, and their histogram."
    )
    add_files(parser, "files of one format")
    add_records(parser)
    parser.add_argument("--column", action="append", default=[], metavar="NAME", help="print its histogram in full")
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Print the statistics."""
    found = statistics(together(given), records=given.records)
    missing = [name for name in given.column if name not in found]
    if missing:
        raise InvalidArgumentError(f"there is no column {missing[0]}; the columns are {', '.join(found)}")
    if given.json:
        print_json([column.to_json() for column in found.values()])
        return FINE
    rows = [line for column in found.values() for line in _lines(column)]
    print_table(["column", "type", "rows", "missing", "of", "min", "mean", "max", "histogram"], rows)
    for name in given.column:
        for what, numbers in (("lengths", found[name].lengths), ("values", found[name].values)):
            if numbers is not None and numbers.histogram.counts:
                print(f"\n{visible(name)}, {what}")
                _print_bars(numbers)
    return FINE


def _lines(column: ColumnStatistics) -> list[list[object]]:
    told: list[object] = [column.name, column.type, column.rows, column.missing]
    lines = [
        [*told, what, _shown(numbers.least), _mean(numbers), _shown(numbers.most), bars(numbers.histogram.counts)]
        for what, numbers in (("lengths", column.lengths), ("values", column.values))
        if numbers is not None
    ]
    return lines or [[*told, "", "", "", "", ""]]


def _shown(value: Any) -> str:
    if isinstance(value, _TIMES):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else f"{value:,}"


def _mean(numbers: NumericStatistics) -> str:
    timed = isinstance(numbers.least, _TIMES)
    return "" if timed or not numbers.histogram.counts else f"{numbers.mean:.6g}"


def bars(counts: list[int]) -> str:
    """A histogram in a line: a bar for each bin, at least the lowest for one that is not empty.

    >>> bars([1, 0, 8, 4])
    '▁ █▄'
    """
    most = max(counts, default=0)
    return "".join(" " if not count else _LEVELS[max(0, -(-count * 8 // most) - 1)] for count in counts)


def _print_bars(numbers: NumericStatistics) -> None:
    edges, counts = numbers.histogram.edges(), numbers.histogram.counts
    names = [f"[{low:.6g}, {high:.6g})" for low, high in pairwise(edges)]
    width, most = max(map(len, names)), max(counts)
    for name, count in zip(names, counts, strict=True):
        print(f"{name:{width}}  {'█' * (count * _WIDTH // most) or '▏' * (count > 0):{_WIDTH}}  {count:,}")
