# SPDX-License-Identifier: Apache-2.0
"""How values of several replicas become one."""

from enum import Enum
from typing import Any

__all__ = ["ReduceOp"]


class ReduceOp(Enum):
    """`SUM` adds the replicas' values, `MEAN` divides that sum by what was added.

    A member is also made from its name, in any case.

    Raises:
      ValueError: the name is no member's.

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
          ValueError: a text that names no member.
          TypeError: neither a member nor a text.
        """
        if isinstance(value, ReduceOp):
            return value
        if isinstance(value, str):
            return ReduceOp(value)
        raise TypeError(f"Expected `reduce_op` to be a ReduceOp ('SUM' or 'MEAN'), got {value!r}")
