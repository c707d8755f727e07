# SPDX-License-Identifier: Apache-2.0
"""What a distributed dataset says of itself."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distinput.distribute.input.distributed_dataset import DistributedDataset

__all__ = ["explanation"]

_TAILS = {
    "drop": "a step that is not full is left out",
    "error": "a step that is not full is an error",
    "pad": "every part is filled up with zeros; a mask says which rows are data",
    "partial": "a step is delivered with what there is; replicas without data get no rows",
}


def explanation(dataset: "DistributedDataset") -> str:
    """The text of `DistributedDataset.explain`."""
    replicas, feed = dataset._replicas, dataset._feed
    mine = ", ".join(map(str, range(replicas.first, replicas.first + replicas.count)))
    where = f"worker {replicas.rank} of {replicas.workers}" if replicas.workers > 1 else "one worker"
    facts = {
        "replicas": f"{mine} of {replicas.total}, on {where}",
        "cut": _cut(dataset),
        "reads": _reads(dataset),
        "end": _end(dataset),
        "tail": f"{feed.tail}: {_TAILS[feed.tail]}",
    }
    lines = ["distributed:", *[f"  {name + ':':<9} {text}" for name, text in facts.items()]]
    plan = getattr(feed.sources[0], "explain", None)
    if plan is not None:
        lines += ["input of this worker:", *["  " + line for line in plan().splitlines()]]
    return "\n".join(lines)


def _cut(dataset: "DistributedDataset") -> str:
    feed = dataset._feed
    if feed.assignment is not None and feed.assignment.balanced:
        return "each global batch on its own, into parts whose sizes differ by at most one"
    if feed.assignment is not None:
        return "each global batch on its own, into equal parts, rounded up; the last ones may be short or empty"
    return "one element of the input for each replica, in turn"


def _reads(dataset: "DistributedDataset") -> str:
    if dataset._replicas.workers == 1:
        return "everything"
    if dataset._feed.own is not None:
        return "only this worker's rows of each global batch"
    if dataset._feed.is_global:
        return "all global batches, of which this worker keeps its rows: not all rows can be reached by position"
    return "this worker's part of the data"


def _end(dataset: "DistributedDataset") -> str:
    steps = dataset.num_steps
    if steps >= 0:
        return f"known beforehand: {steps} steps"
    if steps == -1:
        return "none"
    if dataset._control() is None:
        return "where the input ends"
    return "workers agree on it while they use earlier steps"
