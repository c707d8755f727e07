# SPDX-License-Identifier: Apache-2.0
"""Variables with a copy for each replica."""

import weakref
from typing import Any, NoReturn, Self

import numpy as np

from distinput.core.shape import TensorShape
from distinput.distribute.modes import Mode, modes
from distinput.distribute.values import DistributedValues
from distinput.distribute.variables.policy import VariableAggregation, VariablePolicy
from distinput.distribute.variables.resource_variable import ResourceVariable
from distinput.distribute.variables.store import Store, shown
from distinput.distribute.variables.variable import Variable

__all__ = ["DistributedVariable", "MirroredVariable", "SyncOnReadVariable", "current_mode", "own_value"]


def current_mode(variable: Variable) -> Mode | None:
    """The mode of the running code, which must be one of the variable's strategy; None outside of all scopes.

    Raises:
      RuntimeError: another strategy is current.
    """
    stack = modes.stack
    if not stack:
        return None
    mode = stack[-1]
    if mode.strategy is not variable._strategy:
        _mixed(variable, mode.strategy)
    return mode


def _mixed(variable: Variable, current: Any) -> NoReturn:
    raise RuntimeError(
        f"Mixing different tf.distribute.Strategy objects: variable {variable.name} of {variable._strategy!r} was used while "
        f"{current!r} is current; leave the scope of the one before using the other"
    )


def own_value(value: Any) -> Any:
    """The value that the running code sees of a variable; anything else stays what it is."""
    return value.value() if isinstance(value, Variable) else value


class DistributedVariable(Variable, DistributedValues):
    """A variable with a copy for each replica of this process; `values` are the copies, variables themselves.

    Strategies make it; the name is for `isinstance`.

    >>> import distinput as di
    >>> with di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    ...     v = di.Variable(1.0)
    >>> isinstance(v, di.distribute.DistributedVariable), isinstance(v, di.distribute.DistributedValues)
    (True, True)

    Source: the distributed variables of `tf.distribute`.
    """

    passed_whole = True
    values: tuple[ResourceVariable, ...]

    def __init__(self, strategy: Any, store: Store, policy: VariablePolicy, name: str, shape: TensorShape) -> None:
        self._strategy, self._store, self._policy, self._name, self._shape = strategy, store, policy, name, shape
        container = weakref.ref(self)
        self.values = tuple(
            [
                ResourceVariable(store, i, policy, f"{name}/replica_{i}" if i else name, shape, strategy, container)
                for i in range(store.copies)
            ]
        )

    __repr__ = DistributedValues.__repr__

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        first, *others = [np.array(self._store.read(copy)) for copy in range(self._store.copies)]
        store = self._strategy._open_store(first, self._policy, self._name)
        for copy, value in enumerate(others, start=1):
            store.update(copy, "assign", value)
        made = type(self)(self._strategy, store, self._policy, self._name, self._shape)
        made._constraint = self._constraint
        memo[id(self)] = made
        return made

    def _parts(self) -> tuple[Variable, ...]:
        return self.values

    def _copy_here(self) -> int | None:
        """The copy that belongs to the running code; None in cross-replica context and outside."""
        stack = modes.stack
        if not stack:
            return None
        mode = stack[-1]
        if mode.strategy is not self._strategy:
            _mixed(self, mode.strategy)
        own: int | None = mode.copy if mode.replica is None else mode.replica._local
        return own


class MirroredVariable(DistributedVariable):
    """A variable whose copies are kept equal, unless replicas write their own without aggregation."""

    mirrored = True

    def _here(self) -> Any:
        return shown(self._store, self._copy_here() or 0)

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        if kind in _ROW_BY_ROW and self._policy.aggregation in _REDUCED:
            raise NotImplementedError(
                f"{kind} is only supported for mirrored variable (variable created within certain `tf.distribute.Strategy` "
                f"scope) with NONE or `ONLY_FIRST_REPLICA` aggregation, got: {self._policy.aggregation}."
            )
        copy = self._copy_here()
        if copy is None:
            self._write_copies(kind, value, key)
            return self
        context = modes.stack[-1].replica
        if context is not None and self._policy.aggregation is not VariableAggregation.NONE:
            value = context._aggregate(self._policy.aggregation, own_value(value))
        self._write_copy(copy, kind, value, key)
        return self.values[copy]


_REDUCED = (VariableAggregation.SUM, VariableAggregation.MEAN)
_ROW_BY_ROW = (
    "scatter_max",
    "scatter_min",
    "scatter_nd_max",
    "scatter_nd_min",
    "scatter_nd_update",
    "scatter_update",
)
"""Writes of rows for which a sum or mean of the replicas' rows means nothing."""


class SyncOnReadVariable(DistributedVariable):
    """A variable whose copies are written by their replicas and aggregated when they are read in cross-replica context."""

    def _here(self) -> Any:
        copy = self._copy_here()
        return self._together() if copy is None else shown(self._store, copy)

    def _together(self) -> Any:
        """The aggregate of all copies; for ONLY_FIRST_REPLICA this worker's first, so that one worker may read alone."""
        if self._policy.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return shown(self._store, 0)
        parts = [self._store.read(copy) for copy in range(self._store.copies)]
        what = f"read of variable {self._name}"
        return self._strategy._arithmetic.reduce(self._policy.reduce_op, parts, None, call=what)

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        if kind.startswith("scatter"):
            raise NotImplementedError(
                f"{kind}: is not defined for variables with synchronization ON_READ; use assign, or synchronization ON_WRITE"
            )
        copy = self._copy_here()
        if copy is not None:
            self._write_copy(copy, kind, value, key)
            return self.values[copy]
        if self._policy.aggregation is VariableAggregation.SUM:
            if kind != "assign":
                raise ValueError(
                    f"{type(self).__name__} does not support `{kind}` in cross-replica context when aggregation is set to "
                    "`tf.VariableAggregation.SUM`."
                )
            value = self._share(value)
        self._write_copies(kind, value, key)
        if self._policy.aggregation is VariableAggregation.NONE:
            self._together()  # what the write returns is the aggregate, which does not exist
        return self

    def _share(self, value: Any) -> Any:
        """An equal share of the value for each replica, so that their sum is the value."""
        value = own_value(value)
        array = value if hasattr(value, "at") else np.asarray(value)
        return (array / self._strategy.num_replicas_in_sync).astype(self._store.dtype)

    def _saved(self) -> Any:
        return np.asarray(self._together())

    def _restored(self, array: Any) -> None:
        share = self._share(array) if self._policy.aggregation is VariableAggregation.SUM else array
        self._write_copies("assign", share)
