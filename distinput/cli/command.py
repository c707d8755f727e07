# SPDX-License-Identifier: Apache-2.0
"""The command line: arguments, error messages and exit status."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import distinput as di
from distinput.cli.demo import run_demo
from distinput.cli.job import ENGINES
from distinput.cli.multi_worker import run_multi_worker_demo
from distinput.cli.resume import ids_after
from distinput.cli.worker import work

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `distinput`.

    Args:
      arguments: the words after the command's name; None takes those of this process.

    Returns:
      The exit status: 0 when all went well, 1 when something failed, 130 when it was interrupted.
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return 0
    try:
        if given.resume is not None:
            print(json.dumps(ids_after(given.resume)))
            return 0
        if given.job is not None:
            work(given.job)
            return 0
        epochs = given.epochs or (3 if given.quick else 15)
        if given.workers is not None:
            return 0 if run_multi_worker_demo(given.workers, given.engine, epochs, given.directory) else 1
        return 0 if run_demo(given.replicas, epochs, given.directory, quick=given.quick) else 1
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (di.errors.DistinputError, OSError) as error:
        _explain_failure(error, given.directory)
        return 1
    except KeyboardInterrupt:
        print("\ndistinput: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="distinput", description="Input pipelines and exact data distribution over replicas."
    )
    parser.add_argument("--version", action="version", version=f"distinput {di.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    demo = commands.add_parser(
        "demo",
        help="train and evaluate on real files, and check every promise on the way",
        description="Write 1,797 hand-written digits as TFRecord and Parquet files, train a classifier on several replicas, "
        "evaluate it, stop and resume in a new process, and check on the way that no record is lost or repeated. The exit "
        "status is 0 when all checks passed. With --workers the same is trained by several processes, one of which is killed "
        "half way; the others go on without it.",
    )
    demo.add_argument(
        "--replicas", type=_positive, default=4, metavar="N", help="replicas in this process (default: 4)"
    )
    demo.add_argument(
        "--workers",
        type=_several,
        metavar="N",
        help="train on so many processes, kill one half way, and go on with the rest",
    )
    demo.add_argument(
        "--engine",
        choices=sorted(ENGINES),
        default="torch",
        help="through which the processes of --workers speak; `pip install 'distinput[ENGINE]'` (default: torch)",
    )
    demo.add_argument("--epochs", type=_positive, metavar="N", help="passes over the training data (default: 15)")
    demo.add_argument(
        "--directory",
        type=_directory,
        metavar="DIR",
        help="keep the files here; those of an earlier demo are read again (default: a temporary directory)",
    )
    demo.add_argument("--quick", action="store_true", help="3 epochs, and shorter measurements")
    demo.add_argument(
        "--resume",
        type=Path,
        metavar="STATE",
        help="only print the ids that follow a saved state (the demo's new process)",
    )
    demo.add_argument(
        "--job", type=Path, metavar="FILE", help="be one of the workers of this job (the demo's own processes)"
    )
    return parser


def _several(text: str) -> int:
    number = int(text)
    if number < 2:
        raise argparse.ArgumentTypeError(f"must be at least 2, so that one can be killed, got {number}")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _directory(text: str) -> Path:
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(f"must be a directory, but {text} is a file")
    return path


def _explain_failure(error: Exception, directory: Path | None) -> None:
    sys.stdout.flush()
    print(f"\ndistinput demo failed: {type(error).__name__}: {error}", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        print(f"  {note}", file=sys.stderr)
    if directory is not None and isinstance(error, di.errors.DataLossError):
        print(f"  remove the demo's files from {directory} to have them written anew", file=sys.stderr)
