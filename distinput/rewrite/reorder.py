# SPDX-License-Identifier: Apache-2.0
"""Steps that are cheaper in another order."""

from distinput.ops.take import Skip, Take
from distinput.plan.node import Node


def skip_before_take(node: Node) -> Node | None:
    """Skips go first, so that skips meet skips and takes meet takes, and become one.

    `take` does not count errors but `skip` does, so they stay if there may be errors, unless the skip goes by position.
    """
    match node:
        case Skip(Take(x, a) as taken, b) if a >= 0 and b > 0 and not (x.may_fail and x.start_at(0, 0) is None):
            return Take(Skip(x, b, origin=node.origin), max(0, a - b), origin=taken.origin)
    return None
