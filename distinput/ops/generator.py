# SPDX-License-Identifier: Apache-2.0
"""`from_generator`: the elements of a Python generator, and an iterator that a sample has begun."""

import io
import os
import signal
import stat
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from itertools import chain, islice
from time import clock_gettime, perf_counter, sleep, thread_time
from types import CodeType, FrameType, ModuleType
from typing import Any, ClassVar

import numpy as np

from distinput.arrow.adopt import Promise, adopt, all_known, kept, lent
from distinput.columns.block import MOST_ROWS, Block, ColumnBlock, failed
from distinput.columns.column import Column, Dense
from distinput.columns.regroup import as_stated, column_of
from distinput.columns.rows import PACE_SECONDS, Stream, stackable
from distinput.columns.state import State
from distinput.errors import DeadlineExceededError, FailedPreconditionError
from distinput.functions.chain import Refills
from distinput.names.lazy import dataclass
from distinput.plan.binding import names_in, take_functions
from distinput.plan.check import callable_argument, cells_of
from distinput.plan.node import Node, Origin
from distinput.run.run import CoreUse, Run, bytes_of, called_once, thread_use
from distinput.values.buffers import alone, counts_are_exact
from distinput.values.leaves import STRING, Dims, as_leaf, cast_within, dtype_of, is_ragged, lost, shape_of
from distinput.values.nest import component, structure_of
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import DatasetSpec, LeafSpec, OptionalSpec, Spec, TensorSpec, shape_fits

# ----------------------------------------------------------------------------
# An iterator that a sample has begun, kept for the pass that reads on: some can be begun only once.
# ----------------------------------------------------------------------------


_MOST = 1000
"""Items that are kept; a sample that has to go further is read again."""


class Begun:
    """What samples have read of something, and the iterator that goes on behind it.

    >>> begun, numbers = Begun(), iter(range(4))
    >>> sample = begun.items(lambda: numbers, int, sampling=True)
    >>> next(sample), sample.close()
    (0, None)
    >>> list(begun.items(lambda: numbers, int, sampling=False))
    [0, 1, 2, 3]
    """

    def __init__(self) -> None:
        self._kept: list[tuple[list[Any], Iterator[Any]]] = []  # at most one; who takes it has it alone
        self.left: _Pull | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_kept": [], "left": None}  # another process begins anew

    @property
    def has_items(self) -> bool:
        """Whether there is a sample that no pass has gone on with."""
        return bool(self._kept)

    def items(
        self, begin: Callable[[], Iterator[Any]], copied: Callable[[Any], Any], *, sampling: bool
    ) -> Iterator[Any]:
        """All items from the first one on.

        Args:
          begin: makes an iterator.
          copied: a copy of an item, for a sample, which may change it.
          sampling: whether they are read to see what they look like.
        """
        try:
            read, rest = self._kept.pop()
        except IndexError:
            read, rest = [], begin()
        if sampling:
            return self._sampled(read, rest, copied)
        return chain(read, rest) if read else rest

    def _sampled(self, read: list[Any], rest: Iterator[Any], copied: Callable[[Any], Any]) -> Iterator[Any]:
        try:
            yield from map(copied, list(read))
            for item in rest:
                if len(read) <= _MOST:
                    read.append(item)
                yield copied(item)
        except Exception:
            read += [None] * (_MOST + 1)  # nothing follows the error, which comes again in a pass from the beginning
            raise
        finally:
            if len(read) <= _MOST:
                self._kept[:] = [(read, rest)]


