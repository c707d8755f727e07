# SPDX-License-Identifier: Apache-2.0
"""`on_error` and `ignore_errors`: elements that fail are left out, within a budget, and written down."""

import os
import warnings
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar

from distinput.columns.block import Block, Failure, concat_blocks, fault_of, sound_parts, trouble_of
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.errors import (
    AbortedError,
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    InputWarning,
    NotFoundError,
    StateError,
    UnavailableError,
)
from distinput.files.paths import unlock
from distinput.names.lazy import dataclass, library
from distinput.plan.check import normalized
from distinput.plan.families import SameElements, kept_apart
from distinput.plan.node import Needs, Node, walk
from distinput.plan.options import SkipErrors, as_policy, error_classes, is_mistake, options_of
from distinput.run.run import OpCounters, Run
from distinput.url_secrets import without_secrets

hashlib, json = library("hashlib"), library("json")  # for elements that are left out

# ----------------------------------------------------------------------------
# The quarantine file: one line of JSON for each element that failed, which several processes append to.
# ----------------------------------------------------------------------------


_MOST_TEXT = 1000
"""Characters of a text in a line."""

_CHUNK = 1 << 20


class Quarantine:
    r"""A file with a line for each element that failed in a step, written by any number of processes.

    An element is known by its file, its place there and the step; where these are not known, by all that is said of it.

    A line is appended by one write under a lock of the file, after the lines of others were read, so no line is torn and none
    comes twice. What a process that died has left of a line is removed by the next one that writes.

    Args:
      path: the file; it is made when the first line is written.
      most: lines in the file.

    >>> import pathlib
    >>> Quarantine("bad.jsonl", 1).add({"file": "a", "row": 3}), Quarantine("bad.jsonl", 1).add({"file": "a", "row": 3})
    (True, False)
    >>> pathlib.Path("bad.jsonl").read_text()
    '{"file": "a", "row": 3}\n'
    """

    def __init__(self, path: str | bytes | os.PathLike[str], most: int) -> None:
        self.path, self.most = os.fsdecode(path), most
        self._seen: set[bytes] = set()
        self._read = 0  # bytes of the file whose lines are in `_seen`

    def add(self, record: dict[str, Any]) -> bool:
        """Append a record, unless the file has it, or is full. Texts are cut to a length that cannot fill a disk.

        Raises:
          NotFoundError: the folder does not exist.
          OSError: the file cannot be written.
        """
        line = json.dumps({key: _short(value) for key, value in record.items()}).encode() + b"\n"
        word = _word(line, record)
        if word in self._seen or len(self._seen) >= self.most:
            return False
        from fcntl import LOCK_EX, flock  # not on every system

        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            raise NotFoundError(
                f"{self.path}: the folder of this quarantine file does not exist; make it first"
            ) from None
        try:
            flock(descriptor, LOCK_EX)
            self._catch_up(descriptor)
            if word in self._seen or len(self._seen) >= self.most:
                return False
            os.write(descriptor, line)
            self._seen.add(word)
            self._read += len(line)
            return True
        finally:
            unlock(descriptor)  # a child that was forked meanwhile has the open file, too
            os.close(descriptor)

    def _catch_up(self, descriptor: int) -> None:
        """Read the lines that others have appended."""
        if os.fstat(descriptor).st_size < self._read:  # somebody has emptied it
            self._seen.clear()
            self._read = 0
        rest = b""
        while data := os.pread(descriptor, _CHUNK, self._read + len(rest)):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._seen.add(_word(line + b"\n", _record(line)))
                self._read += len(line) + 1
        if rest:
            os.ftruncate(descriptor, self._read)


def _word(line: bytes, record: dict[str, Any]) -> bytes:
    """What tells one element that failed from the others."""
    place = record.get("row") if record.get("row") is not None else record.get("byte")
    if record.get("file") is not None and place is not None:
        line = json.dumps([record["file"], place, record.get("op")]).encode()
    return bytes(hashlib.blake2b(line, digest_size=12).digest())


