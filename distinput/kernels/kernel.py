# SPDX-License-Identifier: Apache-2.0
"""`@kernel(reference)`: a compiled loop that never makes its first caller wait; the flags and threads that it needs."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import importlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar, cast
from weakref import WeakSet

import numpy as np

from distinput.names.lazy import later

if TYPE_CHECKING:
    from distinput.kernels import cache
else:
    cache = later("distinput.kernels.cache")  # nothing is looked up before references have worked for a while

# ----------------------------------------------------------------------------
# A flag between threads, which an interrupt cannot leave locked.
# ----------------------------------------------------------------------------


class Flag:
    """Set once, and seen by all threads, as a `threading.Event`.

    An event is written in Python, with a lock around it. An interrupt in the middle of it would leave the lock behind, and
    every thread that looks at the event would wait forever. Here threads wait in C code, each for a lock of its own.

    >>> flag = Flag()
    >>> flag.is_set(), flag.wait(0), flag.set(), flag.is_set(), flag.wait()
    (False, False, None, True, True)

    Attributes:
      was_set: what `is_set` returns, for loops in which a call would take longer than what is asked.
    """

    __slots__ = ("_waiting", "was_set")

    def __init__(self) -> None:
        self.was_set = False
        self._waiting: list[threading.Lock] = []

    def is_set(self) -> bool:
        """Whether it was set."""
        return self.was_set

    def set(self) -> None:
        """Set it; may be called again."""
        self.was_set = True
        for waiting in self._waiting:
            try:
                waiting.release()
            except RuntimeError:  # another thread has set it as well
                pass

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; False if it is not after so many seconds."""
        if not self.was_set:
            waiting = threading.Lock()
            waiting.acquire()
            self._waiting.append(waiting)  # before it is looked at again
            if not self.was_set:
                waiting.acquire(timeout=-1 if timeout is None else timeout)
        return self.was_set


# ----------------------------------------------------------------------------
# Forks of a process with threads: a child has none of them, so what they held would be held in it forever. Python sees to
# that for its own locks, except those of modules that another thread was importing.
# ----------------------------------------------------------------------------


L = TypeVar("L")

_LOCKS: WeakSet[Any] = WeakSet()


def renewed(lock: L) -> L:
    """A lock that is open in a forked child, whoever held it: that thread is not there.

    >>> with renewed(threading.Lock()) as held:
    ...     held
    True
    """
    _LOCKS.add(lock)
    return lock


def _after_any_fork() -> None:
    """Open what threads held that are not in this child, and forget modules that they had not imported to their ends."""
    for lock in list(_LOCKS):
        lock._at_fork_reinit()
    _helping.clear()
    _change_interval(_SHORT_INTERVAL, _PYTHONS_INTERVAL)
    own = threading.get_ident()
    held = getattr(importlib._bootstrap, "_module_locks", {})
    for name, reference in list(held.items()):
        lock = reference()
        if getattr(lock, "owner", own) == own:
            continue
        held.pop(name, None)
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            del sys.modules[name]


if hasattr(os, "register_at_fork"):  # there is none on Windows, nor a fork
    os.register_at_fork(after_in_child=_after_any_fork)


# ----------------------------------------------------------------------------
# Short turns at Python's lock, while threads of the library work beside the program's.
#
# A thread that wants the lock asks its holder for it after the switch interval, 5 ms, unless it was woken meanwhile. Each call
# of NumPy lets go of the lock for a moment, which wakes the thread; it finds the lock taken again, and its 5 ms begin anew. So
# one that makes many small arrays keeps all others out, for seconds. They get their turns where the interval is shorter than
# the time between two such calls.
# ----------------------------------------------------------------------------


_PYTHONS_INTERVAL, _SHORT_INTERVAL = 0.005, 0.0001  # seconds

_helping: set[int] = set()
_intervals = renewed(threading.Lock())


