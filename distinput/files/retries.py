# SPDX-License-Identifier: Apache-2.0
"""Requests to remote storage that fail, or do not come back, are made again: the one place for it."""

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from threading import Event
from typing import NoReturn, TypeVar

from distinput.errors import DistinputError, InvalidArgumentError
from distinput.kernels.kernel import HelperThread
from distinput.names.lazy import dataclass, library
from distinput.run.threads import Task
from distinput.url_secrets import scrub, without_secrets

random, socket = library("random"), library("socket")  # for requests that fail

T = TypeVar("T")

_NETWORK = ("aiohttp.", "azure.", "botocore.", "gcsfs.", "google.", "http.client", "httpx.", "requests.", "urllib3.")
"""Packages whose exceptions, where they are no OSError, are about the network."""

_LASTING = frozenset({
    errno.EACCES, errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR,
    errno.EPERM, errno.EROFS,
})  # fmt: skip
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Of this process or its machine, which a server cannot cure: the program hears of it at once."""

_TRY_AGAIN = frozenset({408, 425, 429})  # of the answers of web servers from 400 to 499

_MISSING, _FORBIDDEN = (404, 410), (401, 403)

_ABOUT_THE_REQUEST = frozenset({
    "DefaultCredentialsError", "InvalidURL", "NoCredentialsError", "NoRegionError", "ParamValidationError",
    "PartialCredentialsError", "ProfileNotFound", "SSLCertVerificationError",
})  # fmt: skip
"""Names of classes of errors that come again however often the request is made, though their packages are the network's."""

_UNREACHABLE_SECONDS = 5.0
"""How long a server is asked again whose name nobody knows, or that refuses connections: it may be about to start."""

_UNREACHABLE = re.compile(
    "ConnectionRefused|Connection refused|dns error|failed to lookup address|connect to the endpoint|no credentials were found"
)
"""What packages say of it whose errors have no class for it."""

_SHORT_ANSWERS = 5
"""Answers that are shorter than they should be before the file counts as damaged."""

_LEFT_SECONDS = 2.0
"""How long a request that nobody waits for any more is given to come to its end."""


class ShortAnswerError(OSError):
    """A server sent fewer bytes than it was asked for."""


@dataclass(frozen=True)
class Retries:
    """How often and for how long reads of remote files are retried.

    Some failures may pass: a connection that broke, a server that is overloaded, an answer that is too short. The next request
    follows after a pause of random length, which is longer after each failure. What will not pass, such as a missing file,
    missing rights, or a process that can open no more files, is an error at once. A server whose name nobody knows, or that
    refuses connections, is given five seconds to appear.

    Args:
      deadline: seconds after which a read fails, with the last error.
      stall: seconds after which a request that has not come back is given up and made again.
      first_pause: the longest first pause, in seconds; each is at most twice as long as the one before.
      longest_pause: the longest of all, in seconds.

    Raises:
      InvalidArgumentError: a number is not positive.

    >>> import distinput as di
    >>> di.io.Retries(deadline=30)
    Retries(deadline=30, stall=60.0, first_pause=0.1, longest_pause=10.0)

    Source: "Exponential Backoff and Jitter", AWS Architecture Blog, 2015: the variant "full jitter".
    """

    deadline: float = 180.0
    stall: float = 60.0
    first_pause: float = 0.1
    longest_pause: float = 10.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not isinstance(value, Real) or not float(value) > 0:
                raise InvalidArgumentError(f"Retries: {name} must be more than 0 seconds, got {value!r}")


def what_failed(error: Exception) -> Exception:
    """The error that another one was made of, where that one says that a file is missing and this one does not.

    fsspec says so of whatever went wrong on the web: also of servers that are overloaded, and of missing rights. And a process
    that can open no more files cannot read where names are looked up, of which the system says that nobody knows the name.
    """
    # By name: `socket` may not be loaded, and cannot be where no file can be opened.
    if any(type(each).__name__ == "gaierror" for each in _causes(error)) and _no_more_files():
        return OSError(errno.EMFILE, f"{os.strerror(errno.EMFILE)}, so no name of a server can be looked up: {error}")
    if type(error).__module__.startswith("aiohttp.") and without_secrets(str(error)) != str(error):
        cause: BaseException | None = error if isinstance(getattr(error, "status", None), int) else None
    else:
        cause = error.__cause__ if isinstance(error, FileNotFoundError) else None
    if not isinstance(cause, Exception):
        return error
    status = getattr(cause, "status", None)
    if not isinstance(status, int):
        return cause if transient(cause) or _never(cause) or _exhausted(cause) else error
    told = f"the server answered {status} {getattr(cause, 'message', '')}".rstrip()
    name = getattr(error, "filename", None) or ("" if error is cause else str(error))
    if status in _MISSING:
        return FileNotFoundError(errno.ENOENT, told, name) if error is cause else error
    if status in _FORBIDDEN:
        return PermissionError(errno.EACCES, told, name)
    passes = status >= 500 or status in _TRY_AGAIN
    return OSError(errno.EIO if passes else errno.EINVAL, told, name)