class _Pull:
    """What a pass has read last of an iterator: one that can be begun only once goes on behind it after an interrupt.

    Args:
      row: the number of the first element.
    """

    def __init__(self, row: int) -> None:
        self._iterator: Any = None
        self._read: tuple[int, list[Any]] = (row, [])
        self.handed = False
        """Whether somebody may have got what was read last."""
        self.singly = False
        """Whether nothing may be read that nobody asks for: the program holds the iterator, and may read on."""
        self.again = False
        """Whether the pass before read from the same iterator."""

    def of(self, iterator: Any) -> None:
        """Take what it reads from; only looked at."""
        try:
            self._iterator = weakref.ref(iterator)
        except TypeError:  # of a list, a range or the like, which begins anew each time, unless the program holds it
            self._iterator = (lambda: iterator) if self.singly else None

    @property
    def elements(self) -> list[Any]:
        """What was read last, and where `_pulled` puts what it reads."""
        return self._read[1]

    def next(self, row: int) -> None:
        """All that was read has been handed on; `row` comes next."""
        self._read, self.handed = (row, []), False

    def follows(self, left: "_Pull | None") -> "_Pull | None":
        """The last one that read from the same iterator, whose place this one takes; None: there is none.

        Args:
          left: the last one of the same dataset.
        """
        mine = self._iterator and self._iterator()
        found = [each for each in (*_HELD, left) if each is not None and each._iterator and each._iterator() is mine]
        self.again = mine is not None and bool(found)
        if self.singly:
            _HELD.appendleft(self)
        return found[0] if self.again else None

    def check_ended(self, row: int, origin: Origin) -> None:
        """Warn of a pass that ends without an element, since an earlier one has read its iterator to the end."""
        if self.again and not row:
            text = (
                "from_generator: `generator` gave the iterator of an earlier pass again, which had ended, so this pass has no "
                "elements; give a function that makes another one each time"
            )
            origin.warn(text)

    def resumed(self, rest: Iterator[Any], row: int) -> Iterator[Any]:
        """The elements from `row` on; what is left of the iterator where a pass begins.

        Raises:
          FailedPreconditionError: they are gone.
        """
        first, elements = self._read
        if not row and (first or self.handed):  # another pass, not the same one after an interrupt
            return rest
        if not first <= row <= first + len(elements):
            raise FailedPreconditionError(_gone(row, f"stands behind element {first + len(elements) - 1}"))
        ended = getattr(self._iterator(), "gi_frame", self) is None
        return chain(elements[row - first :], _ended(first + len(elements)) if ended else rest)


_HELD: deque[_Pull] = deque(maxlen=4)
"""The latest that read from iterators that the program holds, whatever dataset they are of, the newest first."""


def _begins_anew(iterator: Any) -> bool:
    """Whether `iter` of an iterator does something, which is to begin again; that of most gives them as they are."""
    code = getattr(type(iterator).__iter__, "__code__", None)
    return isinstance(code, CodeType) and bool(code.co_names)


def _ended(row: int) -> Iterator[Any]:
    """Nothing, since an interrupt has ended the generator."""
    raise FailedPreconditionError(_gone(row, "was ended by an interrupt"))
    yield


def _passed(iterator: Iterator[Any], row: int) -> Iterator[Any]:
    """The elements from `row` on of an iterator that begins."""
    next(islice(iterator, row, row), None)
    return iterator


def _gone(row: int, why: str) -> str:
    return (
        f"from_generator: cannot continue at element {row}: `generator` gave an iterator that begins only once, and {why}; "
        "give a function that makes another one each time"
    )


# ----------------------------------------------------------------------------
# Whether a function may wait for somebody, perhaps for who uses what it gives; as far as can be seen from outside.
# ----------------------------------------------------------------------------


_DEPTH = 3
"""How deeply the functions and objects that it names are searched."""

_CHANNELS = frozenset(
    str.split("""
    _queue asyncio confluent_kafka grpc http httpx kafka multiprocessing pika queue redis requests select selectors
    serial socket ssl subprocess urllib3 websocket websockets zmq
    """)
)
"""Modules of objects through which something comes when it comes."""

_SIGNALS = frozenset({"Barrier", "BoundedSemaphore", "Condition", "Event", "Flag", "Semaphore"})
"""Classes for which threads wait; locks are there for other reasons."""

_CALLS = {"time": {"sleep"}, "sys": {"stdin"}}
"""What of a module waits."""


def may_wait(function: Callable[..., Any]) -> bool:
    """Whether a function names a queue, a connection, an event, the terminal or the like.

    >>> import queue
    >>> answers = queue.Queue()
    >>> may_wait(lambda: answers.get()), may_wait(lambda: [1].pop())
    (True, False)
    """
    return _waits(function, set(), _DEPTH)


