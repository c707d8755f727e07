# SPDX-License-Identifier: Apache-2.0
"""What NumPy's functions answer for stand-ins: on each value alone, over the values of an element, and by moving values."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

# ----------------------------------------------------------------------------
# Why a function is called element by element after all.
# ----------------------------------------------------------------------------


class Refused(BaseException):
    """The function cannot be called for a whole block; the message says why, as a clause after "since".

    It is no `Exception`, so that no handler of the user's swallows it.
    """


class Unfit(BaseException):
    """The values of this block need calls for each element: a warning, an overflow, a zero whose sign depends on the order.

    The next block is tried again.
    """


class Parted(BaseException):
    """The function goes one way for some elements of this block and another way for the others.

    Attributes:
      truth: bool [n], the answer of each element.
    """

    truth: Any


# ----------------------------------------------------------------------------
# The table of rules: for each function of NumPy, how it is answered for a block.
# ----------------------------------------------------------------------------


FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""By function: called with the `Rules` and the arguments of the function, of which at least one holds a stand-in."""


def rule(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a rule for these functions."""

    def enter(made: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            FUNCTIONS[function] = made
        return made

    return enter


class StandIn(NDArrayOperatorsMixin):
    """One element of a block, for all of them.

    Args:
      block: [n, *shape].
      rules: how operations are answered.
      own: nobody else holds the memory, so that it may be changed in place.
      number: without dimensions it is a number of NumPy, as most results are, and not an array, which can be changed in place.
    """

    __slots__ = ("block", "number", "own", "rules")
    __array_priority__ = 1000

    def __init__(self, block: Any, rules: "Rules", *, own: bool = False, number: bool = True) -> None:
        if block.dtype.kind not in "biuf" or block.dtype.itemsize > 8 or not block.dtype.isnative:
            raise Refused(f"it computes {block.dtype}; only booleans, integers and floats of up to 64 bits have rules")
        self.block, self.rules, self.own, self.number = block, rules, own, number and block.ndim == 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an element."""
        shape: tuple[int, ...] = self.block.shape[1:]
        return shape

    @property
    def ndim(self) -> int:
        """Of an element."""
        return int(self.block.ndim) - 1

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.block.dtype

    @property
    def size(self) -> int:
        """Values of an element."""
        return int(np.prod(self.shape))

    @property
    def T(self) -> "StandIn":  # noqa: N802 - NumPy's name
        """All axes of an element reversed."""
        return (
            self if self.number else self.transpose()
        )  # a number of NumPy gives itself, and `in` asks what is the same

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise Refused("it iterates over a number")
        return iter([self[i] for i in range(len(self))])

    def _of_one(self, *_: Any) -> NoReturn:
        raise Refused("what it does next depends on a value of the element")

    def __bool__(self) -> bool:
        if self.ndim:
            self._of_one()
        truth = self.block.astype(bool)
        if truth.any() and not truth.all():
            parted = Parted("the answer to what it asks differs from element to element")
            parted.truth = truth
            raise parted
        return bool(truth.all())

    __int__ = __float__ = __complex__ = __index__ = __round__ = __floor__ = __ceil__ = __trunc__ = _of_one
    __contains__ = item = tolist = tobytes = _of_one

    def _as_text(self, *_: Any) -> NoReturn:
        raise Refused("it makes text of the element")

    __str__ = __repr__ = __format__ = _as_text

    def __hash__(self) -> int:
        raise Refused("it looks something up by a value of the element")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise Refused("it gives the element to code that has no rule")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return self.rules.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, _: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        return self.rules.function(function, args, options)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)  # other ways into NumPy than `__array__`, which refuses
        raise Refused(f"it uses .{name} of the element, which has no rule")

    def __getitem__(self, key: Any) -> "StandIn":
        return item(self.rules, self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        set_item(self, key, value)

    def __pow__(self, exponent: Any) -> Any:
        return power(self.rules, self, exponent)

    def __rpow__(self, base: Any) -> Any:
        return power(self.rules, base, self)

    def __ipow__(self, exponent: Any) -> Any:
        return _in_place(power(self.rules, self, exponent), (self,))

    def lent(self, block: Any, *, number: bool = False) -> "StandIn":
        """A view of this one, or a number in it: from now on neither may be changed in place."""
        self.own = False
        return StandIn(block, self.rules, number=number)

    def astype(self, dtype: Any, copy: bool = True) -> "StandIn":
        """Each value converted."""
        wanted = np.dtype(dtype)
        if wanted == self.dtype and not copy and not self.number:
            return self
        return StandIn(converted(self.block, wanted), self.rules, own=True, number=self.number)

    def copy(self) -> "StandIn":
        """The same values in memory of its own."""
        return StandIn(self.block.copy(), self.rules, own=True, number=self.number)

    def reshape(self, *shape: Any) -> "StandIn":
        """The values of an element in another shape."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        known = int(np.prod([d for d in wanted if d != -1]))
        sizes = [self.size // max(known, 1) if d == -1 else d for d in wanted]
        if int(np.prod(sizes)) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {wanted}")
        return self.lent(self.block.reshape(len(self.block), *sizes))

    def ravel(self) -> "StandIn":
        """The values of an element as a vector."""
        return self.reshape(self.size)

    def flatten(self) -> "StandIn":
        """A copy of `ravel`."""
        return self.ravel().copy()

    def transpose(self, *axes: Any) -> "StandIn":
        """The axes of an element in another order; reversed if none is given."""
        order: Any = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)) else axes
        order = order or range(self.ndim - 1, -1, -1)
        return self.lent(self.block.transpose(0, *[axis % self.ndim + 1 for axis in order]))

    def swapaxes(self, a: int, b: int) -> "StandIn":
        """Two axes of an element exchanged."""
        return self.lent(self.block.swapaxes(a % self.ndim + 1, b % self.ndim + 1))


def _method(name: str) -> Any:
    function = getattr(np, name)

    def method(self: StandIn, *args: Any, **options: Any) -> Any:
        return self.rules.function(function, (self, *args), options)

    method.__name__, method.__doc__ = name, f"As `numpy.{name}` of an element."
    return method


_METHODS = "all any argmax argmin clip cumsum dot max mean min prod round squeeze std sum take var"
for _name in _METHODS.split():
    setattr(StandIn, _name, _method(_name))


def rank(value: Any) -> int:
    """The number of dimensions of an element, or of a constant."""
    return value.ndim if isinstance(value, StandIn) else np.ndim(value)


def lifted(value: Any, ndim: int) -> Any:
    """A block whose elements have `ndim` dimensions, so that blocks broadcast as their elements do; a constant as it is."""
    if not isinstance(value, StandIn):
        return value
    return value.block.reshape(len(value.block), *(1,) * (ndim - value.ndim), *value.shape)


# ----------------------------------------------------------------------------
# Operations on each value alone.
#
# Those of `EXACT` are defined by IEEE 754 or are arithmetic of integers: there is one right result, however many values are
# computed at a time. Others, such as `exp`, may take another path for a block than for one element; they are measured.
# ----------------------------------------------------------------------------


EXACT = frozenset(
    str.split("""
    absolute add bitwise_and bitwise_or bitwise_xor ceil copysign divide equal fabs floor fmax fmin greater
    greater_equal invert isfinite isinf isnan left_shift less less_equal logical_and logical_not logical_or
    logical_xor maximum minimum multiply negative not_equal positive right_shift rint sign signbit sqrt square
    subtract trunc
    """)
)
_EXACT_OF_INTEGERS = frozenset(("floor_divide", "remainder"))
_MEASURED = frozenset(
    str.split("""
    arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt cos cosh deg2rad exp exp2 expm1 float_power
    floor_divide fmod hypot log log10 log1p log2 logaddexp power rad2deg reciprocal remainder sin sinh tan tanh
    """)
)
_OVERFLOWING = frozenset(("absolute", "add", "multiply", "negative", "subtract"))
_CHOOSING = frozenset(("fmax", "fmin", "maximum", "minimum"))


def applied(rules: "Rules", ufunc: Any, inputs: Sequence[Any], options: dict[str, Any]) -> StandIn:
    """A ufunc called with stand-ins."""
    name = ufunc.__name__
    target = options.pop("out", None)
    if set(options) - {"dtype"} or ufunc.nout != 1 or ufunc.signature is not None:
        raise Refused(f"np.{name} is called with options or results that have no rule")
    ndim = max(map(rank, inputs))
    blocks = [lifted(value, ndim) for value in inputs]
    if name == "multiply" and any(isinstance(value, list | tuple) for value in inputs):
        raise Refused("it multiplies a list, which a number repeats")
    made = ufunc(*blocks, **options)
    if name in EXACT or (name in _EXACT_OF_INTEGERS and made.dtype.kind in "iu"):
        if name in _OVERFLOWING and not ndim and made.dtype.kind in "iu":
            _check_range(ufunc, blocks, made.dtype)
        if name in _CHOOSING and made.dtype.kind == "f":
            check_zeros(*blocks)
        if name in ("copysign", "signbit") and np.isnan(blocks[-1]).any():
            raise Unfit  # the sign of a NaN that was computed is not defined
        result = StandIn(made, rules, own=True)
    elif name in _MEASURED:
        result = rules.measure(name, made, inputs, lambda *values: ufunc(*values, **options), options=options)
    else:
        raise Refused(f"np.{name} has no rule")
    return result if target is None else _in_place(result, target)


def _in_place(result: StandIn, target: Any) -> StandIn:
    (given,) = target
    if not isinstance(given, StandIn):
        raise Refused("it writes to an array from outside")
    if given.number:
        return result  # the name gets another one
    if not given.own or given.shape != result.shape:
        raise Refused("it changes its argument, or a view, in place")
    np.copyto(given.block, result.block, casting="same_kind")
    return given


def _check_range(ufunc: Any, blocks: Sequence[Any], dtype: Any) -> None:
    """NumPy warns where a number of its own overflows, but not where a value of an array does."""
    if ufunc is np.subtract and dtype.kind == "u" and bool(np.less(*blocks).any()):
        raise Unfit
    about = ufunc(*[np.asarray(block, np.float64) for block in blocks])
    info = np.iinfo(dtype)
    low, high = (info.min, info.max) if dtype.itemsize < 8 else (info.min // 2, info.max // 2)
    if about.size and (about.min() < low or about.max() > high):
        raise Unfit


def check_zeros(a: Any, b: Any) -> None:
    """Which of 0.0 and -0.0 is the larger one is not defined."""
    if bool(((a == b) & (np.signbit(a) != np.signbit(b))).any()):
        raise Unfit


def power(rules: "Rules", base: Any, exponent: Any) -> Any:
    """`base ** exponent`; arrays of floats have exact ways for some constants, and numbers have not.

    The operator is measured, since it takes another way than `np.power` does between two numbers.
    """
    ndim, constant = max(rank(base), rank(exponent)), not isinstance(exponent, StandIn) and not rank(exponent)
    if constant and base.dtype.kind == "f" and exponent in (-1, 0.5, 1, 2):
        if not ndim:
            raise Refused(
                "np.power is not exact by construction, and for a number so few digits differ that no measurement shows it"
            )
        if type(exponent) in (int, float):
            return StandIn(base.block**exponent, rules, own=True)
    return rules.measure("power", lifted(base, ndim) ** lifted(exponent, ndim), (base, exponent), lambda a, b: a**b)


def converted(block: Any, dtype: Any) -> Any:
    """`block.astype(dtype)`.

    Raises:
      Unfit: a float does not fit into an integer.
    """
    if block.dtype.kind == "f" and dtype.kind in "iu" and block.size:
        info, low, high = np.iinfo(dtype), float(block.min()), float(block.max())
        if not (low > info.min - 1 and high < info.max):  # false for NaN too
            raise Unfit
    return block.astype(dtype)


@rule(np.where)
def _where(rules: "Rules", condition: Any, *choices: Any) -> StandIn:
    if len(choices) != 2:
        raise Refused("the shape of what it returns depends on a value of the element")
    ndim = max(map(rank, (condition, *choices)))
    made = np.where(*[lifted(value, ndim) for value in (condition, *choices)])
    return StandIn(made, rules, own=True, number=False)


@rule(np.clip)
def _clip(rules: "Rules", a: Any, a_min: Any = None, a_max: Any = None) -> StandIn:
    ndim = max(map(rank, (a, a_min, a_max)))
    values, low, high = [lifted(value, ndim) for value in (a, a_min, a_max)]
    made = np.clip(values, low, high)
    if made.dtype.kind == "f":  # of floats, or of integers between bounds that are floats
        for one, other in combinations([value for value in (values, low, high) if value is not None], 2):
            check_zeros(one, other)
    return StandIn(made, rules, own=True)


@rule(np.round, np.around)
def _round(rules: "Rules", a: StandIn, decimals: int = 0) -> StandIn:
    if type(decimals) is not int or decimals < 0:
        raise Refused("np.round has a rule for a constant number of decimals, at least 0")
    return StandIn(np.round(a.block, decimals), rules, own=True)


@rule(np.nan_to_num)
def _nan_to_num(
    rules: "Rules", x: StandIn, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    if not copy or any(isinstance(value, StandIn) for value in (nan, posinf, neginf)):
        raise Refused("np.nan_to_num has a rule for copies and constants")
    return StandIn(np.nan_to_num(x.block, nan=nan, posinf=posinf, neginf=neginf), rules, own=True)


@rule(np.searchsorted)
def _searchsorted(rules: "Rules", a: Any, v: Any, side: Any = "left") -> StandIn:
    if isinstance(a, StandIn):
        raise Refused("np.searchsorted has a rule for constant sorted values")
    if not _is_sorted(a):  # each search begins where the one before it ended, which makes a difference then
        raise Refused("np.searchsorted is given values that are not sorted")
    return StandIn(np.searchsorted(a, v.block, side), rules, own=True)


def _is_sorted(values: Any) -> bool:
    """Also with NaN at the end, where `np.sort` has it."""
    return bool(np.array_equal(values, np.sort(values), equal_nan=np.asarray(values).dtype.kind == "f"))


@rule(np.digitize)
def _digitize(rules: "Rules", x: Any, bins: Any, right: bool = False) -> StandIn:
    if isinstance(bins, StandIn):
        raise Refused("np.digitize has a rule for constant bins")
    return StandIn(np.digitize(x.block, bins, right), rules, own=True)


# ----------------------------------------------------------------------------
# Operations over the values of an element: sums, extremes, products of matrices.
#
# Exact are those whose result does not depend on the order of the values: sums of integers, whose overflow wraps, means of
# integers whose sum is exact in float64, extremes, medians, which add two values at most, and running sums, whose order is
# given. The others are measured.
# ----------------------------------------------------------------------------


OF_UFUNCS = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}
"""The function that `ufunc.reduce` is."""

_WEIGHT = 32
"""How many values of other operations one sum is worth when it is measured: 256 sums are compared."""

_WHOLE = 1 << 20
"""Integers of 32 bits whose sum float64 holds exactly."""


def _entered(function: Any) -> None:
    @rule(function)
    def reduced(rules: "Rules", a: Any, axis: Any = None, **options: Any) -> StandIn:
        name = function.__name__
        if not isinstance(a, StandIn) or any(isinstance(v, StandIn) for v in options.values()):
            raise Refused(f"np.{name} of several values has no rule")
        made = _over(function, a, axis, options)
        if not set(options) - {"keepdims"} and _is_exact(name, a):
            if name in ("max", "min", "amax", "amin", "median") and a.dtype.kind == "f":
                _check_signs(a.block, made)
            return StandIn(made, rules, own=True)
        options["axis"] = axis
        return rules.measure(name, made, (a,), lambda value: function(value, **options), _WEIGHT, options)


for _name in ("all", "any", "argmax", "argmin", "max", "mean", "median", "min", "prod", "std", "sum", "var"):
    _entered(getattr(np, _name))


def _is_exact(name: str, a: StandIn) -> bool:
    if name in ("all", "any", "argmax", "argmin", "max", "min", "amax", "amin") or (name == "median" and a.size):
        return True
    integers = a.dtype.kind in "biu"
    return integers and (name in ("sum", "prod") or (name == "mean" and a.dtype.itemsize <= 4 and a.size <= _WHOLE))


def _over(function: Any, a: StandIn, axis: Any, options: dict[str, Any]) -> Any:
    """The function over axes of all elements."""
    if axis is not None:
        axes = _axes(axis, a.ndim)
        return function(a.block, axis=axes[0] if len(axes) == 1 else axes, **options)
    given = {key: value for key, value in options.items() if key != "keepdims"}
    made = function(a.block.reshape(len(a.block), -1), axis=1, **given)
    return made.reshape(len(made), *(1,) * a.ndim) if options.get("keepdims") else made


def _check_signs(block: Any, made: Any) -> None:
    """Which of 0.0 and -0.0 is the larger one, or the one in the middle, is not defined."""
    if bool((made == 0).any()):
        signs = np.signbit(block[block == 0])
        if signs.any() and not signs.all():
            raise Unfit


@rule(np.outer)
def _outer(rules: "Rules", a: Any, b: Any) -> StandIn:
    left, right = [x.block.reshape(len(x.block), -1) if isinstance(x, StandIn) else np.ravel(x)[None] for x in (a, b)]
    return StandIn(left[:, :, None] * right[:, None], rules, own=True)


@rule(np.linalg.norm)
def _norm(rules: "Rules", x: StandIn) -> StandIn:
    flat = x.block.reshape(len(x.block), 1, -1)
    made = np.sqrt(np.matmul(flat, flat.transpose(0, 2, 1))[:, 0, 0])
    return rules.measure("linalg.norm", made, (x,), np.linalg.norm, _WEIGHT)


def _multiplying(function: Any) -> None:
    rule(function)(lambda rules, a, b: rules.measure(function.__name__, _product(a, b), (a, b), function, _WEIGHT))


_multiplying(np.matmul)
_multiplying(np.dot)


def _product(a: Any, b: Any) -> Any:
    """The product of matrices or vectors for all elements, one after the other as for a single one."""
    ranks = {rank(a), rank(b)}
    if not ranks <= {1, 2} and (0 in ranks or isinstance(b, StandIn) or rank(b) > 2):
        raise Refused("a product of numbers, or with an element of more than two dimensions on the right, has no rule")
    left = a.block if isinstance(a, StandIn) else np.asarray(a)
    right = b.block if isinstance(b, StandIn) else np.asarray(b)
    left = left[..., None, :] if rank(a) == 1 else left
    right = right[..., None] if rank(b) == 1 else right
    made = np.matmul(left, right)
    if rank(b) == 1:
        made = made[..., 0]
    return made[..., 0] if rank(a) == 1 and rank(b) == 1 else made[..., 0, :] if rank(a) == 1 else made


# ----------------------------------------------------------------------------
# Operations that move values and compute none: indices, axes, joining, padding. A block has one axis more, the first.
# ----------------------------------------------------------------------------


_BASIC = (int, np.integer, slice, type(None), type(Ellipsis))


def item(rules: "Rules", element: StandIn, key: Any) -> StandIn:
    """`element[key]`."""
    if isinstance(key, StandIn):
        if key.ndim or key.dtype.kind not in "iu":
            raise Refused("the shape of what it takes depends on a value of the element")
        numbers = _numbers(key)
        return element.lent(element.block[np.arange(len(numbers)), numbers], number=True)
    keys, advanced = _keys(key)
    made = element.block[(slice(None), *keys)]
    number = all(isinstance(part, int | np.integer) for part in keys)
    return StandIn(made, rules, own=True) if advanced else element.lent(made, number=number)


def _numbers(key: StandIn) -> Any:
    """Indices. Those of uint64 that are too large for NumPy become negative in a block.

    Raises:
      Unfit: there are such.
    """
    if key.dtype == np.uint64 and key.block.size and key.block.max() > np.iinfo(np.int64).max:
        raise Unfit
    return key.block


def _keys(key: Any) -> tuple[tuple[Any, ...], bool]:
    """A constant key as a tuple, and whether one of its parts is a list or an array, which makes a copy."""
    keys = key if isinstance(key, tuple) else (key,)
    lists = [part for part in keys if isinstance(part, list | np.ndarray)]
    numbers = [part for part in keys if isinstance(part, int | np.integer)]
    if any(isinstance(part, bool) or not isinstance(part, (*_BASIC, list, np.ndarray)) for part in keys):
        raise Refused("it is indexed by something that has no rule")
    if len(lists) > 1 or (lists and numbers):
        raise Refused("it is indexed by several lists or arrays together")
    return keys, bool(lists)


def set_item(element: StandIn, key: Any, value: Any) -> None:
    """`element[key] = value`, for an array that the function made itself."""
    if not element.own:
        raise Refused("it changes its argument, or a view, in place")
    block = element.block
    if isinstance(key, StandIn):
        if key.dtype != bool or key.shape != element.shape or rank(value) or isinstance(value, StandIn):
            raise Refused("it assigns to places that depend on a value of the element")
        block[key.block] = value
        return
    keys, _ = _keys(key)
    target = block[(slice(None), *keys)]
    if rank(value) > target.ndim - 1:
        raise Refused("it assigns more dimensions than there are")
    if isinstance(value, StandIn):
        given = lifted(value, target.ndim - 1)
        value = converted(given, block.dtype)
        if given.dtype.kind in "iu" and value.dtype.kind in "iu" and (value != given).any():
            raise Unfit  # an array of integers wraps, but a number that does not fit is an error
    block[(slice(None), *keys)] = value


def picked(rules: "Rules", table: Any, key: Any) -> StandIn:
    """`table[key]`, for an array from outside and a key with stand-ins."""
    keys = key if isinstance(key, tuple) else (key,)
    whole = len(keys) == 1 and isinstance(keys[0], StandIn)
    for part in keys:
        if isinstance(part, StandIn):
            if part.dtype.kind not in "iu" or (part.ndim and not whole):
                raise Refused("it is indexed by something that has no rule")
        elif isinstance(part, bool) or not isinstance(part, int | np.integer):
            raise Refused("it is indexed by something that has no rule")
    made = np.asarray(table)[tuple([_numbers(part) if isinstance(part, StandIn) else part for part in keys])]
    return StandIn(made, rules, own=True)


def _axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim + 1


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(1, ndim + 1))
    return tuple([_axis(a, ndim) for a in (axis if isinstance(axis, tuple | list) else (axis,))])


def _along(a: StandIn, axis: int | None) -> tuple[Any, int]:
    """What a function goes along: an axis of the elements, or all of their values one after the other."""
    return (a.block.reshape(len(a.block), -1), 1) if axis is None else (a.block, _axis(axis, a.ndim))


def _rows(values: Sequence[Any]) -> list[Any]:
    """Each value for all elements; constants are repeated without a copy."""
    n = next(len(value.block) for value in values if isinstance(value, StandIn))
    return [
        value.block if isinstance(value, StandIn) else np.broadcast_to(value, (n, *np.shape(value))) for value in values
    ]


_VIEWS: dict[Any, Callable[..., StandIn]] = {
    np.expand_dims: lambda a, axis: a.lent(np.expand_dims(a.block, _axis(axis, a.ndim + 1))),
    np.flip: lambda m, axis=None: m.lent(np.flip(m.block, _axes(axis, m.ndim))),
    np.fliplr: lambda m: m.lent(np.flip(m.block, _axis(1, m.ndim))),
    np.flipud: lambda m: m.lent(np.flip(m.block, _axis(0, m.ndim))),
    np.moveaxis: lambda a, source, destination: a.lent(
        np.moveaxis(a.block, _axes(source, a.ndim), _axes(destination, a.ndim))
    ),
    np.ravel: lambda a: a.ravel(),
    np.reshape: lambda a, shape: a.reshape(shape),
    np.rot90: lambda m, k=1, axes=(0, 1): m.lent(
        np.rot90(m.block, k, (_axis(axes[0], m.ndim), _axis(axes[1], m.ndim)))
    ),
    np.swapaxes: lambda a, axis1, axis2: a.swapaxes(axis1, axis2),
    np.transpose: lambda a, axes=None: a.transpose(axes),
}
"""What these functions make of a stand-in: another one, of the same values."""

_VALUES_OF: dict[Any, Callable[..., Any]] = {
    # Each row is sorted alone, so it comes as it does in an element of its own: equal values and NaN as well.
    np.argsort: lambda a, axis=-1, kind=None: np.argsort(*_along(a, axis), kind),
    np.copy: lambda a: a.block.copy(),
    np.concatenate: lambda arrays, axis=0: np.concatenate(_rows(arrays), _axis(axis, rank(arrays[0]))),
    np.cumsum: lambda a, axis=None: np.cumsum(*_along(a, axis)),
    np.ones_like: lambda a, dtype=None: np.ones(a.block.shape, dtype or a.dtype),
    np.sort: lambda a, axis=-1, kind=None: np.sort(*_along(a, axis), kind),
    np.stack: lambda arrays, axis=0: np.stack(_rows(arrays), _axis(axis, rank(arrays[0]) + 1)),
    np.zeros_like: lambda a, dtype=None: np.zeros(a.block.shape, dtype or a.dtype),
}
"""What these functions make for all elements, in memory of its own; without dimensions they are arrays."""


def _enter_tables() -> None:
    for function, view in _VIEWS.items():
        rule(function)(lambda _, *args, view=view, **options: view(*args, **options))
    for function, values in _VALUES_OF.items():
        rule(function)(
            lambda rules, *a, values=values, **options: StandIn(values(*a, **options), rules, own=True, number=False)
        )


_enter_tables()


@rule(np.take)
def _take(rules: "Rules", a: Any, indices: Any, axis: int | None = None) -> StandIn:
    if isinstance(indices, StandIn):
        if isinstance(a, StandIn) or not (axis == 0 or (axis is None and np.ndim(a) == 1)):
            raise Refused("np.take has a rule for constants along the first axis")
        return picked(rules, a, indices)
    block, along = _along(a, axis)
    return StandIn(np.take(block, indices, axis=along), rules, own=True)


@rule(np.diff)
def _diff(rules: "Rules", a: StandIn, n: int = 1, axis: int = -1) -> StandIn:
    return StandIn(np.diff(a.block, n, _axis(axis, a.ndim)), rules, own=True) if n else a


@rule(np.squeeze)
def _squeeze(_: "Rules", a: StandIn, axis: Any = None) -> StandIn:
    ones = tuple([i + 1 for i, size in enumerate(a.shape) if size == 1]) if axis is None else _axes(axis, a.ndim)
    return a.lent(a.block.squeeze(ones)) if ones or a.number or axis is not None else a  # as NumPy gives the same array


@rule(np.roll)
def _roll(rules: "Rules", a: StandIn, shift: Any, axis: Any = None) -> StandIn:
    if axis is None:
        made = np.roll(a.block.reshape(len(a.block), -1), shift, 1).reshape(a.block.shape)
        return StandIn(made, rules, own=True, number=False)
    return StandIn(np.roll(a.block, shift, _axes(axis, a.ndim)), rules, own=True)


@rule(np.repeat)
def _repeat(rules: "Rules", a: StandIn, repeats: Any, axis: int | None = None) -> StandIn:
    block, along = _along(a, axis)
    return StandIn(np.repeat(block, repeats, along), rules, own=True)


@rule(np.tile)
def _tile(rules: "Rules", A: StandIn, reps: Any) -> StandIn:  # noqa: N803 - NumPy's name
    times = tuple(reps) if isinstance(reps, tuple | list) else (reps,)
    ndim = max(len(times), A.ndim)
    made = np.tile(lifted(A, ndim), (1, *(1,) * (ndim - len(times)), *times))
    return StandIn(made, rules, own=True, number=False)


@rule(np.pad)
def _pad(rules: "Rules", array: StandIn, pad_width: Any, mode: Any = "constant", **options: Any) -> StandIn:
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap") or np.ndim(options.get("constant_values", 0)):
        raise Refused(f"np.pad has no rule for mode={mode!r}, or for several constant values")
    width = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    return StandIn(np.pad(array.block, [(0, 0), *map(tuple, width)], mode, **options), rules, own=True, number=False)


@rule(np.broadcast_to)
def _broadcast_to(_: "Rules", array: StandIn, shape: Any) -> StandIn:
    wanted = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    return array.lent(np.broadcast_to(lifted(array, len(wanted)), (len(array.block), *wanted)))


@rule(np.full_like)
def _full_like(rules: "Rules", a: StandIn, fill_value: Any, dtype: Any = None) -> StandIn:
    if isinstance(fill_value, StandIn):
        raise Refused("np.full_like has a rule for a constant value")
    return StandIn(np.full(a.block.shape, fill_value, dtype or a.dtype), rules, own=True, number=False)


# ----------------------------------------------------------------------------
# `Rules`: answers for stand-ins, from the table of rules.
# ----------------------------------------------------------------------------


_VALUES, _LATER = 1 << 13, 2
"""A measured operation is compared for so many values before it is trusted; later for so many elements of each block."""


class Rules:
    """How operations on stand-ins are answered.

    Args:
      measured: whether operations may be answered that are not exact by construction: the first results of each, for a shape
        and dtype, are compared with calls for single elements, and a few in each later block.
    """

    def __init__(self, *, measured: bool) -> None:
        self.measured = measured
        self.outside: list[Any] = []  # arrays that no function made
        self._compared: dict[Any, int] = {}

    def is_outside(self, array: Any) -> bool:
        """Whether it has memory of an array that no function made; such a one is read-only already, or the user's."""
        return any(np.may_share_memory(array, other) for other in self.outside)

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
        """A ufunc, or one of its methods, called with stand-ins."""
        if method == "__call__" and ufunc is np.matmul:
            return self.function(ufunc, inputs, options)
        if method == "__call__":
            return applied(self, ufunc, inputs, dict(options))
        if method == "reduce" and ufunc in OF_UFUNCS:
            return self.function(OF_UFUNCS[ufunc], inputs, {"axis": 0, **options})
        raise Refused(f"np.{ufunc.__name__}.{method} has no rule")

    def function(self, function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """Another function of NumPy called with stand-ins."""
        answer = FUNCTIONS.get(function)
        if answer is None:
            raise Refused(f"np.{getattr(function, '__name__', function)} has no rule")
        try:
            return answer(self, *args, **options)
        except TypeError as error:
            raise Refused(f"np.{function.__name__} is called in a way that has no rule ({error})") from error

    def measure(
        self,
        name: str,
        made: Any,
        inputs: Sequence[Any],
        call: Callable[..., Any],
        weight: int = 1,
        options: Any = None,
    ) -> StandIn:
        """`made`, if calls for single elements give the same bits.

        Args:
          name: of the operation.
          made: its results for all elements.
          inputs: stand-ins and constants.
          call: the operation for one element.
          weight: for how many values one counts; a sum shows at once where it is added up in another order.
          options: of the operation: with others, it is another one.

        Raises:
          Refused: they do not, or nothing may be measured.
        """
        if not self.measured:
            raise Refused(f"np.{name} is not exact by construction; vectorize=True measures whether it is here")
        shapes = [(v.shape, v.dtype, v.block.strides[1:]) if isinstance(v, StandIn) else np.shape(v) for v in inputs]
        key = (name, str(shapes), str(options))
        known = self._compared.get(key, 0)
        size = max(1, made.size // max(1, len(made))) * weight
        rows = min(len(made), max(_LATER, -(-(_VALUES - known) // size)))
        # Ends of blocks are computed otherwise than their middles: each block is looked at in other places.
        for row in ((known // (size * rows) + np.arange(rows) * len(made) // rows) % len(made)).tolist():
            alone = call(*[value.block[row] if isinstance(value, StandIn) else value for value in inputs])
            if not same_bits(alone, made[row]):
                raise Refused(f"np.{name} gives other last digits for a block than for one element")
            known += size
        self._compared[key] = known
        return StandIn(made, self, own=True)


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays or numbers are the same to the bit; any NaN equals any other."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind != "f":
        return False
    numbers = ~(np.isnan(a) & np.isnan(b))
    return bool(a[numbers].tobytes() == b[numbers].tobytes())
