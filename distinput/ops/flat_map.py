# SPDX-License-Identifier: Apache-2.0
"""`flat_map`: the elements of the datasets made of each element, one dataset after the other."""

import os
from collections.abc import Callable, Iterable
from dataclasses import field
from functools import cached_property, partial
from typing import Any, ClassVar, Self

from distinput.columns.block import Failure
from distinput.columns.rows import RowQueue, Stream
from distinput.columns.state import State
from distinput.functions.claim import Claim, alike
from distinput.functions.dataset_functions import (
    CachedIterable,
    Making,
    Through,
    check_first,
    count_of_made,
    next_made,
    spec_of_elements,
)
from distinput.functions.inference import results_of
from distinput.names.lazy import dataclass
from distinput.ops.generator import may_wait
from distinput.plan.binding import take_functions
from distinput.plan.families import fresh_seed
from distinput.plan.fingerprint import taken_up
from distinput.plan.node import Needs, Node
from distinput.run.run import Run
from distinput.values.spec import Spec


@dataclass(frozen=True, eq=False)
class MakesDatasets(Node):
    """A step whose elements are those of the datasets that a function makes, one of each element of the input."""

    tolerant = counting_calls = True
    draws: ClassVar[bool] = True  # seeds of datasets that the function makes follow from its own
    input: Node
    map_func: Callable[..., Any]
    drawn_seed: int = field(default_factory=fresh_seed, kw_only=True, repr=False)
    claim: Claim = field(default_factory=Claim, kw_only=True, repr=False)
    through: Through | None = field(default=None, kw_only=True, repr=False)
    """What a rewrite has each dataset go through that the function made."""

    def __post_init__(self) -> None:
        take_functions(self, self.op, "map_func")

    def added(self) -> Self:
        check_first(self.op, self.map_func, self.input)
        return self

    @cached_property
    def call(self) -> Making:
        """The function of one element, which gives a node."""
        return Making(self.op, self.map_func, self.drawn_seed, self.through)

    @cached_property
    def reads_one(self) -> bool:
        """Whether the function reads the file that an element names, as it does others whose names have the same suffix."""
        function = self.map_func
        return getattr(vars(function).get("__init__") if isinstance(function, type) else function, "reads_one", False)

    def like(self, node: Any, run: Run) -> Any:
        """The reader that the function made, if it reads other files in their place too; None: it does not."""
        others = self.reads_one and self.through is None and not run.tolerant and node.reads_files and node.plain
        return node if others else None

    @property
    def waits(self) -> bool:
        return may_wait(self.map_func)  # of a source that it makes

    @cached_property
    def made(self) -> Iterable[Node]:
        return CachedIterable(results_of(self.call, self.input))

    @cached_property
    def spec(self) -> Spec:
        if self.through is not None:
            return self.through.spec
        return self.claim.asked(self.op, lambda: spec_of_elements(self.op, self.call, self.input, self.map_func))

    def count_elements(self) -> int:
        return count_of_made(self.input, self.call, self.cardinality)

    def first_number(self, state: State, *, begins: bool) -> int | None:
        """How many datasets were made before the next one; None where that is of no account, or an old state does not tell.

        Args:
          state: where the pass goes on.
          begins: whether none is open there.
        """
        begins = begins and not state["skip"] and state["input"] == self.input.start(state["epoch"])
        number: int | None = state.get("number", 0 if begins and self.call.counts else None)
        return number


class FlatMap(MakesDatasets):
    """The elements of the datasets that `map_func` makes of each element, one dataset after the other.

    Shapes: those of the elements of these datasets. State: where the current element stands in the input, and the state of its
    dataset.

    Args:
      map_func: called as `map` calls its function; returns a dataset.

    Raises:
      TypeError: `map_func` returns something else.

    >>> import distinput as di
    >>> di.data.Dataset.range(4).flat_map(lambda x: di.data.Dataset.range(x)).to_list()
    [0, 0, 1, 0, 1, 2]

    Source: `tf.data.Dataset.flat_map`.
    """

    needs: ClassVar[Needs] = Needs.EACH

    def start(self, epoch: int) -> State:
        return {"epoch": epoch, "input": self.input.start(epoch), "skip": 0, "inner": None}

    def state_misfit(self, state: State) -> str | None:
        inner = state["inner"]  # of a dataset that is not made yet
        return None if inner is None or isinstance(inner, dict) else "flat_map: 'inner' must be a state or null"

    def stream(self, state: State, run: Run) -> Stream:
        epoch, inner = state["epoch"], state["inner"]
        number = self.first_number(state, begins=inner is None)
        queue = RowQueue(self.input.open(state["input"], run), state)
        self.decide(run)
        later = run  # a file behind others is read as one reader of all of them would
        like: Any = None  # reads small files as their own datasets would, which cost more than they do
        while queue.fill(1) or queue.failure is not None:
            if self.through is not None:
                _ = self.spec  # no error of an element, which may be left out
            mark, element = queue.mark(), queue.peek(1).shown(0) if like is not None and queue.size else None
            which = {} if number is None else {"number": number}
            if isinstance(element, bytes) and like.small_bytes(element) is not None:
                queue.skip(1)
                stream = run.watch(like, like.other(os.fsdecode(element), run, like.group, partial(self.call, element)))
            else:
                node, element = next_made(queue, partial(self.call, number=number), run)
                if isinstance(node, Failure):
                    yield node, {"epoch": epoch, **queue.mark(), "inner": None, **which}
                    continue
                like = self.like(node, run)
                stream = node.open(taken_up("flat_map", node, epoch, inner), later if node.reads_files else run)
            for block, after in alike(
                "flat_map", stream, self.claim, lambda: self.spec, element, tolerant=run.tolerant
            ):
                yield block, {"epoch": epoch, **mark, "inner": after, **which}
            inner, later = None, later if later is not run else run.asking(later=True)
            number = None if number is None else number + 1