def _waits(value: Any, seen: set[int], depth: int) -> bool:
    if id(value) in seen or depth < 0:
        return False
    seen.add(id(value))
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    if module in _CHANNELS or (module == "threading" and kind.__name__ in _SIGNALS):
        return True
    if isinstance(value, io.IOBase):
        return _is_no_file(value)
    if isinstance(value, ModuleType | type | str | bytes | int | float | complex) or module == "numpy":
        return False
    return any(_waits(part, seen, depth - 1) for part in _parts(value)) or _calls(value)


def _parts(value: Any) -> Iterator[Any]:
    """What a function or an object names or holds."""
    if isinstance(value, tuple | list | set | frozenset):
        yield from list(value)[:16]
        return
    for name in ("__self__", "__func__", "func", "args", "__wrapped__", "__defaults__"):
        yield getattr(value, name, None)
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        known = getattr(value, "__globals__", {})
        yield from [known[name] for name in sorted(names_in(code)) if name in known]
        yield from cells_of(value).values()
    elif not hasattr(value, "__func__"):
        yield from list(getattr(value, "__dict__", {}).values())[:64]
        kind = vars(type(value))
        yield from (kind.get("__call__"), kind.get("__iter__"))


def _calls(function: Any) -> bool:
    """Whether it calls something of a module that waits, or asks at the terminal."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return False
    known, names = getattr(function, "__globals__", {}), names_in(code)
    if "input" in names and "input" not in known:
        return True
    modules = [known[name].__name__ for name in names if isinstance(known.get(name), ModuleType)]
    sleeps = any(known.get(name) is sleep for name in names)
    return sleeps or any(_CALLS.get(module, set()) & names for module in modules)


def _is_no_file(value: io.IOBase) -> bool:
    """Whether it is a terminal, a pipe or the like, where a read waits."""
    try:
        return not stat.S_ISREG(os.fstat(value.fileno()).st_mode)
    except (OSError, ValueError):
        return False


# ----------------------------------------------------------------------------
# `from_generator`: the elements of a Python generator.
# ----------------------------------------------------------------------------


_BLOCK_BYTES = 1 << 20
"""Bytes of elements that are sent together: more would leave a core's cache before they are used."""

_ALONE_BYTES = 1 << 18
"""From this size on, elements are blocks of their own: putting them side by side would cost more."""

_MOST_STRIDE = 16
"""Quick elements between two looks at the clock."""

_WAITS_SECONDS = 0.02
"""A generator that takes longer, gives its core up and does little meanwhile, waits for something."""

_ALONE = 64
"""Elements that come alone behind one that was waited for; twice as many each time that others have come together since."""

_STUCK_SECONDS = 20.0
"""A generator that waits for so long while elements are held back probably waits for what the loop does with them."""

_LOOKS = 4
"""In this time. At the first one nobody knows yet what the generator does; one or two are spoilt if the process stood still."""


_PLAIN_ITERATORS: tuple[type[Any], ...] = (type(iter([])), type(iter(())))
"""Between two of their items no function runs that could change one."""


