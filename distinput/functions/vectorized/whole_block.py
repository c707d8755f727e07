# SPDX-License-Identifier: Apache-2.0
"""`WholeBlock`: functions of one element, called once for all elements of a block."""

import functools
import math
import types
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from dis import get_instructions
from functools import lru_cache
from itertools import chain as joined
from itertools import islice
from types import CodeType
from typing import Any, NoReturn

import numpy as np

from distinput.arrow.adopt import adopt
from distinput.columns.block import Block, ColumnBlock, Failure
from distinput.columns.column import Dense
from distinput.columns.regroup import as_nest, as_stated, leaves_for
from distinput.columns.rows import PACE_SECONDS, Stream, passing_over
from distinput.columns.state import State
from distinput.functions.claim import MadeBlock, behind
from distinput.functions.inference import samples
from distinput.functions.vectorized.answers import FUNCTIONS, Parted, Refused, Rules, StandIn, Unfit, picked, same_bits
from distinput.functions.workers import Calling
from distinput.plan.node import Node, describe
from distinput.run.run import Run, to_whole_groups
from distinput.values.buffers import copy_of
from distinput.values.leaves import STRING, as_leaf
from distinput.values.nest import Structure, structure_of
from distinput.values.spec import LeafSpec, Spec

# ----------------------------------------------------------------------------
# Arrays that are the same for all elements, and may be indexed by a stand-in: `table[x]`.
# ----------------------------------------------------------------------------


def table_of(array: Any, rules: Rules) -> "ConstantArray":
    """A view of an array that stand-ins may index."""
    made = array.view(ConstantArray)
    made.rules = rules
    return made  # type: ignore[no-any-return]


class ConstantArray(np.ndarray[Any, Any]):
    """An array that is the same for all elements.

    Attributes:
      rules: for the stand-ins.
    """

    rules: Rules

    def __array_finalize__(self, source: Any) -> None:
        rules = getattr(source, "rules", None)
        if rules is not None:
            self.rules = rules
            if self.base is not None:  # a view, through which the array could change behind its rows
                self.flags.writeable = False

    def __getitem__(self, key: Any) -> Any:
        parts = [part for part in (key if isinstance(key, tuple) else (key,)) if isinstance(part, StandIn)]
        if parts:
            rows = picked(self.rules, self, key)
            if not any(part.ndim for part in parts):  # a row is a view: a change of one is seen in the other
                rows.own = False
                owner: Any = self
                while isinstance(owner, np.ndarray) and not self.rules.is_outside(owner):
                    owner.flags.writeable = False
                    owner = owner.base
            return rows
        return super().__getitem__(key)


# ----------------------------------------------------------------------------
# Whether compiled code can have effects outside of its call, as far as its instructions tell.
#
# Only instructions that are listed here pass, so those of later versions of Python, which are not, lead to calls for each
# element. What the code reads from outside is looked at by `Transplant`.
# ----------------------------------------------------------------------------


_HARMLESS = tuple(
    str.split("""
    BINARY_ BUILD_ CACHE CALL COMPARE_OP CONTAINS_OP COPY DICT_ END_FOR END_SEND EXTENDED_ARG FOR_ITER FORMAT_
    GEN_START GET_ITER GET_LEN JUMP_ KW_NAMES LIST_ LOAD_ASSERTION_ERROR LOAD_ATTR LOAD_CLOSURE
    LOAD_COMMON_CONSTANT LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_GLOBAL LOAD_METHOD LOAD_SMALL_INT MAKE_CELL
    MAKE_FUNCTION NOP NOT_TAKEN POP_ PRECALL PUSH_NULL RAISE_VARARGS RERAISE RESUME RETURN_ SET_ STORE_FAST
    STORE_SLICE STORE_SUBSCR SWAP TO_BOOL UNARY_ UNPACK_ YIELD_VALUE
    """)
)
"""Beginnings of the names of instructions. Whether a subscript may be stored is for stand-ins and read-only arrays to say."""

_WORDS = {
    "STORE_GLOBAL": "it assigns to the global variable {}",
    "DELETE_GLOBAL": "it deletes the global variable {}",
    "STORE_ATTR": "it assigns to the attribute {}",
    "DELETE_ATTR": "it deletes the attribute {}",
    "IMPORT_NAME": "it imports {} when it is called",
    "PUSH_EXC_INFO": "it handles exceptions or uses `with`",
    "SETUP_FINALLY": "it handles exceptions or uses `with`",
    "BEFORE_WITH": "it handles exceptions or uses `with`",
    "LOAD_BUILD_CLASS": "it defines a class",
    "IS_OP": "it compares by `is`",
}

