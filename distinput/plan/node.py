# SPDX-License-Identifier: Apache-2.0
"""`Node`: a pipeline is a tree of frozen dataclasses, each of which says what its elements look like and streams them.

First the words that a node uses of itself, then the class: what an op must answer, what it answers if it can, the facts that
it states, and what follows for all ops. After it stands what is done with whole trees, and what nodes give and keep.
"""

import dataclasses
import os
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from enum import IntEnum
from functools import cache, cached_property
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from distinput.columns.block import Block, trouble_of
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import Digest, State
from distinput.errors import InputWarning
from distinput.names.lazy import dataclass, later, without_secrets
from distinput.plan.check import AUTOTUNE
from distinput.run.run import Run
from distinput.values.spec import DatasetSpec, Spec, TensorSpec

if TYPE_CHECKING:
    from distinput.plan import batch_sizes as sizes_of_batches
    from distinput.plan import binding
    from distinput.plan import code as step_code
    from distinput.plan.batch_sizes import BatchSizes
    from distinput.plan.binding import Captured
else:
    binding = later("distinput.plan.binding")  # functions are for pipelines that have some
    step_code = later("distinput.plan.code")  # what identifies a step is for states
    sizes_of_batches = later("distinput.plan.batch_sizes")  # for workers


INFINITE = -1
UNKNOWN = -2


class Needs(IntEnum):
    """How much of its input a step needs to see, so that workers together give what one worker would give.

    The levels are ordered: what works for a step that needs more also works for one that needs less. Sharding and rewrites
    compare them, as in `node.needs <= Needs.PART`.

    ONE: element i depends on element i of the input alone.
    EACH: each element of the input gives none, one or several elements, in order, whatever the others are.
    PART: a worker treats its part of the inputs as it would treat the whole; batches may end elsewhere.
    PLACES: elements depend on positions in the whole. Policy FILE divides the files below it all the same, as TensorFlow does.
    ALL: the whole input, in order.
    """

    ONE = 0
    EACH = 1
    PART = 2
    PLACES = 3
    ALL = 4


_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_LIBRARY = os.path.dirname(threading.__file__)
_THREADS = threading.__file__, *[os.path.join(_LIBRARY, name, "") for name in ("concurrent", "multiprocessing")]
"""Beginnings of the names of Python's own files in which threads begin."""


