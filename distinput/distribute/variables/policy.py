# SPDX-License-Identifier: Apache-2.0
"""How the copies of a variable are kept in step: when they are synchronized, and how writes of replicas are combined."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Self

import numpy as np

from distinput.distribute.core.reduction import ReduceOp
from distinput.distribute.variables.conversion import kind_of

__all__ = ["VariableAggregation", "VariablePolicy", "VariableSynchronization"]


class VariableSynchronization(Enum):
    """When the copies of a distributed variable are synchronized.

    >>> import distinput as di
    >>> di.VariableSynchronization.ON_READ.name
    'ON_READ'

    Source: `tf.VariableSynchronization`.
    """

    AUTO = 0
    """The strategy chooses; all strategies here choose ON_WRITE."""
    NONE = 1
    """Never; refused under a strategy with copies."""
    ON_WRITE = 2
    """Each write keeps the copies equal, if it is made in cross-replica context or aggregated."""
    ON_READ = 3
    """Each replica writes its own copy; a read in cross-replica context aggregates the copies."""


class VariableAggregation(Enum):
    """How values of a variable from different replicas are combined.

    >>> import distinput as di
    >>> di.VariableAggregation("MEAN") is di.VariableAggregation.MEAN
    True

    Source: `tf.VariableAggregation`.
    """

    NONE = 0
    """They are not: each replica writes its own copy."""
    SUM = 1
    """Their sum."""
    MEAN = 2
    """Their mean."""
    ONLY_FIRST_REPLICA = 3
    """The value of replica 0."""

    @classmethod
    def _missing_(cls, value: object) -> "VariableAggregation | None":
        return cls.__members__.get(value) if isinstance(value, str) else None


@dataclass(frozen=True)
class VariablePolicy:
    """The synchronization, the aggregation, and whether an optimizer should train the variable.

    Args:
      synchronization: when copies are synchronized.
      aggregation: how values of replicas are combined.
      trainable: whether it is a parameter of a model.

    >>> import distinput as di
    >>> policy = VariablePolicy.of("AUTO", di.VariableAggregation.SUM, None)
    >>> policy.trainable, policy.distributed("w", np.dtype("int32")).synchronization.name
    (True, 'ON_WRITE')
    """

    synchronization: VariableSynchronization = VariableSynchronization.AUTO
    aggregation: VariableAggregation = VariableAggregation.NONE
    trainable: bool = True

    @classmethod
    def of(cls, synchronization: Any, aggregation: Any, trainable: bool | None, name: str = "Variable") -> Self:
        """The policy of what a user gave; None means the default.

        Raises:
          ValueError: an unknown synchronization or aggregation.
        """
        when = _member(VariableSynchronization, synchronization, VariableSynchronization.AUTO, "synchronization", name)
        how = _member(VariableAggregation, aggregation, VariableAggregation.NONE, "aggregation", name)
        return cls(when, how, when is not VariableSynchronization.ON_READ if trainable is None else bool(trainable))

    def distributed(self, name: str, dtype: np.dtype[Any]) -> "VariablePolicy":
        """The policy under a strategy that keeps a copy for each replica.

        Raises:
          ValueError: synchronization is NONE, or integers would have to be averaged.
        """
        if self.synchronization is VariableSynchronization.NONE:
            raise ValueError(
                "`NONE` variable synchronization mode is not supported with tf.distribute strategy. Please change the "
                f"`synchronization` for variable: {name}"
            )
        if self.aggregation is VariableAggregation.MEAN and kind_of(dtype) != "f":
            raise ValueError(
                "creating distributed tf.Variable with aggregation=MEAN and a non-floating dtype is not supported, please "
                f"use a different aggregation or dtype (variable {name}, dtype {dtype})"
            )
        when = VariableSynchronization.ON_READ if self.on_read else VariableSynchronization.ON_WRITE
        return VariablePolicy(when, self.aggregation, self.trainable)

    @property
    def on_read(self) -> bool:
        """True if copies are combined only when they are read in cross-replica context."""
        return self.synchronization is VariableSynchronization.ON_READ

    @property
    def reduce_op(self) -> ReduceOp:
        """The reduction that combines values.

        Raises:
          ValueError: the aggregation is not a reduction.
        """
        return reduce_op_of(self.aggregation)


def reduce_op_of(aggregation: VariableAggregation) -> ReduceOp:
    """SUM or MEAN as a `ReduceOp`.

    Raises:
      ValueError: the aggregation is neither.
    """
    if aggregation is VariableAggregation.SUM:
        return ReduceOp.SUM
    if aggregation is VariableAggregation.MEAN:
        return ReduceOp.MEAN
    raise ValueError(
        f"Could not convert from `tf.VariableAggregation` {aggregation.name} to `tf.distribute.ReduceOp` type: the copies "
        "of this variable differ and have no common value; create it with aggregation=SUM, MEAN or ONLY_FIRST_REPLICA, or "
        "read the copies with `strategy.experimental_local_results`"
    )


def _member(kind: type[Any], given: Any, default: Any, what: str, name: str) -> Any:
    if given is None:
        return default
    if isinstance(given, kind):
        return given
    by_name = kind.__members__.get(given) if isinstance(given, str) else None
    found = by_name or next((member for member in kind if member.value == given), None)
    if found is None:
        raise ValueError(
            f"Invalid variable {what} mode: {given} for variable: {name}; use one of {', '.join(kind.__members__)}"
        )
    return found
