# SPDX-License-Identifier: Apache-2.0
"""New Python processes of the tests are forked from an interpreter that has loaded what they need: 0.1 s of a core, not 1 s.

While `FORKED.on`, `subprocess.Popen` forks where it is told `python -c ...`, `python -m ...` or `python script.py`, whoever
tells it: a test, or distinput itself. All else is started as ever, and so is what a fork cannot be: an interpreter with
flags, or with variables that Python reads when it begins. A test of what a new process imports, or of its first or its last
moments, says `@pytest.mark.fresh_process`; one whose programs load PyTorch or JAX says `@pytest.mark.loads("torch")`, and they
are forked from a process that has done so. `make test-deep` forks nothing.

What a fork starts in a session of its own, as torchrun does its workers, is forked too, and is a child of the nursery.

A nursery is one process without threads of its own, for all processes of a run of the tests: what it loads takes some seconds
of a core. It is told what to start by a message, with the open files of the child; it says the child's number, and how it
ended, on a pipe of the child's own.
"""

import atexit
import contextlib
import fcntl
import gc
import inspect
import io
import json
import os
import pkgutil
import re
import runpy
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import types
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from multiprocessing import process
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["FORKED", "ROOT", "Child", "Nursery", "restore_variables"]

ROOT = Path(__file__).parents[1]
_LARGEST = 100_000
"""Bytes of a message: a socket takes twice as many at once."""
_READ_AT_THE_START = ("PYTHON", "NUMBA_", "LD_")
"""Variables of these names change an interpreter when it begins, and only then..."""
_TOLD = {"NUMBA_CACHE_DIR", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONWARNINGS"}
"""...but for these, which a fork can follow later."""
_STATUS = struct.Struct("i")


class Child:
    """A process that a nursery has forked.

    Args:
      pid: its number.
      status: a file on which its end is told.
    """

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status = status
        self._told: int | None = None

    def waited(self, *, block: bool) -> int | None:
        """How it ended, in the words of `os.waitpid`; None while it runs."""
        if self._told is None:
            if not block and not select.select([self._status], [], [], 0)[0]:
                return None
            told = os.read(self._status, _STATUS.size)
            self._told = _STATUS.unpack(told)[0] if told else signal.SIGKILL  # the nursery was killed, and it with it
            os.close(self._status)
        return self._told

    def poll(self) -> int | None:
        """How it ended: negative for a signal, None while it runs."""
        status = self.waited(block=False)
        return None if status is None else os.waitstatus_to_exitcode(status)


class Nursery:
    """The process that forks others; it starts with the first of them, and ends with the last process that uses it.

    Args:
      modules: what it loads beside distinput.
      address: where it listens; None: it is begun.
    """

    def __init__(self, *modules: str, address: str | None = None) -> None:
        self._modules, self._address = modules, address
        self._control: socket.socket | None = None
        self._begins = threading.Lock()

    def can_start(self, environment: Mapping[str, str]) -> bool:
        """Whether a fork with these variables is as good as a new process."""
        names = {name for name in {*environment, *_OWN} if name.startswith(_READ_AT_THE_START)} - _TOLD
        return all(environment.get(name) == _OWN.get(name) for name in names)

    def start(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        files: Mapping[int, int],
        *,
        folder: str | None = None,
        new_session: bool = False,
        process_group: int = -1,
    ) -> Child | None:
        """Start `python words`.

        Args:
          words: as in a shell, behind the name of the interpreter; of its flags, only `-B`, `-W` and `-u`.
          environment: its variables.
          files: the open files of the child, and those of this process that they are.
          folder: where it runs.
          new_session: whether it leads a session of its own.
          process_group: the number of its group, 0 for its own; negative: that of the nursery, which is that of this process.

        Returns:
          None if that is too much to say.
        """
        order = {
            "words": list(words),
            "environment": dict(environment),
            "files": list(files),
            "folder": folder or os.getcwd(),
        }
        order |= {"session": new_session, "group": process_group, "starter": os.getpid()}
        message = json.dumps(order).encode()
        if len(message) > _LARGEST:
            return None
        with contextlib.suppress(OSError):
            if child := self._asked(message, files):
                return child
        self.close()  # it ended with the others that used it, before it knew of this one
        child = self._asked(message, files)
        assert child, "the nursery died"
        return child

    def _asked(self, message: bytes, files: Mapping[int, int]) -> Child | None:
        """The child; None if the nursery ends."""
        with self._begins:
            if self._control is None:
                self._control = self._joined()
        told, tells = os.pipe()
        try:
            socket.send_fds(self._control, [message], [*files.values(), tells])
        except OSError:
            os.close(told)
            raise
        finally:
            os.close(tells)
        pid = os.read(told, _STATUS.size)
        if pid:
            return Child(_STATUS.unpack(pid)[0], told)
        os.close(told)
        return None

    def _joined(self) -> socket.socket:
        """A way to the nursery of this run, which is begun if no other process has."""
        # A message is one whole, so that threads need no lock. The name is of no file, and goes with the last socket.
        control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if self._address is not None:
            control.connect(self._address)
            return control
        address = f"\0distinput-nursery-{_run_of_tests()}-{' '.join(self._modules)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            try:
                door.bind(address)
            except OSError:  # another process has begun it
                _connect(control, address)
                return control
            door.listen()
            control.connect(address)
            # OpenMP and the allocator of Arrow would start threads, which a fork does not have.
            quiet = {"OMP_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
            every = {**_OWN, **quiet}
            for name in _TOLD:
                every.pop(name, None)
            command = [sys.executable, "-m", "tests.nursery", str(door.fileno()), *self._modules]
            begun = _FRESH(command, stdin=subprocess.DEVNULL, pass_fds=[door.fileno()], env=every, cwd=ROOT)
            begun.wait()  # its child is the nursery, which may outlive this process
        return control

    def close(self) -> None:
        """Use it no more; what it has forked goes on."""
        if self._control is not None:
            self._control.close()
        self._control = None


_OWN = dict(os.environ)
"""The variables of the nurseries: those of this process before any test has changed them."""


def restore_variables() -> None:
    """Undo what a test has done to the variables that new interpreters read: Dask leaves PYTHONHASHSEED set."""
    for name in {*os.environ, *_OWN}:
        if name.startswith(_READ_AT_THE_START) and os.environ.get(name) != _OWN.get(name):
            os.environ.pop(name, None)
            os.environ.update({name: _OWN[name]} if name in _OWN else {})


def _run_of_tests() -> str:
    """What the processes of one run of the tests have in common."""
    if "DISTINPUT_TESTS_PART" in os.environ:
        return f"parts-{os.getppid()}"
    return os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())


def _connect(control: socket.socket, address: str) -> None:
    """Connect to a nursery that another process begins: between two calls of that one nobody listens yet."""
    until = time.monotonic() + 60
    while True:
        try:
            control.connect(address)
            return
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


# The client: what `subprocess.Popen` is while tests run.

_FRESH = subprocess.Popen
_ARGUMENTS = inspect.signature(_FRESH._execute_child)  # type: ignore[attr-defined]  # its Popen is made to be extended there
_SEAT = re.compile(r"\bseats\.local_cluster\b")


class Forked:
    """Whether `subprocess.Popen` forks, and where.

    Args:
      nurseries: for programs in general, for the seats of a cluster, and for programs that load an engine.
    """

    def __init__(self, **nurseries: Nursery) -> None:
        self.nurseries = nurseries
        self.loads = ""  # the engine that the programs load; a test says it by `@pytest.mark.loads`
        self.leaders_alone = False  # whether only those are forked that lead a session
        self._on = False

    @property
    def on(self) -> bool:
        """Whether new Python processes are forked now."""
        return self._on

    @on.setter
    def on(self, on: bool) -> None:
        self._on = on and hasattr(os, "pidfd_open")  # of Linux
        subprocess.Popen = _Popen if self._on else _FRESH  # type: ignore[misc]

    def nursery(self, words: Sequence[str]) -> Nursery:
        """The one that has loaded what a program needs."""
        return self.nurseries[self.loads or ("seats" if any(map(_SEAT.search, words)) else "programs")]

    def go_on(self, address: str | bytes) -> None:
        """In a fork: fork what leads a session of its own; all else must be in the session of this process."""
        self.nurseries = dict.fromkeys(self.nurseries, Nursery(address=os.fsdecode(address)))
        self.on = self.leaders_alone = True

    def close(self) -> None:
        """End the processes that fork others."""
        for nursery in self.nurseries.values():
            nursery.close()


_SUITE = "distinput.testing.collectives"
FORKED = Forked(
    programs=Nursery(),
    seats=Nursery("distributed"),
    torch=Nursery("torch.distributed", _SUITE),
    jax=Nursery("jax.distributed", _SUITE),
)


class _Popen(_FRESH):  # type: ignore[type-arg,misc,valid-type]
    """A process that is forked if it is Python and can be, and started as ever if not."""

    _child: Child | None = None

    def _execute_child(self, *given: Any) -> None:
        said = _ARGUMENTS.bind(self, *given).arguments
        self._child = _forked(said)
        if self._child is None:
            super()._execute_child(*given)
            return
        self.pid = self._child.pid
        self._child_created = True
        names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(said[name] for name in names))

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        if self._child is None:
            return super()._internal_poll(_deadstate)  # type: ignore[no-any-return]
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                self.returncode = self._child.poll()
            finally:
                self._waitpid_lock.release()
        return self.returncode  # type: ignore[no-any-return]

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._child is None:
            return super()._try_wait(wait_flags)  # type: ignore[no-any-return]
        status = self._child.waited(block=wait_flags != os.WNOHANG)
        return (0, 0) if status is None else (self.pid, status)


