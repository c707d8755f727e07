# SPDX-License-Identifier: Apache-2.0
"""How the values of several replicas are reduced to one."""

from enum import Enum
from typing import Any

__all__ = ["ReduceOp"]


class ReduceOp(Enum):
    """`SUM` adds the values of the replicas; `MEAN` divides the sum by the number of values added.

    `ReduceOp(name)` finds a member by its name, in upper or lower case.

    Raises:
      ValueError: no member has that name.

    >>> import distinput as di
    >>> di.distribute.ReduceOp("mean")
    <ReduceOp.MEAN: 'MEAN'>

    Source: `tf.distribute.ReduceOp`.
    """

    SUM = "SUM"
    MEAN = "MEAN"

    @classmethod
    def _missing_(cls, value: object) -> "ReduceOp | None":
        if isinstance(value, str):
            return cls.__members__.get(value.upper())
        return None

    @staticmethod
    def of(value: Any) -> "ReduceOp":
        """The member that a caller's `reduce_op` argument means.

        Raises:
          ValueError: a string that names no member.
          TypeError: neither a member nor a string.
        """
        if isinstance(value, ReduceOp):
            return value
        if isinstance(value, str):
            return ReduceOp(value)
        raise TypeError(f"Expected `reduce_op` to be a ReduceOp ('SUM' or 'MEAN'), got {value!r}")
