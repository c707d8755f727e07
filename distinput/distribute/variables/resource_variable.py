# SPDX-License-Identifier: Apache-2.0
"""Variables with one value."""

from collections.abc import Callable
from typing import Any

import numpy as np

from distinput.core.shape import TensorShape
from distinput.distribute.modes import modes
from distinput.distribute.variables.policy import VariablePolicy
from distinput.distribute.variables.store import HostStore, Store, plain, shown
from distinput.distribute.variables.variable import Variable

__all__ = ["ResourceVariable"]


class ResourceVariable(Variable):
    """One value; also one copy of a distributed variable.

    Args:
      store: where the value is.
      copy: which copy of the store it is.
      policy: what was asked for; a single value needs none.
      name: the name.
      shape: the shape, None for sizes that may change.
      strategy: the strategy under which it was created.
      container: a weak reference to the distributed variable that it is a copy of.
    """

    def __init__(
        self,
        store: Store,
        copy: int,
        policy: VariablePolicy,
        name: str,
        shape: TensorShape,
        strategy: Any,
        container: Callable[[], Any] | None = None,
    ) -> None:
        self._store, self._copy, self._policy, self._name = store, copy, policy, name
        self._shape, self._strategy, self._container = shape, strategy, container

    @property
    def device(self) -> str:
        """The device that the value is on."""
        return self._store.device(self._copy)

    def __deepcopy__(self, memo: dict[int, Any]) -> "ResourceVariable":
        if self._container is None:
            store = self._strategy._open_store(self.numpy(), self._policy, self._name)
        else:
            store = HostStore(self.numpy(), [self.device])
        made = ResourceVariable(store, 0, self._policy, self._name, self._shape, self._strategy)
        made._constraint = self._constraint
        memo[id(self)] = made
        return made

    def count_up_to(self, limit: int) -> Any:
        """Add 1 and return the value before; see `Variable.count_up_to`."""
        self._check_current()
        made = self._store.update(self._copy, "count_up_to", *self._prepared("count_up_to", limit, None))
        return (self._here() if made is None else plain(made)) - 1

    def _here(self) -> Any:
        stack = modes.stack
        if stack and stack[-1].strategy is not self._strategy:
            return plain(stack[-1].strategy._read_other(self._store, self._copy))
        return shown(self._store, self._copy)

    def _rows(self, what: str, indices: Any) -> Any:
        read_rows = getattr(self._store, "read_rows", None)
        if read_rows is None or (modes.stack and modes.stack[-1].strategy is not self._strategy):
            return super()._rows(what, indices)
        return read_rows(what, indices)  # without the others, which are elsewhere

    def _write(self, kind: str, value: Any, key: Any = None) -> Any:
        self._check_current()
        self._write_copy(self._copy, kind, value, key)
        return self

    def _check_current(self) -> None:
        """Ask the current strategy, if it is another one, whether its replicas may write to this variable."""
        stack = modes.stack
        if stack and stack[-1].strategy is not self._strategy:
            stack[-1].strategy._check_write_other(self.name)

    def _saved(self) -> Any:
        return np.asarray(self._store.read(self._copy))

    def _restored(self, array: Any) -> None:
        self._write_copy(self._copy, "assign", array)
