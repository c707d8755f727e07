# SPDX-License-Identifier: Apache-2.0
"""How functions are called: several as one function, which neighbouring `map` steps become, and what they fill again.

Between two functions a result has to become an element: a list becomes a tuple, a Python number a NumPy scalar of
TensorFlow's dtype, text becomes bytes. From the results for the first element a Python function is generated that only checks
whether the next results are of the same kind, as they nearly always are. It calls each function on a line of its own, so that
the line in a traceback tells which function failed. A result that does not fit the claim about its function is an error, as it
is for the last function.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import lru_cache
from itertools import count, islice
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple, cast
from weakref import ref

import numpy as np

from distinput.arrow.adopt import adopt, copying, fresh_copy, kept, look_of, owned
from distinput.columns.block import Block, of_all
from distinput.errors import InvalidArgumentError
from distinput.functions.claim import Claim, described, unlike
from distinput.names.lazy import dataclass
from distinput.plan.binding import by_name
from distinput.plan.check import cells_of
from distinput.run.run import calls_of, element_text
from distinput.run.threads import lane
from distinput.values.buffers import is_pooled
from distinput.values.leaves import Array, as_leaves, dtype_of
from distinput.values.nest import structure_of
from distinput.values.spec import (
    DatasetSpec,
    ElementsSpec,
    LeafSpec,
    OptionalSpec,
    Spec,
    TensorSpec,
    array_spec,
    opened,
)


def calling(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """`function` as a function of one element: a tuple is unpacked into arguments, and a returned list becomes a tuple.

    Source: the convention of `tf.data.Dataset.map`.
    """

    def call(element: Any) -> Any:
        result = function(*element) if type(element) is tuple else function(element)
        return tuple(result) if type(result) is list else result

    return call


# ----------------------------------------------------------------------------
# Arrays that functions hold and fill again and again, and fail to while another thread fills them too.
#
# What a function returned is copied before its next call, if somebody else holds it. So functions may fill one array again as
# long as their calls come one after the other. Calls on several threads, of one step or of several, write over each other's
# results.
#
# A few values of each array that was copied are kept. The same array in the same place with other values was filled again.
# Where another thread has filled it meanwhile, any result may be wrong.
# ----------------------------------------------------------------------------


class _Looks:
    """What was seen last of some things that functions hold.

    Without a lock, which a fork could leave closed: where two threads meet here, one look may be missed.

    Args:
      most: how many are remembered.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._looks: dict[tuple[int, int], _Look] = {}

    def swapped(self, place: tuple[int, int], look: "_Look") -> "_Look | None":
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
        self._born, self._first = next(_numbers), 0
        self._looks, self._until = 0, 1  # how many there were, and copies until the next one
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
            calls = f"{whose}, on several threads,"
            cure = "leave out prefetch and num_parallel_calls=, so that they take turns"
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
        self._until -= 1
        if self._until <= 0:
            self._begin_look()
            self._look_at(array, copy)
        return copy

    def _noted(self, held: Any, copy: Any) -> None:
        self._until -= 1
        if self._until > 0:
            return
        self._begin_look()
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

    def _begin_look(self) -> None:
        self._looks += 1
        self._until = 1 if self._each or self._looks < self._FIRST else self._LATER

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
        yield from cells_of(value).items()
        names = code.co_varnames[: code.co_argcount]
        defaults = value.__defaults__ or ()
        yield from zip(names[len(names) - len(defaults) :], defaults, strict=True)
        yield from (value.__kwdefaults__ or {}).items()
        yield from [(name, known[name]) for name in code.co_names if name in known]
    elif not isinstance(value, type | np.ndarray):
        kind = type(value)
        yield from [(f"{kind.__name__}.{name}", part) for name, part in list(getattr(value, "__dict__", {}).items())]
        yield from [("", getattr(kind, name, None)) for name in ("__call__", "__getitem__", "__getitems__", "__iter__")]


class _Look(NamedTuple):
    """What something was like when it was copied last: by which calls, on which thread, and which of all looks it was."""

    owner: Callable[[], Any]
    calls: ref[Refills]
    lane: int
    look: Any
    number: int


