# SPDX-License-Identifier: Apache-2.0
"""How much of its input a step needs to see."""

from enum import IntEnum

__all__ = ["Needs"]


class Needs(IntEnum):
    """How much of its input a step needs to see, to give what it would give of the whole.

    Each level includes those before it: a step that needs one element can be given any part of the data. So sharding and the
    rewrites ask for `node.needs <= Needs.PART` and the like.

    ONE: element i follows from element i of the input alone.
    EACH: each element of the input gives none, one or several elements, in order, whatever stands beside it.
    PART: a worker does with its part of the inputs what it would do with the whole; batches may end elsewhere.
    PLACES: elements depend on their places in the whole; policy FILE, as in TensorFlow, divides the files below all the same.
    ALL: all of it, in order.
    """

    ONE = 0
    EACH = 1
    PART = 2
    PLACES = 3
    ALL = 4
