# SPDX-License-Identifier: Apache-2.0
"""Nodes: a pipeline is a tree of frozen dataclasses, each of which says what its elements look like and streams them."""

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from distinput.core.block import Block
from distinput.core.column import Ints
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.spec import DatasetSpec, Spec, TensorSpec
from distinput.core.state import State
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.needs import Needs
from distinput.plan.record_places import RecordPlaces

__all__ = ["INFINITE", "UNKNOWN", "Counted", "Node", "allow_depth", "over_counts", "walk"]

INFINITE = -1
UNKNOWN = -2

_SHALLOW, _FRAMES = 48, 16
"""Floors for which Python's own limit is enough, and frames for each floor: those of a stream and of who reads it."""


@dataclass(frozen=True, eq=False)
class Node(RecordPlaces["Node"]):
    """One step of a pipeline.

    Subclasses are frozen dataclasses whose fields are their inputs (nodes) and arguments. They answer `spec`, `start` and
    `stream`; `cardinality`, `start_at` and `fetch` as far as they can. They know nothing about their neighbours.

    What others must know about a step to shard, count and rewrite a pipeline, the step states itself, as *facts*: class
    attributes, and a few properties (`plan.facts`). Fields need other names than facts have, since they would inherit their
    values. What a step need not say is found in its fields (`plan.tree`): its inputs, name, arguments and copies. Which records
    its elements come from, it may say (`plan.record_places`).
    """

    # --- what every op answers
    @cached_property
    @abstractmethod
    def spec(self) -> Spec:
        """What an element looks like."""

    @abstractmethod
    def start(self, epoch: int) -> State:
        """The state before the first element; `epoch` numbers the passes, for ops that reshuffle.

        Later states have the same keys; where this one has an integer from 0 on, a list or an object, they have one too.
        `restore` refuses a state that is not like that (`plan.state_form`).
        """

    @abstractmethod
    def stream(self, state: State, run: Run) -> Stream:
        """Blocks from `state` on, each with the state after it."""

    # --- what an op answers if it can
    @property
    def cardinality(self) -> int:
        """How many elements: a number, `INFINITE` or `UNKNOWN`."""
        return UNKNOWN

    def start_at(self, row: int, epoch: int) -> State | None:
        """The state before element `row`, which must not be past the end; None if it cannot be computed."""
        return None

    @property
    def fetches(self) -> bool:
        """True when `fetch` works; it may read more than the elements asked for, but nothing twice."""
        return self.random_access

    def fetch(self, rows: Ints, epoch: int) -> Block:
        """The elements at positions `rows`, in that order, for nodes with `fetches`."""
        raise NotImplementedError(f"{self.op} has no random access")

    def state_misfit(self, state: State) -> str | None:
        """Why no state of this step can be like that, beyond the keys, types and signs of the first one; None: it can."""
        return None

    @property
    def made(self) -> Iterable["Node"]:
        """The datasets that its function builds from sample elements; empty for other functions."""
        return ()

    def file_facts(self) -> dict[str, Any]:
        """What is known now about the files that it names."""
        return {}

    def with_functions_taken(self) -> "Node":
        """Itself, with its functions as they are now; the ops of the library see to that themselves."""
        if self.captured is None and self._calls:
            from distinput.plan.binding import take_functions

            take_functions(self, self.op, *[name for name, value in vars(self).items() if callable(value)])
        return self

    def added(self) -> "Node":
        """What the user adds to a pipeline: mostly itself. The place to refuse, or warn about, what only rewrites build."""
        return self

    # --- counts and batches
    def count_elements(self) -> int:
        """How many elements, as far as that is known without reading a record: a number, `INFINITE` or `UNKNOWN`.

        `cardinality` is what TensorFlow says, which is `UNKNOWN` for many pipelines whose elements can be counted: by
        manifests, the footers of files, or the sizes of batches.
        """
        if not self.inputs:
            return self.cardinality
        below = [source.count_elements() for source in self.inputs]
        if UNKNOWN in below and self.cardinality == UNKNOWN:
            return UNKNOWN
        return over_counts(self, below).cardinality

    def batch_sizes(self) -> BatchSizes | None:
        """Rows of each element, where elements are batches; None if that is not known, or if there is no end."""
        firsts = {leaf.shape[0] if isinstance(leaf, TensorSpec) and leaf.shape else None for leaf in self.spec.leaves}
        if len(firsts) == 1 and None not in firsts:
            n = self.count_elements()
            return None if n < 0 else BatchSizes.of([(list(firsts), n)])  # type: ignore[arg-type]
        below = self.inputs[0].batch_sizes() if self.keeps_batches and len(self.inputs) == 1 else None
        if below is None or self.needs == Needs.ONE:
            return below
        n = self.count_elements()
        return BatchSizes.of([(below.flat()[:1], n)]) if below.uniform and n >= 0 else None

    @property
    def rows_per_batch(self) -> int | None:
        """Rows of a full batch, according to the last op that makes batches; None if that is not known."""
        found = {source.rows_per_batch for source in self.inputs} if self.keeps_batches else set()
        return found.pop() if len(found) == 1 else None

    def with_full_batches(self) -> "Node":
        """The same batches, without those that are not full."""
        return (
            self.with_inputs(tuple([source.with_full_batches() for source in self.inputs]))
            if self.keeps_batches
            else self
        )

    # --- the same step in other places
    def for_groups(self, size: int) -> "Node | None":
        """The same step, with blocks that end where groups of `size` elements end; None if it makes no use of that."""
        if self.needs != Needs.ONE:
            return None
        source = self.inputs[0].for_groups(size)
        return None if source is None else self.with_inputs((source,)).same_as(self)

    def over_pieces(self, pieces: "Node", each: int) -> "Node | None":
        """The same step over pieces of batches instead of whole ones; None if it needs to see whole ones.

        Args:
          pieces: of each element of the input, `each` pieces.
          each: at least 1.
        """
        return self.with_inputs((pieces,)) if self.needs == Needs.ONE and self.keeps_batches else None

    def alike_everywhere(self) -> "Node":
        """The same step, independent of the machine that it runs on, so that all workers have the same order."""
        return self

    # --- what follows for all ops
    def open(self, state: State, run: Run) -> Stream:
        """`stream`, measured and annotated by the run."""
        run = run.at(self)
        inner = run if self.by_element else run.by_block()
        return run.watch(self, self.stream(state, inner if self.tolerant else inner.tolerating(False)), state)

    def decide(self, run: Run) -> None:
        """Find the spec, in a run that does not begin at the first element: that one decides, not the first one here.

        In a tolerant run a function that fails on all elements does so again in the place of each, and the stream goes on.
        """
        if run.resumed:
            try:
                _ = self.spec
            except Exception:
                if not run.tolerant:
                    raise

    @property
    def steps(self) -> list["Node"]:
        """The steps of this tree that have states of their own, inputs first."""
        return [step for step in walk(self) if not step.transparent]

    @property
    def state_of(self) -> "Node":
        """The step that this one's states belong to: itself, unless it passes on those of another."""
        return self.inputs[0].state_of if self.transparent else self

    @cached_property
    def may_fail(self) -> bool:
        """Whether some of its elements may be errors while others are not."""
        return not self.harmless or any(source.may_fail for source in self.inputs)

    @cached_property
    def lasting(self) -> tuple["Node", ...]:
        """The steps that carry something from pass to pass: those that draw a seed or keep elements, inputs first."""
        found = dict.fromkeys([step for source in self.inputs for step in source.lasting])
        if self.draws or self.keeps:
            found[self] = None
        return tuple(found)

    @cached_property
    def _watching(self) -> tuple["Node", ...]:
        """The steps whose functions read variables that could not be taken over."""
        steps = list(dict.fromkeys([step for step in walk(self) if step.captured is not None]))
        for step in steps:
            if step.captured is not None and step.captured.changeable:
                _ = step.identity  # what its functions read, before they run
        return tuple([step for step in steps if step.captured is not None and step.captured.watched])

    def check_captured(self) -> None:
        """Look at what functions read from outside, before they run.

        Raises:
          FailedPreconditionError: a variable has another value than when its step was made, and could not be taken over then.
        """
        for step in self._watching:
            assert step.captured is not None
            step.captured.check(step.op)

    @cached_property
    def known_spec(self) -> Spec | None:
        """`spec`, if it is known without calling a function or reading a file; otherwise None."""
        if self._asks or any(source.known_spec is None for source in self.inputs):
            return None
        return self.spec

    @property
    def _asks(self) -> bool:
        """Whether a function must be called, or a file read, to know what its elements look like."""
        return self.spec_from_file or (bool(self.inputs) and self._calls and not self.spec_given)

    @property
    def _calls(self) -> bool:
        return any(callable(value) for value in self.arguments().values())

    @cached_property
    def in_memory(self) -> bool:
        """Whether an element is available at once, without calling a function or reading a file."""
        return bool(self.inputs) and not self._calls and all(source.in_memory for source in self.inputs)

    @property
    def first_in_memory(self) -> tuple[Any] | None:
        """The first element, if it is in memory; None if it is not, or if there is none."""
        if not self.in_memory or not self.random_access or self.lasting or not self.cardinality:
            return None
        return (self.fetch(np.zeros(1, np.int64), 0).row(0),)

    # --- a node as a leaf of an element
    nest_leaf: ClassVar[bool] = True
    handle: ClassVar[Callable[["Node"], Any]] = staticmethod(lambda node: node)
    """How a node inside an element is shown to users; the data floor sets it to its `Dataset`."""

    def to_user(self) -> Any:
        """The dataset that users see where this node is a leaf of an element."""
        return Node.handle(self)

    @cached_property
    def element_spec(self) -> Any:
        """The spec nest, so that a node may stand as a leaf of an element."""
        return self.spec.nest

    @property
    def leaf_spec(self) -> DatasetSpec:
        """The spec of this node as a leaf of an element."""
        return DatasetSpec(self.element_spec)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything it reads from, inputs first."""
    waiting, found = [node], []
    while waiting:
        last = waiting.pop()
        found.append(last)
        waiting += last.inputs
    return reversed(found)


def allow_depth(node: Node) -> None:
    """Raise Python's limit of recursion to what a tree needs; most trees need nothing.

    Steps look at their inputs, and streams read from streams, so a program needs more frames the deeper its tree is.

    Args:
      node: the root of the tree.
    """
    depth = _depth(node)
    if depth > _SHALLOW and sys.getrecursionlimit() < (wanted := 1000 + _FRAMES * depth):
        sys.setrecursionlimit(wanted)


def _depth(node: Node) -> int:
    """The steps on the longest way from the root to a source, found once for each step."""
    waiting = [node]
    while waiting:
        known = vars(waiting[-1])
        if "_depth" in known:
            waiting.pop()
            continue
        inputs = waiting[-1].inputs
        missing = [source for source in inputs if "_depth" not in vars(source)]
        if missing:
            waiting += missing
        else:
            known["_depth"] = 1 + max([vars(source)["_depth"] for source in inputs], default=0)
            waiting.pop()
    found: int = vars(node)["_depth"]
    return found


@dataclass(frozen=True, eq=False)
class Counted(Node):
    """A stand-in for an input of which only the number of elements matters.

    The elements are the input's; their number was found out by looking further than `cardinality` does.
    """

    input: Node
    number: int

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    @property
    def cardinality(self) -> int:
        return self.number

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def start_at(self, row: int, epoch: int) -> State:
        return {}

    def stream(self, state: State, run: Run) -> Stream:
        return self.input.open(state, run)


def over_counts(node: Node, counts: Sequence[int]) -> Node:
    """The same step over inputs of so many elements, each a number, `INFINITE` or `UNKNOWN`."""
    known = [
        source if n in (UNKNOWN, source.cardinality) else Counted(source, n)
        for source, n in zip(node.inputs, counts, strict=True)
    ]
    same = all(new is old for new, old in zip(known, node.inputs, strict=True))
    return node if same else node.with_inputs(tuple(known))
