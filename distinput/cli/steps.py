# SPDX-License-Identifier: Apache-2.0
"""Steps of a job, for the commands that look at one: which dataset, cut for how many workers and replicas."""

import argparse
from collections.abc import Callable
from typing import Any, TypeVar

from distinput.cli.arguments import at_least
from distinput.cli.loading import add_dataset, load, user_code
from distinput.data.dataset import Dataset
from distinput.distribute.input.distributed_dataset import DistributedDataset
from distinput.distribute.rehearsal import rehearse
from distinput.errors import DistinputError, InvalidArgumentError

__all__ = ["add_job", "on_workers"]

T = TypeVar("T")


def add_job(parser: argparse.ArgumentParser) -> None:
    """Let a command take a dataset, the job that it was distributed for, and a pass."""
    add_dataset(parser)
    parser.add_argument("--workers", type=at_least(1), metavar="W", help="of the job (default: 1)")
    parser.add_argument("--replicas", type=at_least(1), metavar="R", help="of each worker (default: 1)")
    parser.add_argument(
        "--epoch", type=at_least(0), default=0, metavar="N", help="the pass over the dataset, from 0 (default: 0)"
    )


def on_workers(given: argparse.Namespace, body: Callable[[DistributedDataset], T]) -> list[T]:
    """Ask every worker of the job something.

    Args:
      given: the words of the command line.
      body: what is asked.

    Returns:
      The answers, worker by worker.

    Raises:
      InvalidArgumentError: what is named is no dataset; there is no such step, replica, file or worker.
    """
    dataset: Any = load(given.dataset)
    cut = isinstance(dataset, DistributedDataset)
    if not cut and not isinstance(dataset, Dataset):
        raise InvalidArgumentError(
            f"{given.dataset}: it must be a Dataset or a DistributedDataset, or a function that returns one, "
            f"got {type(dataset).__name__}"
        )
    if cut and (given.workers, given.replicas) != (None, None):
        raise InvalidArgumentError(
            f"{given.dataset} is distributed already, as its strategy has it: leave out --workers and --replicas, or name the "
            "dataset that was distributed"
        )
    with user_code(given.dataset):
        try:
            return (
                [body(dataset)]
                if cut
                else rehearse(dataset, given.workers or 1, given.replicas or 1, lambda d, _: body(d))
            )
        except DistinputError:
            raise
        except (IndexError, ValueError) as error:
            raise InvalidArgumentError(f"{given.dataset}: {error}") from error