_METHODS = frozenset(
    str.split("""
    all any append argmax argmin astype clip copy count cumsum dot dtype endswith extend flatten get index items
    keys linalg max mean min ndim norm prod ravel reduce replace reshape round shape size squeeze startswith std
    sum swapaxes T take transpose type update values var
    """)
)
"""Attributes of arrays, and of the tuples, lists, dicts and texts that a function makes itself."""

_GENERATOR = 0x20 | 0x80 | 0x100 | 0x200
"""The flags of generators and coroutines."""


@lru_cache(maxsize=1024)
def check_code(code: CodeType, names: frozenset[str], inner: bool = False) -> None:
    """Refuse code that may have effects outside.

    Args:
      code: of a function.
      names: attributes that it may read besides those of arrays: those of modules.
      inner: it is defined in the function; its free variables are those of a call.

    Raises:
      Refused: the message says what it does.
    """
    if not inner and code.co_flags & _GENERATOR:
        raise Refused("it is a generator or a coroutine")
    for step in get_instructions(code):
        name, value = step.opname, str(step.argval)
        if name in ("STORE_DEREF", "DELETE_DEREF"):
            if not inner and value in code.co_freevars:
                raise Refused(f"it assigns to `{value}` of the function around it")
            continue
        if name == "COPY_FREE_VARS" or name.startswith(_HARMLESS):
            if name in ("LOAD_ATTR", "LOAD_METHOD") and value not in _METHODS and value not in names:
                raise Refused(f"it uses .{value}, which has no rule")
            if name == "YIELD_VALUE" and not inner:
                raise Refused("it is a generator or a coroutine")
            continue
        raise Refused(_WORDS.get(name, "it has the instruction {}").format(f"`{value}`" if name in _WORDS else name))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if set(constant.co_freevars) & set(code.co_freevars):
                _check_outer(constant, frozenset(code.co_freevars))
            check_code(constant, names, True)


def _check_outer(code: CodeType, outer: frozenset[str]) -> None:
    """Refuse an inner function that assigns to a variable from outside of the whole function."""
    for step in get_instructions(code):
        if step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in outer:
            raise Refused(f"it assigns to `{step.argval}` of the function around it")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _check_outer(constant, outer)


