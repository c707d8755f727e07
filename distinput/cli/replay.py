# SPDX-License-Identifier: Apache-2.0
"""`distinput replay`: the batches of a step again."""

import argparse

from distinput.cli.arguments import add_json, at_least
from distinput.cli.exit_status import FINE
from distinput.cli.output import print_json
from distinput.cli.steps import add_job, on_workers
from distinput.distribute.core.values import local_results
from distinput.distribute.input.distributed_dataset import DistributedDataset
from distinput.errors import InvalidArgumentError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of `distinput replay`."""
    parser.description = (
        "Print what each replica of a job got in a step, without the job, and without the steps before it where rows can be "
        "counted. In a notebook, `distributed.replay(step)` returns it."
    )
    add_job(parser)
    parser.add_argument("--step", type=at_least(0), required=True, metavar="N", help="the step of the pass, from 0")
    parser.add_argument(
        "--replica", type=at_least(0), metavar="K", help="only its batch, numbered over all workers (default: all)"
    )
    add_json(parser)


def run(given: argparse.Namespace) -> int:
    """Replay."""

    def parts(distributed: DistributedDataset) -> tuple[object, ...]:
        replicas = distributed._source.terms.replicas.count
        return local_results(distributed.replay(given.step, epoch=given.epoch), replicas)

    found = [part for worker in on_workers(given, parts) for part in worker]
    if given.replica is not None and given.replica >= len(found):
        raise InvalidArgumentError(
            f"replay: there are {len(found)} replicas, numbered from 0, got replica {given.replica}"
        )
    chosen = range(len(found)) if given.replica is None else [given.replica]
    if given.json:
        print_json([{"replica": number, "batch": found[number]} for number in chosen])
        return FINE
    for number in chosen:
        print(f"replica {number}:\n{found[number]}")
    return FINE
