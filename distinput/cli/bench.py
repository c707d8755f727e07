# SPDX-License-Identifier: Apache-2.0
"""`distinput bench`: how fast a dataset is, what it waits for, and what would change that."""

import argparse
from pathlib import Path
from typing import Any

from distinput.cli.arguments import add_json, at_least, seconds, suggest
from distinput.cli.exit_status import FINE
from distinput.cli.loading import add_dataset, load_dataset, user_code
from distinput.cli.output import print_json
from distinput.cli.progress import Progress
from distinput.core.quantities import bytes_text, number_text, seconds_text
from distinput.data.dataset import Dataset
from distinput.data.recording.recording import recorded
from distinput.plan.node import INFINITE
from distinput.reports.bench import Bench, bench
from distinput.reports.trials import TriedChange, trials

__all__ = ["add_arguments", "run"]

_SHORT = 1.0
"""Seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput bench`."""
    parser.description = (
        "Iterate a dataset, do nothing with its elements, and say how fast it is, which step the others wait for, and what "
        "could be changed."
    )
    add_dataset(parser)
    parser.add_argument(
        "--seconds", type=seconds, default=5.0, metavar="S", help="break off after so many (default: 5); 0: never"
    )
    parser.add_argument("--elements", type=at_least(1), metavar="N", help="break off after so many elements")
    parser.add_argument(
        "--warm-up",
        type=seconds,
        default=0.5,
        metavar="S",
        help="that do not count, after the first element (default: 0.5)",
    )
    parser.add_argument(
        "--try", dest="tries", action="store_true", help="try changes out, and say how much faster each is"
    )
    page = parser.add_argument(
        "--html", type=Path, metavar="FILE", help="also record another pass, and write a page about it"
    )
    trace = parser.add_argument("--trace", type=Path, metavar="FILE", help="write that pass as a timeline for Perfetto")
    suggest(page, files=("html",))
    suggest(trace, files=("json",))
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Measure, and say."""
    dataset = load_dataset(given.dataset)
    longest = given.seconds or None
    with user_code(given.dataset):
        low, high = dataset.cardinality_bounds()
        wanted = given.elements
        most = wanted if high is None else min(high, wanted or high)
        exact = most is not None and (low >= most or dataset.cardinality() == INFINITE)
        with Progress(most, "elements", exact=exact) as progress:
            told = bench(dataset, longest, given.elements, given.warm_up, watch=progress.reach)
        tried = list(trials(dataset, told, min(longest or 5.0, 5.0))) if given.tries else []
        _write(dataset, given, longest)
    if given.json:
        print_json({**told.to_dict(), "trials": [one.to_dict() for one in tried]})
    else:
        _print(told, tried)
    return FINE


def _write(dataset: Dataset[Any], given: argparse.Namespace, longest: float | None) -> None:
    """The page and the timeline, of a pass that is recorded."""
    if given.html is None and given.trace is None:
        return
    recording = recorded(dataset, longest, given.elements)
    if given.html is not None:
        recording.write_report(given.html)
    if given.trace is not None:
        recording.write_chrome_trace(given.trace)


def _print(told: Bench, tried: list[TriedChange]) -> None:
    rates = [(told.elements_per_second, "elements"), (told.rows_per_second, "rows")]
    parts = [f"{number_text(rate)} {what}/s" for rate, what in rates if rate is not None]
    if told.bytes_per_second:
        parts.append(f"about {bytes_text(told.bytes_per_second)}/s")
    if told.first_seconds is not None:
        parts.append(f"the first element after {seconds_text(told.first_seconds)}")
    end = "all" if told.ended else "broken off"
    print(", ".join(parts) or "no elements")
    print(f"{told.elements:,} elements ({end}) in {seconds_text(told.seconds)}\n")
    print(told.stats)
    advice = [text for text in told.changes if text != told.bottleneck]
    if told.ended and told.seconds < _SHORT:
        advice.insert(0, "A pass as short as this says little about the rate.")
    if advice:
        print("\n" + "\n".join(advice))
    if tried:
        print("\ntried:")
    for one in tried:
        print(f"  {one.change}: {one.error or _times(one)}")


def _times(one: TriedChange) -> str:
    return "too short to say" if one.times is None else f"{one.times:.2g} times as fast"
