# SPDX-License-Identifier: Apache-2.0
"""The kinds of objects that a checkpoint saves, and how each is saved and restored."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError, StateError
from distinput.train.coding import Aside, array_of, coded, decoded, is_jax_array, is_tensor, is_value, like_jax_array

__all__ = ["KINDS", "Kind", "RestoreContext", "kind_of"]

Array = np.ndarray[Any, Any]


class RestoreContext:
    """What restoring needs besides the saved value.

    Args:
      fetch: returns an array that was set aside.
      may_differ: what `load_state_dict` of an iterator may find changed.
    """

    def __init__(self, fetch: Callable[[str], Array], may_differ: str | Collection[str] = ()) -> None:
        self.fetch, self.may_differ = fetch, may_differ


class Kind(ABC):
    """How one kind of object is saved.

    Attributes:
      name: its name in the file.
      first: the order of restoring; kinds that examine the saved state only while restoring come first.
      own: True if each worker may have a state of its own.
    """

    name = ""
    first = 2
    own = True
    position = False
    """True for iterators of datasets, which say themselves on how many workers they can continue."""

    @abstractmethod
    def fits(self, value: Any) -> bool:
        """True if the value is of this kind."""

    def state(self, value: Any) -> Any:
        """The state of the value; that of an iterator must not change when the iterator advances."""
        return value

    def code(self, state: Any, aside: Aside, path: str) -> Any:
        """The state as JSON; arrays are set aside."""
        return coded(state, aside, path)

    def is_replaced(self, value: Any) -> bool:
        """True if the value is immutable, so that restoring replaces it."""
        return False

    def check(self, value: Any, saved: Any, path: str) -> None:
        """Check that the saved state fits, before anything is changed.

        Raises:
          InvalidArgumentError: it does not.
        """
        del value, saved, path

    @abstractmethod
    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        """Restore the value, and return it, or another one that must replace it."""


def _has(value: Any, *names: str) -> bool:
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in names)


def _check_array(path: str, saved: Any, dtype: Any, shape: Any) -> None:
    if not isinstance(saved, dict) or "shape" not in saved:
        raise InvalidArgumentError(f"restore: {path!r} is an array in the program and something else in the checkpoint")
    there = np.dtype(dtype)
    name = "object" if there.kind == "O" else "StringDType" if there.kind == "T" else None
    fits = saved["dtype"] == name if name else saved["dtype"] in (there.str, there.name, repr(there.descr))
    compatible = getattr(shape, "is_compatible_with", None)  # of a variable, whose sizes may change
    alike = compatible(saved["shape"]) if compatible else tuple(saved["shape"]) == tuple(shape)
    if not fits or not alike:
        stored = saved["dtype"] if "strings" in saved or saved["dtype"][0] not in "<>|=" else np.dtype(saved["dtype"])
        sizes = shape if compatible else list(shape)
        raise InvalidArgumentError(
            f"restore: {path!r} has dtype {there} and shape {sizes} in the program, and dtype {stored} and shape "
            f"{saved['shape']} in the checkpoint; build the same model as when it was saved"
        )


class _Variable(Kind):
    """Variables: `_saved()` returns their value, `_restored(array)` sets it."""

    name = "variable"
    own = False

    def fits(self, value: Any) -> bool:
        return _has(value, "_saved", "_restored")

    def state(self, value: Any) -> Any:
        return np.asarray(value._saved())

    def check(self, value: Any, saved: Any, path: str) -> None:
        _check_array(path, saved, value.dtype, value.shape)

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        array = array_of(saved, reading.fetch, np.dtype(value.dtype))
        value._restored(array if array.flags.writeable else array.copy())
        return value


class _Iterator(Kind):
    """Iterators of datasets, distributed or not: they continue in place."""

    name = "iterator"
    first = 0
    position = True

    def fits(self, value: Any) -> bool:
        return _has(value, "state", "load_state_dict", "get_next")

    def state(self, value: Any) -> Any:
        return value.state()

    def code(self, state: Any, aside: Aside, path: str) -> Any:
        return state

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        try:
            value.load_state_dict(saved, reading.may_differ)
        except StateError as error:
            error.add_note(f"while restoring {path!r} from a checkpoint")
            raise
        return value


class _StateDict(Kind):
    """Objects with the two methods of PyTorch's modules, optimizers and schedulers."""

    name = "state_dict"
    first = 1

    def fits(self, value: Any) -> bool:
        return _has(value, "state_dict", "load_state_dict")

    def state(self, value: Any) -> Any:
        found = value.state_dict()
        return deepcopy(found) if isinstance(value, Iterator) else found

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        value.load_state_dict(decoded(saved, reading.fetch))
        return value


class _GetAndSet(Kind):
    """Objects with a pair of methods that get and set their state.

    Args:
      get: the one.
      put: the other.
    """

    first = 1

    def __init__(self, get: str, put: str) -> None:
        self._get, self._put = get, put
        self.name = get

    def fits(self, value: Any) -> bool:
        return _has(value, self._get, self._put)

    def state(self, value: Any) -> Any:
        return getattr(value, self._get)()

    def code(self, state: Any, aside: Aside, path: str) -> Any:
        return coded(state, aside, path, inline=True)

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        getattr(value, self._put)(decoded(saved, reading.fetch))
        return value


