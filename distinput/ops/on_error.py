# SPDX-License-Identifier: Apache-2.0
"""`on_error`: leave out the elements for which one step fails, within a budget, and write them down."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from distinput.core.failure import Failure
from distinput.core.rows import Stream
from distinput.core.run import Run
from distinput.core.state import State
from distinput.core.trouble import trouble_of
from distinput.errors import (
    AbortedError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    InputWarning,
    StateError,
    UnavailableError,
)
from distinput.plan.needs import Needs
from distinput.plan.node import INFINITE, UNKNOWN, Node, walk
from distinput.plan.options import options_of
from distinput.plan.same_elements import SameElements
from distinput.plan.skip_errors import SkipErrors, as_policy, is_mistake
from distinput.streaming.quarantine import Quarantine

__all__ = ["OnError", "everywhere", "guarded"]

_NEVER = (AbortedError, CancelledError, DeadlineExceededError, MemoryError, StateError, UnavailableError)
"""Errors of the machine, the network or the job: they say nothing about an element, so it must not be left out for them."""

_LISTED = 3
"""Errors that are listed when there are too many."""


@dataclass(frozen=True, eq=False)
class OnError(SameElements):
    """The elements of the step below, without those for which that step itself fails.

    Errors of steps further below are raised as ever, and so are errors that do not come from the element: a store that cannot
    be reached, a deadline, too little memory, or a mistake of the program (`SkipErrors.also`). `stats()` counts what was left
    out, under `dropped`.

    Shapes and order: unchanged. State: that of the step below, and how many elements were given and left out in this pass.

    Args:
      policy: the budget, and where elements that fail are written down.
      by_options: true if `Options.on_error` asked for it, and not the step itself.

    Raises:
      DataLossError: at iteration, more elements failed than the budget allows.

    >>> import distinput as di
    >>> ds = di.data.Dataset.from_tensor_slices(["1", "x", "3"]).map(int, on_error="skip")
    >>> ds.to_list(), ds.stats()["2:on_error"]["dropped"]
    ([1, 3], 1)
    """

    thins: ClassVar[bool] = True
    tolerant: ClassVar[bool] = True
    by_element: ClassVar[bool] = True
    harmless: ClassVar[bool] = True
    skips_failures: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs.EACH
    indifferent: ClassVar[frozenset[str]] = frozenset({"policy"})  # a run may go on with a larger budget
    policy: SkipErrors
    by_options: bool = field(default=False, kw_only=True, repr=False)

    @property
    def cardinality(self) -> int:
        return INFINITE if self.input.cardinality == INFINITE else UNKNOWN

    @property
    def subject(self) -> Node:
        """The step whose errors it leaves out."""
        found = self.input
        while isinstance(found, SameElements):
            found = found.input
        return found

    @property
    def may_fail(self) -> bool:
        return any(source.may_fail for source in self.subject.inputs)

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch), "elements": 0, "errors": 0}

    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return state["input"], ahead

    def stream(self, state: State, run: Run) -> Stream:
        elements, errors = state["elements"], state["errors"]
        counter = run.counter(self)
        if not elements and not errors:
            counter.dropped_before = counter.dropped
        counter.dropped = counter.dropped_before + errors
        foreign = frozenset([id(step) for source in self.subject.inputs for step in walk(source)])
        first: list[str] = []
        file = None if self.policy.quarantine is None else _file_of(self.policy)
        behind: State | None = None  # an error that was left out since the last block
        for block, after in self.input.open(state["input"], run.skipping(foreign)):
            if type(block) is not Failure:
                if behind is not None:  # so that a state between the two blocks does not lead back to what was left out
                    yield block.rows(0, 0), {"input": behind, "elements": elements, "errors": errors}
                    behind = None
                elements += block.size
                yield block, {"input": after, "elements": elements, "errors": errors}
                continue
            error = block.error
            if not _is_own(error, foreign) or is_mistake(error, self.policy.also):
                if not run.tolerant:
                    raise error
                yield block, {"input": after, "elements": elements, "errors": errors}
                continue
            errors += 1
            counter.dropped += 1
            counter.error = _told(error)
            record = self._record(error, after)
            if len(first) < _LISTED:
                first.append(f"{_where(record)}{counter.error}")
            if file is not None:
                file.add(record)
            if self.policy.exceeded(errors, elements):
                raise self._too_many(errors, elements, first) from error
            behind = after
        if errors and not elements:
            warnings.warn(
                f"{self.subject.op}: all {errors} elements of a pass failed and were left out; the last: {counter.error}",
                InputWarning,
                stacklevel=2,
            )

    def _record(self, error: Exception, after: State) -> dict[str, Any]:
        """What is written down of an element that failed."""
        trouble = trouble_of(error)
        file, position = trouble.place or (None, None)
        place = self.input.place_of(after, -1) or {} if file is None else {"file": file, "row": 0, **(position or {})}
        notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("on ")]
        step = trouble.step or self.subject
        record = {"file": None, "row": None, **place, "op": step.op, "made_at": str(step.origin)}
        lost, rest = trouble.lost
        if rest or lost != 1:
            record |= {"lost": lost, "rest_of_file": rest}
        return {**record, "error": type(error).__name__, "message": str(error), "element": notes[0] if notes else None}

    def _too_many(self, errors: int, elements: int, first: list[str]) -> DataLossError:
        before = errors - len(first) if len(first) < _LISTED else 0
        listed = "".join([f"\n  {text}" for text in first])
        return DataLossError(
            f"{self.subject.op}: {errors} of {errors + elements} elements failed, but {self.policy} allows fewer"
            + (f"; {before} of them before a restart" if before else "")
            + f"; the first:{listed}\nmend the data, or raise max_errors of SkipErrors(...) and go on from the last state"
        )


def _is_own(error: Exception, foreign: frozenset[int]) -> bool:
    """Whether an error is of the step below and says something about an element."""
    step: Any = trouble_of(error).step
    if isinstance(error, _NEVER) or (step is not None and id(step) in foreign):
        return False
    reads = step is not None and step.reads_files
    return not (reads and isinstance(error, OSError) and not isinstance(error, FileNotFoundError))


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}{_lost_with(*trouble_of(error).lost)}"


def _lost_with(lost: int | None, rest: bool) -> str:
    """What is lost of a file beside the record that an error is of."""
    if rest:
        return "; the rest of the file is lost" + ("" if lost is None else f", {lost} records")
    return "" if lost in (1, None) else f"; {lost} records are lost"


def _where(record: dict[str, Any]) -> str:
    return "" if record["file"] is None else f"{record['file']}, row {record['row']}: "


def _file_of(policy: SkipErrors) -> Quarantine:
    assert policy.quarantine is not None
    return Quarantine(policy.quarantine, policy.max_quarantined)


def guarded(step: Node, on_error: str | SkipErrors | None) -> Node:
    """A step that was added to a pipeline, without the elements for which it fails if it, or the pipeline, says so.

    Args:
      step: the step.
      on_error: what its argument says; None: what the options of the pipeline say.
    """
    if on_error is None:
        return _by_options(step, as_policy(step.op, options_of(step).on_error or "raise"))
    policy = as_policy(step.op, on_error)
    return step if policy is None else OnError(step, policy, origin=step.origin)


def everywhere(node: Node, on_error: str | SkipErrors) -> Node:
    """A pipeline in which each step that can leave out elements does as `on_error` says, if it says nothing else itself."""
    policy = as_policy("with_options", on_error)
    nodes: dict[int, Node] = {}

    def changed(step: Node, of: Callable[[Node], Node]) -> Node:
        inputs = tuple(map(of, step.inputs))
        same = all(new is old for new, old in zip(inputs, step.inputs, strict=True))
        return step if same else step.with_inputs(inputs)

    def within(step: Node) -> Node:
        """The step as it should be; one that is there twice stays one."""
        if id(step) not in nodes:
            if isinstance(step, OnError) and step.by_options:
                nodes[id(step)] = _by_options(_with_on_error(changed(step.input, within), None), policy)
            elif isinstance(step, OnError):
                nodes[id(step)] = changed(step, lambda below: changed(below, within))
            else:
                below = changed(step, within)
                nodes[id(step)] = _by_options(below, policy) if _listens(step) else below
        return nodes[id(step)]

    return within(node)


def _by_options(step: Node, policy: SkipErrors | None) -> Node:
    return (
        step if policy is None else OnError(_with_on_error(step, policy), policy, by_options=True, origin=step.origin)
    )


def _with_on_error(step: Node, policy: SkipErrors | None) -> Node:
    """The step, which says itself how errors are treated, so that it is not fused with one below."""
    return replace(step, on_error=policy).same_as(step) if hasattr(step, "on_error") else step  # type: ignore[call-arg]


def _listens(step: Node) -> bool:
    """Whether options decide how its errors are treated: where it can leave out elements, and was not told by an argument."""
    made = getattr(step, "map_func", None)  # which makes readers, where several files are read at a time
    return getattr(step, "on_error", getattr(made, "on_error", "raise")) is None
