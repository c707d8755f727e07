# SPDX-License-Identifier: Apache-2.0
"""Where the copies of a variable are."""

from _thread import allocate_lock
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from distinput.distribute.variables.updates import UPDATES

__all__ = ["HostStore", "Store", "plain", "shown"]


class Store(Protocol):
    """The copies of one variable. It knows nothing of contexts, aggregation or strategies."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of every copy."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first copy."""

    @property
    def copies(self) -> int:
        """How many copies this process can reach."""

    def read(self, copy: int) -> Any:
        """The value of a copy: an array that the caller must not modify and that later writes do not change."""

    def update(self, copy: int, kind: str, *args: Any) -> Any:
        """Change a copy as `UPDATES[kind]` says, while no other update of this copy runs; return its new value.

        Args:
          copy: the copy, from 0.
          kind: a key of `UPDATES`.
          args: its arguments. They must not be modified afterwards.
        """

    def device(self, copy: int) -> str:
        """The name of the device that a copy is on."""


class HostStore:
    """Copies in the memory of this process, each a read-only array with a lock for writers.

    A write replaces the array, so readers need no lock and a value that was read never changes.

    Args:
      value: the first value of all copies; it must not be modified afterwards.
      devices: the name of the device of each copy.
      to_host: makes of what replicas read a NumPy array; None if it is one.
      value_on: makes of a value and the number of a copy what replicas read, such as a tensor; None for the value itself.

    >>> store = HostStore(np.zeros(2), ["CPU:0", "CPU:1"])
    >>> store.update(1, "assign_add", np.ones(2)), store.read(0)
    (array([1., 1.]), array([0., 0.]))
    """

    __slots__ = ("_devices", "_locks", "_shown", "_value_on", "_values", "dtype", "to_host")

    def __init__(
        self,
        value: Any,
        devices: Sequence[str],
        to_host: Callable[[Any], Any] | None = None,
        value_on: Callable[[Any, int], Any] | None = None,
    ) -> None:
        first = np.asarray(value)
        self.dtype = first.dtype
        self._devices = tuple(devices)
        self.to_host, self._value_on = to_host, value_on
        self._shown: list[tuple[Any, Any]] = [(None, None)] * len(self._devices)
        # Copies share memory, but are different objects: replicas that return their copies return different values.
        self._values = [_sealed(first.view()) for _ in self._devices]
        self._locks = [allocate_lock() for _ in self._devices]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first copy."""
        shape: tuple[int, ...] = self._values[0].shape
        return shape

    @property
    def copies(self) -> int:
        """How many copies there are."""
        return len(self._values)

    def read(self, copy: int) -> Any:
        """The value of a copy, a read-only array."""
        return self._values[copy]

    def shown(self, copy: int) -> Any:
        """The value of a copy as replicas read it."""
        value = self._values[copy]
        if self._value_on is None:
            return plain(value)
        of, made = self._shown[copy]
        if of is not value:  # it was written since
            made = self._value_on(value, copy)
            self._shown[copy] = value, made
        return made

    def update(self, copy: int, kind: str, *args: Any) -> Any:
        """Change a copy; see `Store.update`."""
        change = UPDATES[kind]
        with self._locks[copy]:
            made = change(self._values[copy], *args)
            if type(made) is not np.ndarray or made.dtype != self.dtype:
                made = self._on_host(made)  # arithmetic of arrays without axes gives scalars
            elif kind == "assign":
                made = made.view()
            made.flags.writeable = False
            self._values[copy] = made
        return made

    def device(self, copy: int) -> str:
        """The name of the device that a copy is on."""
        return self._devices[copy]

    def _on_host(self, value: Any) -> Any:
        """An array of this process, in memory that nobody else writes to."""
        try:
            made = np.asarray(value, self.dtype)
        except TypeError as error:  # JAX's while it traces: there is no value yet
            raise TypeError(
                f"a variable in host memory cannot take a {type(value).__name__}, which has no value while a function is "
                "compiled; return the value and assign it outside, or use TPUStrategy, whose `run` compiles"
            ) from error
        return made if made.flags.writeable else made.copy()

    def __reduce__(self) -> Any:
        raise TypeError(
            "a variable cannot be pickled, since its copies belong to this process; send `v.numpy()`, or save it in a "
            "checkpoint"
        )


def _sealed(array: Any) -> Any:
    array.flags.writeable = False
    return array


def shown(store: Store, copy: int) -> Any:
    """The value of a copy as programs read it; a scalar in the place of a NumPy array without axes."""
    own = getattr(store, "shown", None)
    return plain(store.read(copy)) if own is None else own(copy)


def plain(value: Any) -> Any:
    """A scalar in the place of a NumPy array without axes."""
    return value[()] if type(value) is np.ndarray and not value.ndim else value
