# SPDX-License-Identifier: Apache-2.0
"""How much of its input a step needs to see."""

from enum import IntEnum

__all__ = ["Needs"]


class Needs(IntEnum):
    """How much of its input a step needs to see, so that workers together give what one worker would give.

    The levels are ordered: what works for a step that needs more also works for one that needs less. Sharding and rewrites
    compare them, as in `node.needs <= Needs.PART`.

    ONE: element i depends on element i of the input alone.
    EACH: each element of the input gives none, one or several elements, in order, whatever the others are.
    PART: a worker treats its part of the inputs as it would treat the whole; batches may end elsewhere.
    PLACES: elements depend on positions in the whole. Policy FILE divides the files below it all the same, as TensorFlow does.
    ALL: the whole input, in order.
    """

    ONE = 0
    EACH = 1
    PART = 2
    PLACES = 3
    ALL = 4
