# SPDX-License-Identifier: Apache-2.0
"""Arrays that functions hold and fill again and again, and fail to while another thread fills them too.

What a function returned is copied before its next call, if somebody else holds it. So functions may fill one array again as
long as their calls come one after the other. Calls on several threads, of one step or of several, write over each other's
results.

A few values of each array that was copied are kept. The same array in the same place with other values was filled again; where
another thread has filled it meanwhile, any result may be wrong.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from types import FunctionType, MethodType
from typing import Any, NamedTuple, cast
from weakref import ref

import numpy as np

from distinput.arrow.adopt import Array, copying, fresh_copy, look_of
from distinput.columns.block import of_all
from distinput.errors import InvalidArgumentError
from distinput.run.threads import lane
from distinput.values.buffers import is_pooled


class _Look(NamedTuple):
    """What something was like when it was copied last: by which calls, on which thread, and which of all looks it was."""

    owner: Callable[[], Any]
    calls: "ref[Refills]"
    lane: int
    look: Any
    number: int


class _Looks:
    """What was seen last of some things that functions hold.

    Without a lock, which a fork could leave closed: where two threads meet here, one look may be missed.

    Args:
      most: how many are remembered.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._looks: dict[tuple[int, int], _Look] = {}

    def swapped(self, place: tuple[int, int], look: _Look) -> _Look | None:
        """What was seen in this place before, which this takes the place of."""
        before = self._looks.pop(place, None)
        self._looks[place] = look
        if len(self._looks) > self._most:
            for old in list(self._looks)[: self._most // 2]:
                self._looks.pop(old, None)
        return before


_of_others, _of_python = _Looks(1024), _Looks(64)
"""Lists, dicts and the like know no weak references, so that they live as long as they are remembered."""

_LARGE = 1 << 16
"""Lists, dicts and the like with more items are not remembered."""

_LOOKED_AT = 64
"""Items of them that are looked at."""

_PLAIN = (np.generic, bool, int, float, complex, str, bytes, type(None))

_numbers = count()


class Refills:
    """Copies what functions returned, as `owned` does, and notices arrays that they hold and fill again and again.

    Args:
      op: the step that calls them.
      functions: what is called.
      each: whether every array is looked at; else all of the first ones, and then one now and then.

    Attributes:
      seen: whether a call has changed an array that an earlier one had returned.
    """

    _FIRST, _LATER = 64, 32

    def __init__(self, op: str, functions: Sequence[Any], *, each: bool = True) -> None:
        self._op, self._functions, self._each = op, functions, each
        self._born, self._first, self._copies = next(_numbers), 0, 0
        self.seen = False
        self._mixed: tuple[Any, Refills] | None = None

    @property
    def owned(self) -> Callable[[Any], Any]:
        """Copies a result; to be called as the function `owned` is."""
        return copying(self._copied, self._noted)

    def noted(self, value: Any) -> Any:
        """The same result, which goes to another function; its arrays are looked at, if it is one of the first ones."""
        if self._first < self._FIRST:
            self._first += 1
            for item in value if type(value) is tuple else (value,):
                if type(item) is np.ndarray:
                    self._look_at(item, item)
        return value

    def error(self) -> InvalidArgumentError | None:
        """What to raise where calls on several threads fill one array: any result may be wrong."""
        if self._mixed is None:
            return None
        array, other = self._mixed
        variable = _variable(self._functions, array) or _variable(other._functions, array)
        kind = type(array).__name__ if isinstance(array, list | dict | bytearray) else "array"
        what = f"one {kind}" if variable is None else f"one {kind}, {variable},"
        calls, cure = "calls on several threads", "leave out num_parallel_calls= and executor="
        if other is not self:
            one, another = _called(self._functions), _called(other._functions)
            whose = f"calls of {one}" if one == another else f"calls of {one} here and of {another} elsewhere"
            calls, cure = (
                f"{whose}, on several threads,",
                "leave out prefetch and num_parallel_calls=, so that they take turns",
            )
        error = InvalidArgumentError(
            f"{self._op}: {calls} fill {what} over each other's results; make a new array in each call, keep one for each "
            f"thread (threading.local), or {cure}"
        )
        return cast(InvalidArgumentError, of_all(error))

    def check(self) -> None:
        """Raise that error, if there is one."""
        error = self.error()
        if error is not None:
            raise error

    def _copied(self, array: Array) -> Array:
        copy = fresh_copy(array)
        if self._is_due():
            self._look_at(array, copy)
        return copy

    def _noted(self, held: Any, copy: Any) -> None:
        if not self._is_due():
            return
        place = id(held), 0
        if isinstance(held, memoryview):
            whole = memoryview(held.obj)
            if held.nbytes != whole.nbytes:
                return  # where the part lies is not told
            held, place = whole.obj, (id(whole.obj), 0)
        elif (base := getattr(held, "_base", None)) is not None and isinstance(copy, np.ndarray):
            start, nbytes = _place_of(copy)
            held, place = base, (start, ~nbytes)  # a view of PyTorch
        look = _look_of(copy)
        if look is not None:
            self._compare(held, place, look)

    def _is_due(self) -> bool:
        self._copies += 1
        return self._each or self._copies <= self._FIRST or not self._copies % self._LATER

    def _look_at(self, array: Array, copy: Array) -> None:
        if not array.size or array.dtype.hasobject:
            return
        self._compare(_memory_of(array), _place_of(array), look_of(copy))

    def _compare(self, owner: Any, place: tuple[int, int], look: Any) -> None:
        """Compare what something is like with what it was like before; `place` is the part of it that was given."""
        here = lane()
        try:
            looks, held = _of_others, cast(Callable[[], Any], ref(owner))
        except TypeError:
            if not isinstance(owner, list | dict | bytearray) or len(owner) > _LARGE or _holds_arrays(owner):
                return
            looks, held = _of_python, lambda: owner
        before = looks.swapped(place, _Look(held, ref(self), here, look, next(_numbers)))
        if before is None or before.owner() is not owner or before.look == look:
            return
        self.seen = True
        other = before.calls()
        if before.lane != here and other is not None and (other is self or before.number > self._born):
            self._mixed = owner, other


def _holds_arrays(container: Any) -> bool:
    """Whether a list, a dict or what is in them holds more than numbers and texts; that is not kept alive here."""
    items = container.values() if isinstance(container, dict) else () if isinstance(container, bytearray) else container
    return any(
        _holds_arrays(item) if type(item) in (list, dict) else not isinstance(item, _PLAIN) for item in list(items)
    )


def _place_of(array: Array) -> tuple[int, int]:
    return array.__array_interface__["data"][0], array.nbytes


def _look_of(copy: Any, deepest: int = 3) -> Any:
    """A few of the values of a copy, by which most changes are noticed; None where it is not of arrays, numbers and texts."""
    if isinstance(copy, np.ndarray):
        return None if copy.dtype.hasobject or not copy.size else look_of(copy)
    if isinstance(copy, bytes | str):
        return copy[:: max(1, len(copy) // _LOOKED_AT)]
    if isinstance(copy, _PLAIN) or not deepest:
        return copy if deepest else None
    named = copy if isinstance(copy, dict) else getattr(copy, "__dict__", {})
    items = copy if isinstance(copy, list | tuple) else list(named.values())
    looks = [_look_of(item, deepest - 1) for item in items[:_LOOKED_AT]]
    return tuple(looks) if looks and None not in looks else None


def _memory_of(array: Array) -> Array:
    """The array that owns the memory of another one, as far as it is seen; not memory of ours, which is used again."""
    owner = array
    while True:
        base: Any = owner.base
        if type(base) is memoryview:
            base = base.obj
        if not isinstance(base, np.ndarray) or is_pooled(base):
            return owner
        owner = base


# ----------------------------------------------------------------------------
# The names of functions, and of the variables in which they hold an array.
# ----------------------------------------------------------------------------


_DEEPEST = 4


def _called(functions: Sequence[Any]) -> str:
    """What is called, in words: the last function, whose result is copied."""
    last = functions[-1]
    while isinstance(last, functools.partial):
        last = last.func
    name = getattr(last, "__qualname__", None) or type(last).__qualname__
    return str(name).rpartition("<locals>.")[2]


def _variable(functions: Sequence[Any], array: Any) -> str | None:
    """The variable or attribute in which functions hold an array."""
    seen: set[int] = set()
    for function in reversed(functions):
        name = _found(function, array, seen, _DEEPEST)
        if name is not None:
            return name
    return None


def _found(value: Any, array: Any, seen: set[int], depth: int) -> str | None:
    if not depth or id(value) in seen:
        return None
    seen.add(id(value))
    parts = list(_parts_of(value))
    for name, part in parts:
        items = part if isinstance(part, list | tuple) else part.values() if isinstance(part, dict) else (part,)
        if part is array or any(isinstance(item, np.ndarray) and _memory_of(item) is array for item in items):
            return name
    names = (_found(part, array, seen, depth - 1) for _, part in parts)
    return next((name for name in names if name is not None), None)


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    """What a function or an object holds, by name."""
    if isinstance(value, MethodType):
        yield from [("self", value.__self__), ("", value.__func__)]
    elif isinstance(value, functools.partial):
        yield from [("", value.func), *[("", part) for part in value.args], *value.keywords.items()]
    elif isinstance(value, FunctionType):
        code, known = value.__code__, value.__globals__
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            try:
                yield name, cell.cell_contents
            except ValueError:  # an empty cell
                continue
        names = code.co_varnames[: code.co_argcount]
        defaults = value.__defaults__ or ()
        yield from zip(names[len(names) - len(defaults) :], defaults, strict=True)
        yield from (value.__kwdefaults__ or {}).items()
        yield from [(name, known[name]) for name in code.co_names if name in known]
    elif not isinstance(value, type | np.ndarray):
        kind = type(value)
        yield from [(f"{kind.__name__}.{name}", part) for name, part in list(getattr(value, "__dict__", {}).items())]
        yield from [("", getattr(kind, name, None)) for name in ("__call__", "__getitem__", "__getitems__", "__iter__")]
