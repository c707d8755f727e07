# SPDX-License-Identifier: Apache-2.0
"""Where the copies of a variable are, and the table of what changes them: each a pure function of the old value."""

from _thread import allocate_lock
from collections.abc import Callable, Sequence
from operator import setitem
from typing import Any, NoReturn, Protocol

import numpy as np

from distinput.errors import InvalidArgumentError, OutOfRangeError

# ---- What writes do to a value: pure functions from the old value and the arguments to the new value
#
# The same table is used for copies in this process, on servers and in compiled runs. NumPy arrays are copied and written to;
# arrays with an `at` property, JAX's, are updated through it. Indices are checked where they are known, so not while a
# function is traced. Arguments of `assign` become the value, so they belong to the store from then on.


def _assign_add(value: Any, delta: Any) -> Any:
    _same_shape(value, delta, "assign_add")
    return value + delta


def _assign_sub(value: Any, delta: Any) -> Any:
    _same_shape(value, delta, "assign_sub")
    return value - delta


def _same_shape(value: Any, delta: Any, kind: str) -> None:
    _numeric(value, kind)
    if value.shape != delta.shape:
        raise InvalidArgumentError(
            f"{kind}: Cannot update variable with shape {list(value.shape)} using a Tensor with shape "
            f"{list(delta.shape)}, shapes must be equal."
        )


def _numeric(value: Any, kind: str) -> None:
    if value.dtype.kind in "bOSU":
        name = "bool" if value.dtype.kind == "b" else "string"
        raise InvalidArgumentError(f"{kind}: is not defined for variables of dtype {name}; use assign")


def _count_up_to(value: Any, limit: Any) -> Any:
    _numeric(value, "count_up_to")
    if not hasattr(value, "at") and value >= limit:
        raise OutOfRangeError(f"count_up_to: Reached limit of {limit}")
    return value + np.asarray(1, value.dtype)


def _slice_assign(value: Any, key: Any, new: Any) -> Any:
    if hasattr(value, "at"):
        return value.at[key].set(new)
    made = value.copy()
    made[key] = new
    return made


_IN_PLACE: dict[str, tuple[Callable[..., Any], str]] = {
    "add": (np.add.at, "add"),
    "div": (np.divide.at, "divide"),
    "max": (np.maximum.at, "max"),
    "min": (np.minimum.at, "min"),
    "mul": (np.multiply.at, "multiply"),
    "sub": (np.subtract.at, "add"),
    "update": (setitem, "set"),
}


def _scatter(name: str, nd: bool) -> Callable[[Any, Any, Any], Any]:
    """Rows at places of the first axis: value [n, ...], indices [...], updates [..., ...], or a scalar.

    With `nd`, parts at places given by vectors: value [a, b, c], indices [..., 2], updates [..., c].
    """
    kind = f"scatter_{'nd_' * nd}{name}"

    def scatter(value: Any, indices: Any, updates: Any) -> Any:
        if name != "update":
            _numeric(value, kind)
        if not value.ndim:
            raise InvalidArgumentError(f"{kind}: the variable must have at least one axis, got a scalar")
        where = places_of(kind, indices, value) if nd else (indices,)
        if not nd:
            check_within(kind, indices, value.shape[0])
        want = (*indices.shape[: indices.ndim - nd], *value.shape[len(where) :])
        if tuple(updates.shape) != want and (nd or updates.shape):
            scalar = "" if nd else ", the shape of indices and that of a row, or be a scalar"
            raise InvalidArgumentError(
                f"{kind}: updates must have shape {list(want)}{scalar}, got {list(updates.shape)}"
            )
        return _put(name, value, where, updates)

    return scatter


def depth_of(kind: str, indices: Any, axes: int) -> int:
    """How many axes of a variable the places `[..., k]` are for: k.

    Raises:
      InvalidArgumentError: there are not so many axes, or k is 0.
    """
    depth: int = indices.shape[-1] if indices.ndim else 0
    if not 0 < depth <= axes:
        raise InvalidArgumentError(
            f"{kind}: the last axis of indices must be from 1 to {axes}, the number of axes of the variable, got shape "
            f"{list(indices.shape)}"
        )
    return depth


def places_of(kind: str, indices: Any, value: Any) -> tuple[Any, ...]:
    """The indices along each axis of places [..., k] of a value.

    Raises:
      InvalidArgumentError: one of them is not in the value.
    """
    places = tuple([indices[..., axis] for axis in range(depth_of(kind, indices, value.ndim))])
    for along, size in zip(places, value.shape, strict=False):
        check_within(kind, along, size)
    return places


