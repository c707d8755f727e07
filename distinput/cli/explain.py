# SPDX-License-Identifier: Apache-2.0
"""`distinput explain`: a pipeline as described, the rules that changed it, and as it runs."""

import argparse

from distinput.cli.arguments import add_json, at_least
from distinput.cli.exit_status import FINE
from distinput.cli.loading import add_dataset, load_dataset, user_code
from distinput.cli.output import print_json
from distinput.cli.plan import add_policy, policy_of
from distinput.data.explanation import explanation_of

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput explain`."""
    add_dataset(parser)
    parser.add_argument("--workers", type=at_least(1), metavar="W", help="also say what each of so many workers reads")
    parser.add_argument(
        "--replicas", type=at_least(1), default=1, metavar="R", help="replicas of each worker (default: 1)"
    )
    add_policy(parser)
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Explain."""
    dataset = load_dataset(given.dataset)
    with user_code(given.dataset):
        told = explanation_of(dataset.node, dataset._runs().node, given.workers, given.replicas, policy_of(given))
    print_json(told.to_dict()) if given.json else print(told)
    return FINE