@dataclass(frozen=True)
class Origin:
    """The line of the user's code that made a node, and the process that ran it."""

    file: str
    line: int
    process: int = field(default_factory=os.getpid, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def warn(self, text: str) -> None:
        """Warn of this line, once."""
        warnings.warn_explicit(text, InputWarning, self.file, self.line, registry=_WARNED)


_WARNED: dict[Any, Any] = {}
"""The lines of which users were warned; maintained by `warnings`."""


def caller() -> Origin:
    """The innermost line on the stack that does not belong to distinput; the thread where that is none of a program."""
    frame = sys._getframe(1)
    others = (_PACKAGE, "<string>", *_THREADS)
    while frame.f_code.co_filename.startswith(others) and frame.f_back is not None:
        frame = frame.f_back
    if frame.f_code.co_filename.startswith(_THREADS):
        return Origin(f"thread {threading.current_thread().name!r}", 0)
    return Origin(frame.f_code.co_filename, frame.f_lineno)


@dataclass(frozen=True, eq=False)
class Node(ABC):
    """One step of a pipeline.

    Subclasses are frozen dataclasses whose fields are their inputs (nodes, or tuples of them) and arguments. They answer
    `spec`, `start` and `stream`; `cardinality`, `start_at` and `fetch` as far as they can. They know nothing about their
    neighbours.

    What others must know about a step to shard, count and rewrite a pipeline, the step states itself, as *facts*: class
    attributes, and a few properties. Fields need other names than facts have, since they would inherit their values. What a
    step need not say is found in its fields: its inputs, name, arguments and copies.

    Args:
      name: what the user calls the step.
      origin: the line that made it.
      captured: what its functions read from outside and could not take over; None: nothing was taken over yet.
    """

    name: str | None = field(default=None, kw_only=True, repr=False)
    origin: Origin = field(default_factory=caller, kw_only=True, repr=False)
    captured: "Captured | None" = field(default=None, kw_only=True, repr=False)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _unlock(cls)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Node.__repr__  # type: ignore[method-assign]  # before `dataclass` makes one, which prints secrets

    def __repr__(self) -> str:
        shown = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
        return without_secrets(f"{type(self).__qualname__}({', '.join(shown)})")

    # ------------------------------------------------------------------------
    # The contract: three answers that every op gives, and those that it gives if it can.
    # ------------------------------------------------------------------------

    # --- what every op answers
    @cached_property
    @abstractmethod
    def spec(self) -> Spec:
        """What an element looks like."""

    @abstractmethod
    def start(self, epoch: int) -> State:
        """The state before the first element; `epoch` numbers the passes, for ops that reshuffle.

        Later states have the same keys; where this one has an integer from 0 on, a list or an object, they have one too.
        `restore` refuses a state that is not like that (`plan.fingerprint.misfit`).
        """

    def epoch_below(self, epoch: int) -> int:
        """The epoch with which `start` starts the inputs."""
        return epoch

    @abstractmethod
    def stream(self, state: State, run: Run) -> Stream:
        """Blocks from `state` on, each with the state after it."""

    # --- what an op answers if it can
    @property
    def cardinality(self) -> int:
        """How many elements: a number, `INFINITE` or `UNKNOWN`."""
        if self.same_count:
            return self.inputs[0].cardinality
        return INFINITE if self.same_end and self.inputs[0].cardinality == INFINITE else UNKNOWN

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

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        """Which element of its input an element is, or is made of alone: as state and distance; None: not known.

        An op whose elements are made of one element of its input each says which one; one that reads records says which those
        are (`place_of`). The elements of an op that says nothing come from nowhere.

        Args:
          state: one of this step.
          ahead: as for `place_of`.
        """
        return None

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

    def state_misfit(self, state: State) -> str | None:
        """Why no state of this step can be like that, beyond the keys, types and signs of the first one; None: it can."""
        return None

    def contents(self) -> dict[str, Any]:
        """Hashes of the elements that it holds in memory; computed once."""
        return {}

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
            binding.take_functions(self, self.op, *[name for name, value in vars(self).items() if callable(value)])
        return self

    def added(self) -> "Node":
        """What the user adds to a pipeline: mostly itself. The place to refuse, or warn about, what only rewrites build."""
        return self

    # ------------------------------------------------------------------------
    # The facts: what others must know of it to run, shard, count and rewrite a pipeline.
    # Each has a cautious default: a step that states nothing works everywhere, but is never divided, moved or left out. The
    # classes of `plan.families` state what holds for their kind.
    # ------------------------------------------------------------------------

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

    @property
    def fails_in_place(self) -> bool:
        """Whether an error takes all elements of its batch with it; otherwise the next batch begins right after the error.

        Source: TensorFlow runs a `map` and the `batch` behind it as one step (map_and_batch_dataset_op.cc).
        """
        return False

    @property
    def raises(self) -> bool:
        """Whether its errors end a pass: neither its `on_error` nor options of the pipeline say otherwise, as nearly always."""
        return getattr(self, "on_error", None) is None and all(each.own_options is None for each in walk(self))

    @property
    def notes(self) -> tuple[str, ...]:
        """What `explain` says of how it runs, beyond its arguments."""
        return ()

    # --- facts for states
    passes_states: ClassVar[bool] = False
    """True: its states are those of its input, though its elements are not."""
    transparent: ClassVar[bool] = False
    """True: its elements and its states are those of its input, so that a state does not tell whether it is there."""
    indifferent: ClassVar[frozenset[str]] = frozenset({"deterministic", "num_parallel_calls", "on_error"})
    """Arguments that affect neither elements nor states."""

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
    def differs_by_place(self) -> bool:
        """Whether it has other random numbers at each of its places in a tree (`plan.families`)."""
        return False

    @property
    def keeps(self) -> bool:
        """Whether it keeps something of one pass for later ones; then it has a field `store`."""
        return False

    @property
    def decides(self) -> bool:
        """Whether its user decides while it runs what comes next; then it has a field `live`, and states hold the decisions."""
        return False

    # --- facts for sharding and rewrites
    needs: ClassVar[Needs] = Needs.ALL
    """How much of its input it needs to see; this decides what may be sharded below it, and moved across it."""
    thins: ClassVar[bool] = False
    """True: it gives at most as many elements as its first input, and perhaps none."""
    same_count: ClassVar[bool] = False
    """True: it has as many elements as its first input."""
    same_end: ClassVar[bool] = False
    """True: it is without end where its first input is, and else nobody knows how many elements it has."""
    same_access: ClassVar[bool] = False
    """True: it has random access where its first input has."""
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

    @property
    def waits(self) -> bool:
        """Whether its next element may wait for what the loop does with the last one."""
        return False

    @property
    def drops_rows(self) -> bool:
        """Whether it drops rows at the end that do not fill a batch."""
        return False

    @property
    def random_access(self) -> bool:
        """True when `fetch` works, and costs as much for each element wherever it is and however few are fetched."""
        return self.same_access and self.inputs[0].random_access

    @property
    def own_options(self) -> Any:
        """The `Options` that it adds to those of its inputs, if any."""
        return None

    # --- facts about its spec
    @property
    def spec_given(self) -> bool:
        """Whether the user stated what its function returns."""
        return False

    @property
    def spec_from_file(self) -> bool:
        """Whether a file must be read to know what its elements look like."""
        return False

    # ------------------------------------------------------------------------
    # What follows for all ops, from the answers, the facts and the fields. An op that knows better says so.
    # ------------------------------------------------------------------------

    # --- its place in the tree
    @cached_property
    def inputs(self) -> tuple["Node", ...]:
        """The nodes this one reads from."""
        found: list[Any] = []
        for name in _own_fields(type(self)):
            value = getattr(self, name)
            if _is_node(value):
                found.append(value)
            elif isinstance(value, tuple):
                found += filter(_is_node, value)
        return tuple(found)

    def with_inputs(self, inputs: tuple["Node", ...]) -> Self:
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

    def with_changed_inputs(self, change: Callable[["Node"], "Node"]) -> Self:
        """The same step over inputs that are changed, in their order; itself where none of them is another then."""
        inputs = tuple(map(change, self.inputs))
        return self if all(map(is_, inputs, self.inputs)) else self.with_inputs(inputs)

    def same_as(self, other: "Node") -> Self:
        """Itself, with the spec of a step that gives the same elements, if known, so that no function is called for it."""
        known = vars(other).get("spec")
        if known is not None:
            vars(self).setdefault("spec", known)
        return self

    def arguments(self) -> dict[str, Any]:
        """The arguments that are not inputs, for printing and for the fingerprint."""
        found = {}
        for name in _shown_fields(type(self)):
            value = getattr(self, name)
            if not _is_node(value) and not (isinstance(value, tuple) and any(map(_is_node, value))):
                found[name] = value
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Its fields, and its spec if that is known: what else was computed is computed again in another process."""
        kept = [f.name for f in dataclasses.fields(self)] + ["spec"] * ("spec" in vars(self))
        if self.captured is None:
            return {name: vars(self)[name] for name in kept}
        return {name: binding.by_name(vars(self)[name]) for name in kept}

    # --- its name, in words and as a hash
    @property
    def op(self) -> str:
        """The op's name, as users call it."""
        return _in_lower_case(type(self).__name__)

    def __str__(self) -> str:
        label = "" if self.name is None else f"[{self.name}]"
        return f"{self.op}{label}({', '.join(f'{name}={text}' for name, text in given(self).items())})"

    def where(self) -> str:
        """The step and the line that made it, for notes on errors."""
        return f"{self}, made at {self.origin}"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What identifies this step, apart from its inputs: its op, and hashes of its arguments, functions and contents."""
        reading = step_code.ArgumentReader()
        read = {name: reading.argument(v) for name, v in self.arguments().items() if name not in self.indifferent}
        found = {"step": f"{self.op}#{Digest(3).add(sorted(read.items())).word}"}
        if reading.code:
            found["code"] = f"{step_code.PYTHON} {Digest().add(reading.code).word} {Digest(3).add(reading.names).word}"
        if reading.held:
            found["held"] = Digest().add(reading.held).word
        if reading.data:
            found["data"] = Digest().add(reading.data).word
        return {**found, **self.contents()}

    # --- passes and states
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
        """The steps that carry something beside positions: a drawn seed, elements that are kept, decisions; inputs first."""
        found = dict.fromkeys([step for source in self.inputs for step in source.lasting])
        if self.draws or self.keeps or self.decides:
            found[self] = None
        return tuple(found)

    def check_captured(self) -> None:
        """Look at what functions read from outside, before they run.

        Raises:
          FailedPreconditionError: a variable has another value than when its step was made, and could not be taken over then.
        """
        for step in self._watching:
            assert step.captured is not None
            step.captured.check(step.op)

    @cached_property
    def _watching(self) -> tuple["Node", ...]:
        """The steps whose functions read variables that could not be taken over."""
        steps = list(dict.fromkeys([step for step in walk(self) if step.captured is not None]))
        for step in steps:
            if step.captured is not None and step.captured.changeable:
                _ = step.identity  # what its functions read, before they run
        return tuple([step for step in steps if step.captured is not None and step.captured.watched])

    # --- which record an element comes from: for notes on errors, and for those who ask for the records of a batch
    def input_at(self, state: State) -> "Node":
        """The node that `state["input"]` is a state of, for a state of this step."""
        return self.inputs[0]

    @property
    def in_record_order(self) -> bool:
        """Whether elements come from records that follow each other, as long as they are in one file."""
        return self.transparent and self.inputs[0].in_record_order

    def records_at(self, state: State, ahead: int) -> "Provenance | None":
        """The records that an element is made of; None: not known."""
        if self.transparent:
            return self.inputs[0].records_at(state, ahead)
        at = self.source_of(state, ahead)
        if at is not None:
            return self.input_at(state).records_at(*at)
        place = self.place_of(state, ahead)
        return None if place is None or place["row"] is None else Provenance(((place["file"], place["row"], 1),))

    def told_record(self, error: Exception, state: State, ahead: int) -> str | None:
        """Which record an error of this step is about, in words; None: not known; empty: the next one to be read.

        Args:
          error: its trouble may hold the mark of the element that a function failed on.
          state: one of this step.
          ahead: how many elements the one at fault is behind that state.
        """
        mark = trouble_of(error).mark
        if mark is None:
            return record_in_words(self.records_at(state, ahead))
        return record_in_words(self.input_at(state).records_at(mark["input"], mark["skip"]))

    # --- how many elements, and rows of each, where those are batches
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

    def batch_sizes(self) -> "BatchSizes | None":
        """Rows of each element, where elements are batches; None if that is not known, or if there is no end."""
        firsts = {leaf.shape[0] if isinstance(leaf, TensorSpec) and leaf.shape else None for leaf in self.spec.leaves}
        if len(firsts) == 1 and None not in firsts:
            n = self.count_elements()
            return None if n < 0 else sizes_of_batches.BatchSizes.of([(list(firsts), n)])  # type: ignore[arg-type]
        below = self.inputs[0].batch_sizes() if self.keeps_batches and len(self.inputs) == 1 else None
        if below is None or self.needs == Needs.ONE:
            return below
        n = self.count_elements()
        if n < 0 or not below.uniform:
            return None
        return sizes_of_batches.BatchSizes.of([(pattern[:1], n) for pattern, _ in below.runs[:1]])

    @property
    def rows_per_batch(self) -> int | None:
        """Rows of a full batch, according to the last op that makes batches; None if that is not known."""
        found = {source.rows_per_batch for source in self.inputs} if self.keeps_batches else set()
        return found.pop() if len(found) == 1 else None

    def with_full_batches(self) -> "Node":
        """The same batches, without those that are not full."""
        if not self.keeps_batches:
            return self
        return self.with_inputs(tuple([source.with_full_batches() for source in self.inputs]))

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

    # --- what is known without calling a function or reading a file
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


class Held:
    """A node that a step has, and that is no input of it: rewrites leave it alone, and no element of it is passed on."""

    def __init__(self, node: Any) -> None:
        self.node = node


@cache
def _own_fields(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a kind of steps that not all steps have."""
    everyone = {f.name for f in dataclasses.fields(Node)}
    return tuple([f.name for f in dataclasses.fields(kind) if f.name not in everyone])


@cache
def _shown_fields(kind: type[Node]) -> tuple[str, ...]:
    """Those of them that are printed."""
    own = _own_fields(kind)
    return tuple([f.name for f in dataclasses.fields(kind) if f.name in own and f.repr])


@cache
def _in_lower_case(kind: str) -> str:
    return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(kind))


