# SPDX-License-Identifier: Apache-2.0
"""The judge from a shell: the words of `distinput judge` and of `python -m distinput.testing.judge`."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from distinput.testing.judge.judging import judge
from distinput.testing.judge.laws import LAWS
from distinput.testing.judge.loaders import LOADERS
from distinput.testing.judge.loaders.known import EVERY, Known, made
from distinput.testing.judge.processes import HOWS
from distinput.testing.judge.report import SUFFIXES, WRITERS, JudgeReport, write_reports


def numbers_in(text: str) -> tuple[int, ...]:
    """Numbers with commas between them."""
    return tuple([int(word) for word in text.split(",") if word])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of the judge."""
    text = "functions that make the loader of a rank"
    parser.add_argument("loaders", nargs="*", metavar="MODULE:FUNCTION", help=text)
    text = "judge every known loader that is installed; the status is 0"
    parser.add_argument("--all", action="store_true", help=text)
    parser.add_argument("--only", metavar="WORD", help="of the known loaders, those with this word in their name")
    parser.add_argument("--list", action="store_true", help="name the laws and the known loaders")
    text = "how many records there are (default: %(default)s)"
    parser.add_argument("--records", type=int, default=EVERY["records"], metavar="N", help=text)
    text = "numbers of ranks (default: 1,2,3,4)"
    parser.add_argument("--ranks", type=numbers_in, default=EVERY["ranks"], metavar="N[,N...]", help=text)
    text = "rows of a rank in a step (default: %(default)s)"
    parser.add_argument("--batch", type=int, default=EVERY["batch"], metavar="N", help=text)
    text = "numbers of worker processes of a rank, such as 1,2 (default: none)"
    parser.add_argument("--workers", type=numbers_in, default=(), metavar="N[,N...]", help=text)
    text = "steps to stop after (default: all)"
    parser.add_argument("--stops", type=numbers_in, default=None, metavar="N[,N...]", help=text)
    text = "how the ranks of a job are played: in turn, processes or threads (default: %(default)s)"
    parser.add_argument("--play", choices=list(HOWS), default="in turn", metavar="HOW", help=text)
    text = "judge this law alone; may be repeated"
    parser.add_argument("--law", action="append", choices=list(LAWS), metavar="NAME", help=text)
    text = "judge all laws but this; may be repeated"
    parser.add_argument("--leave-out", action="append", default=[], choices=list(LAWS), metavar="NAME", help=text)
    text = "how long to wait for one step (default: %(default)s)"
    parser.add_argument("--patience", type=float, default=60.0, metavar="SECONDS", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write a file too: .html, .json, .md or .txt")


def main(words: Sequence[str] | None = None) -> int:
    """The command line; the exit status: 0 if no law is broken, 1 if one is, 2 for wrong arguments.

    Args:
      words: its arguments; those of the program when None.

    >>> main(["--list", "--only", "ElasticIterator"])
    laws: exactly once, equal steps, partial batches, same order, seeds, epochs, workers, restart, restart twice, elastic
      restart, rank killed, worker killed, nothing left
    known: Grain, `ElasticIterator`...
    0
    """
    parser = argparse.ArgumentParser(
        prog="python -m distinput.testing.judge",
        description="Try loaders in jobs of several ranks, and say which laws they keep. Exit status: 0 if no law is broken, "
        "1 if one is, 2 for wrong arguments.",
    )
    add_arguments(parser)
    given = parser.parse_args(words)
    try:
        return 0 if run(given) else 1
    except (ImportError, ValueError) as error:
        parser.error(str(error))


def run(given: argparse.Namespace) -> bool:
    """Judge, print and write what the words ask for.

    Args:
      given: the words, as `add_arguments` lets them be parsed.

    Returns:
      False if a law is broken by a loader that was named.

    Raises:
      ValueError: the words do not fit together, or a function is not there.
      ImportError: a module is not there.
    """
    if given.output is not None and given.output.suffix not in SUFFIXES:
        raise ValueError(f"--output must end in {', '.join(SUFFIXES)}, got {given.output}")
    chosen = [known for known in LOADERS if (given.only or "").lower() in known.name.lower()]
    if given.only and not chosen:
        raise ValueError(f"--only {given.only}: no known loader has this word in its name; --list names all")
    if given.list and given.json:
        names = [{"name": known.name, "missing": list(known.missing)} for known in chosen]
        print(json.dumps({"laws": list(LAWS), "known": names}))
        return True
    if given.list:
        print(f"laws: {', '.join(LAWS)}")
        for known in chosen:
            print(f"known: {known.name}" + (f" (not installed: {', '.join(known.missing)})" if known.missing else ""))
        return True
    if not given.loaders and not given.all:
        raise ValueError("name a function, MODULE:FUNCTION, or use --all")
    reports: list[JudgeReport] = []
    for report in _reports(given, chosen):
        if not given.json:
            print(f"{report}\n", flush=True)
        reports.append(report)
    if given.json:
        print(WRITERS["json"](reports))
    if given.output is not None:
        write_reports(str(given.output), reports)
    return bool(given.all) or all(report.ok for report in reports)


def _reports(given: argparse.Namespace, chosen: Sequence[Known]) -> Iterator[JudgeReport]:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    options: dict[str, Any] = {"laws": given.law, "leave_out": given.leave_out, "patience": given.patience}
    if given.stops is not None:
        options["stops"] = given.stops
    for name in given.loaders:
        sizes = {"records": given.records, "ranks": given.ranks, "batch": given.batch, "workers": given.workers}
        yield judge(made(name), name=name, play=given.play, **sizes, **options)
    if given.all:
        for known in chosen:
            if not known.missing:
                yield known.judge(**options)
