# SPDX-License-Identifier: Apache-2.0
"""Variables with one value for several replicas."""

from typing import Any, Self

from distinput.core.shape import TensorShape
from distinput.distribute.variables.distributed_variable import current_mode, own_value
from distinput.distribute.variables.policy import VariableAggregation, VariablePolicy
from distinput.distribute.variables.resource_variable import ResourceVariable
from distinput.distribute.variables.store import Store, shown
from distinput.distribute.variables.variable import Variable

__all__ = ["AggregatingVariable"]


class AggregatingVariable(Variable):
    """One value for all replicas, which combine what they write; `CentralStorageStrategy` makes such variables."""

    def __init__(self, strategy: Any, store: Store, policy: VariablePolicy, name: str, shape: TensorShape) -> None:
        self._strategy, self._store, self._policy, self._name, self._shape = strategy, store, policy, name, shape
        self._single = ResourceVariable(store, 0, policy, name, shape, strategy)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        store = self._strategy._open_store(self.numpy(), self._policy, self._name)
        made = type(self)(self._strategy, store, self._policy, self._name, self._shape)
        made._constraint = self._constraint
        memo[id(self)] = made
        return made

    def _parts(self) -> tuple[Variable, ...]:
        return (self._single,)

    def _here(self) -> Any:
        current_mode(self)
        return shown(self._store, 0)

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        mode = current_mode(self)
        if mode is None or mode.replica is None:
            self._write_copy(0, kind, value, key)
            return self
        if self._policy.aggregation is VariableAggregation.NONE:
            raise ValueError(_AGGREGATION_MISSING.format(type(self).__name__))

        def apply(total: Any) -> None:
            self._write_copy(0, kind, total, key)

        mode.replica._aggregate(self._policy.aggregation, own_value(value), apply)
        return self


_AGGREGATION_MISSING = (
    "You must specify an aggregation method to update a {0} in Replica Context. You can do so by passing an explicit value "
    "for argument `aggregation` to tf.Variable(..), e.g. `tf.Variable(..., aggregation=tf.VariableAggregation.SUM)`: all "
    "replicas share the one value, so what they write must be combined. Or update the {0} in cross-replica context, with "
    "`tf.distribute.get_replica_context().merge_call(merge_fn, ..)`."
)