def _is_node(value: Any) -> bool:
    return Node in type(value).__mro__  # ten times as fast as `isinstance`, which asks abstract classes in Python


def _unlock(cls: type) -> None:
    """Let several threads compute cached properties of nodes at the same time.

    Before Python 3.12 all instances of a class share one lock per cached property. A function that is called to infer the spec
    of one pipeline, and waits for a thread that needs the spec of another, would wait forever.
    """
    for value in vars(cls).values():
        if isinstance(value, cached_property) and hasattr(value, "lock"):
            setattr(value, "lock", nullcontext())  # noqa: B010 - newer versions have none


_unlock(Node)


def _alike(old: Node, new: Node) -> bool:
    """Whether the specs of two nodes are known already, and equal."""
    if old is new:
        return True
    known, found = vars(old).get("spec"), vars(new).get("spec")
    return known is not None and (known is found or known == found)


# ----------------------------------------------------------------------------
# Whole trees.
# ----------------------------------------------------------------------------


def walk(node: Node, until: Callable[[Node], bool] | None = None) -> Iterator[Node]:
    """The node and everything it reads from, inputs first; nothing that is read by steps for which `until` is true."""
    waiting, found = [node], []
    while waiting:
        last = waiting.pop()
        found.append(last)
        if until is None or not until(last):
            waiting += last.inputs
    return reversed(found)


