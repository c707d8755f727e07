# SPDX-License-Identifier: Apache-2.0
"""Where pieces go: threads, processes of this machine, or an input service. Results are taken in the order of the pieces."""

import hashlib
import os
import pickle
import platform
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from distinput.cluster.input_service import InputService
from distinput.columns.block import MOST_BYTES, Block, trace_text
from distinput.columns.column import Dense
from distinput.columns.state import Digest
from distinput.errors import FailedPreconditionError, UnavailableError
from distinput.functions.workers import packed
from distinput.names.lazy import dataclass
from distinput.ops.pieces import PieceTask, Result, Told, WorkPiece
from distinput.plan.code import PYTHON
from distinput.plan.families import Fused
from distinput.plan.fingerprint import fingerprint
from distinput.plan.node import Node
from distinput.plan.reach import ReachedCode
from distinput.run.lent_memory import Borrower, Lent, Stored, UnseenError, machine, value_of
from distinput.run.processes import Dealer, Dealt, Processes, pickled
from distinput.run.run import Run
from distinput.run.segments import Closed, Packed, dumps_with_buffers
from distinput.run.threads import in_lane
from distinput.values.buffers import made_in

PIECE_SECONDS, _PROCESS_SECONDS = 0.02, 0.1
"""Work that a piece for threads of this machine should be, and for its processes at least, and the most for these."""


AHEAD = 4
"""Pieces under way for each worker: one it has, one waits for it, and two may wait for an earlier one of another worker."""

_MOST_PROCESS_BYTES, _MOST_HERE = 4 * MOST_BYTES, 64 * MOST_BYTES
"""Bytes of a piece for a process, and of all that are under way."""


def _seconds_of_next(left: float | None, count: int, begun: float, least: float, most: float) -> float:
    """Work that the next piece should be: half of what is left for its worker, so that all workers end together.

    Args:
      left: seconds of work that are left; None: nobody knows, and an eighth of what was done.
      count: how many workers there are.
      begun: when the pass began.
      least: of a piece.
      most: the same.

    Source: Polychronopoulos, Kuck: Guided self-scheduling (IEEE Transactions on Computers, 1987).
    """
    share = (Run.clock() - begun) / 8 if left is None else left / count / 2
    return max(least, min(most, share))


class ThreadLanes:
    """A pool of threads, each piece at a copy of the chain that no other piece is at.

    Args:
      pool: of so many threads.
      count: how many.
      tasks: copies that nobody uses. Those that threads had when this process was forked are not among them.
      make: makes another copy.
      run: the pass.
    """

    most_bytes = MOST_BYTES

    def __init__(
        self, pool: Any, count: int, tasks: "SimpleQueue[PieceTask]", make: Callable[[], PieceTask], run: Run
    ) -> None:
        self._pool, self.count, self._tasks, self._make, self._run = pool, count, tasks, make, run
        self._over = False

    def send(self, given: tuple[WorkPiece, bool, bool]) -> Any:
        return self._pool.submit(self._called, given)

    def piece_seconds(self, _: float | None) -> float:
        return PIECE_SECONDS

    def ready(self, sent: Any) -> bool:
        return bool(sent.done())

    def receive(self, sent: Any) -> Result:
        made: Result = sent.result()
        return made

    def close(self) -> None:
        self._over = True

    def _called(self, given: tuple[WorkPiece, bool, bool]) -> Result:
        try:
            task = self._tasks.get_nowait()
        except Empty:
            task = self._make()
        try:
            return task(given, lambda: self._over or self._run.cancelled.is_set())
        finally:
            self._tasks.put(task)


def _note_traces(result: Result, where: str, missing: str = "") -> None:
    """Tell in each error what its traceback was at the worker, and what to do about a file that is missing there."""
    told = [made for made, _ in result.items if isinstance(made, Told)]
    for each in [*told, *([result.error] if result.error else [])]:
        if each.trace:
            each.error.add_note(f"{where}:\n{each.trace}")
        if missing and isinstance(each.error, FileNotFoundError):
            each.error.add_note(missing)