class HelperThread(threading.Thread):
    """A thread of the library; it does not keep the program from ending.

    While any is there, Python's switch interval is a tenth of a millisecond, unless the program has set one of its own.

    Args:
      target: what it calls.
      args: the arguments.
      name: how debuggers call it.
    """

    def __init__(self, target: Callable[..., object], args: tuple[Any, ...] = (), name: str | None = None) -> None:
        super().__init__(target=target, args=args, name=name, daemon=True)

    def run(self) -> None:
        """Call the target, in short turns."""
        me = threading.get_ident()
        with _intervals:
            _helping.add(me)
            _change_interval(_PYTHONS_INTERVAL, _SHORT_INTERVAL)
        try:
            super().run()
        finally:
            with _intervals:
                _helping.discard(me)
                if not _helping:
                    _change_interval(_SHORT_INTERVAL, _PYTHONS_INTERVAL)


def _change_interval(before: float, interval: float) -> None:
    if abs(sys.getswitchinterval() - before) < 1e-6:
        sys.setswitchinterval(interval)


# ----------------------------------------------------------------------------
# Interrupting a compiling thread from outside, without leaking open files or freeing memory twice.
#
# llvmlite records the owner of an LLVM object only after LLVM has taken it, and a file is open for a moment before the
# `with` block begins. So the stack of the thread is inspected, and it is interrupted only when it is in neither place.
# ----------------------------------------------------------------------------


_COMPILER, _LOADER = "distinput.kernels.compiler", "distinput.kernels.object_code"
_USERS_OF_FILES = {
    _COMPILER: {"linked"},
    _LOADER: {"read", "write", "claimed", "_version"},
    "importlib._bootstrap_external": {"get_data", "set_data"},
}


def interrupted(thread: threading.Thread, interruption: type[BaseException], longest: float) -> None:
    """Raise `interruption` in a thread repeatedly until it ends, for at most `longest` seconds."""
    # Destructors and C code report the interruption and continue; a thread that ends with it reports it too.
    _keep_quiet_about(interruption)
    # The thread must not run between the inspection and the interruption, which takes far less than this interval.
    sys.setswitchinterval(0.02)
    deadline = time.monotonic() + longest
    thread.join(0.005)  # a thread that already waits still uses the shorter interval
    while thread.is_alive() and time.monotonic() < deadline:
        may = may_be_interrupted(sys._current_frames().get(thread.ident or 0))
        if may:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(interruption)
            )
        thread.join(0.5 if may else 0.001)


def _keep_quiet_about(interruption: type[BaseException]) -> None:
    """Suppress reports of the interruption on standard error from now on."""
    unraisable, uncaught, in_thread = sys.unraisablehook, sys.excepthook, threading.excepthook
    sys.unraisablehook = lambda args: None if args.exc_type is interruption else unraisable(args)
    sys.excepthook = lambda kind, error, trace: None if kind is interruption else uncaught(kind, error, trace)
    threading.excepthook = lambda args: None if args.exc_type is interruption else in_thread(args)