_SHALLOW, _FRAMES = 48, 16
"""Floors for which Python's own limit is enough, and frames for each floor: those of a stream and of who reads it."""


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


# ----------------------------------------------------------------------------
# How many elements there are, where more is known of the inputs than their cardinality.
# ----------------------------------------------------------------------------


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

    def start_at(self, row: int, epoch: int) -> State | None:
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


def cardinality_bounds(node: Node) -> tuple[int, int | None]:
    """The fewest and the most elements of a pass without errors; None: there is no upper bound, or none is known.

    A step that may drop elements says so (`Node.thins`). For the others the number of elements never falls when there are more
    in an input, so the bounds of the inputs give theirs. An endless pipeline has no upper bound, and its lower one says
    nothing.

    >>> import distinput as di
    >>> cardinality_bounds(di.data.Dataset.range(10).filter(lambda x: x > 3).batch(4).node)
    (0, 3)
    """
    low, high = _bounds(node)
    return max(low, 0), None if high == INFINITE else high


def _bounds(node: Node) -> tuple[int, int]:
    """Both as numbers or `INFINITE`."""
    known = node.count_elements()
    if known != UNKNOWN:
        return known, known
    if not node.inputs:
        return 0, INFINITE
    below = [_bounds(source) for source in node.inputs]
    if node.thins:
        return 0, below[0][1]
    low = over_counts(node, [first for first, _ in below]).cardinality
    high = over_counts(node, [last for _, last in below]).cardinality
    return 0 if low == UNKNOWN else low, INFINITE if high == UNKNOWN else high