# ----------------------------------------------------------------------------
# Functions called one after the other.
# ----------------------------------------------------------------------------


_FILE = "<distinput: neighbouring maps>"

Kinds = tuple[Spec | None, ...]
"""The spec of what each function of a chain but the last returns; None while it is unknown."""


class Chain:
    """Functions of one element each, called one after the other.

    Args:
      functions: the first one gets the elements, each other one the result of the one before it; tuples are unpacked.
      claims: about the results of each function but the last.
      asks: give the spec of each function but the last, which may allow more than the first result shows.
      said: what the user says about the results of the last one.
    """

    op = "map"

    def __init__(
        self,
        functions: Sequence[Callable[..., Any]],
        claims: Sequence[Claim] = (),
        asks: Sequence[Callable[[], Spec]] = (),
        said: Spec | None = None,
    ) -> None:
        self.said = said
        self.functions = tuple(functions)
        self._claims = tuple(claims) or tuple([Claim() for _ in functions[1:]])
        self._asks: tuple[Callable[[], Spec] | None, ...] = tuple(asks) or (None,) * len(self._claims)
        self._step: Callable[[Any], Any] | None = None
        self._seen: Callable[[Any], Any] | None = None  # looks at what the functions but the last return

    @property
    def kinds(self) -> Kinds:
        """The specs of all functions but the last, without ranks that only a first result has shown."""
        return tuple([claim.spec or (claim.kind and claim.kind.map(_of_any_rank)) for claim in self._claims])

    @property
    def settled(self) -> bool:
        """Whether these are known; until then the first element decides them, so no other element may be ahead of it."""
        return None not in self.kinds

    def settle(self, kinds: Kinds) -> None:
        """Take over specs that are known elsewhere."""
        for claim, kind in zip(self._claims, kinds, strict=False):
            if claim.wanted is None:
                claim.kind = kind

    def anew(self) -> "Chain":
        """The same functions with claims of their own: what is learnt there of results is not known here."""
        return Chain(self.functions, [copy(claim) for claim in self._claims], said=self.said)

    def results(self, rows: Block, refills: Refills | None = None) -> Iterator[Any]:
        """The results of the last function, computed as they are requested; no array in them is shared with anybody else.

        Args:
          rows: the elements.
          refills: sees which arrays the functions fill again and again; always the same one.
        """
        self._seen = self._seen if refills is None else refills.noted
        # Also where the first ones are numbers: behind them may come an array that is filled again.
        return map(owned if refills is None else refills.owned, self._results(rows))

    def _results(self, rows: Block) -> Iterator[Any]:
        if len(self.functions) == 1:
            return calls_of(self.functions[0], rows, unpack=True)
        if self._step is None:
            return self._learning(rows)
        return map(self._step, rows.elements())

    def __call__(self, element: Any) -> Any:
        """The result of the last function for one element."""
        if self._step is not None:
            return self._step(element)
        return self._learnt(element)

    def place(self, error: BaseException, element: Any) -> tuple[int, Any]:
        """Which function raised an error for `element`, and its argument."""
        step = None if self._step is None else self._step.__code__
        trace = error.__traceback__
        while trace is not None:
            frame = trace.tb_frame
            if frame.f_code is _call.__code__:
                return frame.f_locals["index"], frame.f_locals["given"]
            if frame.f_code is step:
                index = (trace.tb_lineno - _FIRST_LINE) // _LINES
                return index, frame.f_locals[f"x{index}"]
            trace = trace.tb_next
        return 0, element

    def told(self, given: Any) -> str:
        """An argument in words, for notes on errors."""
        return element_text(given)

    def __reduce__(self) -> tuple[Any, ...]:
        return Chain, (tuple(map(by_name, self.functions)), self._claims, (), self.said)

    def _learning(self, rows: Block) -> Iterator[Any]:
        elements = rows.elements()
        yield from map(self._learnt, islice(elements, 1))
        if self._step is not None:
            yield from map(self._step, elements)

    def _learnt(self, element: Any) -> Any:
        """The result for the first element; generates `_step`, which does the same for the next ones."""
        links = []
        value = element
        for index, function in enumerate(self.functions[:-1]):
            value, link = _call(function, index, value, (self._claims[index], self._asks[index]), self._seen)
            links.append(link)
        result = _call(self.functions[-1], len(self.functions) - 1, value, None)
        self._step = self._written(links, spread=type(element) is tuple)
        return result

    def _written(self, links: "Sequence[_Link]", *, spread: bool) -> Callable[[Any], Any]:
        lines = ["def step(x0):"]
        names: dict[str, Any] = {"ndarray": np.ndarray, "seen": self._seen}
        given = "*x0" if spread else "x0"
        for index, function in enumerate(self.functions):
            names[f"f{index}"] = function
            link = links[index] if index < len(links) else None
            result = f"x{index + 1}"
            call = f"f{index}({given})"
            checks = [f"{result} = {call}" if link is None or self._seen is None else f"{result} = seen({call})"]
            if link is not None:
                names[f"settled{index}"] = link.settled
                parts = [f"{result}_{place}" for place in range(link.width)]
                tests = link.tests(parts or [result], names, f"t{index}_")
                if tests is None:
                    checks.append(f"{result} = settled{index}({result}, x{index})")
                    given = f"*{result}" if link.spread else result
                elif parts:
                    other = f"type({result}) is not tuple or len({result}) != {link.width}"
                    checks.append(f"if {other}: {result} = settled{index}({result}, x{index})")
                    checks.append(f"{', '.join(parts)}, = {result}")
                    checks.append(f"if {tests}: {', '.join(parts)}, = {result} = settled{index}({result}, x{index})")
                    given = ", ".join(parts)
                else:
                    checks.append(f"if {tests}: {result} = settled{index}({result}, x{index})")
                    given = result
            else:
                checks.append(f"return {result}")
            lines += ["    " + check for check in checks] + ["    pass"] * (_LINES - len(checks))
        source = "\n".join(lines)
        exec(_compiled(source), names)  # noqa: S102 - the source holds no text of the user's
        return names["step"]  # type: ignore[no-any-return]


