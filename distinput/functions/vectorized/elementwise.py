# SPDX-License-Identifier: Apache-2.0
"""Operations on each value alone, and over the values of an element."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.functions.vectorized.stand_in import Answers, Refused, StandIn, Unfit, lifted, rank, rule

__all__ = ["OF_UFUNCS", "applied", "cast", "power"]


# ----------------------------------------------------------------------------
# Operations on each value alone.
#
# Those of `EXACT` are defined by IEEE 754 or are arithmetic of integers: there is one right result, however many values are
# computed at a time. Others, such as `exp`, may take another path for a block than for one element; they are measured.
# ----------------------------------------------------------------------------


EXACT = frozenset(
    [
        "absolute",
        "add",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "ceil",
        "copysign",
        "divide",
        "equal",
        "fabs",
        "floor",
        "fmax",
        "fmin",
        "greater",
        "greater_equal",
        "invert",
        "isfinite",
        "isinf",
        "isnan",
        "left_shift",
        "less",
        "less_equal",
        "logical_and",
        "logical_not",
        "logical_or",
        "logical_xor",
        "maximum",
        "minimum",
        "multiply",
        "negative",
        "not_equal",
        "positive",
        "right_shift",
        "rint",
        "sign",
        "signbit",
        "sqrt",
        "square",
        "subtract",
        "trunc",
    ]
)
_EXACT_OF_INTEGERS = frozenset(("floor_divide", "remainder"))
_MEASURED = frozenset(
    [
        "arccos",
        "arccosh",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctan2",
        "arctanh",
        "cbrt",
        "cos",
        "cosh",
        "deg2rad",
        "exp",
        "exp2",
        "expm1",
        "float_power",
        "floor_divide",
        "fmod",
        "hypot",
        "log",
        "log10",
        "log1p",
        "log2",
        "logaddexp",
        "power",
        "rad2deg",
        "reciprocal",
        "remainder",
        "sin",
        "sinh",
        "tan",
        "tanh",
    ]
)
_OVERFLOWING = frozenset(("absolute", "add", "multiply", "negative", "subtract"))
_CHOOSING = frozenset(("fmax", "fmin", "maximum", "minimum"))


def applied(rules: Answers, ufunc: Any, inputs: Sequence[Any], options: dict[str, Any]) -> StandIn:
    """A ufunc called with stand-ins."""
    name = ufunc.__name__
    target = options.pop("out", None)
    if set(options) - {"dtype"} or ufunc.nout != 1 or ufunc.signature is not None:
        raise Refused(f"np.{name} is called with options or results that have no rule")
    ndim = max(map(rank, inputs))
    blocks = [lifted(value, ndim) for value in inputs]
    made = ufunc(*blocks, **options)
    if name in EXACT or (name in _EXACT_OF_INTEGERS and made.dtype.kind in "iu"):
        if name in _OVERFLOWING and not ndim and made.dtype.kind in "iu":
            _check_range(ufunc, blocks, made.dtype)
        if name in _CHOOSING and made.dtype.kind == "f":
            check_zeros(*blocks)
        result = StandIn(made, rules, own=True)
    elif name in _MEASURED:
        result = rules.measure(name, made, inputs, lambda *values: ufunc(*values, **options))
    else:
        raise Refused(f"np.{name} has no rule")
    return result if target is None else _in_place(result, target)


def _in_place(result: StandIn, target: Any) -> StandIn:
    (given,) = target
    if not isinstance(given, StandIn):
        raise Refused("it writes to an array from outside")
    if not given.ndim:
        return result  # a number: the name gets another one
    if not given.own or given.shape != result.shape:
        raise Refused("it changes its argument, or a view, in place")
    np.copyto(given.block, result.block, casting="same_kind")
    return given


def _check_range(ufunc: Any, blocks: Sequence[Any], dtype: Any) -> None:
    """NumPy warns where a number of its own overflows, but not where a value of an array does."""
    about = ufunc(*[np.asarray(block, np.float64) for block in blocks])
    info = np.iinfo(dtype)
    low, high = (info.min, info.max) if dtype.itemsize < 8 else (info.min // 2, info.max // 2)
    if about.size and (about.min() < low or about.max() > high):
        raise Unfit


def check_zeros(a: Any, b: Any) -> None:
    """Which of 0.0 and -0.0 is the larger one is not defined."""
    if bool(((a == b) & (np.signbit(a) != np.signbit(b))).any()):
        raise Unfit


def power(rules: Answers, element: StandIn, exponent: Any) -> Any:
    """`element ** exponent`; arrays of floats have exact ways for some constants."""
    if element.ndim and element.dtype.kind == "f" and type(exponent) in (int, float) and exponent in (-1, 0.5, 1, 2):
        return StandIn(element.block**exponent, rules, own=True)
    made = lifted(element, max(element.ndim, rank(exponent))) ** lifted(exponent, max(element.ndim, rank(exponent)))
    return rules.measure("power", made, (element, exponent), lambda a, b: a**b)


def cast(rules: Answers, element: StandIn, dtype: Any, copy: bool) -> StandIn:
    """Each value converted; what does not fit into integers is not defined."""
    if dtype == element.dtype and not copy:
        return element
    return StandIn(converted(element.block, dtype), rules, own=True)


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
def _where(rules: Answers, condition: Any, *choices: Any) -> StandIn:
    if len(choices) != 2:
        raise Refused("the shape of what it returns depends on a value of the element")
    ndim = max(map(rank, (condition, *choices)))
    return StandIn(np.where(*[lifted(value, ndim) for value in (condition, *choices)]), rules, own=True)


@rule(np.clip)
def _clip(rules: Answers, a: Any, a_min: Any = None, a_max: Any = None) -> StandIn:
    ndim = max(map(rank, (a, a_min, a_max)))
    values, low, high = [lifted(value, ndim) for value in (a, a_min, a_max)]
    if values.dtype.kind == "f":
        for bound in (low, high):
            if bound is not None:
                check_zeros(values, bound)
    return StandIn(np.clip(values, low, high), rules, own=True)


@rule(np.round, np.around)
def _round(rules: Answers, a: StandIn, decimals: int = 0) -> StandIn:
    if type(decimals) is not int or decimals < 0:
        raise Refused("np.round has a rule for a constant number of decimals, at least 0")
    return StandIn(np.round(a.block, decimals), rules, own=True)


@rule(np.searchsorted)
def _searchsorted(rules: Answers, a: Any, v: Any, side: Any = "left") -> StandIn:
    if isinstance(a, StandIn):
        raise Refused("np.searchsorted has a rule for constant sorted values")
    return StandIn(np.searchsorted(a, v.block, side), rules, own=True)


@rule(np.digitize)
def _digitize(rules: Answers, x: Any, bins: Any, right: bool = False) -> StandIn:
    if isinstance(bins, StandIn):
        raise Refused("np.digitize has a rule for constant bins")
    return StandIn(np.digitize(x.block, bins, right), rules, own=True)


# ----------------------------------------------------------------------------
# Operations over the values of an element: sums, extremes, products of matrices.
#
# Exact are those whose result does not depend on the order of the values: sums of integers, whose overflow wraps, means of
# integers whose sum is exact in float64, extremes, and running sums, whose order is given. The others are measured.
# ----------------------------------------------------------------------------


OF_UFUNCS = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}
"""The function that `ufunc.reduce` is."""

_WEIGHT = 32
"""How many values of other operations one sum is worth when it is measured: 256 sums are compared."""

_WHOLE = 1 << 20
"""Integers of 32 bits whose sum float64 holds exactly."""


def _entered(function: Any) -> None:
    @rule(function)
    def reduced(rules: Answers, a: Any, axis: Any = None, **options: Any) -> StandIn:
        name = function.__name__
        if not isinstance(a, StandIn) or any(isinstance(v, StandIn) for v in options.values()):
            raise Refused(f"np.{name} of several values has no rule")
        made = _over(function, a, axis, options)
        if not set(options) - {"keepdims"} and _is_exact(name, a):
            if name in ("max", "min", "amax", "amin") and a.dtype.kind == "f":
                _check_signs(a.block, made)
            return StandIn(made, rules, own=True)
        return rules.measure(name, made, (a,), lambda value: function(value, axis=axis, **options), _WEIGHT)


for _function in (np.all, np.any, np.argmax, np.argmin, np.max, np.mean, np.min, np.prod, np.std, np.sum, np.var):
    _entered(_function)


def _is_exact(name: str, a: StandIn) -> bool:
    if name in ("all", "any", "argmax", "argmin", "max", "min", "amax", "amin"):
        return True
    integers = a.dtype.kind in "biu"
    return integers and (name in ("sum", "prod") or (name == "mean" and a.dtype.itemsize <= 4 and a.size <= _WHOLE))


def _over(function: Any, a: StandIn, axis: Any, options: dict[str, Any]) -> Any:
    """The function over axes of all elements."""
    if axis is not None:
        axes = [(x % a.ndim) + 1 for x in (axis if isinstance(axis, tuple | list) else (axis,))]
        if any(not -a.ndim <= x < a.ndim for x in (axis if isinstance(axis, tuple | list) else (axis,))):
            raise ValueError(f"axis {axis} is out of bounds for array of dimension {a.ndim}")
        return function(a.block, axis=axes[0] if len(axes) == 1 else tuple(axes), **options)
    given = {key: value for key, value in options.items() if key != "keepdims"}
    made = function(a.block.reshape(len(a.block), -1), axis=1, **given)
    return made.reshape(len(made), *(1,) * a.ndim) if options.get("keepdims") else made


def _check_signs(block: Any, made: Any) -> None:
    """Which of 0.0 and -0.0 is the larger one is not defined."""
    if bool((made == 0).any()):
        signs = np.signbit(block[block == 0])
        if signs.any() and not signs.all():
            raise Unfit


@rule(np.cumsum)
def _cumsum(rules: Answers, a: StandIn, axis: int | None = None) -> StandIn:
    block = a.block.reshape(len(a.block), -1) if axis is None else a.block
    return StandIn(np.cumsum(block, axis=1 if axis is None else axis % a.ndim + 1), rules, own=True)


@rule(np.linalg.norm)
def _norm(rules: Answers, x: StandIn) -> StandIn:
    flat = x.block.reshape(len(x.block), 1, -1)
    made = np.sqrt(np.matmul(flat, flat.transpose(0, 2, 1))[:, 0, 0])
    return rules.measure("linalg.norm", made, (x,), np.linalg.norm, _WEIGHT)


@rule(np.matmul)
def _matmul(rules: Answers, a: Any, b: Any) -> StandIn:
    return rules.measure("matmul", _product(a, b), (a, b), np.matmul, _WEIGHT)


@rule(np.dot)
def _dot(rules: Answers, a: Any, b: Any) -> StandIn:
    return rules.measure("dot", _product(a, b), (a, b), np.dot, _WEIGHT)


def _product(a: Any, b: Any) -> Any:
    """The product of matrices or vectors for all elements, one after the other as for a single one."""
    if not {rank(a), rank(b)} <= {1, 2}:
        raise Refused("a product of more than two dimensions, or of numbers, has no rule")
    left = a.block if isinstance(a, StandIn) else np.asarray(a)
    right = b.block if isinstance(b, StandIn) else np.asarray(b)
    left = left[..., None, :] if rank(a) == 1 else left
    right = right[..., None] if rank(b) == 1 else right
    made = np.matmul(left, right)
    if rank(b) == 1:
        made = made[..., 0]
    return made[..., 0] if rank(a) == 1 and rank(b) == 1 else made[..., 0, :] if rank(a) == 1 else made