class _Generator(Kind):
    """NumPy's generators of random numbers."""

    name = "generator"

    def fits(self, value: Any) -> bool:
        return isinstance(value, np.random.Generator | np.random.BitGenerator)

    def state(self, value: Any) -> Any:
        return getattr(value, "bit_generator", value).state

    def code(self, state: Any, aside: Aside, path: str) -> Any:
        return coded(state, aside, path, inline=True)

    def check(self, value: Any, saved: Any, path: str) -> None:
        pairs = dict(saved["dict"])
        bits = getattr(value, "bit_generator", value)
        names = [item for key, item in saved["dict"] if key == "bit_generator"] if pairs else []
        if names != [bits.state["bit_generator"]]:
            raise InvalidArgumentError(
                f"restore: {path!r} is a generator of kind {bits.state['bit_generator']} in the program, and "
                f"{', '.join(map(str, names)) or 'something else'} in the checkpoint"
            )

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        getattr(value, "bit_generator", value).state = decoded(saved, reading.fetch)
        return value


class _Array(Kind):
    """NumPy arrays, restored in place; those that are read-only are replaced."""

    name = "array"
    own = False

    def fits(self, value: Any) -> bool:
        return isinstance(value, np.ndarray)

    def is_replaced(self, value: Any) -> bool:
        return not value.flags.writeable

    def check(self, value: Any, saved: Any, path: str) -> None:
        _check_array(path, saved, value.dtype, value.shape)

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        array = array_of(saved, reading.fetch, value.dtype)
        if not value.flags.writeable:
            return array
        value[...] = array
        return value


class _Tensor(Kind):
    """Tensors of PyTorch, restored in place."""

    name = "tensor"
    own = False

    def fits(self, value: Any) -> bool:
        return is_tensor(value)

    def check(self, value: Any, saved: Any, path: str) -> None:
        there = str(value.dtype).removeprefix("torch.")
        here = (saved.get("tensor"), saved.get("of", {}).get("shape")) if isinstance(saved, dict) else None
        if here != (there, list(value.shape)):
            raise InvalidArgumentError(
                f"restore: {path!r} is a tensor of dtype {there} and shape {list(value.shape)} in the program, and "
                f"(dtype, shape) is {here} in the checkpoint; build the same model as when it was saved"
            )

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        value.detach().copy_(decoded(saved, reading.fetch))
        return value


class _JaxArray(Kind):
    """Arrays of JAX, which cannot be modified: they are replaced by others on the same devices."""

    name = "jax"
    own = False

    def fits(self, value: Any) -> bool:
        return is_jax_array(value)

    def is_replaced(self, value: Any) -> bool:
        return True

    def code(self, state: Any, aside: Aside, path: str) -> Any:
        try:
            return coded(state, aside, path)
        except TypeError as error:
            raise TypeError(f"save: {path!r} {error}") from None

    def check(self, value: Any, saved: Any, path: str) -> None:
        _check_array(path, saved.get("jax") if isinstance(saved, dict) else None, value.dtype, value.shape)

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        return like_jax_array(array_of(saved["jax"], reading.fetch, value.dtype), value)


_FILLED = (list, dict, set, deque)


class _Value(Kind):
    """Numbers, text, and lists, dicts, tuples, sets and deques of nothing else, which are saved whole.

    A container is cleared and filled again, since other objects may refer to it.
    """

    name = "value"

    def fits(self, value: Any) -> bool:
        return is_value(value)

    def is_replaced(self, value: Any) -> bool:
        return not isinstance(value, _FILLED)

    def code(self, state: Any, aside: Aside, path: str) -> Any:
        return coded(state, aside, path, inline=True)

    def restore(self, value: Any, saved: Any, reading: RestoreContext, path: str) -> Any:
        found = decoded(saved, reading.fetch)
        if not isinstance(value, _FILLED):
            return found
        if not isinstance(found, type(value)) and not isinstance(value, type(found)):
            raise InvalidArgumentError(
                f"restore: {path!r} is a {type(value).__name__} in the program and a {type(found).__name__} in the checkpoint"
            )
        value.clear()
        (value.update if isinstance(value, dict | set) else value.extend)(found)
        return value


KINDS: tuple[Kind, ...] = (
    _Variable(),
    _Iterator(),
    _Array(),
    _Tensor(),
    _JaxArray(),
    _Generator(),
    _StateDict(),
    _GetAndSet("get_state", "set_state"),
    _GetAndSet("getstate", "setstate"),
    _Value(),
)
"""All kinds; the first one that fits is taken."""


def kind_of(value: Any) -> Kind | None:
    """The kind of a value; None if it is a container of others, or cannot be saved."""
    return next((kind for kind in KINDS if kind.fits(value)), None)