_FIRST_LINE = 2
_LINES = 4
"""The first line of the body of the function that `Chain` generates, and its lines for each function."""


@lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    return compile(source, _FILE, "exec")


def _call(
    function: Callable[..., Any],
    index: int,  # noqa: ARG001 - read from the frame, as `given` is, when the call fails
    given: Any,
    said: "tuple[Claim, Callable[[], Spec] | None] | None",
    seen: Callable[[Any], Any] | None = None,
) -> Any:
    """A call as the generated function makes it."""
    value = function(*given) if type(given) is tuple else function(given)
    if seen is not None:
        seen(value)
    if said is None:
        return value
    link = _Link.of(value, *said)
    return link.settled(value, given), link


@dataclass(frozen=True)
class _Link:
    """What one function returns and the next one gets.

    Args:
      spec: the claim about it.
      kinds: the types of the leaves of the first result; None for leaves that have to be converted.
      ask: gives a spec that may allow more.
    """

    spec: Spec
    kinds: tuple[Any, ...]
    ask: Callable[[], Spec] | None

    @staticmethod
    def of(value: Any, claim: Claim, ask: Callable[[], Spec] | None) -> "_Link":
        value = adopt(tuple(value) if type(value) is list else value)
        structure = structure_of(value)
        raw = structure.flatten(value)
        leaves = as_leaves(raw, structure.paths)
        kinds = [type(leaf) if leaf is before else None for leaf, before in zip(leaves, raw, strict=True)]
        wanted = claim.wanted
        if wanted is None:
            wanted = claim.kind = opened(Spec(structure, tuple(map(_leaf_of, leaves))))
        known = structure == wanted.structure
        return _Link(wanted, tuple(kinds) if known else (None,) * len(wanted.leaves), None if claim.spec else ask)

    @property
    def width(self) -> int:
        """How many arguments the next function gets, if all are leaves; 0 if it gets a single one."""
        structure = self.spec.structure
        return len(structure.children) if structure.is_flat_tuple else 0

    @property
    def spread(self) -> bool:
        """Whether the next function gets the items of a tuple as arguments."""
        return self.spec.structure.kind == "tuple"

    def tests(self, parts: list[str], names: dict[str, Any], prefix: str) -> str | None:
        """An expression that is true if a leaf is not of its first kind; None if leaves always have to be converted."""
        structure = self.spec.structure
        if not (structure.is_leaf or structure.is_flat_tuple):
            return None
        tests = []
        for place, (part, kind, leaf) in enumerate(zip(parts, self.kinds, self.spec.leaves, strict=True)):
            name = f"{prefix}{place}"
            if kind is None or not isinstance(leaf, TensorSpec) or leaf.ragged_rank is not None:
                return None
            if kind is bytes or issubclass(kind, np.number | np.bool_):
                if leaf.dtype != dtype_of(kind()) or leaf.shape not in ((), None):
                    return None
                names[name] = kind
                tests.append(f"type({part}) is not {name}")
            elif kind is np.ndarray and leaf.dtype.kind not in "SUOT" and leaf.shape != ():
                names[name] = leaf.dtype
                rank = f"not {part}.ndim" if leaf.shape is None else f"{part}.ndim != {len(leaf.shape)}"
                sizes = [f" or {part}.shape[{i}] != {n}" for i, n in enumerate(leaf.shape or ()) if n is not None]
                tests.append(f"type({part}) is not ndarray or {part}.dtype is not {name} or {rank}{''.join(sizes)}")
            else:
                return None
        return " or ".join(tests)

    def settled(self, value: Any, given: Any) -> Any:
        """`value` as an element.

        Raises:
          TypeError: it does not fit the claim, or cannot be an array; the message names `given`, the function's argument.
        """
        value = adopt(tuple(value) if type(value) is list else value)
        structure = self.spec.structure
        own = structure_of(value)
        if own != structure:
            raise unlike("map", f"elements nested as {structure}", f"{own}, each dot a component", given)
        leaves = as_leaves(own.flatten(value), own.paths)
        if not all(map(_fits, leaves, self.spec.leaves)):  # to find out what is allowed, the function may fill it again
            leaves = as_leaves(own.flatten(kept(value)), own.paths)
            for place, (leaf, wanted, path) in enumerate(zip(leaves, self.spec.leaves, structure.paths, strict=True)):
                if not _fits(leaf, wanted) and not self._allowed(place, leaf):
                    raise unlike("map", f"{wanted}{f' in component {path}' if path else ''}", described(leaf), given)
        return structure.build([leaf.to_user() if getattr(leaf, "nest_leaf", False) else leaf for leaf in leaves])

    def _allowed(self, place: int, leaf: Any) -> bool:
        """Whether the spec allows what the first result did not show."""
        with suppress(Exception):  # then there is nothing that allows more
            return self.ask is not None and _fits(leaf, self.ask().leaves[place])
        return False


def _fits(leaf: Any, wanted: LeafSpec) -> bool:
    if isinstance(wanted, OptionalSpec):
        return getattr(leaf, "is_optional", False) and leaf.leaf_spec.is_subtype_of(wanted)
    is_dataset = getattr(leaf, "nest_leaf", False) and not getattr(leaf, "is_optional", False)
    if getattr(leaf, "nest_leaf", False) or isinstance(wanted, DatasetSpec):
        return is_dataset and isinstance(wanted, DatasetSpec)
    assert isinstance(wanted, TensorSpec)
    return wanted.fits_value(leaf)


def _of_any_rank(leaf: LeafSpec) -> LeafSpec:
    return leaf if isinstance(leaf, ElementsSpec) else leaf.with_shape(None)


def _leaf_of(leaf: Any) -> LeafSpec:
    """What is claimed of one result alone."""
    if getattr(leaf, "is_optional", False):
        return leaf.leaf_spec  # type: ignore[no-any-return]
    return DatasetSpec(()) if getattr(leaf, "nest_leaf", False) else array_spec(leaf)
