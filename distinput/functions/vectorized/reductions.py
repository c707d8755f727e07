# SPDX-License-Identifier: Apache-2.0
"""Operations over the values of an element: sums, extremes, products of matrices.

Exact are those whose result does not depend on the order of the values: sums of integers, whose overflow wraps, means of
integers whose sum is exact in float64, extremes, and running sums, whose order is given. The others are measured.
"""

from typing import Any

import numpy as np

from distinput.functions.vectorized.refusal import Refused, Unfit
from distinput.functions.vectorized.stand_in import Answers, StandIn, rank
from distinput.functions.vectorized.table import rule

__all__ = ["OF_UFUNCS"]

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