# ----------------------------------------------------------------------------
# Which records elements come from.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Provenance:
    """The records that an element is made of, in order.

    Args:
      runs: records that follow each other in a file: its name, the first one, and how many.
      more: whether there may be others.
    """

    runs: tuple[tuple[str, int, int], ...]
    more: bool = False

    def __add__(self, other: "Provenance") -> "Provenance":
        runs = list(self.runs)
        for file, row, count in other.runs:
            if runs and runs[-1][0] == file and sum(runs[-1][1:]) == row:
                runs[-1] = file, runs[-1][1], runs[-1][2] + count
            else:
                runs.append((file, row, count))
        return Provenance(tuple(runs), self.more or other.more)


_TOLD = 8
"""Records that are named one by one."""


def record_in_words(found: Provenance | None) -> str | None:
    """Records for a note on an error."""
    if found is None or not found.runs:
        return None
    file, row, count = found.runs[0]
    others = " and perhaps others" if found.more else ""
    if len(found.runs) == 1:
        return f"record {row:,} of {file}" + (f" and the {count - 1} after it" if count > 1 else "") + others
    parts = [_rows_in_words(name, found) for name in dict.fromkeys([run[0] for run in found.runs])]
    return "; ".join(parts[:_TOLD]) + (others if len(parts) <= _TOLD else "; and of other files")


