# SPDX-License-Identifier: Apache-2.0
"""Policy OFF: every worker reads everything."""

from distinput.plan.node import Node
from distinput.plan.options import Policy, Share

__all__ = ["POLICY"]


def _everything(node: Node, _: Share) -> Node:
    return node


POLICY = Policy("OFF", "every worker reads and delivers everything", _everything, divides=False, reads_everything=True)
