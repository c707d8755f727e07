# SPDX-License-Identifier: Apache-2.0
"""`distinput demo`: the library at work on real files, with every promise checked on the way."""

import argparse
import json
from pathlib import Path

from distinput.cli.arguments import at_least, directory
from distinput.cli.commands import FAILED, FINE
from distinput.cli.demo.demo import ids_after, run_demo
from distinput.cli.demo.multi_worker import ENGINES, run_multi_worker_demo
from distinput.cli.demo.program import work
from distinput.errors import DataLossError

__all__ = ["demo_arguments", "demo_command"]


def demo_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput demo`."""
    parser.description = (
        "Write 1,797 hand-written digits as TFRecord and Parquet files, train a classifier on several replicas, evaluate it, "
        "stop and resume in a new process, and check on the way that no record is lost or repeated. The exit status is 0 "
        "when all checks passed. With --workers the same is trained by several processes, one of which is killed half way; "
        "the others go on without it."
    )
    parser.add_argument(
        "--replicas", type=at_least(1), default=4, metavar="N", help="replicas in this process (default: 4)"
    )
    text = "train on so many processes, kill one half way, and go on with the rest"
    parser.add_argument("--workers", type=at_least(2, ", so that one can be killed"), metavar="N", help=text)
    parser.add_argument(
        "--engine",
        choices=sorted(ENGINES),
        default="torch",
        help="through which the processes of --workers speak; `pip install 'distinput[ENGINE]'` (default: torch)",
    )
    parser.add_argument("--epochs", type=at_least(1), metavar="N", help="passes over the training data (default: 15)")
    text = "keep the files here; those of an earlier demo are read again (default: a temporary directory)"
    parser.add_argument("--directory", type=directory, metavar="DIR", help=text)
    parser.add_argument("--quick", action="store_true", help="3 epochs, and shorter measurements")
    text = "only print the ids that follow a saved state (the demo's new process)"
    parser.add_argument("--resume", type=Path, metavar="STATE", help=text)
    parser.add_argument(
        "--job", type=Path, metavar="FILE", help="be one of the workers of this job (the demo's own processes)"
    )


def demo_command(given: argparse.Namespace) -> int:
    """Run the demo, or the part of it that a process of its own was started for."""
    if given.resume is not None:
        print(json.dumps(ids_after(given.resume)))
        return FINE
    if given.job is not None:
        work(given.job)
        return FINE
    epochs = given.epochs or (3 if given.quick else 15)
    try:
        if given.workers is not None:
            return FINE if run_multi_worker_demo(given.workers, given.engine, epochs, given.directory) else FAILED
        return FINE if run_demo(given.replicas, epochs, given.directory, quick=given.quick) else FAILED
    except DataLossError as error:
        if given.directory is not None:
            error.add_note(f"remove the demo's files from {given.directory} to have them written anew")
        raise
