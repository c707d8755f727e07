# SPDX-License-Identifier: Apache-2.0
"""A variable of which every worker has one of its own."""

from collections.abc import Callable
from typing import Any

import numpy as np

from distinput.core.shape import TensorShape
from distinput.distribute.coordinator.current_worker import own_value
from distinput.distribute.coordinator.per_worker import PerWorkerValues
from distinput.distribute.variables.policy import VariablePolicy
from distinput.distribute.variables.store import HostStore
from distinput.distribute.variables.variable import Variable

__all__ = ["OwnStore", "PerWorkerVariable"]


class OwnStore(HostStore):
    """A worker's own value. Sent to the coordinator, it arrives as its value."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return np.asarray, (self.read(0),)


class PerWorkerVariable(Variable):
    """A variable of which every worker has one of its own; `ParameterServerStrategy.per_worker_variable` makes it.

    Inside a scheduled function it is the worker's own, elsewhere the coordinator's. Nothing keeps them equal. When a worker
    is lost, its value is lost; a new one starts with the initial value.

    Args:
      store: the coordinator's own value.
      values: the workers' values.
      key: their number.
      policy: what the user asked for.
      name: the name.
      strategy: the strategy that it belongs to.

    Source: the `per_worker_variable` of `tf.distribute.ParameterServerStrategy`.
    """

    _values: PerWorkerValues | None
    _own: HostStore | None

    def __init__(
        self,
        store: HostStore | None,
        values: PerWorkerValues | None,
        key: int,
        policy: VariablePolicy,
        name: str,
        strategy: Any,
        facts: tuple[np.dtype[Any], tuple[int, ...]],
    ) -> None:
        self._own, self._values, self._key = store, values, key
        self._policy, self._name, self._strategy, self._facts = policy, name, strategy, facts
        self._shape = TensorShape(facts[1])

    @property
    def _store(self) -> HostStore:  # type: ignore[override]  # which one it is depends on the thread
        store = own_value(self._key)
        if store is None:
            store = self._own
        if store is None:
            raise RuntimeError(f"{self._name}: a per-worker variable is used inside scheduled functions")
        assert isinstance(store, HostStore)
        return store

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._facts[0]

    def read_all(self) -> list[Any]:
        """The values of all workers, in their order; waits for values that are still being made.

        Raises:
          RuntimeError: called at a worker.
        """
        if self._values is None:
            raise RuntimeError(f"{self._name}: read_all is called on the coordinator")
        found = [value.get() for value in self._values._values]
        return [np.array(value.read(0) if isinstance(value, HostStore) else value)[()] for value in found]

    def _here(self) -> Any:
        return self._store.read(0)[()]

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        self._write_copy(0, kind, value, key)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return PerWorkerVariable, (None, None, self._key, self._policy, self._name, self._strategy, self._facts)


class MakeOwn:
    """Makes a worker's own value, there.

    Args:
      make_value: makes the initial value.
    """

    def __init__(self, make_value: Callable[[], Any]) -> None:
        self.make_value = make_value

    def __call__(self) -> OwnStore:
        """The value."""
        return OwnStore(self.make_value(), ["/device:CPU:0"])
