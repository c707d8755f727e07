# SPDX-License-Identifier: Apache-2.0
"""Nodes: a pipeline is a tree of frozen dataclasses that say what an element looks like and how to stream it."""

import dataclasses
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from distinput.core.block import Block
from distinput.core.column import Ints
from distinput.core.digest import Digest
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.spec import DatasetSpec, Spec, TensorSpec
from distinput.core.state import State
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.needs import Needs

__all__ = ["INFINITE", "UNKNOWN", "Node", "Origin", "caller", "walk"]

INFINITE = -1
UNKNOWN = -2

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


@dataclass(frozen=True)
class Origin:
    """The line of the user's code that made a node, and the process that ran it."""

    file: str
    line: int
    process: int = field(default_factory=os.getpid, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> Origin:
    """The innermost line on the stack that is not distinput's own."""
    frame = sys._getframe(1)
    while (
        frame is not None and frame.f_code.co_filename.startswith((_PACKAGE, "<string>")) and frame.f_back is not None
    ):
        frame = frame.f_back
    return Origin(frame.f_code.co_filename, frame.f_lineno)


@dataclass(frozen=True, eq=False)
class Node(ABC):
    """One step of a pipeline.

    Subclasses are frozen dataclasses whose fields are their inputs (nodes) and arguments. They answer `spec`, `start` and
    `stream`; `cardinality`, `start_at` and `fetch` as far as they can. They know nothing of their neighbours.

    What others must know of a step to shard, count and rewrite a pipeline is said by the step itself, as *facts*: class
    attributes, and a few properties. Every fact is False, or as cautious, unless a class says more: a step that says nothing is
    never divided, moved or left out, and works everywhere. The family classes (`OneForOne`, `SameElements`, `Grouped`,
    `Batching`, `Keyed`) say what holds for all of their kind.
    """

    name: str | None = field(default=None, kw_only=True, repr=False)
    origin: Origin = field(default_factory=caller, kw_only=True, repr=False)
    nest_leaf: ClassVar[bool] = True
    handle: ClassVar[Callable[["Node"], Any]] = staticmethod(lambda node: node)
    """How a node inside an element is shown to users; the data floor sets it to its `Dataset`."""

    # --- facts for the run
    by_element: ClassVar[bool] = False
    """True: it looks at the elements of its input one by one, or hands them on unseen (see `Run.by_element`)."""
    tolerant: ClassVar[bool] = False
    """True: in a tolerant run it hands on failures of its input, each with the state behind it, and makes failures of its own
    errors. False: its input is opened to raise errors, and after one it does not go on."""
    harmless: ClassVar[bool] = False
    """True: it has no errors but those of its input."""
    skips_failures: ClassVar[bool] = False
    """True: it leaves out the elements that are errors, so it must meet the errors of the whole."""

    # --- facts for states
    transparent: ClassVar[bool] = False
    """True: its elements and its states are those of its input, so that a state does not tell whether it is there."""
    indifferent: ClassVar[frozenset[str]] = frozenset({"deterministic", "num_parallel_calls"})
    """Arguments on which neither elements nor states depend."""

    # --- facts for sharding and rewrites
    needs: ClassVar[Needs] = Needs.ALL
    """How much of its input it needs to see; what may be sharded below it, and moved behind it, follows from this."""
    by_position: ClassVar[bool] = False
    """True: it gives elements of its input as they are; which, and in which order, follows from their positions alone."""
    shuffles: ClassVar[bool] = False
    """True: it gives each element of its input once, in a random order."""
    keeps_batches: ClassVar[bool] = False
    """True: where elements of its inputs are batches, so are its own, of as many rows; with `Needs.ONE` also row i of a batch
    follows from row i alone."""
    view_only: ClassVar[bool] = False
    """True: it gives views of its input, or of memory, that take no time worth a thread."""
    about_the_whole: ClassVar[bool] = False
    """True: it hands on its input, and says of the whole what is not true of a part: a worker's part is read without it."""
    reads_files: ClassVar[bool] = False
    """True: its input names files, and it gives the records of each."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _unlock(cls)

    @cached_property
    @abstractmethod
    def spec(self) -> Spec:
        """What an element looks like."""

    @cached_property
    def known_spec(self) -> Spec | None:
        """`spec`, where that takes neither a call of a function nor a look at a file; None elsewhere."""
        if self._asks or any(source.known_spec is None for source in self.inputs):
            return None
        return self.spec

    @property
    def _asks(self) -> bool:
        """Whether it needs a function, or a file, to tell what its elements look like."""
        return self.spec_from_file or (bool(self.inputs) and self._calls and not self.spec_given)

    @property
    def spec_given(self) -> bool:
        """Whether the user said what its function returns."""
        return False

    @property
    def spec_from_file(self) -> bool:
        """Whether only a file tells what its elements look like."""
        return False

    @property
    def _calls(self) -> bool:
        return any(callable(value) for value in self.arguments().values())

    @cached_property
    def in_memory(self) -> bool:
        """Whether an element can be had at once, without a call of a function or a look at a file."""
        return bool(self.inputs) and not self._calls and all(source.in_memory for source in self.inputs)

    @property
    def first_in_memory(self) -> tuple[Any] | None:
        """The first element where it is in memory; None elsewhere, or where there is none."""
        if not self.in_memory or not self.random_access or self.lasting or not self.cardinality:
            return None
        return (self.fetch(np.zeros(1, np.int64), 0).row(0),)

    @property
    def cardinality(self) -> int:
        """How many elements: a number, `INFINITE` or `UNKNOWN`."""
        return UNKNOWN

    def count_elements(self) -> int:
        """How many elements, as far as that follows without reading a record: a number, `INFINITE` or `UNKNOWN`.

        `cardinality` is what TensorFlow says, which is `UNKNOWN` for many pipelines whose elements can be counted: by
        manifests, the footers of files, or the sizes of batches.
        """
        if not self.inputs:
            return self.cardinality
        from distinput.plan.counted import over_counts

        below = [source.count_elements() for source in self.inputs]
        if UNKNOWN in below and self.cardinality == UNKNOWN:
            return UNKNOWN
        return over_counts(self, below).cardinality

    def batch_sizes(self) -> BatchSizes | None:
        """Rows of each element, where elements are batches; None where that is not known, or where they have no end."""
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
        """Rows of a full batch, as the last op says that makes batches; None where elements are none, or batches differ."""
        found = {source.rows_per_batch for source in self.inputs} if self.keeps_batches else set()
        return found.pop() if len(found) == 1 else None

    @property
    def drops_rows(self) -> bool:
        """Whether it leaves out rows at the end that fill no batch."""
        return False

    def with_full_batches(self) -> "Node":
        """The same batches without those that are not full."""
        return (
            self.with_inputs(tuple([source.with_full_batches() for source in self.inputs]))
            if self.keeps_batches
            else self
        )

    def for_groups(self, size: int) -> "Node | None":
        """The same step, told that `size` of its elements are put together, so that blocks should end there; None: no use."""
        if self.needs != Needs.ONE:
            return None
        source = self.inputs[0].for_groups(size)
        return None if source is None else self.with_inputs((source,)).same_as(self)

    def over_pieces(self, pieces: "Node", each: int) -> "Node | None":
        """The same step over pieces of batches instead of the batches; None: it must see whole ones.

        Args:
          pieces: of each element of the input, `each` pieces.
          each: at least 1.
        """
        return self.with_inputs((pieces,)) if self.needs == Needs.ONE and self.keeps_batches else None

    def alike_everywhere(self) -> "Node":
        """The same step, in no way dependent on the machine that it runs on, so that all workers have one order."""
        return self

    @abstractmethod
    def start(self, epoch: int) -> State:
        """The state before the first element; `epoch` numbers the passes, for ops that reshuffle."""

    @abstractmethod
    def stream(self, state: State, run: Run) -> Stream:
        """Blocks from `state` on, each with the state after it."""

    def start_at(self, row: int, epoch: int) -> State | None:
        """The state before element `row`, which must not lie beyond the end; None when it cannot be computed."""
        return None

    @property
    def random_access(self) -> bool:
        """True when `fetch` works."""
        return False

    def fetch(self, rows: Ints, epoch: int) -> Block:
        """The elements at positions `rows`, in that order, for nodes with `random_access`."""
        raise NotImplementedError(f"{self.op} has no random access")

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What this step is, without its inputs: its op with a hash of its arguments, what its functions do, what it holds."""
        from distinput.plan.code import PYTHON, Reading

        reading = Reading()
        given = {name: reading.argument(v) for name, v in self.arguments().items() if name not in self.indifferent}
        found = {"step": f"{self.op}#{Digest(3).add(sorted(given.items())).word}"}
        if reading.code:
            found["code"] = f"{PYTHON} {Digest().add(reading.code).word} {Digest(3).add(reading.names).word}"
        if reading.held:
            found["held"] = Digest().add(reading.held).word
        return {**found, **self.contents()}

    def contents(self) -> dict[str, Any]:
        """Short words for the elements that it holds in memory; looked at once."""
        return {}

    def facts(self) -> dict[str, Any]:
        """What is known of the files that it names, now."""
        return {}

    def input_at(self, state: State) -> "Node":
        """The node that `state["input"]` is a state of, for a state of this step."""
        return self.inputs[0]

    def state_misfit(self, state: State) -> str | None:
        """Why no state of this step can be like that, beyond the keys, types and signs of the first one; None: it can."""
        return None

    @property
    def state_of(self) -> "Node":
        """The step whose states this one's are: itself, unless it hands on those of another."""
        return self.inputs[0].state_of if self.transparent else self

    @property
    def steps(self) -> list["Node"]:
        """This tree's steps whose states are their own, inputs first."""
        return [step for step in walk(self) if not step.transparent]

    def open(self, state: State, run: Run) -> Stream:
        """`stream`, measured and annotated by the run."""
        inner = run if self.by_element else run.by_block()
        return run.watch(self, self.stream(state, inner if self.tolerant else inner.tolerating(False)))

    def where(self) -> str:
        """The step and the line that made it, for notes on errors."""
        return f"{self}, made at {self.origin}"

    @cached_property
    def inputs(self) -> tuple["Node", ...]:
        """The nodes this one reads from."""
        found: list[Node] = []
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                found += [v for v in value if isinstance(v, Node)]
        return tuple(found)

    @cached_property
    def may_fail(self) -> bool:
        """Whether there may be an error in the place of some of its elements, though not of others."""
        return not self.harmless or any(source.may_fail for source in self.inputs)

    @property
    def fails_in_place(self) -> bool:
        """Whether a batch of its elements is lost whole with one of them, rather than the next one begin right behind that.

        Source: TensorFlow runs a `map` and the `batch` behind it as one step (map_and_batch_dataset_op.cc).
        """
        return False

    @property
    def draws(self) -> bool:
        """Whether this step, or a dataset that its function makes, may draw its own seed; it has a field `drawn_seed` then."""
        return False

    @property
    def chooses(self) -> bool:
        """Whether a seed decides which element comes next."""
        return False

    @property
    def reshuffles(self) -> bool:
        """Whether it chooses anew in each pass."""
        return False

    @property
    def made(self) -> tuple["Node", ...]:
        """What its function makes of made-up elements, for steps whose function makes datasets."""
        return ()

    def added(self) -> Self:
        """Itself, as the user adds it to a pipeline: the place to refuse, or warn of, what rules may build."""
        return self

    @property
    def keeps(self) -> bool:
        """Whether later passes see what an earlier one has kept; it has a field `store` then."""
        return False

    @property
    def own_options(self) -> Any:
        """The `Options` that it adds to those of its inputs; None: none."""
        return None

    @cached_property
    def lasting(self) -> tuple["Node", ...]:
        """The steps of this tree on which later passes depend beside their place: those that draw or keep, inputs first."""
        found = dict.fromkeys([step for source in self.inputs for step in source.lasting])
        if self.draws or self.keeps:
            found[self] = None
        return tuple(found)

    def with_inputs(self, inputs: tuple["Node", ...]) -> "Node":
        """The same step over other inputs; it keeps its spec where theirs are the same."""
        left = list(inputs)
        changes: dict[str, Any] = {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Node):
                changes[f.name] = left.pop(0)
            elif isinstance(value, tuple) and any(isinstance(v, Node) for v in value):
                changes[f.name] = tuple(left.pop(0) if isinstance(v, Node) else v for v in value)
        made = dataclasses.replace(self, **changes)
        return made.same_as(self) if all(map(_alike, self.inputs, inputs)) else made

    def same_as(self, other: "Node") -> Self:
        """Itself, with the spec of a step that gives the same elements, where that is known: no function is called for it."""
        known = vars(other).get("spec")
        if known is not None:
            vars(self).setdefault("spec", known)
        return self

    def to_user(self) -> Any:
        """The dataset that users see where this node is a leaf of an element."""
        return Node.handle(self)

    @property
    def op(self) -> str:
        """The op's name, as users call it."""
        kind = type(self).__name__
        return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(kind))

    def arguments(self) -> dict[str, Any]:
        """The arguments that are no inputs, for printing and for the fingerprint."""
        hidden = {"name", "origin"}
        found = {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            is_input = isinstance(value, Node) or (isinstance(value, tuple) and any(isinstance(v, Node) for v in value))
            if f.name not in hidden and f.repr and not is_input:
                found[f.name] = value
        return found

    def __str__(self) -> str:
        defaults = {f.name: f.default for f in dataclasses.fields(self)}
        given = {k: v for k, v in self.arguments().items() if v is not defaults.get(k, dataclasses.MISSING)}
        label = "" if self.name is None else f"[{self.name}]"
        return f"{self.op}{label}({', '.join(f'{k}={describe(v)}' for k, v in given.items())})"

    @cached_property
    def element_spec(self) -> Any:
        """The spec nest, so that a node may stand as a leaf of an element."""
        return self.spec.nest

    @property
    def leaf_spec(self) -> DatasetSpec:
        """The spec of this node as a leaf of an element."""
        return DatasetSpec(self.element_spec)


def _alike(old: Node, new: Node) -> bool:
    """Whether it is known already that elements of two nodes have the same spec."""
    if old is new:
        return True
    known, found = vars(old).get("spec"), vars(new).get("spec")
    return known is not None and (known is found or known == found)


def _unlock(cls: type) -> None:
    """Let several threads find out what is kept of a node, each on its own.

    Before Python 3.12 all objects of a class share a lock, so a function that is called for the spec of one pipeline, and waits
    for a thread that asks for the spec of any other, would wait for ever.
    """
    for value in vars(cls).values():
        if isinstance(value, cached_property) and hasattr(value, "lock"):
            setattr(value, "lock", nullcontext())  # noqa: B010 - newer versions have none


_unlock(Node)


def describe(value: Any, most: int | None = 60) -> str:
    """An argument in words, the same in every process; at most `most` letters."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if callable(value):
        return str(getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value).__name__))
    if isinstance(value, Mapping):
        text = "{" + ", ".join(f"{k}: {describe(v, None)}" for k, v in value.items()) + "}"
    else:
        text = str(value) if not isinstance(value, str) else repr(value)
    return text if most is None or len(text) <= most else text[: most - 3] + "..."


def walk(node: Node) -> Iterator[Node]:
    """The node and everything it reads from, inputs first."""
    for source in node.inputs:
        yield from walk(source)
    yield node
