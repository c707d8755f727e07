# SPDX-License-Identifier: Apache-2.0
"""Sources of steps: what they have in common, and the three: batches that are cut, elements dealt, pieces read alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import compress, islice, repeat
from typing import TYPE_CHECKING, Any, TypeAlias, final

from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.data.iterator import DatasetIterator, Passes, resumed
from distinput.distribute.core.replicas import CallDescription, Replicas
from distinput.distribute.input.dealing import (
    END,
    Cutter,
    StepBuilder,
    drawn,
    has_rows,
    mark_of,
    place_of,
    rows_in,
    short,
)
from distinput.errors import StateError
from distinput.names.lazy import dataclass, later
from distinput.plan.batch_sizes import Assignment
from distinput.plan.node import INFINITE, UNKNOWN, Node
from distinput.rewrite.rules import Running
from distinput.sharding.own_rows import own_pieces
from distinput.values.spec import Spec

if TYPE_CHECKING:
    from distinput.data import seal as seals
    from distinput.distribute.input import lockstep as locksteps
    from distinput.distribute.input.lockstep import Lockstep
    from distinput.plan import fingerprint as fingerprints
else:
    seals, fingerprints = later("distinput.data.seal"), later("distinput.plan.fingerprint")  # for those who save states
    locksteps = later("distinput.distribute.input.lockstep")  # for several workers

# ----------------------------------------------------------------------------
# Sources of the steps of one worker: the interface and functions common to the three kinds.
#
# `OwnPiecesSource` reads only this worker's pieces of the global batches, `CutBatches` cuts them out of every global batch, and
# `DealtElements` gives one element of an input pipeline to each replica. A source is a description; its `Steps` are one
# iteration over it.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """The properties that all steps of a distributed dataset share, whatever their source.

    Args:
      replicas: the replicas that take the steps.
      cardinality: the cardinality of the dataset as the user gave it.
      keeps_partial: True if `next` delivers a last step in which some replicas have no element.
      steps: the number of steps, if the workers have counted them; None if each sees its end, or they agree on it.
      tail: what happens to a step that is not full.
      full_rows: the number of rows of a full step, if each step has to be checked; else 0.
      open_ends: True if a worker that has no more elements can learn their shape only from others.
      alike: True if all workers have the same pipeline and begin the same passes.
      hints: harmless differences between the pipelines, for the error raised if their elements turn out to differ.
      earlier: makes the source that continues with the states of a job of another layout; it gives None where none can.
    """

    replicas: Replicas
    cardinality: int
    keeps_partial: bool = True
    steps: int | None = None
    tail: str = "partial"
    full_rows: int = 0
    open_ends: bool = False
    alike: bool = False
    hints: Sequence[str] = ()
    earlier: "Callable[[Mapping[str, Any]], StepSource | None] | None" = None

    @property
    def agrees(self) -> bool:
        """True if workers can tell the end, or what stands for missing elements, only together."""
        return self.replicas.workers > 1 and self.cardinality != INFINITE and (self.steps is None or self.open_ends)

    def leaves_out(self, rows: int) -> bool:
        """True for a step that is left out because it is not full; it ends the iteration.

        Raises:
          InvalidArgumentError: the step is not full, and tail is "error".
        """
        if rows >= self.full_rows:
            return False
        if self.tail == "error":
            raise short(rows, self.full_rows)
        return True


# ---- What all sources share

HALF_WAY = (
    "DistributedIterator.state: the last step failed when some replicas had their element already; go on with next, or "
    "restart from a state taken before"
)

SeenShapes = list[list[int]] | None
"""The shapes of the leaves of the last element, used for placeholders; None before the first element."""


WHOLE: Mapping[str, Any] = {"cut": "batches"}
"""The layout of states that are positions in the global batches: any number of workers and replicas can continue."""


class OfGlobalBatches:
    """What sources say that give pieces of global batches.

    Args:
      terms: the properties of all steps.
      balanced: True if the pieces of a batch differ by at most one row.
    """

    terms: Terms
    balanced: bool

    @property
    def cut(self) -> str:
        """How global batches are cut, in words."""
        if self.balanced:
            return "each global batch on its own, into parts whose sizes differ by at most one"
        return "each global batch on its own, into equal parts, rounded up; the last ones may be short or empty"

    @property
    def num_steps(self) -> int:
        """The number of steps, where it is known beforehand."""
        if self.terms.cardinality == INFINITE:
            return INFINITE
        return UNKNOWN if self.terms.steps is None or self.terms.full_rows else self.terms.steps


def lockstep_of(
    terms: Terms,
    iterator: Iterator[Any],
    count: int,
    rows_of: Callable[[list[Any]], int] | None,
    *,
    alike: bool,
    lacks: Callable[[list[Any]], bool] | None = None,
) -> "Lockstep":
    """The steps of all workers, each of `count` elements of this worker's input; see `Lockstep`."""
    peers = terms.replicas.peers
    assert peers is not None, "only several workers agree"
    # The functions must not refer to the iteration, which would keep it from being freed.
    return locksteps.Lockstep(
        peers.control, partial(drawn, iterator, count), place_of(iterator), rows_of,
        about=peers.next_iteration, alike=alike, hints=terms.hints, lacks=lacks,
    )  # fmt: skip