def _forked(said: dict[str, Any]) -> Child | None:
    """The process that arguments of `_execute_child` ask for; None if it must be a new one."""
    words = said["args"]
    if (
        isinstance(words, (str, bytes, os.PathLike))
        or said["shell"]
        or said["executable"] not in (None, sys.executable)
    ):
        return None
    words = [os.fsdecode(word) for word in words]
    asks = ("preexec_fn", "gid", "gids", "uid")
    if len(words) < 2 or words[0] != sys.executable or any(said[name] is not None for name in asks):
        return None
    if FORKED.leaders_alone and not said["start_new_session"]:
        return None
    _, _, (first, *_) = _flags(words[1:])
    if not said["close_fds"] or said["umask"] != -1 or not (first in ("-c", "-m") or first[:1] not in ("-", "")):
        return None
    environment = os.environ if said["env"] is None else said["env"]
    environment = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    nursery = FORKED.nursery(words)
    if not nursery.can_start(environment):
        return None
    own = (said["p2cread"], said["c2pwrite"], said["errwrite"])
    files = {number: number if given == -1 else given for number, given in enumerate(own)}
    files |= {number: number for number in said["pass_fds"]}
    folder = None if said["cwd"] is None else os.fsdecode(said["cwd"])
    return nursery.start(
        words[1:],
        environment,
        files,
        folder=folder,
        new_session=said["start_new_session"],
        process_group=said["process_group"],
    )


