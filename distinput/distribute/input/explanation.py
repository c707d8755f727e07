# SPDX-License-Identifier: Apache-2.0
"""The text of `DistributedDataset.explain`."""

from distinput.distribute.input.source import StepSource
from distinput.distribute.input.terms import INFINITE

__all__ = ["explanation"]

_TAILS = {
    "drop": "a step that is not full is left out",
    "error": "a step that is not full is an error",
    "pad": "every part is filled up with zeros; a mask says which rows are data",
    "partial": "a step is delivered with what there is; replicas without data get no rows",
}


def explanation(source: StepSource) -> str:
    """The text of `DistributedDataset.explain`."""
    replicas, tail = source.terms.replicas, source.terms.tail
    mine = ", ".join(map(str, range(replicas.first, replicas.first + replicas.count)))
    where = f"worker {replicas.rank} of {replicas.workers}" if replicas.workers > 1 else "one worker"
    facts = {
        "replicas": f"{mine} of {replicas.total}, on {where}",
        "cut": source.cut,
        "reads": source.reads if replicas.workers > 1 else "everything",
        "end": _end(source),
        "tail": f"{tail}: {_TAILS[tail]}",
    }
    lines = ["distributed:", *[f"  {name + ':':<9} {text}" for name, text in facts.items()]]
    if source.plan is not None:
        lines += ["input of this worker:", *["  " + line for line in source.plan.splitlines()]]
    return "\n".join(lines)


def _end(source: StepSource) -> str:
    steps = source.num_steps
    if steps >= 0:
        return f"known beforehand: {steps} steps"
    if steps == INFINITE:
        return "none"
    if source.agrees:
        return "workers agree on it while they use earlier steps"
    return "where the input ends"