def may_be_interrupted(frame: FrameType | None) -> bool:
    """True if a thread at this frame is neither inside LLVM nor using a file."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("llvmlite.binding") or frame.f_code.co_name in _USERS_OF_FILES.get(name, ()):
            return False
        frame = frame.f_back
    return True


# ----------------------------------------------------------------------------
# `@kernel(reference)`: a compiled loop that never makes its first caller wait.
#
# The decorated function is the source that numba compiles; `reference` is its specification in plain NumPy. The signature
# is derived from the annotations, whose names are the types below; input arrays may be read-only. The environment variable
# `DISTINPUT_KERNELS` determines what happens at the first call:
#
# * `auto` (the default): references serve until they have taken `WORTH_LOADING` seconds, all kernels together, or would with
#   the next call: importing what loads object code takes about as long. From then on a kernel in the cache on disk is loaded
#   at its first call, in some milliseconds and without numba. One that is not there is compiled by a background thread once
#   references have taken `WORTH_COMPILING` seconds, and its reference serves until then; while another process compiles, the
#   thread looks for its results. Without numba the reference is always used.
# * `compiled`: the first call waits for the compiled kernel, and a kernel that cannot be compiled is an error.
# * `reference`: nothing is ever compiled.
#
# The cache is the folder `$NUMBA_CACHE_DIR` if that is set, else `__pycache__` beside the source, else the user's cache
# folder, and never one that others may write to; if none is left, each process compiles for itself. numba is imported by the
# background thread alone, where a kernel must be compiled.
#
# At the end of the program the background thread is interrupted and joined: no thread may be inside LLVM when the
# interpreter shuts down. An optimization pass of LLVM cannot be interrupted, but ends within a second or two.
# ----------------------------------------------------------------------------


P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

# Argument types of kernels. Those without Out are only read, so read-only arrays over bytes and Arrow buffers fit.
Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
BytesOut: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
IntsOut: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
FloatsOut: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]
Int32sOut: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]
Key: TypeAlias = int  # an unsigned 64-bit number

TYPES = {
    "Bytes": "Array(uint8, 1, 'C', readonly=True)",
    "BytesOut": "uint8[::1]",
    "FloatsOut": "float32[::1]",
    "Int32sOut": "int32[::1]",
    "Ints": "Array(int64, 1, 'C', readonly=True)",
    "IntsOut": "int64[::1]",
    "Key": "uint64",
    "None": "void",
    "bool": "boolean",
    "int": "int64",
    "tuple[int, int]": "UniTuple(int64, 2)",
    "tuple[int, int, int]": "UniTuple(int64, 3)",
    "tuple[int, int, int, int]": "UniTuple(int64, 4)",
}
MODES = ("auto", "compiled", "reference")
WORTH_LOADING = 0.04  # seconds of work by references for which nothing is loaded
WORTH_COMPILING = 0.25  # seconds of work by references for which nothing is compiled: importing numba takes 0.7 s
SLOWEST = 40e-9  # seconds that a reference is believed to take for a byte before it was measured
LONGEST_COMPILATION_ELSEWHERE = 60.0  # seconds after which a process compiles although another one does
PAUSE = 0.1  # seconds between two looks at what another process has compiled
LONGEST_EXIT = 5.0  # seconds that the end of the program waits for an interrupted compilation
LONGEST_FORK = 10.0  # seconds that a fork waits for the kernel being compiled


KERNELS: dict[str, Kernel[..., Any]] = {}
INLINED: list[FunctionType] = []  # functions that kernels call; registered with numba when it is imported

_compiler = renewed(threading.RLock())  # held during all use of numba; acquired before _state
_state = renewed(threading.RLock())  # held while the fields of a kernel, the queue and the worker change
_queue: deque[Kernel[..., Any]] = deque()
_worker: threading.Thread | None = None
_spent = 0.0  # seconds of work by the references of all kernels before theirs was loaded
_first_calls_wait = False
_closed: str | None = None  # why nothing is compiled any more; None: compiling is possible


class _Interrupted(BaseException):
    """Raised in a compilation that is still running when the program ends.

    Not a SystemExit: C code called there may print the error, and printing a SystemExit exits the program, from that
    thread, while the main thread is already exiting.
    """


class Kernel(Generic[P, R]):
    """A function of arrays and numbers with two equivalent implementations.

    Args:
      source: the function that numba compiles.
      reference: the readable implementation that defines the result.
      signature: its types in numba's notation; None: derived from the annotations of `source`.

    Attributes:
      name: the name of the source, and the key in `KERNELS`.
      reference: the readable implementation.
      error: why the kernel cannot be compiled; None while that is unknown, or if it can.
    """

    def __init__(self, source: Callable[P, R], reference: Callable[P, R], signature: str | None) -> None:
        functools.update_wrapper(self, source)
        self.name = source.__name__
        self.source = cast(FunctionType, source)
        self.reference = reference
        self.signature = signature or _signature(self.source)
        self.error: Exception | None = None
        self._compiled: Callable[P, R] | None = None
        self._done = Flag()
        self._looked = False  # whether the cache was searched
        self._patient_until: float | None = None  # while another process compiles
        self._seconds, self._bytes = 0.0, 0  # of calls of the reference that were measured, and of their arrays
        self._function: Callable[P, R] = self._first

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the best implementation available."""
        return self._function(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<kernel {self.name}: {'compiled' if self.is_compiled else 'reference'}>"

    @property
    def function(self) -> Callable[P, R]:
        """What a call runs from now on, for loops in which a step of Python for each call would count."""
        return self._function

    @property
    def is_compiled(self) -> bool:
        """True if calls run compiled code from now on."""
        return self._compiled is not None and self._function is self._compiled

    def compiled(self, timeout: float | None = None) -> Callable[P, R]:
        """The compiled implementation; waits until it is ready.

        Args:
          timeout: seconds to wait; None: forever.

        Raises:
          TimeoutError: it is not ready in time.
          Exception: the error of the compilation, an ImportError if numba is missing.
        """
        if not self.wait(timeout):
            raise TimeoutError(f"kernel {self.name}: not compiled within {timeout} seconds")
        with _state:
            if self._compiled is None:
                raise self.error or RuntimeError(f"kernel {self.name}: not compiled, {_closed}")
            return self._compiled

    def wait(self, timeout: float | None = None) -> bool:
        """Request compilation and wait for it; True if it ended, successfully or not, within `timeout` seconds."""
        if not self._load():
            self._enqueue()
        return self._done.wait(timeout)

    def _first(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The first call: choose the implementation and run it."""
        mode = _mode()
        if mode == "reference":
            self._function = self.reference
        elif mode == "compiled":
            self._function = self.compiled()
        elif _first_calls_wait:
            self.wait()
        else:
            nbytes = sum(getattr(each, "nbytes", 0) for each in args)
            will_have_taken = _spent + self._will_take(nbytes)
            if will_have_taken < WORTH_LOADING or (will_have_taken < WORTH_COMPILING and not self._load()):
                return self._measure(nbytes, *args, **kwargs)
            if not self._load():
                self._enqueue()
        return self._function(*args, **kwargs)

    def _will_take(self, nbytes: int) -> float:
        """Seconds that the reference will take for arrays of so many bytes."""
        if not self._bytes:
            return nbytes * SLOWEST
        # The time for few bytes says little about that for more.
        return self._seconds * nbytes / max(self._bytes, 1 << 16)

    def _measure(self, nbytes: int, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the reference, and note what it takes for arrays of so many bytes."""
        global _spent
        begin = time.thread_time()
        result = self.reference(*args, **kwargs)
        took = time.thread_time() - begin
        _spent, self._seconds, self._bytes = _spent + took, self._seconds + took, self._bytes + nbytes
        return result

    def _load(self) -> bool:
        """Load the kernel if it is in the cache; false if it is not, or if it would wait behind a compilation."""
        if not self._looked and _closed is None and cache.holds(*(slot := self._place())):
            if not _compiler.acquire(blocking=False):
                self._enqueue()  # the background thread loads before it compiles
                return self._done.is_set()
            try:
                self._build(slot, load_only=True)
            finally:
                _compiler.release()
        self._looked = True
        return self._done.is_set()

    def _enqueue(self) -> None:
        """Queue the kernel for the background thread."""
        global _worker
        _watch_forks()
        with _state:
            if self._done.is_set() or self in _queue:
                return
            if _closed is not None:
                self._finish(None, None)
                return
            if _mode() != "reference":
                self._function = self.reference
            _queue.append(self)
            if _worker is None:
                _worker = HelperThread(target=_work, name="distinput-kernels")
                try:
                    _at_exit()
                    _worker.start()
                except RuntimeError as error:  # no thread can be started: the reference is used
                    _worker = None
                    _queue.remove(self)
                    self._finish(None, error)

    def _build(self, slot: cache.CacheSlot, load_only: bool = False) -> None:
        """Load or compile the kernel, if no other process compiles just now; the caller holds `_compiler`."""
        if self._done.is_set():
            return
        self._looked = True
        try:
            built = self._loaded(slot, load_only)
        except Exception as error:  # noqa: BLE001 - numba may raise anything, and the reference still works
            if not isinstance(error, ImportError):
                import logging

                log = logging.getLogger("distinput.kernels")
                log.warning("kernel %s cannot be compiled, its slow reference serves: %s", self.name, error)
            self._finish(None, error)
        else:
            if built is not None:
                self._finish(built, None)

    def _loaded(self, slot: cache.CacheSlot, load_only: bool) -> Callable[P, R] | None:
        code = object_code()
        with contextlib.suppress(Exception):  # whatever is wrong with the file, the kernel can be compiled again
            found = code.read(slot, self.signature)
            if found is not None:
                return self._function_of(found)
        if load_only:
            return None
        with code.claimed(slot) as is_ours:
            if not is_ours:
                self._patient_until = self._patient_until or time.monotonic() + LONGEST_COMPILATION_ELSEWHERE
                if time.monotonic() < self._patient_until:
                    return None
            made = compiler().build(self.source, self.signature, INLINED)
            code.write(slot, self.signature, made)
        return self._function_of(made)

    def _function_of(self, code: bytes) -> Callable[P, R]:
        types = [name for argument, name in self.source.__annotations__.items() if argument != "return"]
        function: Callable[P, R] = object_code().load(self.name, types, code)
        return function

    def _finish(self, compiled: Callable[P, R] | None, error: Exception | None) -> None:
        with _state:
            self._compiled, self.error = compiled, error
            if _mode() != "reference":
                self._function = compiled or self.reference
            self._done.set()

    def _place(self) -> cache.CacheSlot:
        """The prefix of the kernel's file names in the cache, and the folders to search."""
        return cache.place(self.name, self.source, INLINED)


def kernel(reference: Callable[P, R], signature: str | None = None) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Make the decorated function a kernel that is equivalent to `reference`.

    Args:
      reference: the readable implementation.
      signature: the types in numba's notation; None: derived from the annotations of the function.

    Raises:
      ValueError: another kernel has the same name.
    """

    def register(source: Callable[P, R]) -> Kernel[P, R]:
        made = Kernel(source, reference, signature)
        known = KERNELS.setdefault(made.name, made)
        if known is not made and known.__module__ != made.__module__:
            raise ValueError(f"kernel: the name {made.name!r} is taken by {known.__module__}")
        KERNELS[made.name] = made
        return made

    return register


def inlined(function: F) -> F:
    """Let kernels call this function, which numba must be able to compile."""
    INLINED.append(cast(FunctionType, function))
    return function


def compile_all(timeout: float | None = None) -> Iterator[tuple[str, float]]:
    """Compile every kernel of this package in turn; yields the name of each and the seconds it took."""
    _load_sources()
    for name, each in sorted(KERNELS.items()):
        start = time.perf_counter()
        each.compiled(timeout)
        yield name, time.perf_counter() - start


def cached_kernels() -> dict[str, bool]:
    """Every kernel of this package by its name, and whether the cache has it for this machine; nothing is compiled."""
    _load_sources()
    code, kernels = object_code(), sorted(KERNELS.items())
    try:
        return {name: code.read(each._place(), each.signature) is not None for name, each in kernels}
    except ImportError:  # numba is not installed, nor llvmlite, which tells the processor where the system does not
        return dict.fromkeys(dict(kernels), False)


def ready_kernels() -> set[str]:
    """The kernels that no process will compile, as far as is known here: they are in the cache, or were compiled here."""
    return {name for name, cached in cached_kernels().items() if cached or KERNELS[name]._done.is_set()}


@contextlib.contextmanager
def compiled_first() -> Iterator[None]:
    """Where time is measured: here a first call waits until the kernel is compiled, or cannot be; in the mode `auto` alone."""
    global _first_calls_wait
    before, _first_calls_wait = _first_calls_wait, True
    try:
        yield
    finally:
        _first_calls_wait = before


def _load_sources() -> None:
    from pathlib import Path

    for file in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        if file.stem != "compiler":  # it imports numba, which may be missing
            importlib.import_module(f"distinput.kernels.{file.stem}")


def _mode() -> str:
    mode = os.environ.get("DISTINPUT_KERNELS") or "auto"
    if mode not in MODES:
        raise ValueError(f"DISTINPUT_KERNELS must be one of {', '.join(MODES)}, got {mode!r}")
    return mode


def _signature(source: FunctionType) -> str:
    """The numba signature derived from the annotations."""
    unknown = {name: each for name, each in source.__annotations__.items() if each not in TYPES}
    if unknown:
        raise TypeError(f"kernel {source.__name__}: the types must be among {', '.join(TYPES)}, got {unknown}")
    types = [TYPES[each] for name, each in source.__annotations__.items() if name != "return"]
    return f"{TYPES[source.__annotations__['return']]}({', '.join(types)})"


def is_numba(function: Any) -> bool:
    """True if a function was compiled by numba's `njit`."""
    return type(function).__module__.startswith("numba.") and hasattr(function, "py_func")


def compiler() -> Any:
    """The module that compiles; imported late because that takes longer than the first batch of most pipelines."""
    return importlib.import_module(_COMPILER)


def object_code() -> Any:
    """The module that loads what is compiled; imported late, since many programs work too little for it."""
    return importlib.import_module(_LOADER)


def _work() -> None:
    """The background thread: load the queued kernels, compile those that are not cached, then end."""
    global _worker
    try:
        while True:
            with _compiler:
                with _state:
                    if not _queue:
                        _worker = None
                        return
                    # It stays in the queue so that it is not queued again.
                    unknown = [each for each in _queue if not each._looked]
                    each = unknown[0] if unknown else _queue[0]
                each._build(each._place(), load_only=bool(unknown))
                with _state:
                    if each._done.is_set():
                        _queue.remove(each)
                    elif not unknown:
                        _queue.rotate(-1)
            if not unknown and not each._done.is_set():  # another process compiles
                time.sleep(PAUSE)
    except _Interrupted:
        with _state:
            _worker = None
            while _queue:
                _queue.pop()._finish(None, None)


@functools.cache
def _at_exit() -> None:
    """Register `_stop` to run before the exit handlers of numba, where Python supports that."""
    getattr(threading, "_register_atexit", atexit.register)(_stop)


def _stop() -> None:
    """At the end of the program: interrupt the background thread and wait until it has ended."""
    global _closed
    thread = _worker
    with _state:
        _closed = "the program is ending"
    if thread is None or thread.ident is None:
        return
    interrupted(thread, _Interrupted, LONGEST_EXIT)


_watching = False
_forking_clean: bool | None = None  # None: no thread forks


def _before_fork() -> None:
    """Wait for the current compilation, since the compiler would be in an inconsistent state in the child."""
    global _forking_clean
    _forking_clean = _compiler.acquire(timeout=LONGEST_FORK)
    _state.acquire()


def _after_fork_in_parent() -> None:
    global _forking_clean
    if _forking_clean is None:  # these were registered while another thread forked
        return
    _state.release()
    if _forking_clean:
        _compiler.release()
    _forking_clean = None


def _after_fork_in_child() -> None:
    """The child has no background thread: pending kernels start over, or are abandoned if numba was in use."""
    global _worker, _closed, _forking_clean
    _worker = None
    if not _forking_clean:
        _closed = "this process was forked during a compilation"
    for each in KERNELS.values():
        if not each._done.is_set():
            each._done, each._looked = Flag(), False
            each._function = each._first
    _queue.clear()
    _forking_clean = None


def _watch_forks() -> None:
    """Register the fork handlers, before the first thread starts."""
    global _watching
    # Handlers run in reverse order. Logging, which numba imports, takes its lock at a fork: it must do so after us.
    importlib.import_module("logging")
    with _state:
        if _watching or not hasattr(os, "register_at_fork"):
            return
        _watching = True
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
        )
