# SPDX-License-Identifier: Apache-2.0
"""What a stream of Hugging Face is: whether its shards can be read apart, and which operations it has behind it.

An operation such as `take` or a batched `map` is one of the whole stream: applied to each shard, it would give other rows.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from distinput.core.digest import Digest

__all__ = ["described", "divides", "same_stream"]

_SOURCES = ("ExamplesIterable", "ArrowExamplesIterable")
_OF_EACH_ROW = ("FormattedExamplesIterable", "RebatchedArrowExamplesIterable", "SelectColumnsIterable")
_CALLS = ("FilteredExamplesIterable", "MappedExamplesIterable")


def divides(stream: Any) -> bool:
    """True if the stream is its shards one after another, each read alone: all that it does is done to each row.

    What is not known here is taken for an operation of the whole.
    """
    if stream._distributed is not None or stream.epoch:
        return False
    step = stream._ex_iterable
    while type(step).__name__ not in _SOURCES:
        kind = type(step).__name__
        if kind not in _OF_EACH_ROW + _CALLS or getattr(step, "drop_last_batch", False):
            return False
        if kind in _CALLS and (step.batched or step.with_indices):
            return False
        step = step.ex_iterable
    return True


def same_stream(stream: Any, kind: str | None) -> Any:
    """The stream in another format, at the same epoch, which `with_format` forgets."""
    made = stream.with_format(kind)
    made.set_epoch(stream.epoch)
    return made


def described(stream: Any) -> str:
    """A word for the operations of a stream and their numbers; its functions and sources do not count."""
    split = stream._distributed and (stream._distributed.rank, stream._distributed.world_size)
    return Digest(6).add(split, stream.epoch, *_steps(stream._ex_iterable)).word


def _steps(step: Any) -> Iterator[Any]:
    yield type(step).__name__
    for name, value in sorted(vars(step).items()):
        if isinstance(value, np.random.Generator):
            yield name, repr(value.bit_generator.state)
        elif isinstance(value, bool | int | float | str) and not name.startswith("_"):
            yield name, value
    inputs = getattr(step, "ex_iterables", None) or [getattr(step, "ex_iterable", None)]
    for each in inputs:
        if each is not None:
            yield from _steps(each)