def sealed_place(iterator: Any, place: State) -> State:
    """The state of a position."""
    seal = getattr(iterator, "sealed", None)
    return place if seal is None else seal(place)


def resumed_input(dataset: Any, state: State, may_differ: str | Collection[str]) -> Any:
    """An iterator that continues from a state of an input."""
    # Datasets of other packages lack this argument.
    return dataset.restore(state, may_differ) if may_differ else dataset.restore(state)


def close_input(iterator: Any) -> None:
    """Close an input, if it has such a method."""
    close = getattr(iterator, "close", None)
    if close is not None:
        close()


def plan_of(dataset: Any) -> str | None:
    """The result of `explain` of a dataset, if it has that method."""
    explain = getattr(dataset, "explain", None)
    return None if explain is None else str(explain())


class Steps(ABC):
    """One iteration over the inputs of this worker.

    Args:
      source: the source to iterate.
      iterators: the iterators of its inputs.
      seen: the shapes of the last element of a restored iteration.
      builds: whether steps are made of several elements, or without any.
    """

    partial = False
    """True if the last step was returned only because partial steps are kept."""
    _seeds_alike = True  # the seeds drawn are those of the other workers, if all have the same pipeline

    def __init__(
        self, source: "StepSource", iterators: Sequence[Any], seen: SeenShapes, *, builds: bool = True
    ) -> None:
        terms = self._terms = source.terms
        self._iterators, self._full = iterators, terms.full_rows > 0
        self._rows = partial(rows_in, source.spec.structure)
        self._seen, self._builds = seen, builds
        if builds:
            self._build = StepBuilder(source.spec, terms.replicas, seen)
        self._pending: list[Any] = []  # drawn for a step that was cut short
        self._failed = False  # that step, with an error
        self._before = self._marks()
        self._lockstep: Lockstep | None = None
        self._agreed: list[Any] | None = None  # drawn for a step that was cut short, where workers agree on each

    @abstractmethod
    def next(self, keeps_partial: bool) -> Any:
        """The next step, or `END`. A step that an interrupt cuts short comes with the next call.

        Args:
          keeps_partial: True to return steps in which some replicas have no element.
        """

    def _of_agreed(self, lockstep: "Lockstep") -> Any:
        """The next step on which the workers agree, or `END`."""
        if self._agreed is None:
            self._agreed = lockstep.next()
        try:
            step = END if self._agreed is None else self._finish(self._agreed, lockstep)
        except Exception:
            self._agreed = None
            raise
        self._agreed = None
        return step  # no function is called before it is taken

    @abstractmethod
    def _finish(self, parts: list[Any], lockstep: "Lockstep") -> Any:
        """The step of what was drawn for it where workers agree, or `END` if it is left out."""

    def _marks(self) -> list[Any]:
        return [mark_of(iterator) for iterator in self._iterators]

    @property
    def seen(self) -> SeenShapes:
        """The shapes that a state saves."""
        return self._build.seen if self._builds else self._seen

    @property
    def failed(self) -> bool:
        """True if an error that all workers raised has ended the iteration before its end."""
        return self._lockstep is not None and self._lockstep.failed

    @property
    def beginning(self) -> tuple[int | None, Sequence[int] | None]:
        """The number of the pass, and the seeds drawn; each is None if workers may have different ones."""
        iterator = self._iterators[0]
        if not self._terms.alike:
            return None, None
        return iterator.epoch, iterator.seeds if self._seeds_alike else None

    def places(self, waiting: bool = False) -> list[State]:
        """The positions of the input pipelines after the last step, which `inputs` makes states of.

        Args:
          waiting: True if the last step that `next` returned was not delivered: the positions before it.

        Raises:
          StateError: the last step failed half-way, or was interrupted, and there is no place before it.
        """
        if self._pending and self._failed:
            raise StateError(HALF_WAY)
        if self._lockstep is not None:  # of one input, whose iterator is behind the elements drawn for agreements
            return [self._lockstep.before if waiting or self._agreed is not None else self._lockstep.state]
        if not (waiting or self._pending):
            return [place_of(iterator) for iterator in self._iterators]
        if any(mark is None for mark in self._before):  # iterators of other packages have none
            raise StateError(HALF_WAY)
        return [place_of(iterator, mark) for iterator, mark in zip(self._iterators, self._before, strict=True)]

    def inputs(self, step: int, places: Sequence[State]) -> list[State]:
        """The states of the input pipelines, `step` steps after the beginning of the first pass.

        Args:
          step: the number of steps.
          places: what `places` returned after the last of them.
        """
        return [sealed_place(iterator, place) for iterator, place in zip(self._iterators, places, strict=True)]

    def close(self) -> None:
        """End the background work."""
        self._pending = []
        if self._builds:
            self._build.close()
        if self._lockstep is not None:
            self._lockstep.close()
        for iterator in self._iterators:
            close_input(iterator)


