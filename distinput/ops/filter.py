# SPDX-License-Identifier: Apache-2.0
"""`filter` and `take_while`: the elements for which a predicate, or an expression of pyarrow, holds."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from itertools import takewhile
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.expression import (
    Term,
    check_expression,
    is_expression,
    part_read,
    rows_where,
    term_of,
    without_halves,
)
from distinput.columns.block import Block, Failure
from distinput.columns.column import Ints
from distinput.columns.rows import Stream, passing_over
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.plan.binding import take_functions
from distinput.plan.families import SameElements
from distinput.plan.node import Needs, Node
from distinput.run.run import MOST_CALLS, Run, called, calls_of
from distinput.values.spec import Spec


class _Thinned(SameElements):
    thins = tolerant = True
    needs: ClassVar[Needs] = Needs.EACH

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    @abstractmethod
    def kept(self, rows: Block) -> Ints:
        """Which of some elements it keeps."""


# ----------------------------------------------------------------------------
# `filter` with an expression of pyarrow: the elements for which it is true.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Where(_Thinned):
    """Keep the elements for which `expression` is true; it is not where it is null.

    Shapes and order: unchanged. State: where the next element stands in the input.

    Args:
      expression: of pyarrow, over the names of the components as they are in the elements: what stands for nulls of a file has
        been put in already.
    """

    op: ClassVar[str] = "filter"
    expression: Any

    def added(self) -> Node:
        if self.input.known_spec is not None:
            self._checked  # noqa: B018 - now
        return self

    @cached_property
    def term(self) -> Term | None:
        """What the expression is made of; None if that cannot be told."""
        return term_of(self.expression)

    @property
    def fields(self) -> frozenset[str] | None:
        """The columns that it reads; None if that cannot be told."""
        return None if self.term is None else self.term.fields

    @cached_property
    def _checked(self) -> None:
        check_expression(self._evaluated, self.input.spec, self.fields)

    @cached_property
    def _evaluated(self) -> Any:
        return without_halves(self.expression)

    def stream(self, state: State, run: Run) -> Stream:
        for rows, at in passing_over(self.input.open(state["input"], run), state):
            if type(rows) is Failure:
                yield rows, at(0)
                continue
            kept = self.kept(rows)
            yield (rows if len(kept) == rows.size else rows.take(kept)), at(rows.size)

    def kept(self, rows: Block) -> Ints:
        self._checked  # noqa: B018 - the first time
        return rows_where(rows, *self._read, self._evaluated)

    @cached_property
    def _read(self) -> tuple[Spec, list[int]]:
        return part_read(self.spec, self.fields)


# ----------------------------------------------------------------------------
# `filter` and `take_while`: the elements for which a predicate holds.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Filter(_Thinned):
    """Keep the elements for which `predicate` is true.

    Shapes and order: unchanged. State: where the next element stands in the input.

    Args:
      predicate: called as `map` calls its function; must return one boolean. Or an expression of pyarrow over the names of
        components, such as `pyarrow.compute.field("x") > 3`: elements stay for which it is true, not null, and row groups of
        Parquet files whose statistics rule it out are not read.

    Raises:
      TypeError: `predicate` cannot be called, or returns anything but a boolean.
      InvalidArgumentError: the expression names a component that is not there, or is not boolean.

    >>> import distinput as di
    >>> di.data.Dataset.range(6).filter(lambda x: x % 2 == 1).to_list()
    [1, 3, 5]
    >>> import pyarrow.compute as pc
    >>> rows = di.data.Dataset.from_tensor_slices({"x": [1, 4, 5], "y": [2.0, 0.5, 3.0]})
    >>> rows.filter((pc.field("x") > 3) & (pc.field("y") > 1)).to_list()
    [{'x': 5, 'y': 3.0}]

    Source: `tf.data.Dataset.filter`.
    """

    predicate: Callable[..., Any]

    def __post_init__(self) -> None:
        if not is_expression(self.predicate):
            if not callable(self.predicate) and not hasattr(self.predicate, "__next__"):
                cure = "or an expression of pyarrow, such as pyarrow.compute.field('x') > 3"
                raise TypeError(f"filter: predicate must be a function, got {self.predicate!r}; {cure}")
            take_functions(self, "filter", "predicate")

    def added(self) -> Node:
        if not is_expression(self.predicate):
            return self
        return Where(self.input, self.predicate, name=self.name, origin=self.origin).added()

    def stream(self, state: State, run: Run) -> Stream:
        upstream = self.input.open(state["input"], run)
        predicate = _predicate("filter", self.predicate)
        most = run.at_once(MOST_CALLS)
        for kept, rows, first, mark in called(upstream, state, predicate, most, unpack=True, tolerant=run.tolerant):
            if type(rows) is Failure:
                yield rows, mark
                continue
            indices = np.flatnonzero(kept)
            if len(indices) == len(kept):
                yield rows.rows(first, first + len(kept)), mark
            else:
                yield rows.take(indices + first), mark

    def kept(self, rows: Block) -> Ints:
        return np.flatnonzero(list(calls_of(_predicate("filter", self.predicate), rows, unpack=True)))


@dataclass(frozen=True, eq=False)
class TakeWhile(_Thinned):
    """Elements up to the first one for which `predicate` is false.

    Shapes and order: unchanged. State: where the next element stands in the input.

    Args:
      predicate: called as `map` calls its function; must return one boolean.

    >>> import distinput as di
    >>> di.data.Dataset.range(10).take_while(lambda x: x < 4).to_list()
    [0, 1, 2, 3]

    Source: `tf.data.Dataset.take_while`.
    """

    needs: ClassVar[Needs] = Needs.ALL
    keeps_batches: ClassVar[bool] = False  # TensorFlow's walk to the batch size stops here
    predicate: Callable[..., Any]

    def __post_init__(self) -> None:
        take_functions(self, "take_while", "predicate")

    def start(self, epoch: int) -> State:
        return {**super().start(epoch), "ended": False}

    def stream(self, state: State, run: Run) -> Stream:
        if state["ended"]:
            return
        predicate = _predicate("take_while", self.predicate)
        ended = False

        def going_on(*arguments: Any) -> bool:
            nonlocal ended
            ended = ended or not predicate(*arguments)  # after the end the predicate is no longer called
            return not ended

        upstream = self.input.open(state["input"], run)
        most = run.at_once(MOST_CALLS)
        for kept, rows, first, mark in called(upstream, state, going_on, most, unpack=True, tolerant=run.tolerant):
            if ended:
                yield rows.rows(first, first + kept.index(False)), {**mark, "ended": True}
                return
            yield rows.rows(first, first + len(kept)), {**mark, "ended": False}

    def kept(self, rows: Block) -> Ints:
        """Which of some elements it keeps: those before the first one for which the predicate is false."""
        calls = calls_of(_predicate("take_while", self.predicate), rows, unpack=True)
        return np.arange(sum(1 for _ in takewhile(bool, calls)))


def _predicate(op: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, called with the components of a tuple; its result must be one boolean."""

    def predicate(*arguments: Any) -> Any:
        result = function(*arguments)
        if result is True or result is False or type(result) is np.bool_:
            return result
        array = np.asarray(result)
        if array.dtype != np.bool_:
            raise TypeError(f"{op}: predicate must return a boolean, got {result!r}")
        if array.ndim:
            raise InvalidArgumentError(
                f"{op}: predicate must return one boolean, got an array of shape {list(array.shape)}"
            )
        return bool(array)

    return predicate
