# SPDX-License-Identifier: Apache-2.0
"""What a rank of a job does, one event after the other, and what became of it; the same in this process and in others."""

import contextlib
import json
import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from distinput.names.lazy import dataclass
from distinput.testing.judge.delivery import Ids, RankPass, RankStep, UnknownBatch, look_of
from distinput.testing.judge.job import Job, Maker
from distinput.testing.left_behind import children

# ----------------------------------------------------------------------------
# States of loaders, by whichever of the usual protocols one has.
# ----------------------------------------------------------------------------


_PROTOCOLS = (("state_dict", "load_state_dict"), ("get_state", "set_state"))


class NoState(TypeError):
    """A loader that has no state."""


@dataclass(frozen=True)
class Saved:
    """A state as it lies in a file.

    Args:
      data: its bytes.
      kind: "JSON", or "pickle" where it is not JSON.
    """

    data: bytes
    kind: str

    @staticmethod
    def of(state: Any) -> "Saved":
        """A state in bytes, so that nothing of it is shared with the loader that goes on."""
        try:
            text = json.dumps(state)
            if json.loads(text) == state:
                return Saved(text.encode(), "JSON")
        except (TypeError, ValueError):
            pass
        return Saved(pickle.dumps(state), "pickle")

    @property
    def state(self) -> Any:
        """The state."""
        return json.loads(self.data) if self.kind == "JSON" else pickle.loads(self.data)


def _protocol(thing: Any) -> tuple[str, str] | None:
    return next((names for names in _PROTOCOLS if all(callable(getattr(thing, name, None)) for name in names)), None)


def saved(loader: Any, iterator: Any) -> Saved:
    """The state of a loader that is being iterated: its own, or that of its iterator.

    Raises:
      NoState: neither has `state_dict` and `load_state_dict`, or `get_state` and `set_state`.
    """
    for thing in (loader, iterator):
        if names := _protocol(thing):
            return Saved.of(getattr(thing, names[0])())
    raise NoState("neither the loader nor its iterator has state_dict and load_state_dict, or get_state and set_state")


def restored(loader: Any, state: Saved) -> Iterator[Any]:
    """An iterator of a new loader that continues from a state."""
    if names := _protocol(loader):
        getattr(loader, names[1])(state.state)
        return iter(loader)
    iterator: Iterator[Any] = iter(loader)
    names = _protocol(iterator)
    if names is None:
        raise NoState("the iterator has no state")
    getattr(iterator, names[1])(state.state)
    return iterator


# ----------------------------------------------------------------------------
# What a rank of a job does, one event after the other, and what became of it; the same in this process and in others.
# ----------------------------------------------------------------------------


PlayEvent = tuple[str, Any]
"""A word and its value; `folded` reads them."""


@dataclass(frozen=True)
class Play:
    """One run of a job.

    Args:
      job: the job.
      ranks: those that are played.
      states: what each rank of the job continues from, None where that is the beginning; by default all begin.
      save: take a state after each step.
      epochs: passes over the same loader, after `set_epoch` where it has it.
      most: steps after which a pass is abandoned.
      kill: "rank": the victim kills itself; "worker": it kills a process that its loader has started.
      victim: a rank.
      after: the steps of the victim before that.
    """

    job: Job
    ranks: tuple[int, ...]
    states: tuple[Saved | None, ...] = ()
    save: bool = False
    epochs: int = 1
    most: int | None = None
    kill: Literal["rank", "worker"] | None = None
    victim: int = 0
    after: int = 0

    @property
    def about(self) -> str:
        """What is special about it, to follow the name of a job."""
        if self.kill is not None:
            return f", in which a {self.kill} is killed"
        return ", saving a state after each step" if self.save else ", going on from a state" if self.states else ""


@dataclass(frozen=True)
class PlayTask:
    """A run with all that is needed for it in another process.

    Args:
      make: makes the loader of a rank.
      ids: the records of a batch.
      play: the run.
    """

    make: Maker
    ids: Ids
    play: Play