class ProcessLanes:
    """Worker processes."""

    def __init__(self, processes: Processes, run: Run, chain: str) -> None:
        self._dealer = Dealer(processes, lambda: not run.cancelled.is_set())
        self.count, self._chain = len(processes), chain
        self.most_bytes = max(MOST_BYTES, min(_MOST_PROCESS_BYTES, _MOST_HERE // (AHEAD * self.count)))
        self._begun = Run.clock()

    def send(self, given: tuple[WorkPiece, bool, bool]) -> Dealt:
        piece, *asked = given
        blocks = [(packed(block, "on_workers"), after) for block, after in piece.blocks]
        try:
            return self._dealer.send((piece._replace(blocks=blocks), *asked))
        except UnavailableError as error:
            raise self._named(error) from None

    def piece_seconds(self, left: float | None) -> float:
        """Work that the next piece should be: each costs two processes about a millisecond, and more on a busy machine."""
        return _seconds_of_next(left, self.count, self._begun, PIECE_SECONDS, _PROCESS_SECONDS)

    def ready(self, sent: Dealt) -> bool:
        return self._dealer.ready(sent)

    def receive(self, sent: Dealt) -> Result:
        try:
            made: Result = self._dealer.receive(sent)
        except UnavailableError as error:
            raise self._named(error) from None
        _note_traces(made, f"in worker process {sent.pid}")
        return made

    def _named(self, error: UnavailableError) -> UnavailableError:
        error.add_note(f"the work was that of {self._chain}")
        return error


# ----------------------------------------------------------------------------
# An input service: any number of workers, which come and go.
#
# What a function raises travels in a result. So what a future raises tells that a worker was lost, and its piece is sent again,
# unless the engine has already done so.
# ----------------------------------------------------------------------------


_TRIES = 4
"""How often a piece is sent before its loss is an error."""

_MOST_A_SECOND, _FEWEST_A_SECOND = 100, 40
"""Pieces of all workers together: each costs the machines of a scheduler and a consumer milliseconds."""

_MOST_PIECE_BYTES, _MOST_NEAR_BYTES = 8 * MOST_BYTES, 16 * MOST_BYTES
"""Bytes of one piece, and of one for a worker that is lent memory."""

_LEAST_LENT, _MOST_MAPPED = 1 << 17, 64
"""Bytes of a block that another process of this machine may be lent, and how many of its rooms stay mapped."""

_LOOK_SECONDS = 0.2
"""How often a wait looks whether the iteration was closed."""

_COUNT_SECONDS = 2.0
"""How long a count of the workers holds."""

_FORGET_SECONDS = 5.0
"""How long a wait is before the service is asked whether it still knows the piece, and between that."""

_MISSING = (
    "on_workers: a function reads files where it is called, at a worker: have them under the same names at all workers, on a "
    "shared file system or in a store; or let a dataset read them (ParquetDataset, TFRecordDataset and so on), for which they "
    "need to be in reach of this program alone"
)
"""Told with a FileNotFoundError of a function."""

_NOBODY_SECONDS = 300.0
"""How long a piece waits while there are no workers: clusters start them when there is work."""


@dataclass(eq=False)
class _SentPiece:
    """A piece at a service."""

    given: tuple[WorkPiece, bool, bool]
    future: "Future[Any]"
    lent: Lent
    tries: int = 1


class Sharing(NamedTuple):
    """What is made for one job is kept for others that do the same.

    Args:
      word: of the steps and of what they read, from `word_of_steps`.
      most_bytes: of the last results, which are kept for jobs that come to their place later.
    """

    word: str
    most_bytes: int


class ServiceLanes:
    """An input service, and how pieces get there.

    Args:
      service: with its workers.
      steps: from `steps_for_service`.
      run: the pass.
      chain: the steps, in words.
      sharing: None: other jobs do not get what is made.
    """

    def __init__(
        self, service: InputService, steps: bytes, run: Run, chain: str, sharing: Sharing | None = None
    ) -> None:
        self._service, self._run, self._chain, self._data, self._sharing = service, run, chain, steps, sharing
        self._steps = service.shared(steps, sharing.word if sharing else "")
        self._begun = Run.clock()
        self._borrower = Borrower(_MOST_MAPPED)
        self._machine = machine() if service.keeps and sharing is None else ""
        self._near = False  # whether the last worker that answered was at this machine
        self._under_way: set[Future[Any]] = set()
        self._kept: deque[tuple[Future[Any], int]] = deque()
        self._kept_bytes = 0
        self._count, self._counted = 1, -_COUNT_SECONDS

    @property
    def count(self) -> int:
        """How many workers there are, at least 1."""
        return max(1, self._workers())

    def _workers(self) -> int:
        """How many there are, counted again from time to time."""
        if Run.clock() >= self._counted + _COUNT_SECONDS:
            self._count, self._counted = self._service.workers(), Run.clock()
        return self._count

    def piece_seconds(self, left: float | None) -> float:
        """Work that the next piece should be.

        Args:
          left: seconds of work that are left; None: nobody knows.
        """
        least, most = max(0.05, self.count / _MOST_A_SECOND), max(0.2, self.count / _FEWEST_A_SECOND)
        return _seconds_of_next(left, self.count, self._begun, least, most)

    @property
    def most_bytes(self) -> int:
        """Of a piece: as many as all under way may have here together, but neither few nor very many.

        Where memory is lent, a piece costs little but its call: all bytes are for two of each worker, its own and the next one.
        """
        most, ahead = (_MOST_NEAR_BYTES, AHEAD // 2) if self._near else (_MOST_PIECE_BYTES, AHEAD)
        return max(MOST_BYTES, min(most, _MOST_HERE // (ahead * self.count)))

    def send(self, given: tuple[WorkPiece, bool, bool]) -> _SentPiece:
        """Hand a piece to the service."""
        piece, tolerant, past_damage = given
        blocks = [(packed(block, "on_workers"), after) for block, after in piece.blocks]
        return self._sent((piece._replace(blocks=blocks), tolerant, past_damage))

    def _sent(self, given: tuple[WorkPiece, bool, bool], tries: int = 1) -> _SentPiece:
        lent, (piece, *asked) = Lent(), given
        if self._near:
            blocks = [(_kept(block, lent), after) for block, after in piece.blocks]
            piece = piece._replace(blocks=blocks)
        content = _as_packed((piece, *asked))
        message = _Message(content, self._machine and (self._machine, os.getpid()), lent or None)
        return _SentPiece(
            given, self._submitted(message, "" if tries > 1 else self._word(content), again=tries > 1), lent, tries
        )

    def _word(self, content: Packed) -> str:
        """What only a piece with the same steps, place and elements has; empty: none is needed."""
        if self._sharing is None:
            return ""
        word = hashlib.blake2b(self._sharing.word.encode(), digest_size=20)
        for part in (content.data, *content.buffers):
            word.update(len(part).to_bytes(8))
            word.update(part)
        return word.hexdigest()

    def ready(self, sent: _SentPiece) -> bool:
        """Whether its result, or the news of its loss, is there."""
        return sent.future.done()

    def receive(self, sent: _SentPiece) -> Result:
        """The result of a piece, which is sent again if it was lost.

        Raises:
          Closed: the run was closed.
          FailedPreconditionError: a worker has other code.
          RuntimeError: the result cannot be sent.
          UnavailableError: it was lost several times, or there are no workers.
        """
        while True:
            try:
                answer: _Answer = self._awaited(sent)
                views = self._borrower.taken(answer.lent) if answer.lent else []
            except (Closed, UnavailableError, KeyboardInterrupt, SystemExit):
                raise
            except BaseException as lost:  # Dask's for a call that it forgot is no Exception
                self._under_way.discard(sent.future)
                if sent.tries >= _TRIES or self._service.gave_up(lost):
                    raise UnavailableError(
                        "on_workers: the workers were lost again and again while they had the same "
                        f"{sent.given[0].rows} elements of {self._chain}, the last time with {type(lost).__name__}: {lost}; "
                        "the function may end its worker, or need more memory than there is"
                    ) from lost
                if isinstance(lost, UnseenError):
                    self._machine, self._near = "", False  # all memory is sent
                vars(sent).update(vars(self._sent(sent.given, sent.tries + 1)))
                continue
            self._under_way.discard(sent.future)
            if answer.unseen:
                self._machine, self._near = "", False
                vars(sent).update(vars(self._sent(sent.given, sent.tries)))
                continue
            self._near = answer.near and bool(self._machine)
            if self._sharing is not None and isinstance(answer.content, Packed):
                self._keep(sent.future, answer.content.nbytes, self._sharing.most_bytes)
                # Others have it too.
                answer = replace(answer, content=Packed(answer.content.data, answer.content.buffers))
            return self._opened(answer, views)

    def _keep(self, future: "Future[Any]", nbytes: int, most: int) -> None:
        """Hold the last results, so that jobs which are behind this one get them."""
        self._kept.append((future, nbytes))
        self._kept_bytes += nbytes
        while self._kept_bytes > most:
            self._kept_bytes -= self._kept.popleft()[1]

    def close(self) -> None:
        """Cancel what is under way, and close what was opened for the service."""
        with suppress(Exception):  # a service that has ended takes no news
            for future in self._under_way:
                future.cancel()
        self._kept.clear()
        self._service.close()

    def _submitted(self, message: "_Message", word: str = "", *, again: bool = False) -> "Future[Any]":
        try:
            if self._service.reconnected() or again:  # the steps may be lost, too
                self._steps = self._service.shared(self._data)
            future = self._service.submit(_answered, self._steps, message, word=word)
        except Exception as error:
            raise UnavailableError(
                f"on_workers: the service accepts no more work ({type(error).__name__}: {error}); start it again, and continue "
                f"from the last state that was saved; the work was that of {self._chain}"
            ) from error
        self._under_way.add(future)
        return future

    def _awaited(self, sent: _SentPiece) -> Any:
        begin = looked = Run.clock()
        while True:
            try:
                return sent.future.result(_LOOK_SECONDS)
            except TimeoutError:
                if self._run.cancelled.is_set():
                    raise Closed from None
                if sent.future.done():
                    raise
            if Run.clock() > looked + _FORGET_SECONDS:
                if self._service.forgot(sent.future):
                    raise LookupError("the service no longer knows the work")
                looked = Run.clock()
            if self._workers():
                begin = Run.clock()
            elif Run.clock() > begin + _NOBODY_SECONDS:
                raise UnavailableError(
                    f"on_workers: the service has had no workers for {_NOBODY_SECONDS:.0f} s; start some, for example with "
                    "`dask worker SCHEDULER`, and continue from the last state that was saved"
                )

    def _opened(self, answer: "_Answer", views: list[memoryview]) -> Result:
        if answer.refused:
            raise FailedPreconditionError(f"on_workers: {answer.refused}; the work was that of {self._chain}")
        if answer.content is None:
            raise RuntimeError(f"on_workers: a worker of the service on {answer.worker} failed:\n{answer.trace}")
        content = answer.content
        result: Result = value_of(content, views) if isinstance(content, Stored) else content.unpacked()
        if views:
            result = result._replace(items=_read(result.items, views))
        _note_traces(result, f"in a worker of the service, {answer.worker}", _MISSING)
        return result


@dataclass(eq=False)
class _Message:
    """What a worker of a service gets.

    Args:
      content: a piece.
      consumer: the machine and the number of the process that sends it; empty: none that can be lent memory.
      lent: where large blocks are that are not in `content`; None: all of them are.
    """

    content: Packed
    consumer: tuple[str, int] | str
    lent: Any


@dataclass(eq=False)
class _Answer:
    """What comes back from a service.

    Args:
      worker: its machine and process.
      content: a result; None: there is none.
      refused: why the worker took no work.
      trace: of an error that no function raised.
      near: whether it is another process of the consumer's machine.
      unseen: whether the memory that it was lent is not to be seen there.
      lent: where large blocks are that are not in `content`; None: all of them are.
    """

    worker: str
    content: Packed | Stored | None = None
    refused: str = ""
    trace: str = ""
    near: bool = False
    unseen: bool = False
    lent: Any = None


def _kept(block: Any, lent: Lent) -> Any:
    """A block, or where it is in memory that is lent; itself if its arrays were made there."""
    if not isinstance(block, Block) or block.nbytes < _LEAST_LENT:
        return block
    columns = block.columnar().columns
    arrays = [column.array for column in columns if isinstance(column, Dense)]
    if len(arrays) == len(columns) and lent.keep(arrays, _LEAST_LENT):
        return block
    with suppress(OSError):  # there is no room, by a limit of files' sizes for example
        return lent.put(block)
    return block


def _put(result: Result, lent: Lent) -> "Packed | Stored":
    """A result for the consumer: in one go, since the first things that Python does after a long call take longest."""
    if lent:
        with suppress(OSError):
            return lent.put(result)
    return _as_packed(result)


def _read(items: list[tuple[Any, Any]], views: list[memoryview]) -> list[tuple[Any, Any]]:
    return [(value_of(made, views) if type(made) is Stored else made, state) for made, state in items]


def steps_for_service(task: PieceTask) -> bytes:
    """The steps of a chain, and what they are, by which a worker knows whether it has the same.

    Raises:
      TypeError: they cannot be sent.
    """
    return pickle.dumps((_versions(), _words_of(task), _functions_of(task), pickled("on_workers", task)))


def word_of_steps(task: PieceTask, base: Node) -> str:
    """A word that tasks have which do the same: in all programs that run the same code on the same data."""
    steps = [(step.identity, step.where(), str(step.spec)) for step in task.steps]
    held = ReachedCode.of(_arguments_of(task)).word
    return Digest(16).add(sorted(_versions().items()), steps, held, fingerprint(base)).word


def _versions() -> dict[str, str]:
    return {"Python": PYTHON, "distinput": sys.modules["distinput"].__version__}


def _words_of(task: PieceTask) -> list[dict[str, Any]]:
    """What each step is: its arguments, and what its functions do; not the data that they read and others may change."""
    return [{name: word for name, word in step.identity.items() if name in _CODE} for step in task.steps]


_CODE = ("step", "code", "held")


def _functions_of(task: PieceTask) -> dict[str, list[str]]:
    """The functions that the steps reach and that each process imports itself, and what they do."""
    return ReachedCode.of(_arguments_of(task), code_alone=True).by_name


def _arguments_of(task: PieceTask) -> list[Any]:
    """The arguments of all steps, also of those that run as one."""
    steps = [part for step in task.steps for part in (step.maps if isinstance(step, Fused) else (step,))]
    return [argument for step in steps for argument in step.arguments().values()]


def _answered(steps: bytes, message: _Message) -> _Answer:
    """What a worker of a service does with a piece."""
    worker = f"process {os.getpid()} on {platform.node()}"
    try:
        idle = _idle_tasks(steps)
        try:
            task = idle.get_nowait()
        except Empty:
            task = _task_of(steps)
    except _RefusedError as refusal:
        return _Answer(worker, refused=f"{worker} {refusal}")
    near, rooms = message.consumer[:1] == (machine(),) and message.consumer[1] != os.getpid(), Lent()
    try:
        piece, *asked = message.content.unpacked()
        if message.lent:
            piece = piece._replace(blocks=_read(piece.blocks, _BORROWER.taken(message.lent)))
        if near:
            with made_in(rooms):
                result = in_lane(task, (piece, *asked), keep=lambda block: _kept(block, rooms))
        else:
            result = in_lane(task, (piece, *asked))
        content = _put(result, rooms)
    except UnseenError:
        return _Answer(worker, unseen=True)
    except Exception as error:  # noqa: BLE001 - told to the consumer
        return _Answer(worker, trace=trace_text(error))
    idle.put(task)
    return _Answer(worker, content, near=near, lent=rooms or None)


_BORROWER = Borrower(16)
"""Of a worker."""


def _as_packed(value: Any) -> Packed:
    data, buffers = dumps_with_buffers(value)
    return Packed(data, [buffer.raw() for buffer in buffers])


class _RefusedError(Exception):
    """This worker cannot do the work as the consumer would."""


@lru_cache(maxsize=8)
def _idle_tasks(steps: bytes) -> "SimpleQueue[PieceTask]":  # noqa: ARG001 - of these steps
    """Copies of the chain that no thread of this worker uses at the moment."""
    return SimpleQueue()


def _task_of(steps: bytes) -> PieceTask:
    versions, words, functions, data = pickle.loads(steps)
    for name, own in _versions().items():
        if versions[name] != own:
            raise _RefusedError(f"has {name} {own}, and the consumer has {versions[name]}; install the same")
    try:
        task = pickle.loads(data)
    except Exception as error:
        raise _RefusedError(
            f"cannot load the steps ({type(error).__name__}: {error}); the modules that they name must be there"
        ) from error
    assert isinstance(task, PieceTask)
    for step, there, found in zip(task.steps, words, _words_of(task), strict=True):
        if there != found:
            raise _RefusedError(
                f"has another version of the code of {step}; install the same, and start the worker again"
            )
    here = _functions_of(task)
    if changed := [name for name, code in functions.items() if here.get(name, code) != code]:
        raise _RefusedError(
            f"has another version of the code of {', '.join(changed[:3])}, which {task} reaches; install the same, and start "
            "the worker again"
        )
    return task
