# SPDX-License-Identifier: Apache-2.0
"""Parts of a range are ranges."""

import dataclasses

from distinput.ops.range import Range
from distinput.ops.take import Skip, Take
from distinput.plan.node import Node


def part_of_range(node: Node) -> Node | None:
    """The first numbers of a range, or all but the first, are a range with another end or another start."""
    match node:
        case Take(Range() as numbers, count) if count >= 0:
            return dataclasses.replace(numbers, stop=numbers.first + min(numbers.size, int(count)) * numbers.step)
        case Skip(Range() as numbers, count) if count >= 0:
            return dataclasses.replace(numbers, first=numbers.first + min(numbers.size, int(count)) * numbers.step)
    return None