@dataclass(frozen=True)
class Walk:
    """What one rank did.

    Args:
      passes: one for each epoch, at least one.
      states: those after each step of the first pass, if they were asked for.
      stateless: why there is no state; None if there is one.
      one_pass: the loader is an iterator, so that there is no second pass.
      killed: what was to be killed was killed.
    """

    passes: tuple[RankPass, ...]
    states: tuple[Saved, ...] = ()
    stateless: str | None = None
    one_pass: bool = False
    killed: bool = False

    @property
    def whole(self) -> RankPass:
        """The first pass."""
        return self.passes[0]

    def before(self, stop: int) -> tuple[RankStep, ...]:
        """What was delivered up to a stop."""
        return self.whole.steps[:stop]

    def after(self, stop: int) -> tuple[RankStep, ...]:
        """What must follow."""
        return self.whole.steps[stop:]

    def state(self, stop: int) -> Saved | None:
        """The state at a stop; that of its end for a rank that has ended before, None where it had no step."""
        return self.states[min(stop, len(self.states)) - 1] if self.states else None


def said(error: BaseException) -> str:
    """An error in one line that is not too long."""
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    return text if len(text) <= 120 else text[:117] + "..."


def events(task: PlayTask, rank: int) -> Iterator[PlayEvent]:
    """Make the loader of a rank and read it as the play says, to the end or to the first error, which is an event too."""
    yield "epoch", 0
    try:
        yield from _read(task, rank)
    except UnknownBatch as error:
        yield "unknown", str(error)
    except NoState as error:
        yield "no state", str(error)
    except Exception as error:  # noqa: BLE001 - whatever a loader raises is what is judged
        yield "error", said(error)


def _read(task: PlayTask, rank: int) -> Iterator[PlayEvent]:
    play = task.play
    loader = task.make(play.job, rank)
    for epoch in range(play.epochs):
        if epoch and callable(getattr(loader, "__next__", None)):
            yield "one pass", None
            return
        if epoch:
            yield "epoch", epoch
        if play.epochs > 1 and callable(getattr(loader, "set_epoch", None)):
            loader.set_epoch(epoch)
        state = play.states[rank] if play.states else None
        yield from _pass(task, rank, loader, iter(loader) if state is None else restored(loader, state))


def _pass(task: PlayTask, rank: int, loader: Any, batches: Iterator[Any]) -> Iterator[PlayEvent]:
    play = task.play
    kill = play.kill if rank == play.victim else None
    for number in range(play.job.most_steps if play.most is None else play.most):
        try:
            batch = next(batches)
        except StopIteration:
            yield "end", None
            return
        if kill == "rank" and number == play.after:
            os.kill(os.getpid(), signal.SIGKILL)  # before a state after this step could be saved
        yield "step", RankStep(tuple(task.ids(batch)), look_of(batch))
        if play.save:
            yield "state", saved(loader, batches)
        if kill == "worker" and number + 1 == play.after:
            for process in _workers()[:1]:
                os.kill(process, signal.SIGKILL)
                yield "killed", process


def _workers() -> list[int]:
    """The processes that this one has started to read, the latest first; none where the system does not tell."""
    found: list[int] = []
    for child in children():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes():  # which cleans up after others
                found.append(int(child))
    return sorted(found, reverse=True)


def folded(found: Iterable[PlayEvent], beat: Callable[[], None] = lambda: None) -> Walk:
    """What became of a rank.

    Args:
      found: its events, as far as it came.
      beat: called for each, by which others see that the loader does not hang.

    Raises:
      UnknownBatch: it cannot be told which records are in a batch.
    """
    steps: list[list[RankStep]] = [[]]
    ended: list[bool] = [False]
    states: list[Saved] = []
    last: dict[str, Any] = {}
    for word, value in found:
        beat()
        match word:
            case "epoch" if value:
                steps.append([])
                ended.append(False)
            case "step":
                steps[-1].append(value)
            case "state" if len(steps) == 1:
                states.append(value)
            case "end":
                ended[-1] = True
            case "unknown":
                raise UnknownBatch(value)
            case _:
                last[word] = value
    passes = [RankPass(tuple(each), None, whole) for each, whole in zip(steps, ended, strict=True)]
    error = last.get("error", last.get("died"))
    if error is not None:
        passes[-1] = RankPass(tuple(steps[-1]), error, died="died" in last)
    return Walk(tuple(passes), tuple(states), last.get("no state"), "one pass" in last, "killed" in last)