@dataclass(frozen=True, eq=False)
class Generator(Node):
    """The elements of `generator(*args)`, which is called anew for each pass.

    Shapes and dtypes: those of the signature; values are cast to its dtypes and must fit its shapes. State: how many elements
    have been delivered; a restart runs the generator again and skips them.

    Elements are asked for a few at a time, except of a generator that names a queue, an event, a connection or the like: it may
    wait for what the loop does with an element, and gets a request only when the loop wants one. One that waits for the loop by
    other means, while the loop has not got its last elements, ends in a `DeadlineExceededError` after 20 seconds: on the main
    thread of systems with POSIX signals, and on Linux on a thread of a step above, such as `prefetch`.

    Elements of an iterator that the program holds, as in `lambda: iterator`, are asked for one at a time too: a pass that is
    left loses none, and the next one goes on behind it. What a step above has read ahead, as `prefetch(2)` or `shuffle` does,
    is lost then.

    Args:
      generator: returns an iterable.
      signature: the spec of an element.
      args: arguments for it.
      copy: False: it does not change an array after it has yielded it, so elements may be views.

    Source: `tf.data.Dataset.from_generator`.
    """

    tolerant: ClassVar[bool] = True
    indifferent: ClassVar[frozenset[str]] = frozenset({"copy"})
    generator: Callable[..., Iterable[Any]]
    signature: Spec
    args: tuple[Any, ...] = ()
    copy: bool = True
    begun: Begun = field(default_factory=Begun, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        take_functions(self, "from_generator", "generator")

    @cached_property
    def spec(self) -> Spec:
        return self.signature

    @cached_property
    def waits(self) -> bool:
        """Whether it may wait for what the loop does with an element, so that no other may be asked for before."""
        return may_wait(self.generator)

    @cached_property
    def _wanted(self) -> list[Dims | None]:
        """The shapes of the leaves as plain tuples, which are quick to compare."""
        for leaf, path in zip(self.signature.leaves, self.signature.structure.paths, strict=True):
            if isinstance(leaf, DatasetSpec):
                raise TypeError(f"from_generator: {component(path)} is {leaf.called}; {leaf.cure}")
        shapes = [leaf.shape for leaf in self.signature.leaves]
        return [None if shape is None else tuple(shape) for shape in shapes]

    def arguments(self) -> dict[str, Any]:
        shown = {"generator": self.generator, "output_signature": self.signature.nest}
        return {**shown, "args": self.args} if self.args else shown

    def start(self, epoch: int) -> State:
        return {"row": 0}

    def stream(self, state: State, run: Run) -> Stream:
        return stackable(self._watched(state, run), self.signature)

    def _watched(self, state: State, run: Run) -> Stream:
        """The elements; whoever waits for them on another thread is told if they are waited for in vain."""
        alarm = _Alarm(run.holding)

        def told() -> Exception | None:
            if not alarm.is_stuck():
                return None
            run.waits.set()
            self.__dict__["waits"] = True  # the next pass asks for one element at a time
            return DeadlineExceededError(_STUCK)

        run.sources.append(told)
        try:
            yield from self._elements(state, run, alarm)
        finally:
            run.sources.remove(told)

    def _elements(self, state: State, run: Run, alarm: "_Alarm") -> Stream:
        row = state["row"]
        if state.get("failed"):
            return
        if self.waits:
            run.waits.set()
        lends, pull = not self.copy, _Pull(row)
        refills = Refills("from_generator", (*self.args, self.generator), each=False)

        def anew() -> Iterator[Any]:
            nonlocal lends
            made = [iter(called_once(self.generator, *self.args))]
            pull.singly = counts_are_exact() and not alone(made) and not _begins_anew(made[0])
            iterator = made.pop()
            pull.of(iterator)
            if type(iterator) in _PLAIN_ITERATORS and not run.asked.sampling:
                lends = True
                return iterator
            return map(refills.owned if self.copy else Promise("from_generator: `generator`"), iterator)

        def begin() -> Iterator[Any]:
            iterator = self.begun.items(anew, kept, sampling=run.asked.sampling)
            if run.asked.sampling:
                next(islice(iterator, row, row), None)
                return iterator
            earlier, self.begun.left = pull.follows(self.begun.left), pull
            return _passed(iterator, row) if earlier is None else earlier.resumed(iterator, row)

        most = 1 if self.waits else run.at_once(MOST_ROWS)
        for elements, ending in _pulled(begin, most, pull, run.holding, alarm):
            error = ending.told() if isinstance(ending, _HeldBack) else ending
            if error is not ending:
                self.__dict__["waits"] = True  # the next pass asks for one element at a time
            refills.check()
            while elements:
                block, misfit = self._block(elements, row)
                row += block.size
                if block.size:
                    pull.handed = True
                    yield lent(block) if lends else block, {"row": row}
                if misfit is None:
                    break
                elements = elements[block.size + 1 :]
                row += 1
                yield failed(misfit, tolerant=run.tolerant), {"row": row}
            pull.next(row)
            if error is not None:
                tolerant = run.tolerant and not (type(ending) is _HeldBack and ending.stuck)
                # A generator that has raised yields nothing more.
                yield failed(error, tolerant=tolerant), {"row": row, "failed": True}
        pull.check_ended(row, self.origin)

    def _block(self, elements: list[Any], row: int) -> tuple[Block, Exception | None]:
        """Elements from number `row` on, cast and checked, up to the first that does not fit; and the error for that one."""
        structure, specs = self.signature.structure, self.signature.leaves
        components = self._components(elements)
        columns = [column for column in map(_as_said, components, specs) if column is not None]
        if components and len(columns) == len(components):
            return ColumnBlock(structure, columns, len(elements)), None
        held: list[list[Any]] = []
        known = all_known(elements)
        try:
            for element in elements:
                held.append(self._leaves(element, row + len(held), known))
        except Exception as error:  # noqa: BLE001 - what came before it is sent first
            return Block.of(structure, held), error
        return Block.of(structure, held), None

    def _components(self, elements: list[Any]) -> list[Any]:
        """The values of each leaf; none where elements are not plain tuples or dicts of leaves, as the signature says."""
        structure, kinds = self.signature.structure, set(map(type, elements))
        if structure.is_leaf:
            return [elements]
        if kinds == {tuple} and structure.is_flat_tuple and set(map(len, elements)) == {structure.num_leaves}:
            return list(zip(*elements, strict=True))
        if kinds == {dict} and structure.kind == "dict" and all(child.is_leaf for child in structure.children):
            keys = set(structure.keys)
            if all(element.keys() == keys for element in elements):
                return [[element[key] for element in elements] for key in structure.keys]
        return []

    def _leaves(self, element: Any, row: int, known: bool) -> list[Any]:
        """The leaves of an element, cast and checked; `known` if it need not be adopted."""
        structure = self.signature.structure
        try:
            if structure.kind == "tuple" and isinstance(element, list):  # lists stand for tuples
                element = tuple(element)
            element = element if known else adopt(element)
        except TypeError as error:
            raise _misfit(f"that could not be converted: {error}", row) from None
        try:
            given = structure.flatten(element)
        except TypeError as error:
            raise _misfit(f"that does not match the expected structure {structure}: {error}", row) from None
        leaves = []
        for leaf, spec, wanted in zip(given, self.signature.leaves, self._wanted, strict=True):
            if isinstance(spec, OptionalSpec):
                leaves.append(_optional(leaf, spec, row))
                continue
            assert isinstance(spec, TensorSpec)
            if spec.ragged_rank:
                leaves.append(_ragged(leaf, spec, row))
                continue
            value = _cast(leaf, spec, row)
            if not shape_fits(shape_of(value), wanted):
                told = f"of shape {shape_of(value)} where an element of shape {spec.shape} was expected"
                raise _misfit(told, row)
            if spec.sizes is not None and not spec.fits_value(value):
                raise TypeError(
                    f"from_generator: `generator` yielded a SparseTensor of shape {value.tolist()} where one of shape "
                    f"{list(spec.sizes)} was expected (element {row})"
                )
            leaves.append(value)
        return leaves


@dataclass(frozen=True)
class _HeldBack:
    """The generator has waited in vain, while elements were there that the loop had not got yet.

    Args:
      error: what the generator raised then.
      held: how many elements were there.
      seconds: how long it has waited.
      stuck: whether the wait was ended here.
    """

    error: Exception
    held: int
    seconds: float
    stuck: bool = False

    def told(self) -> Exception:
        """What the generator raised, with a note."""
        self.error.add_note(
            f"the generator waited {self.seconds:.1f} s for this while the loop had not got the last {self.held} elements yet: "
            "elements are asked for a few at a time. If it waits for what the loop does with them, ask for one at a time: "
            "set Options.run_ahead = 0; another pass over this dataset does so by itself"
        )
        return self.error


_STUCK = (
    "from_generator: `generator` waits, and the loop has not got its last elements; if it waits for what the loop does with an "
    "element, set Options.run_ahead = 0"
)


_thread_clock: Callable[[int], int] | None = getattr(time, "pthread_getcpuclockid", None)
"""Gives the clock of the CPU time of another thread, where the system has one."""


def _busy_seconds(thread: int, clock: int | None) -> float:
    """How long a thread has run, or would have run if other programs had not had the cores.

    Args:
      thread: its number in the system.
      clock: of its CPU time, for other threads than this one.
    """
    try:
        with open(f"/proc/self/task/{thread}/schedstat", "rb") as file:
            ran, ready, _ = file.read().split()
    except OSError:  # no Linux, or one that does not tell
        return thread_time() if clock is None else clock_gettime(clock)
    return (int(ran) + int(ready)) / 1e9


class _StuckError(BaseException):
    """Ends a wait in vain; no `except Exception` of the generator takes it."""


class _Alarm:
    """Ends a wait in vain while elements are held back. A generator that works goes on.

    On the main thread, where nobody else can, by the alarm clock of the process. It is taken only if nobody uses it, and given
    back. On another thread by an error for whoever waits for the next block of that thread, and asks `is_stuck`.

    Args:
      holding: what steps above hold back.
    """

    def __init__(self, holding: Sequence[Collection[Any]]) -> None:
        self._holding = holding
        self._elements: list[Any] | None = None
        self._began, self._busy = 0.0, -1.0  # not looked at yet
        self._seen = self._thread = self._idle = 0
        self._clock: int | None = None  # of the thread that the generator runs on, if others have to look

    def set(self, elements: list[Any], wanted: int) -> bool:
        """Ring when a wait is too long.

        Args:
          elements: those that the loop has not got.
          wanted: how many are asked for now.

        Returns:
          False where no wait for these can hold anything back, so that no alarm clock is needed for it.
        """
        main = threading.get_ident() == threading.main_thread().ident
        if main and wanted == 1 and not (elements or any(self._holding)):
            return False
        self._clock, self._seen, self._idle, self._thread = None, 0, 0, threading.get_native_id()
        self._elements, self._began, self._busy = elements, perf_counter(), -1.0
        if not main:
            self._clock = None if _thread_clock is None else _thread_clock(threading.get_ident())
        elif (
            hasattr(signal, "setitimer")
            and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
            and not any(signal.getitimer(signal.ITIMER_REAL))
        ):
            signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, _STUCK_SECONDS / _LOOKS, _STUCK_SECONDS / _LOOKS)
        return True

    def is_stuck(self) -> bool:
        """Whether it has waited in vain for too long on a thread that nobody can interrupt; for other threads."""
        elements, clock = self._elements, self._clock
        if elements is None or clock is None or not (elements or any(self._holding)):
            return False
        now = perf_counter()
        if len(elements) == self._seen and now - self._began < _STUCK_SECONDS / _LOOKS:
            return False
        if len(elements) != self._seen:
            self._seen, self._busy = len(elements), -1.0
        return self._is_idle(clock)

    def clear(self) -> None:
        """Ring no more."""
        elements, self._elements = self._elements, None
        if elements is None or threading.get_ident() != threading.main_thread().ident:
            return
        if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) == self._ring:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _ring(self, _: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code is not _pulled.__code__:
            frame = frame.f_back
        if frame is None:  # an interrupt came between the pull and `clear`
            self.clear()
        if self._is_idle(None) and (self._elements or any(self._holding)):
            raise _StuckError

    def _is_idle(self, clock: int | None) -> bool:
        """Whether the thread had no work at one look after the other; nobody knows at the first one."""
        before, self._busy = self._busy, _busy_seconds(self._thread, clock)
        waited, self._began = perf_counter() - self._began, perf_counter()
        self._idle = self._idle + 1 if before >= 0 and self._busy - before < waited / 10 else 0
        return self._idle >= _LOOKS - 1


def _pulled(
    begin: Callable[[], Iterator[Any]], most: int, pull: _Pull, holding: Sequence[Collection[Any]], alarm: _Alarm
) -> Iterator[tuple[list[Any], Exception | _HeldBack | None]]:
    """The elements that come in a short time, at most `most` or what a core's cache holds, and the error after them.

    Elements are taken in strides, without Python code for each; how many lie between two looks at the clock depends on how long
    the last ones took. The first one comes alone and the next ones in small groups, since those that are there should not have
    to wait for others. Behind one that had to be waited for they come alone until many have come quickly; all do where `pull`
    says so. Others may be in `holding`.
    """
    stride, exhausted, room, alone, lasts = 1, False, 1, 0, _ALONE // 2
    error: Exception | _HeldBack | None = None
    iterator: Iterator[Any] | None = None
    while not exhausted:
        elements = pull.elements
        nbytes, now, use = 0, perf_counter(), thread_use()
        start, deadline = now, now + PACE_SECONDS
        try:
            if iterator is None:
                iterator = begin()
            most = 1 if pull.singly else most
            unset = min(most, room) > 1 or any(holding)
            while not exhausted:
                before, wanted = now, min(len(elements) + stride, most, room)
                unset = unset and not alarm.set(elements, wanted - len(elements))
                elements.extend(islice(iterator, wanted - len(elements)))  # keeps the elements before an error
                now, exhausted = perf_counter(), len(elements) < wanted
                each = bytes_of(elements[-1]) if elements else 1
                nbytes += stride * each
                if now - before > _WAITS_SECONDS and _has_waited(now - start, use):
                    lasts = lasts if alone else 2 * lasts
                    room, alone = 1, lasts
                quick = now - before < PACE_SECONDS / 8
                if quick and alone:
                    alone -= 1
                stride = min(2 * stride, _MOST_STRIDE, max(1, _BLOCK_BYTES // each)) if quick else 1
                stride = 1 if each >= _ALONE_BYTES else stride
                if now > deadline or nbytes >= _BLOCK_BYTES or each >= _ALONE_BYTES or len(elements) >= min(most, room):
                    break
        except Exception as failure:  # noqa: BLE001 - raised again when what came before it was sent
            error, exhausted = failure, True
            waited = perf_counter() - now
            if (elements or any(holding)) and waited > _WAITS_SECONDS and _has_waited(waited, use):
                error = _HeldBack(failure, len(elements), waited)
        except _StuckError:
            exhausted = True
            error = _HeldBack(DeadlineExceededError(_STUCK), len(elements), perf_counter() - now, stuck=True)
        finally:
            alarm.clear()
        room = 1 if alone else min(2 * room, most)
        yield elements, error


def _has_waited(seconds: float, before: CoreUse) -> bool:
    """Whether this thread waited for something else than a core most of the time; other programs may have had its core.

    Args:
      seconds: that have passed.
      before: what the thread had of the cores then, or earlier.
    """
    used = thread_use() - before
    return used.waits > 0 and used.seconds < seconds / 2


_KINDS: dict[type, str] = {bool: "b", int: "iu", float: "f"}
"""The kinds of dtypes that hold numbers of Python; what does not fit is looked at one by one."""


def _as_said(values: Sequence[Any], leaf: LeafSpec) -> Column | None:
    """A column of values that need no further check, as most arrays and numbers; None if they do."""
    if not isinstance(leaf, TensorSpec) or leaf.ragged_rank or leaf.sizes is not None:
        return None
    kinds = set(map(type, values))
    if kinds == {np.ndarray} and leaf.dtype != STRING:
        return column_of(list(values)) if _are_as_said(values, leaf) else None
    if len(kinds) != 1 or (leaf.shape is not None and leaf.shape.rank):
        return None
    (kind,) = kinds
    try:
        if leaf.dtype == STRING:
            return column_of([as_leaf(value) for value in values]) if kind in (bytes, str) else None
        if leaf.dtype.kind not in _KINDS.get(kind, ""):
            return None
        with np.errstate(over="ignore"):
            made = np.array(values, leaf.dtype)
        if kind is float and not np.isfinite(made).all() and lost(np.array(values), made).any():
            return None
        return Dense(made)
    except (OverflowError, ValueError):  # such as a lone surrogate
        return None


def _are_as_said(values: Sequence[Any], leaf: TensorSpec) -> bool:
    """Whether arrays need neither a cast nor a further check."""
    ranks, shape = {value.ndim for value in values}, leaf.shape
    if {value.dtype for value in values} != {leaf.dtype} or 0 in ranks:
        return False
    if shape is None:
        return True
    if ranks != {len(shape)}:
        return False
    return all({value.shape[axis] for value in values} == {n} for axis, n in enumerate(shape) if n is not None)


def _misfit(told: str, row: int, why: Exception | None = None) -> TypeError:
    """The error for an element that is not what the signature says."""
    place = f"element {row}" if why is None else f"element {row}; {why}"
    return TypeError(f"from_generator: `generator` yielded an element {told} ({place})")


_WIDTH = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
"""Kinds of dtypes: in lists none becomes a narrower one, whatever TensorFlow makes of arrays."""


def _cast(leaf: Any, spec: TensorSpec, row: int) -> Any:
    if spec.dtype == STRING:
        value = as_stated(leaf, spec)
        if not isinstance(value, bytes) and value.dtype != STRING:
            raise TypeError(f"from_generator: element {row} must be text for a signature of strings, got {leaf!r}")
        return value
    try:
        made = as_stated(leaf, spec, cast=True)
        if dtype_of(made) == STRING and not isinstance(leaf, np.ndarray | np.generic):
            raise TypeError("text is no number")
        # Arrays of text are parsed; as leaves they are bytes already.
        array = cast_within(np.asarray(leaf if dtype_of(made) == STRING else made), spec.dtype)
        listed = isinstance(leaf, list | tuple) and array.size
        if listed and _WIDTH.get(dtype_of(made).kind, 0) > _WIDTH.get(spec.dtype.kind, 3):
            raise TypeError(f"{made.dtype} in a list becomes no {spec.dtype}; state {made.dtype}, or convert it")
    except (TypeError, ValueError) as error:
        told = f"that could not be converted to the expected type {spec.dtype}: {leaf!r}"
        raise _misfit(told, row, error) from None
    return array if array.ndim else array[()]


def _optional(leaf: Any, spec: OptionalSpec, row: int) -> Any:
    """An Optional that the signature allows."""
    if not getattr(leaf, "is_optional", False) or not leaf.leaf_spec.is_subtype_of(spec):
        raise _misfit(f"that is not an Optional of {spec.element_spec}: {leaf!r}", row)
    return leaf


def _ragged(leaf: Any, spec: TensorSpec, row: int) -> Any:
    """A ragged tensor, or lists of lists, as the signature says."""
    try:
        value = leaf if is_ragged(leaf) else RaggedTensor.from_list(leaf, spec.dtype, spec.ragged_rank)
        if value.dtype != spec.dtype:
            if STRING in (value.dtype, spec.dtype):
                value = value.astype(spec.dtype)
            else:
                value = value.with_flat_values(cast_within(value.flat_values, spec.dtype))
    except (TypeError, ValueError) as error:
        raise _misfit(f"that is not a ragged tensor of {spec}: {leaf!r}", row, error) from None
    if not spec.fits_value(value):
        raise TypeError(
            f"from_generator: `generator` yielded a ragged tensor of shape {value.shape} and ragged_rank {value.ragged_rank} "
            f"where {spec} was expected (element {row})"
        )
    return value


def from_generator(
    generator: Callable[..., Iterable[Any]],
    output_types: Any = None,
    output_shapes: Any = None,
    args: tuple[Any, ...] | None = None,
    output_signature: Any = None,
    *,
    copy: bool = True,
) -> Generator:
    """The node of `tf.data.Dataset.from_generator`.

    Raises:
      TypeError: `generator` cannot be called, or neither or both kinds of signature are given.
    """
    callable_argument("from_generator", "generator", generator)  # before what else may be wrong
    arguments = _given(args)
    if (output_types is None) == (output_signature is None):
        raise TypeError("from_generator: give output_signature, or output_types with output_shapes, and not both")
    if output_signature is not None:
        if output_shapes is not None:
            raise TypeError("from_generator: output_shapes does not go with output_signature")
        return Generator(generator, Spec.of(output_signature), arguments, copy)
    types = structure_of(output_types, lists=True)
    dtypes = types.flatten(output_types)
    shapes = [None] * len(dtypes) if output_shapes is None else types.flatten(output_shapes)
    leaves = tuple([TensorSpec(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)])
    return Generator(generator, Spec(types, leaves), arguments, copy)


def _given(args: Any) -> tuple[Any, ...]:
    """The arguments as the generator gets them: arrays, NumPy scalars and bytes, as in TensorFlow.

    Raises:
      TypeError: `args` is not a tuple, or one of them cannot be an array.
    """
    if args is None:
        return ()
    if not isinstance(args, tuple | list):
        raise TypeError(f"from_generator: args must be a tuple, got {args!r}")
    try:
        return tuple([arg if getattr(arg, "nest_leaf", False) else as_leaf(arg) for arg in args])
    except TypeError as error:
        raise TypeError(
            f"from_generator: args must be numbers, text or arrays: {error}; bind others with a lambda"
        ) from None
