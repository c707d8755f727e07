# SPDX-License-Identifier: Apache-2.0
"""Operations that move values and compute none: indices, axes, joining, padding. A block has one axis more, the first."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.functions.vectorized.elementwise import converted
from distinput.functions.vectorized.stand_in import Answers, Refused, StandIn, lifted, rank, rule

__all__ = ["item", "picked", "set_item"]

_BASIC = (int, np.integer, slice, type(None), type(Ellipsis))


def item(rules: Answers, element: StandIn, key: Any) -> StandIn:
    """`element[key]`."""
    if isinstance(key, StandIn):
        if key.ndim or key.dtype.kind not in "iu":
            raise Refused("the shape of what it takes depends on a value of the element")
        n = len(key.block)
        return element.lent(element.block[np.arange(n), key.block])
    keys, advanced = _keys(key)
    made = element.block[(slice(None), *keys)]
    return StandIn(made, rules, own=True) if advanced else element.lent(made)


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
        value = converted(lifted(value, target.ndim - 1), block.dtype)
    block[(slice(None), *keys)] = value


def picked(rules: Answers, table: Any, key: Any) -> StandIn:
    """`table[key]`, for an array from outside and a key with stand-ins."""
    keys = key if isinstance(key, tuple) else (key,)
    whole = len(keys) == 1 and isinstance(keys[0], StandIn)
    for part in keys:
        if isinstance(part, StandIn):
            if part.dtype.kind not in "iu" or (part.ndim and not whole):
                raise Refused("it is indexed by something that has no rule")
        elif isinstance(part, bool) or not isinstance(part, int | np.integer):
            raise Refused("it is indexed by something that has no rule")
    made = np.asarray(table)[tuple([part.block if isinstance(part, StandIn) else part for part in keys])]
    return StandIn(made, rules, own=True)


def _axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim + 1


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(1, ndim + 1))
    return tuple([_axis(a, ndim) for a in (axis if isinstance(axis, tuple | list) else (axis,))])


def _rows(values: Sequence[Any]) -> list[Any]:
    """Each value for all elements; constants are repeated without a copy."""
    n = next(len(value.block) for value in values if isinstance(value, StandIn))
    return [
        value.block if isinstance(value, StandIn) else np.broadcast_to(value, (n, *np.shape(value))) for value in values
    ]


@rule(np.take)
def _take(rules: Answers, a: Any, indices: Any, axis: int | None = None) -> StandIn:
    if isinstance(indices, StandIn):
        if isinstance(a, StandIn) or not (axis == 0 or (axis is None and np.ndim(a) == 1)):
            raise Refused("np.take has a rule for constants along the first axis")
        return picked(rules, a, indices)
    if axis is None:
        return StandIn(np.take(a.block.reshape(len(a.block), -1), indices, axis=1), rules, own=True)
    return StandIn(np.take(a.block, indices, axis=_axis(axis, a.ndim)), rules, own=True)


@rule(np.stack)
def _stack(rules: Answers, arrays: Sequence[Any], axis: int = 0) -> StandIn:
    return StandIn(np.stack(_rows(arrays), _axis(axis, rank(arrays[0]) + 1)), rules, own=True)


@rule(np.concatenate)
def _concatenate(rules: Answers, arrays: Sequence[Any], axis: int = 0) -> StandIn:
    return StandIn(np.concatenate(_rows(arrays), _axis(axis, rank(arrays[0]))), rules, own=True)


@rule(np.transpose)
def _transpose(_: Answers, a: StandIn, axes: Any = None) -> StandIn:
    return a.transpose(axes)


@rule(np.swapaxes)
def _swapaxes(_: Answers, a: StandIn, axis1: int, axis2: int) -> StandIn:
    return a.swapaxes(axis1, axis2)


@rule(np.moveaxis)
def _moveaxis(_: Answers, a: StandIn, source: Any, destination: Any) -> StandIn:
    return a.lent(np.moveaxis(a.block, _axes(source, a.ndim), _axes(destination, a.ndim)))


@rule(np.reshape)
def _reshape(_: Answers, a: StandIn, shape: Any) -> StandIn:
    return a.reshape(*shape) if isinstance(shape, tuple | list) else a.reshape(shape)


@rule(np.ravel)
def _ravel(_: Answers, a: StandIn) -> StandIn:
    return a.ravel()


@rule(np.squeeze)
def _squeeze(_: Answers, a: StandIn, axis: Any = None) -> StandIn:
    ones = tuple([i + 1 for i, size in enumerate(a.shape) if size == 1]) if axis is None else _axes(axis, a.ndim)
    return a.lent(a.block.squeeze(ones))


@rule(np.expand_dims)
def _expand_dims(_: Answers, a: StandIn, axis: int) -> StandIn:
    return a.lent(np.expand_dims(a.block, _axis(axis, a.ndim + 1)))


@rule(np.flip)
def _flip(_: Answers, m: StandIn, axis: Any = None) -> StandIn:
    return m.lent(np.flip(m.block, _axes(axis, m.ndim)))


@rule(np.fliplr)
def _fliplr(_: Answers, m: StandIn) -> StandIn:
    return m.lent(np.flip(m.block, _axis(1, m.ndim)))


@rule(np.flipud)
def _flipud(_: Answers, m: StandIn) -> StandIn:
    return m.lent(np.flip(m.block, _axis(0, m.ndim)))


@rule(np.rot90)
def _rot90(_: Answers, m: StandIn, k: int = 1, axes: tuple[int, int] = (0, 1)) -> StandIn:
    return m.lent(np.rot90(m.block, k, (_axis(axes[0], m.ndim), _axis(axes[1], m.ndim))))


@rule(np.roll)
def _roll(rules: Answers, a: StandIn, shift: Any, axis: Any = None) -> StandIn:
    if axis is None:
        flat = np.roll(a.block.reshape(len(a.block), -1), shift, 1)
        return StandIn(flat.reshape(a.block.shape), rules, own=True)
    return StandIn(np.roll(a.block, shift, _axes(axis, a.ndim)), rules, own=True)


@rule(np.repeat)
def _repeat(rules: Answers, a: StandIn, repeats: Any, axis: int | None = None) -> StandIn:
    block = a.block.reshape(len(a.block), -1) if axis is None else a.block
    return StandIn(np.repeat(block, repeats, 1 if axis is None else _axis(axis, a.ndim)), rules, own=True)


@rule(np.tile)
def _tile(rules: Answers, A: StandIn, reps: Any) -> StandIn:  # noqa: N803 - NumPy's name
    times = tuple(reps) if isinstance(reps, tuple | list) else (reps,)
    ndim = max(len(times), A.ndim)
    return StandIn(np.tile(lifted(A, ndim), (1, *(1,) * (ndim - len(times)), *times)), rules, own=True)


@rule(np.pad)
def _pad(rules: Answers, array: StandIn, pad_width: Any, mode: Any = "constant", **options: Any) -> StandIn:
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap") or np.ndim(options.get("constant_values", 0)):
        raise Refused(f"np.pad has no rule for mode={mode!r}, or for several constant values")
    width = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    return StandIn(np.pad(array.block, [(0, 0), *map(tuple, width)], mode, **options), rules, own=True)


@rule(np.diff)
def _diff(rules: Answers, a: StandIn, n: int = 1, axis: int = -1) -> StandIn:
    return StandIn(np.diff(a.block, n, _axis(axis, a.ndim)), rules, own=True)


@rule(np.broadcast_to)
def _broadcast_to(_: Answers, array: StandIn, shape: Any) -> StandIn:
    wanted = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    return array.lent(np.broadcast_to(lifted(array, len(wanted)), (len(array.block), *wanted)))


@rule(np.zeros_like)
def _zeros_like(rules: Answers, a: StandIn, dtype: Any = None) -> StandIn:
    return StandIn(np.zeros(a.block.shape, dtype or a.dtype), rules, own=True)


@rule(np.ones_like)
def _ones_like(rules: Answers, a: StandIn, dtype: Any = None) -> StandIn:
    return StandIn(np.ones(a.block.shape, dtype or a.dtype), rules, own=True)


@rule(np.full_like)
def _full_like(rules: Answers, a: StandIn, fill_value: Any, dtype: Any = None) -> StandIn:
    if isinstance(fill_value, StandIn):
        raise Refused("np.full_like has a rule for a constant value")
    return StandIn(np.full(a.block.shape, fill_value, dtype or a.dtype), rules, own=True)


@rule(np.copy)
def _copy(_: Answers, a: StandIn) -> StandIn:
    return a.copy()