def _rows_in_words(file: str, found: Provenance) -> str:
    rows = [row for name, first, count in found.runs if name == file for row in range(first, first + count)]
    told = len(rows) if len(rows) <= _TOLD + 1 else _TOLD
    shown = [f"{row:,}" for row in rows[:told]]
    last = f" and {len(rows) - told} others" if len(rows) > told else f" and {shown.pop()}" if len(shown) > 1 else ""
    return f"record{'s' if len(rows) > 1 else ''} {', '.join(shown)}{last} of {file}"


# ----------------------------------------------------------------------------
# What a frozen node computes anew for each pass, and keeps for the latest one.
# ----------------------------------------------------------------------------


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Latest(Generic[_Key, _Value]):
    """The value for the key that was asked for last.

    A node holds one in a `cached_property`, so that its fields stay frozen. Passes follow one another, so one value is enough.

    >>> squares = Latest()
    >>> squares.of(3, lambda: 3**2), squares.of(3, lambda: 1 / 0), squares.of(4, lambda: 4**2)
    (9, 9, 16)
    """

    def __init__(self) -> None:
        self._kept: tuple[_Key, _Value] | None = None

    def of(self, key: _Key, compute: Callable[[], _Value]) -> _Value:
        """The value for `key`; `compute` is called where the key is not that of the last call."""
        kept = self._kept
        if kept is None or (kept[0] is not key and kept[0] != key):  # a long tuple of names is not compared with itself
            kept = self._kept = key, compute()
        return kept[1]


# ----------------------------------------------------------------------------
# Arguments as text.
# ----------------------------------------------------------------------------


def above(at: State | None, **held: Any) -> State | None:
    """The state of a step whose input is at a state, with what else the step holds; None where it is not known."""
    return None if at is None else {"input": at, **held}


def once(make: Callable[[], _Value]) -> cached_property[_Value]:
    """What a node keeps beside its fields, such as what passes have found out: made when it is first needed.

    A node that is made of another one with other fields makes its own.

    >>> class Counts:
    ...     kept = once(list)
    >>> counts = Counts()
    >>> counts.kept.append(1)
    >>> counts.kept, Counts().kept
    ([1], [])
    """
    return cached_property(lambda _: make())


def describe(value: Any, most: int | None = 60) -> str:
    """An argument as text, the same in every process, of at most `most` characters."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if callable(value):
        return str(getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value).__name__))
    if isinstance(value, Mapping):
        text = "{" + ", ".join(f"{k}: {describe(v, None)}" for k, v in value.items()) + "}"
    else:
        text = str(value) if not isinstance(value, str) else repr(value)
    text = without_secrets(text)
    return text if most is None or len(text) <= most else text[: most - 3] + "..."


# Arguments in which -1 stands for `AUTOTUNE`; elsewhere it is everything or for ever.
_AUTOTUNED = {"buffer_size", "cycle_length", "num_parallel_calls"}


def given(step: Any) -> dict[str, str]:
    """The arguments of a node that are not their defaults, as text."""
    defaults = {f.name: f.default for f in dataclasses.fields(step)}
    return {
        name: "AUTOTUNE" if name in _AUTOTUNED and value == AUTOTUNE else describe(value)
        for name, value in step.arguments().items()
        if not _is_default(value, defaults.get(name, dataclasses.MISSING))
    }


def _is_default(value: Any, default: Any) -> bool:
    """Whether an argument is its default; text that was sent to another process is another object."""
    return value is default or (isinstance(value, str) and isinstance(default, str) and value == default)
