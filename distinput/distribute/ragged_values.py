# SPDX-License-Identifier: Apache-2.0
"""`reduce` and `gather` of ragged tensors: of their values and row lengths, which are arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distinput.core.ragged_rows import splits_of
from distinput.core.ragged_tensor import RaggedTensor, counts_over, sums_over
from distinput.distribute.arithmetic import Arithmetic
from distinput.distribute.reduce_op import ReduceOp
from distinput.distribute.reduction import check_axis, mean_of_rows, wide_dtype
from distinput.errors import InvalidArgumentError

__all__ = ["gather_ragged", "reduce_ragged"]


def gather_ragged(arithmetic: Arithmetic, parts: Sequence[Any], axis: Any, *, call: str, name: str) -> RaggedTensor:
    """The rows of all replicas, one after the other.

    Raises:
      InvalidArgumentError: another axis than 0; parts differ in dtype, in what is ragged, or in the shape of a value.
    """
    first = _alike(parts, call)
    if not isinstance(axis, int | np.integer) or int(axis) not in (0, -first.ndim):
        raise InvalidArgumentError(f"{call}: ragged tensors are gathered along axis 0, their rows, got axis {axis}")
    levels = zip(*[_lengths(part) for part in parts], strict=True)
    lengths = [arithmetic.gather(each, 0, call=f"{call}, row lengths", name=name) for each in levels]
    made = arithmetic.gather([part.flat_values for part in parts], 0, call=call, name=name)
    for each in reversed(lengths):
        made = RaggedTensor(made, splits_of(each))
    return made  # type: ignore[no-any-return]


def reduce_ragged(
    arithmetic: Arithmetic, op: ReduceOp, parts: Sequence[Any], axis: Any, *, deterministic: bool, call: str, name: str
) -> Any:
    """The sum or mean over some axes and over all replicas; the mean divides by the true number of values.

    Over all ragged dimensions it is that of the values. Over the rows alone, axis 0, it has a value for each place of the
    longest row of all replicas; over another axis, what is left must have the same shape on every replica, as for arrays.

    Raises:
      InvalidArgumentError: `axis` is None, or see `sums_over`; parts differ in kind; no numbers.
      ValueError: an axis out of range.

    Source: `tf.reduce_sum` and `tf.reduce_mean` of ragged tensors.
    """
    first = _alike(parts, call)
    if first.dtype.kind not in "iufc":
        raise InvalidArgumentError(f"{call}: {op.name} needs numbers, got a ragged tensor of {first.dtype}")
    if axis is None:
        raise InvalidArgumentError(
            f"{call}: ragged tensors of several replicas have no sum element by element, since their rows differ in length; "
            "give axis=0 for the rows, or a tuple with the ragged axes, such as axis=(0, 1), for all values"
        )
    axes, rank = check_axis(axis, first.ndim), first.ragged_rank
    if set(range(rank + 1)) <= set(axes):
        inner = tuple([axis - rank for axis in axes if axis >= rank])
        flat = [part.flat_values for part in parts]
        return arithmetic.reduce(op, flat, inner, deterministic=deterministic, call=call, name=name)
    if deterministic and first.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"{call}: deterministic=True of ragged tensors needs all ragged axes, {tuple(range(rank + 1))}, got {axis}"
        )
    wide = first.dtype if op is ReduceOp.SUM else wide_dtype(first.dtype)
    sums, counts = [sums_over(part, axes, wide) for part in parts], [counts_over(part, axes) for part in parts]
    if any(isinstance(part, RaggedTensor) for part in sums):
        raise InvalidArgumentError(
            f"{call}: over axis {axis} the rows of ragged tensors stay ragged, and those of replicas have no sum; add a ragged "
            "axis or axis 0"
        )
    if 0 in axes:
        longest = arithmetic.gather([np.array([len(part)]) for part in sums], 0, call=f"{call}, longest row", name=name)
        width = int(longest.max())
        sums, counts = [_wider(part, width) for part in sums], [_wider(part, width) for part in counts]
    total = arithmetic.reduce(ReduceOp.SUM, sums, None, call=call, name=name)
    if op is ReduceOp.SUM:
        return total
    return mean_of_rows(total, arithmetic.reduce(ReduceOp.SUM, counts, None, call=call, name=name), first.dtype)


def _alike(parts: Sequence[Any], call: str) -> RaggedTensor:
    """The first part; all must be of its kind."""
    first = parts[0]
    for i, part in enumerate(parts):
        if not isinstance(part, RaggedTensor) or not isinstance(first, RaggedTensor) or _kind(part) != _kind(first):
            raise InvalidArgumentError(
                f"{call}: ragged tensors must be of one kind on all replicas, got {_told(first)} on replica 0 and "
                f"{_told(part)} on replica {i}"
            )
    return first  # type: ignore[no-any-return]


def _kind(part: RaggedTensor) -> tuple[Any, ...]:
    return part.dtype, part.ragged_rank, part.flat_values.shape[1:]


def _told(part: Any) -> str:
    if not isinstance(part, RaggedTensor):
        return f"an array of shape {list(np.shape(part))}"
    return f"shape {part.shape} and dtype {part.dtype}"


def _lengths(part: RaggedTensor) -> list[Any]:
    """The row lengths on all levels."""
    return [splits[1:] - splits[:-1] for splits in part.nested_row_splits]


def _wider(array: Any, width: int) -> Any:
    out = np.zeros((width, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out