# ----------------------------------------------------------------------------
# A source of steps: every worker reads all global batches and cuts its own pieces out of each.
# ----------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class CutBatches(OfGlobalBatches):
    """Each worker reads all global batches and keeps its pieces of them.

    Args:
      terms: the properties of all steps.
      dataset: the global batches.
      cutter: cuts them.
      spec: the spec of a piece.
      balanced: True if the pieces of a batch differ by at most one row.
      of_lanes: what states say, if the batches are those of an earlier job's inputs.
    """

    terms: Terms
    dataset: Any
    cutter: Cutter
    spec: Spec
    balanced: bool
    of_lanes: Mapping[str, Any] | None = None

    fails_alone = False  # all workers read the same elements and meet the same error
    pipelines = 1
    reads = "all global batches, of which this worker keeps its rows: not all rows can be reached by position"

    @property
    def layout(self) -> Mapping[str, Any]:
        return WHOLE if self.of_lanes is None else self.of_lanes

    @property
    def agrees(self) -> bool:
        return self.terms.agrees

    @property
    def plan(self) -> str | None:
        return plan_of(self.dataset)

    def begin(self) -> "CutSteps":
        return CutSteps(self, iter(self.dataset), None)

    def take_over(self, place: State) -> None:
        self.dataset._take_over(place)

    def restore(
        self, inputs: Sequence[State], step: int, seen: SeenShapes, may_differ: str | Collection[str]
    ) -> "CutSteps":
        return CutSteps(self, resumed_input(self.dataset, inputs[0], may_differ), seen)


@final
class CutSteps(Steps):
    """One iteration over `CutBatches`.

    Args:
      source: the source to iterate.
      iterator: the iterator of the global batches.
      seen: the shapes of the last element of a restored iteration.
    """

    def __init__(self, source: CutBatches, iterator: Any, seen: SeenShapes) -> None:
        # One worker can run out of batches while others continue only where workers agree on each step.
        super().__init__(source, [iterator], seen, builds=source.agrees)
        self._cut, self._mark = source.cutter.__call__, getattr(iterator, "mark", partial(mark_of, iterator))
        self._each = compress(iterator, repeat(True))  # a loop over it calls no `__iter__` in each step
        if source.agrees:
            self._lockstep = lockstep_of(self._terms, iterator, 1, self._rows, alike=self._terms.alike)

    def next(self, keeps_partial: bool) -> Any:
        if self._lockstep is None:
            if not self._pending:
                self._before = [self._mark()]
                for batch in self._each:
                    self._pending = [batch]
                    break
                else:
                    return END
            try:
                leaves_out = self._full and self._terms.leaves_out(self._rows(self._pending))
                step = END if leaves_out else self._cut(self._pending[0])
            except Exception:
                self._pending = []
                raise
            self._pending = []
            return step  # no function is called before it is taken
        return self._of_agreed(self._lockstep)

    def _finish(self, parts: list[Any], lockstep: "Lockstep") -> Any:
        if self._full and self._terms.leaves_out(self._rows(parts)):
            lockstep.close()
            return END
        return self._cut(parts[0]) if parts else self._build([], self._terms.replicas.count)


