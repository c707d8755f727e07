# SPDX-License-Identifier: Apache-2.0
"""The suite for a strategy."""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from distinput.distribute.core.strategy import Strategy
from distinput.testing.law import law
from distinput.testing.strategy.checkpoints import check_checkpoint
from distinput.testing.strategy.contexts import check_contexts, check_errors, check_merge_call
from distinput.testing.strategy.numbers import (
    check_all_reduce,
    check_gather,
    check_reduce,
    check_run,
    check_steps,
)
from distinput.testing.strategy.training import check_training
from distinput.testing.strategy.variables import (
    check_created_in_run,
    check_on_read,
    check_updates,
    check_variables,
)

__all__ = ["LAWS", "check_strategy"]

LAWS: Mapping[str, Callable[[Strategy], None]] = MappingProxyType(
    {
        "contexts": check_contexts,
        "run": check_run,
        "merge_call": check_merge_call,
        "all_reduce": check_all_reduce,
        "reduce": check_reduce,
        "gather": check_gather,
        "steps": check_steps,
        "variables": check_variables,
        "variables on read": check_on_read,
        "updates": check_updates,
        "created in run": check_created_in_run,
        "training": check_training,
        "checkpoint": check_checkpoint,
        "errors": check_errors,
    }
)
"""The laws of strategies by name."""


def check_strategy(strategy: Strategy, *, leave_out: Collection[str] = ()) -> tuple[str, ...]:
    """Check all laws of strategies: programs give the numbers that one machine computes, whatever the strategy is.

    With several workers every one of them must call this, as it must call everything else.

    The laws, by name:

    * contexts: scopes, `run` and merge functions are seen by `get_strategy`, `get_replica_context` and the like;
    * run, merge_call, all_reduce: every replica gets its components, can meet the others, and has its results in its place;
    * reduce, gather: sums, means and concatenations are those of all rows, also where replicas have different numbers of them;
    * steps: each step of a distributed dataset is one global batch, the short last one included;
    * variables, variables on read, updates, created in run: they hold what their aggregation says;
    * training: gradient descent gives the weights and losses of one machine;
    * checkpoint: variables and the place in the data are restored under the strategy, and under one with a single replica;
    * errors: the error of a replica is raised, and the strategy works afterwards.

    Args:
      strategy: any strategy that runs functions on its replicas at once.
      leave_out: names of laws not to check.

    Returns:
      The names of the laws that were checked.

    Raises:
      AssertionError: a law is broken; the message begins with its name.
      ValueError: an unknown name in `leave_out`.

    >>> import distinput as di
    >>> "training" in check_strategy(di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))
    True
    """
    unknown = sorted(set(leave_out) - set(LAWS))
    if unknown:
        raise ValueError(f"check_strategy: there is no law {unknown[0]!r}; known are {', '.join(LAWS)}")
    checked = tuple(name for name in LAWS if name not in leave_out)
    for name in checked:
        with law(name):
            LAWS[name](strategy)
    return checked