@lru_cache(maxsize=1024)
def names_read(code: CodeType) -> frozenset[str]:
    """The global names that code, and the functions defined in it, read."""
    found = {str(step.argval) for step in get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names_read(constant)
    return frozenset(found)


# ----------------------------------------------------------------------------
# The names of NumPy that a function may use when it is called for a whole block; `np.random` and files are not among them.
# ----------------------------------------------------------------------------


_CONSTANTS = str.split("""
    bool bool_ e euler_gamma float16 float32 float64 inf int16 int32 int64 int8 intp nan newaxis pi single
    double uint16 uint32 uint64 uint8
""")
_MAKERS = ["arange", "eye", "full", "identity", "linspace", "logspace", "ones", "zeros"]
_READERS = ["dtype", "finfo", "iinfo", "ndim", "shape", "size"]
_LOADED = vars(np)  # to ask for the other names would import modules
_UFUNCS = [name for name, value in _LOADED.items() if isinstance(value, np.ufunc)]
_RULED = [name for name, value in _LOADED.items() if id(value) in set(map(id, FUNCTIONS))]

NAMES = frozenset(
    (*_CONSTANTS, *_MAKERS, *_READERS, *_UFUNCS, *_RULED, "abs", "array", "asarray", "concat", "linalg", "norm")
)
"""Attributes of `numpy` that can be read."""


class NumPy:
    """Stands for the module.

    Args:
      rules: for lists with stand-ins, which become arrays.
    """

    def __init__(self, rules: Rules) -> None:
        self.linalg = _LinearAlgebra()
        self._rules = rules

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise Refused(f"it uses np.{name}, which has no rule")
        found = getattr(np, name)
        return self._made_by(found) if name in _MAKERS else found

    def _made_by(self, maker: Any) -> Any:
        def make(*args: Any, **options: Any) -> Any:
            made = maker(*args, **options)
            return table_of(made, self._rules) if type(made) is np.ndarray else made

        return make

    def array(self, value: Any, dtype: Any = None) -> Any:
        """As `numpy.array`."""
        made = self.asarray(value.copy() if isinstance(value, np.ndarray) else value, dtype)
        return made.copy() if made is value and isinstance(made, StandIn) else made

    def take(self, a: Any, indices: Any, axis: int | None = None) -> Any:
        """As `numpy.take`, which does not ask stand-ins among the indices."""
        if isinstance(indices, StandIn):
            return self._rules.function(np.take, (a, indices), {"axis": axis})
        return np.take(a, indices, axis)

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        """As `numpy.asarray`, for a stand-in, for a list of them, or for constants."""
        if isinstance(value, list | tuple) and any(isinstance(part, StandIn) for part in value):
            value = np.stack(_alike(value))
        elif not isinstance(value, StandIn):
            made = np.asanyarray(value, dtype)
            return made if isinstance(made, ConstantArray) else table_of(made, self._rules)
        if isinstance(value, StandIn) and not value.ndim:
            raise Refused("it makes an array of a number")
        return value if dtype is None else value.astype(dtype, copy=False)


def _alike(values: Sequence[Any]) -> list[Any]:
    """Members of a list as arrays of one shape, so that NumPy finds the same dtype for them together."""
    made = [value if isinstance(value, StandIn) else np.asarray(value) for value in values]
    if len({value.shape for value in made}) > 1:
        raise Refused("it makes an array of a list of several shapes")
    return made


class _LinearAlgebra:
    """Stands for `numpy.linalg`."""

    norm = staticmethod(np.linalg.norm)

    def __getattr__(self, name: str) -> NoReturn:
        raise Refused(f"it uses np.linalg.{name}, which has no rule")


_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range)
_TYPES = (bool, int, float)
_BUILTINS = frozenset(
    (abs, all, any, dict, enumerate, len, list, max, min, range, reversed, slice, sum, tuple, zip, bool, int, float)
)
_MATH = frozenset(vars(math))
_MOST_HELD = 1 << 20
"""Bytes of arrays from outside that are compared before every block."""