def check_within(kind: str, indices: Any, size: int) -> None:
    """Check that indices are places of an axis of this size, if they are known.

    Raises:
      InvalidArgumentError: one of them is not.
    """
    if not isinstance(indices, np.ndarray):
        return  # a traced array has no numbers yet
    wrong = (indices < 0) | (indices >= size)
    if wrong.any():
        at = np.argwhere(wrong)[0].tolist()
        raise InvalidArgumentError(f"{kind}: indices{at} = {indices[tuple(at)]} is not in [0, {size})")


def _put(name: str, value: Any, where: Any, updates: Any) -> Any:
    write, traced = _IN_PLACE[name]
    if name == "div" and value.dtype.kind in "iu" and isinstance(updates, np.ndarray) and not np.all(updates):
        raise InvalidArgumentError("scatter_div: Integer division by zero")
    if hasattr(value, "at"):
        return getattr(value.at[where], traced)(-updates if name == "sub" else updates)
    made = value.copy()
    if name == "div" and made.dtype.kind in "iu":
        _divide_integers(made, where, updates)
    else:
        write(made, where, updates)
    return made


def _divide_integers(made: Any, where: Any, updates: Any) -> None:
    """Divide integers one after the other, rounding towards zero as C does."""
    places = np.arange(made.size).reshape(made.shape)[where]
    line = made.reshape(-1)
    for place, divisor in zip(places.flat, np.broadcast_to(updates, places.shape).flat, strict=True):
        number, by = int(line[place]), int(divisor)
        line[place] = abs(number) // abs(by) * (1 if (number < 0) == (by < 0) else -1)


UPDATES: dict[str, Callable[..., Any]] = {
    "assign": lambda _, new: new,
    "assign_add": _assign_add,
    "assign_sub": _assign_sub,
    "count_up_to": _count_up_to,
    **{f"scatter_{name}": _scatter(name, False) for name in _IN_PLACE},
    **{f"scatter_nd_{name}": _scatter(name, True) for name in ("add", "max", "min", "sub", "update")},
    "slice_assign": _slice_assign,
    "slice_assign_add": lambda value, key, delta: _slice_assign(value, key, value[key] + delta),
    "slice_assign_sub": lambda value, key, delta: _slice_assign(value, key, value[key] - delta),
}
"""From the kind of a write to the function of the old value and the arguments that gives the new value."""

# ---- Where the copies of a variable are


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


def refuse_pickling(_: Store) -> NoReturn:
    """What `__reduce__` of a store of this process does."""
    raise TypeError(
        "a variable cannot be pickled, since its copies belong to this process; send `v.numpy()`, or save it in a checkpoint"
    )


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

    __slots__ = ("_devices", "_locks", "_shown", "_value_on", "_values", "copies", "dtype", "to_host")

    def __init__(
        self,
        value: Any,
        devices: Sequence[str],
        to_host: Callable[[Any], Any] | None = None,
        value_on: Callable[[Any, int], Any] | None = None,
    ) -> None:
        first = np.asarray(value)
        self.dtype = first.dtype
        self._devices, self.copies = tuple(devices), len(devices)
        self.to_host, self._value_on = to_host, value_on
        self._shown: list[tuple[Any, Any]] = [(None, None)] * len(self._devices)
        # Copies share memory, but are different objects: replicas that return their copies return different values.
        self._values = [first.view() for _ in self._devices]
        for view in self._values:
            view.flags.writeable = False
        self._locks = [allocate_lock() for _ in self._devices]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first copy."""
        shape: tuple[int, ...] = self._values[0].shape
        return shape

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
            here = [self._on_host(arg, arg.dtype) if hasattr(arg, "at") else arg for arg in args]
            made = change(self._values[copy], *here)
            if type(made) is not np.ndarray or made.dtype != self.dtype:
                made = self._on_host(made, self.dtype)  # arithmetic of arrays without axes gives scalars
            elif kind == "assign":
                made = made.view()
            made.flags.writeable = False
            self._values[copy] = made
        return made

    def device(self, copy: int) -> str:
        """The name of the device that a copy is on."""
        return self._devices[copy]

    @staticmethod
    def _on_host(value: Any, dtype: np.dtype[Any]) -> Any:
        """An array of this process, in memory that nobody else writes to."""
        try:
            made = np.asarray(value, dtype)
        except TypeError as error:  # JAX's while it traces: there is no value yet
            raise TypeError(
                f"a variable in host memory cannot take a {type(value).__name__}, which has no value while a function is "
                "compiled; return the value and assign it outside, or use TPUStrategy, whose `run` compiles"
            ) from error
        return made if made.flags.writeable else made.copy()

    __reduce__ = refuse_pickling


def shown(store: Store, copy: int) -> Any:
    """The value of a copy as programs read it; a scalar in the place of a NumPy array without axes."""
    own = getattr(store, "shown", None)
    return plain(store.read(copy)) if own is None else own(copy)


def plain(value: Any) -> Any:
    """A scalar in the place of a NumPy array without axes."""
    return value[()] if type(value) is np.ndarray and not value.ndim else value
