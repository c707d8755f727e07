# SPDX-License-Identifier: Apache-2.0
"""Policy AUTO: FILE where there are enough files, else DATA."""

from dataclasses import replace

from distinput.plan.node import Node
from distinput.plan.options import Decision, Policy, Share
from distinput.sharding.policies import data, file

__all__ = ["POLICY"]

_FILE = replace(file.POLICY, shard=file.by_file)
"""A single worker shards its file names, too, since states that were saved with this policy contain that step."""


def _decide(node: Node, num_workers: int) -> Decision:
    why_not = file.refusal(node, num_workers)
    if why_not is None:
        return Decision(POLICY, _FILE, "enough_files", _FILE.sentence)
    reason = "too_few_files" if isinstance(why_not, file.TooFewFilesError) else "not_files"
    short = str(why_not).split("; ")[0]
    return Decision(POLICY, data.POLICY, reason, f"{data.POLICY.sentence}; not FILE: {short}")


def _shard(node: Node, share: Share) -> Node:
    return _decide(node, share.num_workers).applied.shard(node, share)


POLICY = Policy("AUTO", "FILE where there are enough files, else DATA", _shard, _decide)
