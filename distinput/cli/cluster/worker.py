# SPDX-License-Identifier: Apache-2.0
"""`distinput worker`."""

import argparse

from distinput.cli.cluster.processes import work_as_seat
from distinput.errors import InvalidArgumentError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput worker`."""
    parser.description = (
        "Run one worker or parameter server, until its coordinator ends. With --tf-config its task and the address of the "
        "coordinator, the task chief, are read from TF_CONFIG. Needs `pip install 'distinput[dask]'`."
    )
    parser.add_argument("--tf-config", action="store_true", help="take the task and all addresses from TF_CONFIG")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask scheduler, such as tcp://host:8786")
    parser.add_argument("--name", type=_seat, metavar="NAME", help="worker-0, ps-0 and so on")
    parser.add_argument(
        "--listen", default="", metavar="HOST:PORT", help="where others reach this process (default: any port)"
    )
    parser.add_argument(
        "--wait", type=float, default=600.0, metavar="SECONDS", help="how long to look for the scheduler (default: 600)"
    )


def run(given: argparse.Namespace) -> int:
    """Be a worker or a parameter server until the coordinator ends."""
    if given.tf_config == (given.scheduler is not None) or (given.scheduler is None) != (given.name is None):
        raise InvalidArgumentError("give either --tf-config, or --scheduler and --name")
    work_as_seat(given.scheduler, given.name, given.listen, given.wait)
    return 0


def _seat(text: str) -> str:
    job, _, number = text.partition("-")
    if job not in ("worker", "ps") or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a seat such as worker-0 or ps-0, got {text}")
    return text