def _record(line: bytes) -> dict[str, Any]:
    """What a line says; nothing where somebody else has written it."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _short(value: Any) -> Any:
    value = without_secrets(value) if isinstance(value, str) else value
    if isinstance(value, str) and len(value) > _MOST_TEXT:
        return value[:_MOST_TEXT] + "..."
    return value


# ----------------------------------------------------------------------------
# `on_error`: leave out the elements for which one step fails, within a budget, and write them down.
# ----------------------------------------------------------------------------


_NEVER = (AbortedError, CancelledError, DeadlineExceededError, MemoryError, StateError, UnavailableError)
"""Errors of the machine, the network or the job: they say nothing about an element, so it must not be left out for them."""

_FAULTS = {
    "reader": "that is a defect of distinput itself; please report it",
    "call": "of a function that does not take the components of an element as its arguments",
}

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

    thins = tolerant = by_element = harmless = same_end = skips_failures = True
    needs: ClassVar[Needs] = Needs.EACH
    indifferent: ClassVar[frozenset[str]] = frozenset({"policy"})  # a run may go on with a larger budget
    policy: SkipErrors
    by_options: bool = field(default=False, kw_only=True, repr=False)

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
        path = self.policy.quarantine
        file = None if path is None else Quarantine(path, self.policy.max_quarantined)
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
            + f"; the first:{listed}\ncorrect the data, or raise max_errors of SkipErrors(...) and continue from the last state"
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

    def within(step: Node) -> Node:
        """The step as it should be; one that is there twice stays one."""
        if id(step) not in nodes:
            if isinstance(step, OnError) and step.by_options:
                nodes[id(step)] = _by_options(_with_on_error(step.input.with_changed_inputs(within), None), policy)
            elif isinstance(step, OnError):
                nodes[id(step)] = step.with_changed_inputs(lambda below: below.with_changed_inputs(within))
            else:
                below = step.with_changed_inputs(within)
                nodes[id(step)] = _by_options(below, policy) if _listens(step) else below
        return nodes[id(step)]

    # Without what fails, steps keep other elements.
    return kept_apart(within(node), node, ("on_error", repr(policy)))


def _by_options(step: Node, policy: SkipErrors | None) -> Node:
    if policy is None:
        return step
    return OnError(_with_on_error(step, policy), policy, by_options=True, origin=step.origin)


def _with_on_error(step: Node, policy: SkipErrors | None) -> Node:
    """The step, which says itself how errors are treated, so that it is not fused with one below."""
    return replace(step, on_error=policy).same_as(step) if hasattr(step, "on_error") else step  # type: ignore[call-arg]


def _listens(step: Node) -> bool:
    """Whether options decide how its errors are treated: where it can leave out elements, and was not told by an argument."""
    made = getattr(step, "map_func", None)  # which makes readers, where several files are read at a time
    return getattr(step, "on_error", getattr(made, "on_error", "raise")) is None


# ----------------------------------------------------------------------------
# `ignore_errors`: drop elements that fail.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class IgnoreErrors(SameElements):
    """Drop elements that fail in any step before this one, and go on with the next element.

    What is lost with an error is what TensorFlow drops: after `zip` the whole tuple, after `batch` the elements gathered for
    its batch (the whole batch if a `map` comes directly before it), after damage in a file the rest of that file; of CSV and
    JSON Lines a record that cannot be read is dropped alone. A Python generator that has raised yields nothing more, so its
    elements end there. `stats()` tells how many elements were dropped, and the last error.

    AttributeError, ImportError, NameError and SyntaxError, with their subclasses, are raised: they mostly say that the program
    is wrong, so that every element would be dropped. So is the TypeError of a function that takes another number of arguments
    than elements have components, and an error of Python's own, such as IndexError, that a decoder or a parser of this library
    raises within a function: it is a defect of the library, and says nothing of the element.

    Shapes and order: unchanged. State: that of the input.

    Args:
      log_warning: send each error to the logger "distinput".
      also: those of these four classes that are to be dropped as well, a class or a tuple of them.

    Raises:
      TypeError: `also` is no class of errors.
      Exception: an error after which nothing can follow, such as a worker process that has died, or an error of your own op if
        the op is not `tolerant`.

    >>> import distinput as di
    >>> import operator
    >>> ds = di.data.Dataset.from_tensor_slices([1.0, 2.0, 0.0, 4.0])
    >>> ds.map(lambda x: operator.truediv(1, float(x))).enumerate().ignore_errors().to_list()
    [(0, 1.0), (1, 0.5), (3, 0.25)]

    Source: `tf.data.Dataset.ignore_errors`.
    """

    passes_states = thins = tolerant = by_element = harmless = same_end = skips_failures = True
    keeps_batches: ClassVar[bool] = False  # TensorFlow's search for the batch size stops here
    indifferent: ClassVar[frozenset[str]] = frozenset({"also"})
    log_warning: bool = False
    also: type[Exception] | tuple[type[Exception], ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        normalized(self, "also", error_classes("ignore_errors", self.also))

    @property
    def may_fail(self) -> bool:
        return False

    def start(self, epoch: int) -> State:
        return self.input.start(epoch)

    def stream(self, state: State, run: Run) -> Stream:
        counter = run.counter(self)
        for block, after in self.input.open(state, run.asking(tolerant=True, dropping=True)):
            parts: list[Block] = [block]
            if block.structure.makes_anew:  # what `as_text` and `as_rows` cannot make fails where it is made
                parts = [part for part, _ in sound_parts(block.size, partial(_built, block), tolerant=True)]
            for part in parts:
                if type(part) is Failure:
                    self._drop(part.error, counter)
            kept = [part for part in parts if type(part) is not Failure]
            if kept:
                yield concat_blocks(kept), after

    def _drop(self, error: Exception, counter: OpCounters) -> None:
        if is_mistake(error, self.also):
            name = type(error).__name__
            if fault := fault_of(error):
                error.add_note(f"ignore_errors drops no error {_FAULTS[fault]}")
            else:
                error.add_note(f"ignore_errors drops no {name} unless it is told to: also={name}")
            raise error
        counter.dropped += 1
        counter.error = f"{type(error).__name__}: {error}"
        if self.log_warning:
            _warn(error)


def _built(block: Block, first: int, end: int) -> Block:
    part = block.rows(first, end)
    for _ in part.elements():
        pass
    return part


def _warn(error: Exception) -> None:
    import logging

    told = "; ".join([str(error), *getattr(error, "__notes__", [])])
    logging.getLogger("distinput").warning("ignore_errors: %s: %s", type(error).__name__, without_secrets(told))
