# SPDX-License-Identifier: Apache-2.0
"""Ops that pass elements on unchanged: `with_options` and `assert_cardinality`."""

from copy import deepcopy
from dataclasses import replace

from distinput.columns.block import failed
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.ops.on_error import everywhere
from distinput.plan.check import integer, normalized
from distinput.plan.families import SameElements, Transparent
from distinput.plan.node import INFINITE, UNKNOWN, Node, above
from distinput.plan.options import Options
from distinput.run.run import Run


@dataclass(frozen=True, eq=False)
class WithOptions(Transparent):
    """The same elements, with options for the whole pipeline.

    Args:
      options: settings; they take precedence over those made earlier.

    Raises:
      TypeError: `options` is not an `Options` object.

    >>> import distinput as di
    >>> di.data.Dataset.range(2).with_options(di.data.Options()).to_list()
    [0, 1]

    Source: `tf.data.Dataset.with_options`.
    """

    by_element = view_only = True
    options: Options

    def __post_init__(self) -> None:
        if not isinstance(self.options, Options):
            raise TypeError(f"with_options: options must be an Options object, got {self.options!r}")
        normalized(self, "options", deepcopy(self.options))  # a program may set others in it for its next dataset

    def added(self) -> Node:
        asked = self.options.on_error
        return self if asked is None else replace(self, input=everywhere(self.input, asked))

    @property
    def own_options(self) -> Options:
        return self.options


@dataclass(frozen=True, eq=False)
class AssertCardinality(SameElements):
    """The same elements, which must be `expected_cardinality` in number.

    Args:
      expected_cardinality: a number, or INFINITE_CARDINALITY.

    Raises:
      FailedPreconditionError: at iteration, if there are more or fewer.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(6).filter(lambda x: x > 3)
    >>> len(ds.apply(di.data.experimental.assert_cardinality(2)))
    2

    Source: `tf.data.experimental.assert_cardinality`.
    """

    tolerant = harmless = by_position = about_the_whole = True
    expected_cardinality: int

    def __post_init__(self) -> None:
        if integer("assert_cardinality", "expected_cardinality", self.expected_cardinality) < UNKNOWN:
            raise InvalidArgumentError(
                f"assert_cardinality: expected_cardinality must be a count or INFINITE_CARDINALITY, got "
                f"{self.expected_cardinality}"
            )

    @property
    def cardinality(self) -> int:
        return int(self.expected_cardinality)

    def count_elements(self) -> int:
        return self.cardinality

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "row": 0}

    def start_at(self, row: int, epoch: int) -> State | None:
        return above(self.input.start_at(row, epoch), row=row)

    def stream(self, state: State, run: Run) -> Stream:
        row, cardinality, after = state["row"], int(self.expected_cardinality), state["input"]
        if state.get("over"):
            return
        wrong: FailedPreconditionError | None = None
        for block, after in self.input.open(state["input"], run):
            if cardinality != INFINITE and row + block.size > cardinality:
                if cardinality > row:
                    yield block.rows(0, cardinality - row), {"input": after, "row": cardinality}
                wrong = self._wrong(f"at least {row + block.size}")
                row = max(row, cardinality)
                break
            row += block.size
            yield block, {"input": after, "row": row}
        else:
            if cardinality == INFINITE or row != cardinality:
                wrong = self._wrong(str(row))
        if wrong is not None:
            yield failed(wrong, tolerant=run.tolerant), {"input": after, "row": row, "over": True}

    def _wrong(self, found: str) -> FailedPreconditionError:
        wanted = "an infinite number" if self.expected_cardinality == INFINITE else str(self.expected_cardinality)
        return FailedPreconditionError(
            f"assert_cardinality: Input dataset was expected to contain {wanted} of elements but contained {found} elements"
        )
