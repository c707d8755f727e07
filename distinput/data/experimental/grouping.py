# SPDX-License-Identifier: Apache-2.0
"""Functions for `apply` that group elements by a key, or choose among them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.ops.group_by_reducer import GroupByReducer
from distinput.plan.check import callable_argument

__all__ = ["Reducer", "group_by_reducer", "group_by_window", "rejection_resample"]

Transformation = Callable[[Dataset[Any]], Dataset[Any]]


@dataclass(frozen=True)
class Reducer:
    """How `group_by_reducer` makes one element of all elements of a key.

    Args:
      init_func: key -> the first value for that key, any nest.
      reduce_func: (value, element) -> the next value, of the same structure and dtypes.
      finalize_func: value -> the element to deliver; the components of a tuple are its arguments.

    Raises:
      TypeError: something is not callable.

    Source: `tf.data.experimental.Reducer`.
    """

    init_func: Callable[[Any], Any]
    reduce_func: Callable[[Any, Any], Any]
    finalize_func: Callable[..., Any]

    def __post_init__(self) -> None:
        for name in ("init_func", "reduce_func", "finalize_func"):
            callable_argument("Reducer", name, getattr(self, name))


def group_by_reducer(key_func: Callable[..., Any], reducer: Reducer) -> Transformation:
    """A function for `apply` that reduces the elements of each key to one, in ascending order of the keys.

    Elements come once the input has ended; the reduced value of every key is kept in memory.

    Args:
      key_func: element -> integer; the components of a tuple are its arguments.
      reducer: what to do with the elements of a key.

    Raises:
      TypeError: `reducer` is no `Reducer`; at iteration, `key_func` returns no integer, or a value changes its structure or
        a dtype.

    >>> import distinput as di
    >>> reducer = di.data.experimental.Reducer(lambda key: np.int64(0), lambda total, x: total + x, lambda total: total)
    >>> di.data.Dataset.range(10).apply(di.data.experimental.group_by_reducer(lambda x: x % 3, reducer)).to_list()
    [18, 12, 15]

    Source: `tf.data.experimental.group_by_reducer`.
    """
    if not isinstance(reducer, Reducer):
        raise TypeError(f"group_by_reducer: reducer must be a Reducer, got {reducer!r}")
    functions = key_func, reducer.init_func, reducer.reduce_func, reducer.finalize_func
    return lambda dataset: Dataset(GroupByReducer(dataset.node, *functions))


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Dataset[Any]], Dataset[Any]],
    window_size: int | None = None,
    window_size_func: Callable[[Any], Any] | None = None,
) -> Transformation:
    """`Dataset.group_by_window`, for `apply`.

    Args:
      key_func: element -> integer.
      reduce_func: (key, dataset of the group's elements) -> dataset.
      window_size: elements in a group.
      window_size_func: key -> elements in a group of that key.

    Raises:
      InvalidArgumentError: not exactly one of the two sizes is given.

    >>> import distinput as di
    >>> group = di.data.experimental.group_by_window(lambda x: x % 2, lambda key, group: group.batch(2), 2)
    >>> di.data.Dataset.range(4).apply(group).to_list()
    [[0, 2], [1, 3]]

    Source: `tf.data.experimental.group_by_window`.
    """
    if (window_size is None) == (window_size_func is None):
        raise InvalidArgumentError("group_by_window: give exactly one of window_size and window_size_func")
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


def rejection_resample(
    class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None, seed: int | None = None
) -> Transformation:
    """`Dataset.rejection_resample`, for `apply`.

    Args:
      class_func: element -> its class, an integer from 0 to `len(target_dist) - 1`.
      target_dist: the wanted share of each class.
      initial_dist: the share that each class has; None: estimated from the elements so far.
      seed: any integer; None draws one, which a saved state remembers.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(4).apply(di.data.experimental.rejection_resample(lambda x: x % 2, [1.0, 0.0], [0.5, 0.5]))
    >>> ds.to_list()
    [(0, 0), (0, 2)]

    Source: `tf.data.experimental.rejection_resample`.
    """
    return lambda dataset: dataset.rejection_resample(class_func, target_dist, initial_dist, seed)
