# SPDX-License-Identifier: Apache-2.0
"""What `Dataset.explain` says: the pipeline as described, the rules that changed it, as it runs, and who reads what."""

from collections.abc import Mapping
from typing import Any

from distinput.data.stats import SHORT, Stats
from distinput.names.lazy import dataclass
from distinput.plan.node import Node, walk
from distinput.plan.options import AutoShardPolicy, Policy
from distinput.plan.text import render
from distinput.rewrite import rewrite
from distinput.sharding.planning import shard_plan
from distinput.sharding.shard_plan import ShardPlan


@dataclass(frozen=True)
class Explanation:
    """A pipeline in words.

    Attributes:
      described: the tree as the user described it, the last step first, a line each.
      rules: the names of the rules that changed it, in the order in which they did.
      runs: the tree that runs; that which was described if no rule changed it.
      notes: on steps, such as how their functions are called, and whether the latest pass waited for a function of Python.
      shards: which worker reads what, if that was asked.
    """

    described: str
    rules: tuple[str, ...]
    runs: str
    notes: tuple[str, ...]
    shards: ShardPlan | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the trees as lists of lines."""
        return {
            "described": self.described.splitlines(),
            "rules": list(self.rules),
            "runs": self.runs.splitlines(),
            "notes": list(self.notes),
            "shards": self.shards and self.shards.to_dict(),
        }

    def __str__(self) -> str:
        lines = ["described:", *_indented(self.described), f"rules: {', '.join(self.rules) or 'none'}"]
        if self.rules:
            lines += ["runs:", *_indented(self.runs)]
        if self.notes:
            lines += ["notes:", *_indented("\n".join(self.notes))]
        if self.shards is not None:
            lines += str(self.shards).splitlines()
        return "\n".join(lines)


def explanation_of(
    node: Node,
    runs: Node,
    num_workers: int | None = None,
    replicas_per_worker: int = 1,
    policy: AutoShardPolicy | Policy | None = None,
    stats: Stats | None = None,
) -> Explanation:
    """The explanation of a pipeline.

    Args:
      node: as the user described it.
      runs: as the iterations of the dataset run it, whose steps have notes.
      num_workers: as the other arguments, those of `Dataset.explain`.
      replicas_per_worker: of each worker.
      policy: how the workers share.
      stats: of the latest pass.

    >>> import distinput as di
    >>> node = di.data.Dataset.range(9).repeat(2).take(5).take(3).node
    >>> explanation_of(node, node).rules
    ('take_of_take',)
    """
    running, fired = rewrite(node)
    described = render(node)
    notes = tuple([f"{step}: {note}" for step in walk(runs) for note in step.notes])
    if stats is not None and stats.slowest.endswith((":map", ":filter")) and _work(stats[stats.slowest]) >= SHORT:
        notes += (f"latest pass: {stats.bottleneck}",)
    plan = None if num_workers is None else shard_plan(node, num_workers, replicas_per_worker, policy)
    return Explanation(described, tuple(fired), render(running) if fired else described, notes, plan)


def _work(entry: Mapping[str, Any]) -> float:
    """Seconds of a step, in the pass or on threads and in processes of its own."""
    return float(max(entry["seconds"], entry.get("worked", 0.0)))


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
