# SPDX-License-Identifier: Apache-2.0
"""`filter` and `take_while`: the elements for which a predicate holds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from distinput.core.rows import Stream, called
from distinput.core.run import Run
from distinput.core.spec import Spec
from distinput.core.state import State
from distinput.errors import InvalidArgumentError
from distinput.ops.function import calling
from distinput.plan.check import callable_argument
from distinput.plan.node import Node

__all__ = ["Filter", "TakeWhile"]


@dataclass(frozen=True, eq=False)
class Filter(Node):
    """Keep the elements for which `predicate` is true.

    Shapes and order: unchanged. State: where the next element stands in the input.

    Args:
      predicate: called as `map` calls its function; must return one boolean.

    Raises:
      TypeError: `predicate` cannot be called, or returns something else than a boolean.

    >>> import distinput as di
    >>> di.data.Dataset.range(6).filter(lambda x: x % 2 == 1).to_list()
    [1, 3, 5]

    Source: `tf.data.Dataset.filter`.
    """

    input: Node
    predicate: Callable[..., Any]

    def __post_init__(self) -> None:
        callable_argument("filter", "predicate", self.predicate)

    @cached_property
    def call(self) -> Callable[[Any], bool]:
        """The predicate of one element."""
        return _predicate("filter", self.predicate)

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def stream(self, state: State, run: Run) -> Stream:
        for kept, rows, first, mark in called(self.input.open(state["input"], run), state, self.call):
            indices = np.flatnonzero(kept)
            if len(indices) == len(kept):
                yield rows.rows(first, first + len(kept)), mark
            else:
                yield rows.take(indices + first), mark


@dataclass(frozen=True, eq=False)
class TakeWhile(Node):
    """Elements up to the first one for which `predicate` is false.

    Shapes and order: unchanged. State: where the next element stands in the input.

    Args:
      predicate: called as `map` calls its function; must return one boolean.

    >>> import distinput as di
    >>> di.data.Dataset.range(10).take_while(lambda x: x < 4).to_list()
    [0, 1, 2, 3]

    Source: `tf.data.Dataset.take_while`.
    """

    input: Node
    predicate: Callable[..., Any]

    def __post_init__(self) -> None:
        callable_argument("take_while", "predicate", self.predicate)

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0, "ended": False}

    def stream(self, state: State, run: Run) -> Stream:
        if state["ended"]:
            return
        predicate = _predicate("take_while", self.predicate)
        ended = False

        def going_on(element: Any) -> bool:
            nonlocal ended
            ended = ended or not predicate(element)  # after the end the predicate is not called any more
            return not ended

        for kept, rows, first, mark in called(self.input.open(state["input"], run), state, going_on):
            if ended:
                yield rows.rows(first, first + kept.index(False)), {**mark, "ended": True}
                return
            yield rows.rows(first, first + len(kept)), {**mark, "ended": False}


def _predicate(op: str, function: Callable[..., Any]) -> Callable[[Any], bool]:
    call = calling(function)

    def predicate(element: Any) -> bool:
        result = call(element)
        if result is True or result is False:
            return bool(result)
        array = np.asarray(result)
        if array.dtype != np.bool_:
            raise TypeError(f"{op}: predicate must return a boolean, got {result!r}")
        if array.ndim:
            raise InvalidArgumentError(
                f"{op}: predicate must return one boolean, got an array of shape {list(array.shape)}"
            )
        return bool(array)

    return predicate
