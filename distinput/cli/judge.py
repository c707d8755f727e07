# SPDX-License-Identifier: Apache-2.0
"""`distinput judge`: does a loader of any library deliver each record once, and go on where it stopped?"""

import argparse
import sys

from distinput.cli.exit_status import FINE, FOUND, USAGE
from distinput.testing.judge import command

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput judge`."""
    parser.description = (
        "Try loaders of any library in jobs of several ranks, and say which laws they keep: each record once, equal steps, "
        "the same order, a restart after every step, ranks that are killed. The exit status is 3 if a law is broken."
    )
    command.add_arguments(parser)


def run(given: argparse.Namespace) -> int:
    """Judge."""
    try:
        return FINE if command.run(given) else FOUND
    except (ImportError, ValueError) as error:
        print(f"distinput judge: {error}", file=sys.stderr)
        return USAGE
