# SPDX-License-Identifier: Apache-2.0
"""Which records are in a batch, and what a batch looks like, whatever library made it."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

__all__ = ["Ids", "UnknownBatch", "ids_of", "look_of"]

Ids = Callable[[Any], Iterable[Hashable]]
"""The records of a batch."""


class UnknownBatch(TypeError):
    """It cannot be told which records are in a batch."""


def ids_of(batch: Any) -> list[Hashable]:
    """The records of a batch of numbers: an array, a tensor or a list; of a dict "id" or its only value, of a tuple the first.

    Raises:
      UnknownBatch: it is none of these.

    >>> ids_of({"x": [[0.5], [0.7]], "id": np.array([3, 4])}), ids_of([[7, 8], ["a", "b"]]), ids_of([])
    ([3, 4], [7, 8], [])
    """
    found = _flat(_component(batch))
    for each in found:
        if not isinstance(each, int | str | bytes):
            raise UnknownBatch(
                f"judge: a batch must have the numbers of its records, got {each!r} in a {type(batch).__name__}; "
                "give ids=, a function from a batch to its records"
            )
    return found


def _component(batch: Any) -> Any:
    """The component that has the records."""
    if isinstance(batch, Mapping):
        if "id" in batch:
            return batch["id"]
        if len(batch) == 1:
            return next(iter(batch.values()))
        raise UnknownBatch(f"judge: a batch has the keys {sorted(map(str, batch))} and no 'id'; give ids=")
    if isinstance(batch, tuple) and len(batch) and not _is_number(batch[0]):
        return _component(batch[0])
    if isinstance(batch, list) and batch and _has_rows(batch[0]):
        return _component(batch[0])  # components side by side, as collated tuples are
    if isinstance(batch, list) and batch and isinstance(batch[0], Mapping):
        return [_component(row) for row in batch]
    return batch


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | str | bytes) or getattr(value, "shape", None) == ()


def _has_rows(value: Any) -> bool:
    return isinstance(value, list | tuple) or bool(getattr(value, "shape", ()))


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "tolist"):  # arrays and tensors; of numbers that are whole, whatever their dtype
        value = value.tolist()
    if isinstance(value, list | tuple | range):
        return [leaf for each in value for leaf in _flat(each)]
    if isinstance(value, float) and value.is_integer():
        return [int(value)]
    return [value]


def look_of(batch: Any) -> Hashable:
    """What all batches of a loader have in common: structure, dtypes and shapes without the first axis.

    >>> look_of({"x": np.zeros((3, 2)), "id": np.arange(3)}) == look_of({"x": np.zeros((0, 2)), "id": np.arange(0)})
    True
    """
    if isinstance(batch, Mapping):
        return ("dict", tuple([(str(key), look_of(batch[key])) for key in sorted(batch, key=str)]))
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return (type(batch).__name__, str(getattr(batch, "dtype", "")), tuple(map(int, shape[1:])))
    if isinstance(batch, list | tuple) and batch and (_has_rows(batch[0]) or isinstance(batch, tuple)):
        return (type(batch).__name__, tuple(map(look_of, batch)))
    return type(batch).__name__