class Transplant:
    """A copy of a function for stand-ins, and what tells whether it still is one.

    Args:
      function: the user's.
      rules: for the stand-ins.

    Raises:
      Refused: it may have effects outside, or read something that changes.
    """

    def __init__(self, function: Callable[..., Any], rules: Rules) -> None:
        self._rules, self._numpy = rules, NumPy(rules)
        self._made: dict[int, Any] = {}
        self._bindings: list[tuple[Callable[[], Any], Any, str]] = []
        self._arrays: list[tuple[Any, Any, str]] = []
        self._held = 0
        self.call: Callable[..., Any] = self._function(function)

    def check(self) -> None:
        """Refuse to go on if something that the function reads has changed.

        Raises:
          Refused: it has.
        """
        for read, value, name in self._bindings:
            if read() is not value:
                raise Refused(f"`{name}`, which it reads, has changed")
        for array, copy, name in self._arrays:
            if array.shape != copy.shape or array.tobytes() != copy.tobytes():
                raise Refused(f"the array `{name}`, which it reads, has changed")

    def _function(self, function: Any) -> Any:
        if isinstance(function, functools.partial):
            given = [self._value(f"argument {i}", value) for i, value in enumerate(function.args)]
            named = self._named(function.keywords)
            return functools.partial(self._function(function.func), *given, **named)
        if isinstance(function, types.FunctionType):
            return self._python(function)
        if _is_numpy(function) or _is_builtin(function):
            return function
        raise Refused(f"{describe(function)} is no function of Python or NumPy")

    def _python(self, function: types.FunctionType) -> Any:
        if id(function) in self._made:
            return self._made[id(function)]
        code = function.__code__
        check_code(code, NAMES | _MATH)
        names: dict[str, Any] = {"__builtins__": {"__import__": __import__}}  # which methods of arrays need
        cells = tuple([types.CellType() for _ in code.co_freevars])
        clone = types.FunctionType(code, names, function.__name__, None, cells or None)
        self._made[id(function)] = clone
        self._watch(lambda: function.__code__, code, function.__name__)
        self._watch(lambda: function.__defaults__, function.__defaults__, function.__name__)
        self._watch(lambda: function.__kwdefaults__, function.__kwdefaults__, function.__name__)
        clone.__defaults__ = self._values(function.__defaults__)
        if function.__kwdefaults__:
            clone.__kwdefaults__ = self._named(function.__kwdefaults__)
        for name in sorted(names_read(code)):
            names[name] = self._global(function.__globals__, name)
        for name, cell, new in zip(code.co_freevars, function.__closure__ or (), cells, strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                raise Refused(f"`{name}`, which it reads, has no value yet") from None
            self._watch(functools.partial(getattr, cell, "cell_contents", None), value, name)
            new.cell_contents = self._value(name, value)
        return clone

    def _global(self, space: dict[str, Any], name: str) -> Any:
        if name in space:
            self._watch(functools.partial(space.get, name), space[name], name)
            return self._value(name, space[name])
        builtins = space.get("__builtins__", {})
        builtins = builtins if isinstance(builtins, dict) else vars(builtins)
        value = builtins.get(name)
        self._watch(functools.partial(space.get, name), None, name)
        if value is None or not _is_builtin(value):
            raise Refused(f"it uses {name}, which has no rule")
        return value

    def _watch(self, read: Callable[[], Any], value: Any, name: str) -> None:
        self._bindings.append((read, value, name))

    def _values(self, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return None if values is None else tuple([self._value("a default", value) for value in values])

    def _named(self, values: dict[str, Any]) -> dict[str, Any]:
        for name, value in values.items():
            self._watch(functools.partial(values.get, name), value, name)
        return {name: self._value(name, value) for name, value in values.items()}

    def _value(self, name: str, value: Any) -> Any:
        """What stands for a value from outside."""
        if isinstance(value, types.ModuleType):
            if value is np:
                return self._numpy
            if value is math:
                return _Math()
            raise Refused(f"it uses the module {value.__name__}, which has no rule")
        if isinstance(value, type):
            if value in _TYPES or issubclass(value, np.generic):
                return value
            raise Refused(f"it uses the class {value.__qualname__}")
        if type(value) is np.ndarray:
            return self._array(name, value)
        if type(value) is tuple:
            return tuple([self._value(name, part) for part in value])
        if type(value) in _PLAIN or (isinstance(value, np.generic | np.dtype) and not isinstance(value, np.void)):
            return value
        if callable(value) and not hasattr(value, "node"):
            return self._function(value)
        raise Refused(f"it reads `{name}`, a {type(value).__name__}, which may change from call to call")

    def _array(self, name: str, array: Any) -> Any:
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise Refused(f"it reads `{name}`, an array of {array.dtype}")
        table = table_of(array, self._rules)
        base = array.base
        fixed = not array.flags.writeable and (base is None or (type(base) is np.ndarray and not base.flags.writeable))
        if not fixed:
            self._held += array.nbytes
            if self._held > _MOST_HELD:
                raise Refused(
                    f"it reads `{name}`, and arrays of more than {_MOST_HELD >> 20} MiB may change from call to call unless "
                    f"they are read-only (`{name}.flags.writeable = False`)"
                )
            self._arrays.append((array, array.copy(), name))
        table.flags.writeable = False
        self._rules.outside.append(array)
        return table


class _Math:
    """Stands for the module `math`: its functions make a Python number, which no stand-in is."""

    e, inf, nan, pi, tau = math.e, math.inf, math.nan, math.pi, math.tau

    def __getattr__(self, name: str) -> NoReturn:
        raise Refused(f"it uses math.{name}, which has no rule")


def _is_numpy(function: Any) -> bool:
    name = getattr(function, "__name__", "")
    return name in NAMES and getattr(np, name, None) is function and name not in ("array", "asarray")


def _is_builtin(value: Any) -> bool:
    try:
        return value in _BUILTINS
    except TypeError:  # it has no hash
        return False


_SAMPLES = 5
"""Elements of the first block of a kind that are compared with calls for each of them; later one of each block."""

_MOST_WAYS, _ELEMENTS_OF_WAY = 8, 256
"""Ways through the functions that the elements of one block may go, by what is asked about their values; and how many elements
there must be for each: with fewer, a call for each of them costs less."""


class WholeBlock:
    """Functions of one element, called for all elements of a block; the first one gets the elements.

    Args:
      functions: the user's.
      measured: whether operations that are not exact by construction are measured, or refused.
      said: what the user says about the results of the last one.

    Raises:
      Refused: one of them cannot be called that way.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]], *, measured: bool, said: Spec | None = None) -> None:
        self._said = said
        self._rules = Rules(measured=measured)
        self._functions = [Transplant(function, self._rules) for function in functions]
        self._kinds: set[Any] = set()
        self._blocks = 0

    def __call__(self, rows: Block) -> tuple[ColumnBlock, list[int]]:
        """The results for all rows, and a row on each way, if there are several.

        Raises:
          Refused: a function cannot be called that way.
          Unfit: these rows need calls for each of them.
        """
        for function in self._functions:
            function.check()
        columns = rows.materialize().columns
        if not all(isinstance(column, Dense) for column in columns) or not _is_plain(rows.structure):
            raise Refused("its elements are not nests of tuples and dicts of numbers of one shape")
        given = [np.asarray(column.array) for column in columns if isinstance(column, Dense)]
        ways: list[tuple[Any, ColumnBlock]] = []
        left: list[Any] = [slice(None)]
        while left:
            places = left.pop()
            part = [array[places] for array in given]
            size = len(part[0]) if part else rows.size
            try:
                ways.append((places, self._one_way(rows.structure, part, size)))
            except Parted as parted:
                count = len(ways) + len(left) + 2
                if count > _MOST_WAYS:
                    raise Refused(f"its elements go more than {_MOST_WAYS} ways, by what it asks about them") from None
                if count * _ELEMENTS_OF_WAY > rows.size:
                    raise Unfit from None
                numbers = np.arange(rows.size)[places]
                left += [numbers[~parted.truth], numbers[parted.truth]]
        if len(ways) == 1:
            return ways[0][1], []
        return _joined(ways, rows.size), [int(places[0]) for places, _ in ways]

    def _one_way(self, structure: Structure, given: Sequence[Any], size: int) -> ColumnBlock:
        """The results for elements that all go the same way.

        Raises:
          Parted: they do not.
        """
        value = structure.build([StandIn(array, self._rules) for array in given])
        for function in self._functions:
            value = function.call(*value) if type(value) is tuple else function.call(value)
            value = _as_element(value, self._said if function is self._functions[-1] else None)
        structure = _structure(value)
        taken = {id(array) for array in given}
        made = [Dense(_column(leaf, size, taken)) for leaf in structure.flatten(value)]
        return ColumnBlock(structure, made, size)

    def compared(self, rows: Block, made: ColumnBlock, ways: Sequence[int], call: Callable[[Any], Any]) -> None:
        """Compare some results, those on each way among them, with those of calls for each element.

        Raises:
          Refused: they differ.
        """
        kind = str([(c.array.shape[1:], c.dtype) for c in rows.materialize().columns if isinstance(c, Dense)])
        many = _SAMPLES if kind not in self._kinds else 1
        spread = [self._blocks + rows.size * i // many for i in range(many)]
        for row in sorted({*[place % rows.size for place in spread], *ways}):
            wanted = _as_element(call(rows.row(row)), self._said)
            if structure_of(wanted) != made.structure:
                raise Refused("it returned another structure for a single element")
            for leaf, column in zip(made.structure.flatten(wanted), made.columns, strict=True):
                assert isinstance(column, Dense)
                if not same_bits(as_leaf(leaf), column.array[row]):
                    raise Refused("a result for a block differed from the one for a single element")
        self._kinds.add(kind)
        self._blocks += 1


def _joined(ways: Sequence[tuple[Any, ColumnBlock]], size: int) -> ColumnBlock:
    """The results of elements that went several ways, in the order of the elements."""
    (_, first), *_ = ways
    columns: list[Any] = [np.empty((size, *column.shape[1:]), column.dtype) for column in _arrays(first)]
    for places, made in ways:
        arrays = _arrays(made)
        if made.structure != first.structure or [(a.shape[1:], a.dtype) for a in arrays] != [
            (column.shape[1:], column.dtype) for column in columns
        ]:
            raise Refused("what it returns for some elements has another structure, shape or dtype than for others")
        for column, array in zip(columns, arrays, strict=True):
            column[places] = array
    return ColumnBlock(first.structure, [Dense(column) for column in columns], size)


def _arrays(block: ColumnBlock) -> list[Any]:
    return [column.array for column in block.columns if isinstance(column, Dense)]


def _is_plain(structure: Structure) -> bool:
    if structure.kind == "leaf":
        return structure.mapping is None
    return structure.kind in ("tuple", "dict") and structure.mapping is None and all(map(_is_plain, structure.children))


def _is_leaf(value: Any) -> bool:
    return isinstance(value, StandIn)


def _structure(value: Any) -> Structure:
    return structure_of(value, is_leaf=_is_leaf)


def _as_element(value: Any, said: Spec | None) -> Any:
    """What a function returned as the next one gets it: a list is a tuple, a number one of NumPy."""
    value = as_nest(value, said)
    structure = _structure(value)
    stated = leaves_for(structure, said) or (None,) * structure.num_leaves
    leaves = zip(structure.flatten(value), stated, strict=True)
    return structure.build([_number(leaf) if _is_leaf(leaf) else _constant(leaf, spec) for leaf, spec in leaves])


def _number(leaf: StandIn) -> StandIn:
    """An array without dimensions is a number to the next function."""
    return leaf if leaf.ndim or leaf.number else StandIn(leaf.block, leaf.rules)


def _constant(value: Any, spec: LeafSpec | None) -> Any:
    if isinstance(value, list) and any(map(_is_leaf, value)):
        raise Refused("it returns a list of arrays inside of its result")
    adopted = adopt(value)
    if isinstance(adopted, dict):
        raise Refused("it returns a table")
    if isinstance(adopted, np.ndarray):
        adopted = adopted.view(np.ndarray)
        adopted.flags.writeable = False  # the next function may pick rows of it, which views would change
    return as_stated(adopted, spec)


def _column(leaf: Any, size: int, taken: set[int]) -> Any:
    """All rows of a result in memory that nobody else holds."""
    if not isinstance(leaf, StandIn):
        dtype = getattr(leaf, "dtype", STRING)
        if not isinstance(leaf, np.ndarray | np.generic) or dtype.kind not in "biuf":
            raise Refused("it returns text, a dataset, or another object that is no number")
        return np.broadcast_to(leaf, (size, *np.shape(leaf))).copy()
    array = leaf.block
    if len(array) != size:
        raise Unfit
    if array.base is not None or not array.flags.c_contiguous or id(array) in taken or not array.flags.owndata:
        array = copy_of(array)
    taken.add(id(array))
    return array


# ----------------------------------------------------------------------------
# `Vectorizer`: whether the functions of a `map` are called for whole blocks, and if not, why not.
# ----------------------------------------------------------------------------


_MOST_MISSES = 8
"""Blocks in a row that need calls for each element, after which it is not tried any more."""

_MOST_ROW_BYTES = 1 << 14
""""auto" leaves out larger elements: there a call costs little besides its work."""


class Vectorizer:
    """Calls functions for whole blocks as long as that works.

    Args:
      functions: the user's; the first one gets the elements.
      call: all functions, for one element.
      measured: whether operations that are not exact by construction are measured, and whole blocks are tried for few and for
        large elements too.
      reason: why whole blocks are not even tried.
      said: what the user says about the results.

    Attributes:
      reason: why the functions are called element by element, as a clause after "since"; None while they are not.
      blocks: how many whole blocks were made.
    """

    def __init__(
        self,
        functions: Sequence[Callable[..., Any]],
        call: Callable[[Any], Any],
        *,
        measured: bool,
        reason: str | None = None,
        said: Spec | None = None,
    ) -> None:
        self.reason = reason
        self._said = said
        self.blocks = 0
        self._functions, self._call, self._measured = functions, call, measured
        self._whole: WholeBlock | None = None
        self._misses = 0

    def refuses(self, row_bytes: float) -> bool:
        """Whether calls for each element are to be made, for elements of this size."""
        if self.reason is None and not self._measured and not self.blocks and row_bytes > _MOST_ROW_BYTES:
            self.reason = f"elements of {row_bytes:,.0f} bytes gain little; vectorize=True takes them too"
        return self.reason is not None

    def __str__(self) -> str:
        if self.reason is not None:
            return f"element by element, since {self.reason}"
        return "whole blocks" if self.blocks else "whole blocks are tried"

    def made(self, rows: Block) -> Block | None:
        """The results for these rows; None: call the functions for each of them."""
        if self.reason is not None:
            return None
        try:
            # In a context of its own, since an interrupt may come before errstate has restored the one that it found.
            block = copy_context().run(self._strictly, rows)
        except Refused as refusal:
            self.reason = str(refusal)
            return None
        except (Unfit, Exception):  # noqa: BLE001 - calls for each element say which one is at fault, and why
            self._misses += 1
            if self._misses >= _MOST_MISSES:
                why = "raised errors or warnings, or led few elements several ways"
                self.reason = f"the values of {_MOST_MISSES} blocks in a row {why}"
            return None
        self._misses = 0
        self.blocks += 1
        return block

    def _strictly(self, rows: Block) -> Block:
        with np.errstate(**_strict()):
            if self._whole is None:
                self._whole = WholeBlock(self._functions, measured=self._measured, said=self._said)
            made, ways = self._whole(rows)
            self._whole.compared(rows, made, ways, self._call)
            return made


def _strict() -> dict[str, Any]:
    """Floating-point errors of a block are raised, so that calls for each element give the warnings they always gave."""
    return {name: "ignore" if how == "ignore" else "raise" for name, how in np.geterr().items()}


# ----------------------------------------------------------------------------
# Results of functions that are called for whole blocks, in pieces that stay in a core's cache.
# ----------------------------------------------------------------------------


_PIECE_BYTES = 1 << 18
"""Bytes of the elements, or of the results, of one piece."""

_FIRST, _FEWEST, _MOST = 64, 16, 32768
"""Elements of the first piece, whose time tells how many the next ones may have; and the fewest and the most of a piece."""


def called_by_block(
    upstream: Stream,
    state: State,
    verdict: Vectorizer,
    calling: Calling,
    by_element: Callable[[Stream, State], Iterator[MadeBlock]],
    group: int = 1,
) -> Iterator[MadeBlock]:
    """Blocks of results; `by_element` takes over with the first element for which the verdict is against whole blocks.

    Pieces end where groups of so many results end, if that is soon.
    """
    run, counter = calling.run, calling.counter
    latest: list[tuple[Block, State]] = []

    def kept() -> Stream:
        for pair in upstream:
            latest[:] = [pair]
            yield pair

    most, rows_sent = run.at_once(_FIRST), 0
    for rows, mark_at in passing_over(kept(), state):
        if type(rows) is Failure:
            yield rows, mark_at, rows
            continue
        first = 0
        row_bytes = rows.nbytes / max(1, rows.size)
        while first < rows.size:
            if most < _FEWEST or verdict.refuses(row_bytes):
                counter.choice = ""
                yield from by_element(joined(latest, upstream), mark_at(first))
                return
            part = rows.rows(first, first + most)
            begin = Run.clock()
            made = verdict.made(part)
            counter.choice = "whole blocks" if made is not None else "element by element"
            if made is None and verdict.reason is not None:
                continue
            done = calling.work(part, None) if made is None else None
            pace = PACE_SECONDS * part.size / max(Run.clock() - begin, 1e-9)
            if made is not None:
                yield made, behind(mark_at, first), part
                row_bytes = max(row_bytes, made.nbytes / made.size)
            if done is not None:
                yield from calling.delivered(done, part, behind(mark_at, first))
            piece = max(_FEWEST, _PIECE_BYTES / max(1.0, row_bytes))
            most = int(max(_FEWEST, min(pace, 8 * part.size, piece, _MOST)))
            first, rows_sent = first + part.size, rows_sent + part.size
            most = run.at_once(most + to_whole_groups(rows_sent + most, group, row_bytes))


# ----------------------------------------------------------------------------
# A trial of whole blocks on a few elements, real or made up, for `explain()` before the first pass.
# ----------------------------------------------------------------------------


_ELEMENTS = 4


def tried(verdict: Vectorizer, source: Node) -> str:
    """What a fresh verdict says of some elements of `source`."""
    try:
        spec = source.spec
        elements = list(islice(samples(source), 1)) * _ELEMENTS  # others may have other shapes
        rows = Block.of_elements(spec.structure, elements) if elements else None
    except Exception:  # noqa: BLE001 - then only a pass can tell
        return str(verdict)
    if rows is not None:
        verdict.refuses(rows.nbytes / rows.size)
        verdict.made(rows)
    return str(verdict)