@contextmanager
def telling() -> Iterator[None]:
    """Tell in errors of packages what failed, see `what_failed`, and no secret of a URL."""
    try:
        yield
    except Exception as caught:  # noqa: BLE001 - `raise_told` raises it
        raise_told(what_failed(caught), caught)


def raise_told(error: Exception, caught: Exception) -> NoReturn:
    """Raise what an error that was caught means in its place, without secrets of URLs; the same error as it is."""
    try:
        if error is caught:
            scrub(error)
            raise
        error.__cause__ = caught
        scrub(error)
        raise error from error.__cause__
    finally:
        del error, caught  # the traceback refers to this frame, and the frame must not refer back


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it was made of, which may be made of each other."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__


def _never(error: BaseException) -> bool:
    """True for errors of the network's packages that are about the request, the certificate or the credentials."""
    for cause in _causes(error):
        names = {kind.__name__ for kind in type(cause).__mro__}
        if names & _ABOUT_THE_REQUEST or (isinstance(cause, ValueError) and "JSONDecodeError" not in names):
            return True
    return False


def _exhausted(error: BaseException) -> bool:
    """True if this process can open no more files and connections, or gets no more memory."""
    return any(
        getattr(each, "errno", None) in _EXHAUSTED or "Too many open files" in str(each) for each in _causes(error)
    )


def _no_more_files() -> bool:
    """Whether this process can open no file now."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return True
    return False


def _unreachable(error: BaseException) -> bool:
    """True if there is no server of this name, or none that takes connections."""
    numbers = {errno.ECONNREFUSED, socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
    return any(getattr(each, "errno", None) in numbers or _UNREACHABLE.search(str(each)) for each in _causes(error))


def transient(error: BaseException) -> bool:
    """True if the same request may succeed later."""
    if isinstance(error, DistinputError | NotImplementedError) or _never(error) or _exhausted(error):
        return False
    status = getattr(error, "status", None)
    if isinstance(status, int) and 400 <= status < 500:
        return status in _TRY_AGAIN
    if isinstance(error, OSError):
        kinds = FileNotFoundError | FileExistsError | PermissionError | IsADirectoryError | NotADirectoryError
        folder = error.errno is None and str(error).endswith("is a directory")  # as pyarrow says it
        return not isinstance(error, kinds) and error.errno not in _LASTING and not folder
    return isinstance(error, EOFError | TimeoutError) or f"{type(error).__module__}.".startswith(_NETWORK)


def persistently(ask: Callable[[], T], path: str, retries: Retries, cancel: Event | None = None) -> T:
    """`ask()`, again and again until it succeeds.

    Args:
      ask: makes a request. One that did not come back may still run when it is called anew.
      path: of the file, for messages.
      retries: how long.
      cancel: once it is set, the request is given up.

    Raises:
      TimeoutError: no request came back before the deadline.
      Exception: that of `ask`, if it will not pass, or the last one before the deadline; a note says how many there were.
    """
    uniform, _ = random.uniform, socket.EAI_NONAME  # loaded now: they are needed where no more files can be opened
    start_time, failures, short, pause = time.monotonic(), 0, 0, retries.first_pause
    given_up = cancel or Event()
    while True:
        left = retries.deadline - (time.monotonic() - start_time)
        try:
            return _answer(ask, max(0.001, min(retries.stall, left)), given_up, path)
        except Exception as caught:  # noqa: BLE001 - asked again, or raised by `raise_told`
            error = what_failed(caught)
            short += isinstance(error, ShortAnswerError)
            wait = uniform(0, min(pause, retries.longest_pause))
            patience = min(retries.deadline, _UNREACHABLE_SECONDS) if _unreachable(error) else retries.deadline
            left = patience - (time.monotonic() - start_time)
            scrub(error)
            if given_up.is_set() or not transient(error) or short >= _SHORT_ANSWERS or left <= wait:
                if failures:
                    took = time.monotonic() - start_time
                    error.add_note(f"while reading {without_secrets(path)!r}, request {failures + 1} in {took:.1f} s")
                try:
                    raise_told(error, caught)
                finally:
                    del error  # as there
            failures, pause = failures + 1, 2 * pause
            given_up.wait(wait)


def _answer(ask: Callable[[], T], seconds: float, cancel: Event, path: str) -> T:
    """What a call returns, on a thread of its own, so that it can be given up; the thread ends when the call does."""
    task, until = Task(ask), time.monotonic() + seconds
    HelperThread(target=task.run, name="distinput-request").start()
    while not task.running.acquire(timeout=min(_LEFT_SECONDS, max(0.0, until - time.monotonic()))):
        if cancel.is_set() or time.monotonic() >= until:
            raise TimeoutError(f"{path}: a request was not answered in {seconds:g} s")
    task.running.release()
    try:
        return task.result()
    finally:
        del task  # as in `raise_told`