# ----------------------------------------------------------------------------
# A source of steps: each replica in turn gets one element of an input pipeline.
# ----------------------------------------------------------------------------


_SHAPES = CallDescription("next step of the input: the shapes of its rows", name="the shapes of a step")


@final
@dataclass(frozen=True)
class DealtElements:
    """Gives element k of a worker's dataset to its replica k mod R in step k div R; or each has its own dataset.

    Args:
      terms: the properties of all steps.
      datasets: one for all replicas of this worker, or one for each of them.
      spec: the spec of an element.
      whole: True if elements are global batches for the only replica, so that a place in them is a place in all data.
      has_rows: True if elements are parts of global batches, so that a step in which no worker has a row is skipped.
      of_lanes: what states say, if the elements are global batches of an earlier job's inputs.
      tree_of: the tree that a worker reads, for those who ask about other workers; None if only its own is known.
    """

    terms: Terms
    datasets: Sequence[Any]
    spec: Spec
    whole: bool = False
    has_rows: bool = True
    of_lanes: Mapping[str, Any] | None = None
    tree_of: Callable[[int], Node] | None = field(default=None, repr=False)

    fails_alone = True
    cut = "one element of the input for each replica, in turn"
    reads = "this worker's part of the data"

    @property
    def agrees(self) -> bool:
        terms = self.terms
        # No worker can tell from its own part whether a step is full, even if the data never ends.
        return terms.agrees or (terms.full_rows > 0 and terms.replicas.workers > 1)

    @property
    def num_steps(self) -> int:
        terms = self.terms
        if terms.cardinality == INFINITE:
            return INFINITE
        if terms.steps is not None and not terms.full_rows:
            return terms.steps
        if self.whole or len(self.datasets) > 1 or terms.replicas.workers > 1 or terms.full_rows:
            return UNKNOWN
        elements = int(self.datasets[0].cardinality())
        if elements < 0:
            return elements
        return -(-elements // terms.replicas.count) if terms.keeps_partial else elements // terms.replicas.count

    @property
    def layout(self) -> Mapping[str, Any]:
        if self.whole:
            return WHOLE if self.of_lanes is None else self.of_lanes
        replicas, cut = self.terms.replicas, "per_replica" if len(self.datasets) > 1 else "per_worker"
        return {"replicas": replicas.total, "workers": replicas.workers, "cut": cut}

    @property
    def pipelines(self) -> int:
        return len(self.datasets)

    @property
    def plan(self) -> str | None:
        return plan_of(self.datasets[0])

    def begin(self) -> "DealtSteps":
        return DealtSteps(self, [iter(dataset) for dataset in self.datasets], 0, None)

    def take_over(self, place: State) -> None:
        for dataset in self.datasets:
            dataset._take_over(place)

    def restore(
        self, inputs: Sequence[State], step: int, seen: SeenShapes, may_differ: str | Collection[str]
    ) -> "DealtSteps":
        pairs = zip(self.datasets, inputs, strict=True)
        return DealtSteps(self, [resumed_input(dataset, state, may_differ) for dataset, state in pairs], step, seen)


class DealtSteps(Steps):
    """One iteration over elements that are dealt to the replicas of this worker.

    Args:
      source: the source to iterate.
      iterators: the iterators of its datasets.
      step: how many steps were taken before.
      seen: the shapes of the last element before.
    """

    _seeds_alike = False

    def __init__(
        self, source: "DealtElements | OwnPiecesSource", iterators: Sequence[Any], step: int, seen: SeenShapes
    ) -> None:
        super().__init__(source, iterators, seen)
        terms = self._terms
        self._one = iterators[0] if len(iterators) == 1 else None
        self._replicas, self._cut = terms.replicas.count, source.has_rows
        # A replica without others sees its end itself; steps that failed were not delivered, so counting would go wrong.
        self._left = None if terms.steps is None or terms.replicas.total == 1 else terms.steps - step
        if source.agrees:
            rows_of = self._rows if source.has_rows else None
            lacks = partial(self._build.stand_in.lacks, replicas=self._replicas, cut=source.has_rows)
            self._lockstep = lockstep_of(terms, iterators[0], self._replicas, rows_of, alike=False, lacks=lacks)

    def next(self, keeps_partial: bool) -> Any:
        if self._lockstep is not None:
            return self._of_agreed(self._lockstep)
        steps_left = None if self._left is None else self._left - 1
        if steps_left == -1:
            return END
        replicas, parts = self._replicas, self._pending
        if not parts:
            self._before = self._marks()
        try:
            missing = self._draw(parts)
        except Exception:
            self._left, self._failed = steps_left, True
            raise
        if missing and self._left is None and (missing == replicas or not keeps_partial):
            parts.clear()
            return END
        if self._full and self._terms.leaves_out(self._rows(parts)):
            parts.clear()
            return END
        step = self._build([*parts], missing)
        self._pending, self._failed, self._left = [], False, steps_left
        self.partial = missing > 0 and steps_left is None
        return step  # no function is called before it is taken

    def _draw(self, parts: list[Any]) -> int:
        """Draw what is missing for a step; how many replicas get nothing."""
        if self._one is not None:
            parts.extend(islice(self._one, self._replicas - len(parts)))
            return self._replicas - len(parts)
        for iterator in self._iterators[len(parts) :]:
            for part in iterator:
                parts.append(part)
                break
            else:
                parts.append(END)
        return sum([part is END for part in parts])

    def _finish(self, parts: list[Any], lockstep: "Lockstep") -> Any:
        if self._full and self._terms.leaves_out(lockstep.rows):
            lockstep.close()
            return END
        seen = self._shapes_of_others(parts) if lockstep.lacking else None
        return self._build(parts, self._replicas - len(parts), seen)

    def _shapes_of_others(self, parts: list[Any]) -> SeenShapes:
        """The shapes of the rows of the first worker that has some; empty pieces of this worker become placeholders of them.

        All workers call this in the same step.
        """
        stand_in, peers = self._build.stand_in, self._terms.replicas.peers
        assert peers is not None, "only several workers agree"
        mine = [stand_in.shapes(part) for part in parts]
        own = next((shapes for shapes in mine if has_rows(shapes)), None)
        told = peers.exchange(_SHAPES, lambda: (own, []), peers.control)
        seen: SeenShapes = next((shapes for shapes, _ in told if shapes is not None), None)
        if seen is not None and self._cut:
            empty = stand_in.element(seen)
            parts[:] = [part if has_rows(shapes) else empty for part, shapes in zip(parts, mine, strict=True)]
        return seen


# ----------------------------------------------------------------------------
# A source of steps: each worker reads only its own pieces of each global batch; states are those of the whole dataset.
# ----------------------------------------------------------------------------


class OwnBatches:
    """A dataset of global batches of which a worker reads only its own pieces.

    Its positions are positions in the global batches, so its states are those of the whole dataset: any number of
    workers can continue from them.

    Args:
      whole: the dataset of global batches.
      node: its tree without the final prefetch.
      assignment: the pieces that belong to this worker.
      ahead: how many pieces to prefetch.
      passes: the counter of passes.
    """

    def __init__(self, whole: Dataset, node: Node, assignment: Assignment, ahead: int, passes: Passes) -> None:
        self.whole, self.node, self._assignment, self._ahead, self._passes = whole, node, assignment, ahead, passes
        self._runs = whole._runs()  # the tree that positions belong to
        self._seal = seals.Seal(whole.node, self._runs)
        self._later: OwnBatches | None = None
        self.pieces = self._made(node)

    @staticmethod
    def of(whole: Dataset, node: Node, assignment: Assignment, ahead: int) -> "OwnBatches | None":
        """The batches as `OwnBatches`; None without random access to rows, so that a worker has to read all batches."""
        if assignment.each is None or own_pieces(node, assignment) is None:
            return None
        made = OwnBatches(whole, node, assignment, ahead, whole._passes)
        return None if made._runs.node.start_at(0, 0) is None else made

    def _made(self, node: Node) -> Dataset:
        pieces = own_pieces(node, self._assignment)
        assert pieces is not None, "the same tree with other seeds"
        return Dataset(pieces, self._passes).prefetch(self._ahead)

    def __iter__(self) -> DatasetIterator:
        self._seal = seals.Seal(self.whole.node, self._runs)  # its files are examined again
        return self.pieces.__iter__()

    @property
    def now(self) -> "OwnBatches":
        """The batches of the passes that begin now, with the seeds of the latest state."""
        return self._later or self

    def _take_over(self, place: State, running: Running | None = None) -> None:
        """Have later passes go on with the seeds of a place, and with the passes kept there; see `Dataset._take_over`."""
        plan, _ = resumed(self.whole.node, running or self._runs, place)
        self._later = None
        if plan is not self.whole.node:
            whole = Dataset(plan, self._passes)
            self._later = OwnBatches(whole, plan.inputs[0], self._assignment, self._ahead, self._passes)

    def state(self, place: State, batches: int) -> State:
        """The state of the whole dataset after `batches` of its batches.

        Args:
          place: the position after this worker's pieces of them, of the iterator that returned the pieces.
          batches: the number of batches since the first pass began.
        """
        return self._seal({**place, "at": self._runs.node.start_at(batches, place["epoch"]), "skip": 0})

    def restore(self, state: State, batches: int, may_differ: Collection[str]) -> tuple["OwnBatches", DatasetIterator]:
        """An iterator of this worker's pieces of the batches after the first `batches` ones, and its `OwnBatches`.

        The latter uses the seeds that had been drawn when `state` was saved.

        Raises:
          StateError: the state belongs to another pipeline.
        """
        place, running = seals.place_in(self.whole.node, self._runs, state, may_differ)
        self._take_over(place, running)
        own = self.now
        own._seal = seals.Seal(own.whole.node, own._runs)
        pieces = own.pieces._runs()
        at = pieces.node.start_at(batches * (self._assignment.each or 0), place["epoch"])
        return own, own.pieces._goes_on({**place, "at": at, "skip": 0}, pieces)


@final
@dataclass(frozen=True)
class OwnPiecesSource(OfGlobalBatches):
    """Each worker reads only its own pieces of the global batches; all workers know the number of steps beforehand.

    Args:
      terms: the properties of all steps.
      batches: the global batches, of which this worker's pieces are read.
      spec: the spec of a piece.
      balanced: True if the pieces of a batch differ by at most one row.
    """

    terms: Terms
    batches: OwnBatches
    spec: Spec
    balanced: bool

    agrees = False
    fails_alone = True
    has_rows = True
    layout = WHOLE
    pipelines = 1
    reads = "only this worker's rows of each global batch"
    plan = None

    def begin(self) -> "OwnSteps":
        batches = self.batches.now
        return OwnSteps(self, batches, iter(batches), 0, None)

    def take_over(self, place: State) -> None:
        self.batches._take_over(place)

    def restore(
        self, inputs: Sequence[State], step: int, seen: SeenShapes, may_differ: str | Collection[str]
    ) -> "OwnSteps":
        batches, iterator = self.batches.restore(inputs[0], step, fingerprints.allowances(may_differ))
        return OwnSteps(self, batches, iterator, step, seen)


@final
class OwnSteps(DealtSteps):
    """One iteration over `OwnPiecesSource`: this worker's pieces are dealt to its replicas, and states are of whole batches.

    Args:
      source: the source to iterate.
      batches: the batches of the source, with the seeds of a restored iteration if there is one.
      iterator: the iterator of the pieces.
      step: how many steps were taken before.
      seen: the shapes of the last element before.
    """

    _seeds_alike = True

    def __init__(
        self, source: OwnPiecesSource, batches: OwnBatches, iterator: Any, step: int, seen: SeenShapes
    ) -> None:
        super().__init__(source, [iterator], step, seen)
        self._batches = batches

    def inputs(self, step: int, places: Sequence[State]) -> list[State]:
        return [self._batches.state(places[0], step)]


StepSource: TypeAlias = CutBatches | DealtElements | OwnPiecesSource
"""The source of the steps of one worker, a description of which `Steps` are one iteration. Each says:

* `terms`: the properties of all steps; `spec`: that of one replica's part of a step;
* `agrees`: whether the workers agree on each step, because they can tell the end only together;
* `fails_alone`: whether this worker's input may fail while those of the others do not;
* `num_steps`: the number of steps that every worker takes, INFINITE, or UNKNOWN if it is known only at the end;
* `layout`: the facts that must be equal for a state to fit; `pipelines`: how many inputs are read, each with its own state;
* `cut`: how the parts of the replicas are made, in words; `reads`: what each of several workers reads, in words;
* `plan`: the result of `explain` of the input pipeline, if it has that method;
* `begin`: begins a new pass; `restore`: the rest of a pass, from the results of `Steps.inputs` and `Steps.seen`;
* `take_over`: later passes go on with the seeds of a place that another source goes on from, and with the passes kept there.
"""
