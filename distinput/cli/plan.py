# SPDX-License-Identifier: Apache-2.0
"""`distinput plan`: who reads what, for W workers of R replicas, before any job runs."""

import argparse
from collections.abc import Sequence
from typing import Any

from distinput.cli.arguments import add_json, at_least, numbers, suggest
from distinput.cli.exit_status import FINE
from distinput.cli.loading import WHERE, is_name, load_dataset, user_code
from distinput.cli.output import print_json, print_table
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.inspect.files import open_files
from distinput.partition.plan_summary import LeastAndMost, PlanSummary, summary_of
from distinput.plan.options import AutoShardPolicy
from distinput.plan.policy import Policy
from distinput.sharding.planning import shard_plan
from distinput.sharding.policies import policy_named

__all__ = ["add_arguments", "add_policy", "policy_of", "run"]

_BATCH = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput plan`."""
    parser.description = (
        "Say which worker will read which part of which file, why, and in how many steps, before any job runs; no record is "
        "read. Several numbers of workers are compared in a table, a line each."
    )
    what = parser.add_argument(
        "sources",
        nargs="+",
        metavar="FILE|MODULE:ds",
        help=f"files, or one dataset by {WHERE}; it makes global batches",
    )
    suggest(what, files=("*",))
    parser.add_argument(
        "--workers",
        type=numbers,
        default=[2],
        metavar="W[,W...]",
        help="how many workers; several are compared (default: 2)",
    )
    parser.add_argument(
        "--replicas", type=at_least(1), default=1, metavar="R", help="replicas of each worker (default: 1)"
    )
    parser.add_argument(
        "--batch",
        type=at_least(1),
        metavar="N",
        help=f"rows of a global batch (default: {_BATCH} for files; a dataset makes its own)",
    )
    parser.add_argument("--format", metavar="NAME", help="of the files; by default their names or first bytes tell it")
    add_policy(parser)
    add_json(parser)


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Let a command be asked about another policy."""
    known = [policy.name.lower() for policy in AutoShardPolicy]
    text = f"how the data is divided: {', '.join(known)}, or a policy of your own (default: as the options of the dataset say)"
    suggest(parser.add_argument("--policy", metavar="NAME", help=text), words=known)


def policy_of(given: argparse.Namespace) -> Policy | None:
    """The policy that was asked about."""
    return None if given.policy is None else policy_named(given.policy.upper())


def run(given: argparse.Namespace) -> int:
    """Print a plan, or several side by side."""
    dataset = _dataset(given)
    policy = policy_of(given)
    with user_code(" ".join(given.sources)):
        plans = [shard_plan(dataset.node, workers, given.replicas, policy) for workers in given.workers]
        if len(plans) == 1:
            print_json(plans[0].to_dict()) if given.json else print(plans[0])
            return FINE
        told = [summary_of(plan) for plan in plans]
    if given.json:
        print_json([one.to_dict() for one in told])
        return FINE
    print_table(
        ("workers", "policy", "reads", "steps", "files", "rows", "bytes", "balance", "idle"), [*map(_line, told)]
    )
    print(f"\nper worker: the least and the most. {_advice(told)}")
    return FINE


def _dataset(given: argparse.Namespace) -> Dataset[Any]:
    names = [word for word in given.sources if is_name(word)]
    if names and len(given.sources) > 1:
        raise InvalidArgumentError(f"plan: one dataset or some files are planned, got {' '.join(given.sources)}")
    if names:
        dataset = load_dataset(names[0])
        return dataset if given.batch is None else dataset.batch(given.batch)
    files = open_files(given.sources if len(given.sources) > 1 else given.sources[0], given.format)
    return files.dataset().batch(given.batch or _BATCH)


def _line(told: PlanSummary) -> Sequence[object]:
    steps = {None: "agreed", -1: "endless"}.get(told.steps, told.steps)
    balance = "?" if told.balance is None else f"{100 * told.balance:.0f} %"
    idle = "?" if told.idle is None else told.idle
    spans = [_words(span) for span in (told.files, told.rows, told.bytes)]
    return (told.num_workers, told.policy, told.reads, steps, *spans, balance, idle)


def _words(span: LeastAndMost) -> str:
    if span is None:
        return "?"
    least, most = span
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _advice(told: Sequence[PlanSummary]) -> str:
    """What the table says, in a sentence."""
    idle = [one for one in told if one.idle]
    whole = [one for one in told if one.reads == "whole files"]
    uneven = [one for one in told if one.balance is not None and one.balance < _EVEN]
    if idle:
        return f"Of {idle[0].num_workers} workers, {idle[0].idle} have no rows: fewer workers would do the same work."
    if whole:
        return "Where `reads` is `whole files`, every worker reads what others deliver; --policy balanced avoids it."
    if uneven:
        return (
            f"With {uneven[0].num_workers} workers the busiest one reads {1 / (uneven[0].balance or 1):.1f} times the mean: "
            "--policy balanced, or smaller files, would even it out."
        )
    return "The work is even."


_EVEN = 0.8
"""Below this balance, an uneven plan is worth a sentence."""
