# SPDX-License-Identifier: Apache-2.0
"""`distinput locate`: from a step to the records that it is made of, and from a record to its steps."""

import argparse

from distinput.cli.arguments import add_json, at_least, suggest
from distinput.cli.exit_status import FAILED, FINE
from distinput.cli.output import print_json, print_table
from distinput.cli.steps import add_job, on_workers
from distinput.cli.visible import visible
from distinput.errors import InvalidArgumentError
from distinput.lineage import Located, Seen

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput locate`."""
    parser.description = (
        "With --step: the file and the record of every row of a step. With --file and --record: the steps, replicas and rows "
        "in which a record is seen. Both are computed from positions; no record is read for it."
    )
    add_job(parser)
    parser.add_argument("--step", type=at_least(0), metavar="N", help="the step of the pass, from 0")
    parser.add_argument(
        "--replica", type=at_least(0), metavar="K", help="only its rows, numbered over all workers (default: all)"
    )
    suggest(parser.add_argument("--file", metavar="FILE", help="as the dataset names it"), files=("*",))
    parser.add_argument("--record", type=at_least(0), metavar="N", help="the record in the file, from 0")
    parser.add_argument(
        "--first", type=at_least(1), metavar="N", help="look for the record in the first N steps only (default: in all)"
    )
    parser.add_argument(
        "--read", action="store_true", help="count the records of files that do not tell, by reading them once"
    )
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Locate."""
    by_record = given.file is not None and given.record is not None
    one_of_them = (given.file is None) != (given.record is None)
    if one_of_them or by_record == (given.step is not None):
        raise InvalidArgumentError("locate: say --step N, or --file FILE and --record N")
    if not by_record:
        _print_located(given, _located(given))
        return FINE
    found = _when(given)
    _print_seen(given, found)
    return FINE if found else FAILED


def _located(given: argparse.Namespace) -> Located:
    return on_workers(given, lambda d: d.locate(given.step, given.replica, epoch=given.epoch, read=given.read))[0]


def _when(given: argparse.Namespace) -> tuple[Seen, ...]:
    steps = None if given.first is None else range(given.first)
    return on_workers(
        given, lambda d: d.when(given.file, given.record, epoch=given.epoch, steps=steps, read=given.read)
    )[0]


def _print_located(given: argparse.Namespace, found: Located) -> None:
    if given.json:
        print_json(found.to_dict())
        return
    rows = [(place.replica, place.row, place.file, place.record) for place in found]
    print_table(("replica", "row", "file", "record"), rows)
    for sentence in found.assumes:
        print(f"if {sentence}")


def _print_seen(given: argparse.Namespace, found: tuple[Seen, ...]) -> None:
    if given.json:
        print_json([seen._asdict() for seen in found])
        return
    if found:
        print_table(("epoch", "step", "replica", "row"), found)
    else:
        print(f"record {given.record:,} of {visible(given.file)} is in no step of epoch {given.epoch}")
