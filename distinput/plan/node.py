# SPDX-License-Identifier: Apache-2.0
"""Nodes: a pipeline is a tree of frozen dataclasses, each of which says what its elements look like and streams them."""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
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
from distinput.plan.describe import given
from distinput.plan.needs import Needs
from distinput.plan.origin import Origin, caller

__all__ = ["INFINITE", "UNKNOWN", "Node", "record_in_words", "walk"]

INFINITE = -1
UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class Node(ABC):
    """One step of a pipeline.

    Subclasses are frozen dataclasses whose fields are their inputs (nodes) and arguments. They answer `spec`, `start` and
    `stream`; `cardinality`, `start_at` and `fetch` as far as they can. They know nothing about their neighbours.

    What others must know about a step to shard, count and rewrite a pipeline, the step states itself, as *facts*: class
    attributes, and a few properties and methods. Each has a cautious default: a step that states nothing works everywhere, but
    is never divided, moved or left out. The family classes (`OneForOne`, `SameElements`, `Grouped`, `Batching`, `Keyed`) state
    what holds for all of their kind. Fields need other names than facts have, since they would inherit their values.
    """

    name: str | None = field(default=None, kw_only=True, repr=False)
    origin: Origin = field(default_factory=caller, kw_only=True, repr=False)
    nest_leaf: ClassVar[bool] = True
    handle: ClassVar[Callable[["Node"], Any]] = staticmethod(lambda node: node)
    """How a node inside an element is shown to users; the data floor sets it to its `Dataset`."""

    # --- facts for the run
    by_element: ClassVar[bool] = False
    """True: it looks at the elements of its input one by one, or passes them on without looking (see `Run.by_element`)."""
    tolerant: ClassVar[bool] = False
    """True: in a tolerant run it passes on failures of its input, each with the state after it, and turns its own errors into
    failures. False: its input is opened so that errors are raised, and it does not go on after one."""
    harmless: ClassVar[bool] = False
    """True: it raises no errors of its own, only those of its input."""
    skips_failures: ClassVar[bool] = False
    """True: it drops the elements that are errors, so it must see all errors of its input."""

    # --- facts for states
    passes_states: ClassVar[bool] = False
    """True: its states are those of its input, though its elements are not."""
    transparent: ClassVar[bool] = False
    """True: its elements and its states are those of its input, so that a state does not tell whether it is there."""
    indifferent: ClassVar[frozenset[str]] = frozenset({"deterministic", "num_parallel_calls", "on_error"})
    """Arguments that affect neither elements nor states."""

    # --- facts for sharding and rewrites
    needs: ClassVar[Needs] = Needs.ALL
    """How much of its input it needs to see; this decides what may be sharded below it, and moved across it."""
    thins: ClassVar[bool] = False
    """True: it gives at most as many elements as its first input, and perhaps none."""
    by_position: ClassVar[bool] = False
    """True: it gives elements of its input unchanged, and their positions alone decide which ones, and in which order."""
    shuffles: ClassVar[bool] = False
    """True: it gives each element of its input once, in a random order."""
    keeps_batches: ClassVar[bool] = False
    """True: where the elements of its inputs are batches, so are its own, with as many rows; with `Needs.ONE`, row i of a batch
    depends on row i alone."""
    view_only: ClassVar[bool] = False
    """True: it gives views of its input, or of memory; a thread that made them ahead of time would save nothing."""
    about_the_whole: ClassVar[bool] = False
    """True: it passes on its input, and asserts something about the whole that is false for a part: a worker leaves it out."""
    reads_files: ClassVar[bool] = False
    """True: its input names files, and it gives the records of each."""
    counting_calls: ClassVar[bool] = False
    """True: to count its elements, a function is called that makes datasets."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _unlock(cls)

    @cached_property
    @abstractmethod
    def spec(self) -> Spec:
        """What an element looks like."""

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
    def spec_given(self) -> bool:
        """Whether the user stated what its function returns."""
        return False

    @property
    def spec_from_file(self) -> bool:
        """Whether a file must be read to know what its elements look like."""
        return False

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

    @property
    def cardinality(self) -> int:
        """How many elements: a number, `INFINITE` or `UNKNOWN`."""
        return UNKNOWN

    def count_elements(self) -> int:
        """How many elements, as far as that is known without reading a record: a number, `INFINITE` or `UNKNOWN`.

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

    @property
    def drops_rows(self) -> bool:
        """Whether it drops rows at the end that do not fill a batch."""
        return False

    def with_full_batches(self) -> "Node":
        """The same batches, without those that are not full."""
        return (
            self.with_inputs(tuple([source.with_full_batches() for source in self.inputs]))
            if self.keeps_batches
            else self
        )

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

    @abstractmethod
    def start(self, epoch: int) -> State:
        """The state before the first element; `epoch` numbers the passes, for ops that reshuffle.

        Later states have the same keys; where this one has an integer from 0 on, a list or an object, they have one too.
        `restore` refuses a state that is not like that (`plan.state_form`).
        """

    @abstractmethod
    def stream(self, state: State, run: Run) -> Stream:
        """Blocks from `state` on, each with the state after it."""

    def start_at(self, row: int, epoch: int) -> State | None:
        """The state before element `row`, which must not be past the end; None if it cannot be computed."""
        return None

    @property
    def random_access(self) -> bool:
        """True when `fetch` works, and costs as much for each element wherever it is and however few are fetched."""
        return False

    @property
    def fetches(self) -> bool:
        """True when `fetch` works; it may read more than the elements asked for, but nothing twice."""
        return self.random_access

    def fetch(self, rows: Ints, epoch: int) -> Block:
        """The elements at positions `rows`, in that order, for nodes with `fetches`."""
        raise NotImplementedError(f"{self.op} has no random access")

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What identifies this step, apart from its inputs: its op, and hashes of its arguments, functions and contents."""
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
        """Hashes of the elements that it holds in memory; computed once."""
        return {}

    def file_facts(self) -> dict[str, Any]:
        """What is known now about the files that it names."""
        return {}

    def input_at(self, state: State) -> "Node":
        """The node that `state["input"]` is a state of, for a state of this step."""
        return self.inputs[0]

    def place_of(self, state: State, ahead: int) -> dict[str, Any] | None:
        """The "file" and "row" of the record that an element comes from, where element i comes from record i; None: not known.

        Args:
          state: one of this step.
          ahead: how many elements the element is behind that state: 0 for the next one, -1 for the last one.
        """
        if self.transparent:
            return self.inputs[0].place_of(state, ahead)
        at = self.source_of(state, ahead)
        return None if at is None else self.input_at(state).place_of(*at)

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        """Which element of its input an element is, or is made of alone: as state and distance; None: not known.

        Args:
          state: one of this step.
          ahead: as for `place_of`.
        """
        return None

    def state_misfit(self, state: State) -> str | None:
        """Why no state of this step can be like that, beyond the keys, types and signs of the first one; None: it can."""
        return None

    @property
    def state_of(self) -> "Node":
        """The step that this one's states belong to: itself, unless it passes on those of another."""
        return self.inputs[0].state_of if self.transparent else self

    @property
    def steps(self) -> list["Node"]:
        """The steps of this tree that have states of their own, inputs first."""
        return [step for step in walk(self) if not step.transparent]

    def open(self, state: State, run: Run) -> Stream:
        """`stream`, measured and annotated by the run."""
        run = run.at(self)
        inner = run if self.by_element else run.by_block()
        return run.watch(self, self.stream(state, inner if self.tolerant else inner.tolerating(False)), state)

    def records_at(self, state: State, ahead: int) -> tuple[dict[str, Any], int] | None:
        """The `place_of` the first record that an element is made of, and how many records it is made of; None: not known."""
        if self.transparent:
            return self.inputs[0].records_at(state, ahead)
        at = self.source_of(state, ahead)
        if at is not None:
            return self.input_at(state).records_at(*at)
        place = self.place_of(state, ahead)
        return None if place is None else (place, 1)

    def told_record(self, error: Exception, state: State, ahead: int) -> str | None:
        """Which record an error of this step is about, in words; None: not known; empty: the next one to be read.

        Args:
          error: it may hold the state before the element that a function failed on (`core.calls`).
          state: one of this step.
          ahead: how many elements the one at fault is behind that state.
        """
        mark = getattr(error, "_distinput_mark", None)
        if mark is None:
            return record_in_words(self.records_at(state, ahead))
        return record_in_words(self.input_at(state).records_at(mark["input"], mark["skip"]))

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
        """Whether some of its elements may be errors while others are not."""
        return not self.harmless or any(source.may_fail for source in self.inputs)

    @property
    def fails_in_place(self) -> bool:
        """Whether an error takes all elements of its batch with it; otherwise the next batch begins right after the error.

        Source: TensorFlow runs a `map` and the `batch` behind it as one step (map_and_batch_dataset_op.cc).
        """
        return False

    @property
    def draws(self) -> bool:
        """Whether this step, or a dataset that its function builds, may draw its own seed; then it has a field `drawn_seed`."""
        return False

    @property
    def chooses(self) -> bool:
        """Whether a seed decides which element comes next."""
        return False

    @property
    def reshuffles(self) -> bool:
        """Whether each pass has another order."""
        return False

    @property
    def made(self) -> Iterable["Node"]:
        """The datasets that its function builds from sample elements; empty for other functions."""
        return ()

    def added(self) -> "Node":
        """What the user adds to a pipeline: mostly itself. The place to refuse, or warn about, what only rewrites build."""
        return self

    @property
    def keeps(self) -> bool:
        """Whether it keeps something of one pass for later ones; then it has a field `store`."""
        return False

    @property
    def own_options(self) -> Any:
        """The `Options` that it adds to those of its inputs, if any."""
        return None

    @cached_property
    def lasting(self) -> tuple["Node", ...]:
        """The steps that carry something from pass to pass: those that draw a seed or keep elements, inputs first."""
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
        """Itself, with the spec of a step that gives the same elements, if known, so that no function is called for it."""
        known = vars(other).get("spec")
        if known is not None:
            vars(self).setdefault("spec", known)
        return self

    def to_user(self) -> Any:
        """The dataset that users see where this node is a leaf of an element."""
        return Node.handle(self)

    def __getstate__(self) -> dict[str, Any]:
        """Its fields, and its spec if that is known: what else was computed is computed again in another process."""
        kept = [f.name for f in dataclasses.fields(self)] + ["spec"] * ("spec" in vars(self))
        return {name: vars(self)[name] for name in kept}

    @property
    def notes(self) -> tuple[str, ...]:
        """What `explain` says of how it runs, beyond its arguments."""
        return ()

    @property
    def op(self) -> str:
        """The op's name, as users call it."""
        kind = type(self).__name__
        return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(kind))

    def arguments(self) -> dict[str, Any]:
        """The arguments that are not inputs, for printing and for the fingerprint."""
        hidden = {"name", "origin"}
        found = {}
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            is_input = isinstance(value, Node) or (isinstance(value, tuple) and any(isinstance(v, Node) for v in value))
            if f.name not in hidden and f.repr and not is_input:
                found[f.name] = value
        return found

    def __str__(self) -> str:
        label = "" if self.name is None else f"[{self.name}]"
        return f"{self.op}{label}({', '.join(f'{name}={text}' for name, text in given(self).items())})"

    @cached_property
    def element_spec(self) -> Any:
        """The spec nest, so that a node may stand as a leaf of an element."""
        return self.spec.nest

    @property
    def leaf_spec(self) -> DatasetSpec:
        """The spec of this node as a leaf of an element."""
        return DatasetSpec(self.element_spec)


def _alike(old: Node, new: Node) -> bool:
    """Whether the specs of two nodes are known already, and equal."""
    if old is new:
        return True
    known, found = vars(old).get("spec"), vars(new).get("spec")
    return known is not None and (known is found or known == found)


def _unlock(cls: type) -> None:
    """Let several threads compute cached properties of nodes at the same time.

    Before Python 3.12 all instances of a class share one lock per cached property. A function that is called to infer the spec
    of one pipeline, and waits for a thread that needs the spec of another, would wait forever.
    """
    for value in vars(cls).values():
        if isinstance(value, cached_property) and hasattr(value, "lock"):
            setattr(value, "lock", nullcontext())  # noqa: B010 - newer versions have none


_unlock(Node)


def record_in_words(found: tuple[dict[str, Any], int] | None) -> str | None:
    """Records for a note on an error."""
    if found is None or found[0]["row"] is None:
        return None
    place, count = found
    more = f" and the {count - 1} after it" if count > 1 else ""
    return f"record {place['row']:,} of {place['file']}{more}"


def walk(node: Node) -> Iterator[Node]:
    """The node and everything it reads from, inputs first."""
    for source in node.inputs:
        yield from walk(source)
    yield node
