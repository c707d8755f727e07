# SPDX-License-Identifier: Apache-2.0
"""`filter` with an expression of pyarrow: the elements for which it is true."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from distinput.core.arrow_expression import Term, check_expression, rows_where, term_of
from distinput.core.block import Block
from distinput.core.column import Ints
from distinput.core.failure import Failure
from distinput.core.rows import Stream, passing_over
from distinput.core.run import Run
from distinput.core.state import State
from distinput.plan.needs import Needs
from distinput.plan.node import Node
from distinput.plan.same_elements import SameElements

__all__ = ["Where"]


@dataclass(frozen=True, eq=False)
class Where(SameElements):
    """Keep the elements for which `expression` is true; it is not where it is null.

    Shapes and order: unchanged. State: where the next element stands in the input.

    Args:
      expression: of pyarrow, over the names of the components as they are in the elements: what stands for nulls of a file has
        been put in already.
    """

    thins: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs.EACH
    expression: Any

    @property
    def op(self) -> str:
        return "filter"

    def added(self) -> Node:
        if self.input.known_spec is not None:
            check_expression("filter", self.expression, self.input.spec)
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
    def _checked(self) -> bool:
        check_expression("filter", self.expression, self.input.spec)
        return True

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "skip": 0}

    def stream(self, state: State, run: Run) -> Stream:
        for rows, _, _, at in passing_over(self.input.open(state["input"], run), state):
            if type(rows) is Failure or not rows.size:
                yield rows, at(rows.size)
                continue
            kept = self.kept(rows)
            yield (rows if len(kept) == rows.size else rows.take(kept)), at(rows.size)

    def kept(self, rows: Block) -> Ints:
        """Which of some elements it keeps."""
        assert self._checked
        return rows_where(rows, self.spec, self.expression, self.fields)
