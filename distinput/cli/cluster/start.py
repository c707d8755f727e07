# SPDX-License-Identifier: Apache-2.0
"""`distinput cluster start`."""

import argparse

from distinput.cli.arguments import at_least
from distinput.cli.cluster.processes import start_cluster

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput cluster`."""
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    start = actions.add_parser(
        "start",
        help="start them, and end them all with Ctrl-C",
        description="Start a scheduler, workers and parameter servers on this machine, as processes that end with this one. "
        "A process that ends is started again. The address that is printed is what the coordinator needs: "
        "DaskClusterResolver(address). Needs `pip install 'distinput[dask]'`.",
    )
    start.add_argument("--workers", type=at_least(1), default=2, metavar="N", help="workers (default: 2)")
    start.add_argument("--ps", type=at_least(1), default=1, metavar="N", help="parameter servers (default: 1)")
    start.add_argument(
        "--address",
        default="127.0.0.1:8786",
        metavar="HOST:PORT",
        help="where the scheduler listens; port 0 for any (default: 127.0.0.1:8786)",
    )

    start.add_argument(
        "--tls",
        action="store_true",
        help="encrypt all connections, and let in only who has the certificates that are made for this cluster; needs the "
        "package cryptography. Certificates that Dask's configuration names are taken without this",
    )


def run(given: argparse.Namespace) -> int:
    """Start the cluster and wait for its end."""
    start_cluster(given.workers, given.ps, given.address, tls=given.tls)
    return 0