# The server: `python -m tests.nursery DOOR MODULE...`, whose child it is.


def _serve(door: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork what is asked for, until nobody can ask any more. Returns in each child: what it is to be, and its files."""
    selector = selectors.DefaultSelector()
    selector.register(door, selectors.EVENT_READ)
    door.setblocking(False)
    asking: set[socket.socket] = set()
    running: dict[int, tuple[int, int]] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is door:
                asking |= _accepted(door, selector)
                continue
            if isinstance(key.fileobj, int):
                pid, status = running.pop(key.fileobj)
                selector.unregister(key.fileobj)
                _tell(status, os.waitpid(pid, 0)[1])
                os.close(key.fileobj)
                os.close(status)
                continue
            control = key.fileobj
            assert isinstance(control, socket.socket)
            message, files = b"", list[int]()
            with contextlib.suppress(ConnectionError):  # who asked was killed
                message, files, _, _ = socket.recv_fds(control, 2 * _LARGEST, 250, socket.MSG_CMSG_CLOEXEC)
            if not message:
                selector.unregister(control)
                control.close()
                asking.remove(control)
                asking |= set() if asking else _accepted(door, selector)
                if not asking:
                    os._exit(0)  # there is nothing to tidy up, and taking PyTorch apart takes seconds
                continue
            status = files.pop()
            pid = os.fork()
            if pid == 0:
                selector.close()
                for way in (door, *asking):
                    way.close()
                for number in (status, *running, *(other for _, other in running.values())):
                    os.close(number)
                return json.loads(message), files
            for number in files:
                os.close(number)
            _tell(status, pid)
            watched = os.pidfd_open(pid)
            running[watched] = pid, status
            selector.register(watched, selectors.EVENT_READ)


def _accepted(door: socket.socket, selector: selectors.BaseSelector) -> set[socket.socket]:
    """Who has come to ask."""
    come = set()
    with contextlib.suppress(BlockingIOError):
        while True:
            control, _ = door.accept()
            control.setblocking(True)
            selector.register(control, selectors.EVENT_READ)
            come.add(control)
    return come


def _tell(file: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it
        os.write(file, _STATUS.pack(number))


def _become(order: dict[str, Any], received: list[int], base: list[str]) -> None:
    """Make this fork what a new process would be when its program begins."""
    kept = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 512) for number in received]
    for number in received:
        os.close(number)
    for number, target in zip(kept, order["files"], strict=True):
        os.dup2(number, target)
        os.close(number)
    if order["session"]:
        os.setsid()
    elif order["group"] >= 0:
        os.setpgid(0, order["group"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    options, letters, words = _flags(order["words"])
    sys.dont_write_bytecode |= "-B" in letters
    told = order["environment"].get("PYTHONWARNINGS")
    sys.warnoptions[:] = [*(told.split(",") if told else []), *options]
    warnings._processoptions(sys.warnoptions)  # type: ignore[attr-defined]  # as when it is imported
    nursery, parent, starter = os.getppid(), os.getppid, order["starter"]
    os.getppid = lambda: parent() if parent() != nursery else starter if _runs(starter) else 1
    first = words[0]
    place = {"-c": "", "-m": os.getcwd()}.get(first, os.path.dirname(os.path.realpath(first)))
    paths = order["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [place, *filter(None, paths), *base]
    sys.argv = {"-c": ["-c", *words[2:]], "-m": ["-m", *words[2:]]}.get(first, words)
    sys.orig_argv[1:] = order["words"]
    sys.path_importer_cache.clear()
    process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]  # where it finds the file of `__main__` again
    sys.stdin = sys.__stdin__ = _text(0, "r")  # type: ignore[misc]
    at_once = "-u" in letters or bool(order["environment"].get("PYTHONUNBUFFERED"))
    sys.stdout = sys.__stdout__ = _text(1, "w", at_once=at_once)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _text(  # type: ignore[misc]
        2, "w", errors="backslashreplace", line_buffering=True, at_once=at_once
    )
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def _runs(process: int) -> bool:
    """Whether a process has not ended; one that nobody has waited for has."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _flags(words: list[str]) -> tuple[list[str], set[str], list[str]]:
    """What `-W` says in front of a program, which of `-u` and `-B` are there, and the rest."""
    options, letters = [], set()
    while len(words) > 1 + (words[0] == "-W") and words[0] in ("-W", "-u", "-B"):
        if words[0] == "-W":
            options.append(words[1])
        else:
            letters.add(words[0])
        words = words[1 + (words[0] == "-W") :]
    return options, letters, words


def _text(
    number: int, mode: str, errors: str = "strict", *, line_buffering: bool = False, at_once: bool = False
) -> io.TextIOWrapper:
    binary = open(number, f"{mode}b", 0 if at_once else -1, closefd=False)  # noqa: SIM115 - as long as the process runs
    lines = line_buffering or binary.isatty()
    return io.TextIOWrapper(binary, "utf-8", errors, line_buffering=lines, write_through=at_once)


def _run(words: list[str]) -> None:
    """Run a program as `__main__`."""
    _, _, words = _flags(words)
    main = types.ModuleType("__main__")
    vars(main).update(__builtins__=__builtins__, __spec__=None, __annotations__={})
    del vars(main)["__doc__"]
    main.__doc__ = None
    sys.modules["__main__"] = main
    if words[0] == "-m":
        runpy._run_module_as_main(words[1])  # type: ignore[attr-defined]  # what the interpreter does
        return
    if words[0] == "-c":
        code = compile(words[1], "<string>", "exec")
    else:
        main.__file__ = words[0]
        code = compile(Path(words[0]).read_bytes(), words[0], "exec")
    exec(code, vars(main))


def _end(status: object) -> NoReturn:
    """End as an interpreter does, but leave what the nursery has loaded as it is: most programs take less time than that."""
    threading._shutdown()  # type: ignore[attr-defined]  # what the interpreter calls first
    atexit._run_exitfuncs()
    vars(sys.modules["__main__"]).clear()
    gc.collect()  # what was left open is told
    for file in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # it is closed, or nobody reads it
            file.flush()
    if not isinstance(status, int | None):
        print(status, file=sys.stderr, flush=True)
        status = 1
    os._exit((status or 0) & 0xFF)


_ROOMS = [
    f"distinput.{name}" for name in ("data", "formats", "ops", "rewrite", "sharding.policies", "train", "writers")
]
"""What programs load when they first use it."""


def _load(modules: Sequence[str]) -> None:
    """Import what children need, the corners of distinput that are loaded when they are first named included."""
    import distinput as di

    for corner in (di, di.data, di.data.experimental, di.distribute, di.distribute.experimental, di.io):
        for name in corner.__all__:
            getattr(corner, name)
    for room in _ROOMS:
        for module in pkgutil.iter_modules(import_module(room).__path__, f"{room}."):
            import_module(module.name)
    for name in ("numba", "pyarrow.compute", "pyarrow.parquet", *modules):
        import_module(name)
    gc.collect()
    gc.freeze()  # what is loaded stays as it is: a collection in a child copies none of it
    tasks = len(os.listdir("/proc/self/task"))
    assert tasks == 1, "a thread would be missing in the processes forked here"


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who waits for the children, and for them
    _, _number, *_names = sys.argv
    if os.fork():
        os._exit(0)
    _load(_names)
    _base = sys.path[1:]  # without the current folder
    _door = socket.socket(fileno=int(_number))
    _address = _door.getsockname()
    _order, _files = _serve(_door)
    _become(_order, _files, _base)
    FORKED.go_on(_address)
    _status: object = None
    try:
        _run(_order["words"])
    except SystemExit as _exit:
        _status = _exit.code
    _end(_status)
