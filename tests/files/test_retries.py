# SPDX-License-Identifier: Apache-2.0
"""Requests are made again while their errors may pass, and no longer than the deadline says."""

import errno
import gc
import socket
import ssl
import weakref
from collections.abc import Iterator
from fractions import Fraction
from threading import Event
from typing import Any

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files import retries
from distinput.files.retries import Retries, ShortAnswerError, persistently, transient, what_failed
from distinput.files.source import read_range
from tests.patience import Clock, wait_until

SOON = Retries(deadline=60, stall=60, first_pause=0.001, longest_pause=0.002)


def asks(*answers: Any) -> tuple[Any, list[Any]]:
    """A request with these answers, one after the other, and the list of those that were given."""
    left: Iterator[Any] = iter(answers)
    given = []

    def ask() -> Any:
        given.append(next(left))
        if isinstance(given[-1], Exception):
            raise given[-1]
        return given[-1]

    return ask, given


class HttpError(Exception):
    """As aiohttp's."""

    __module__ = "aiohttp.client_exceptions"

    def __init__(self, status: int) -> None:
        self.status = status


@pytest.mark.parametrize(
    "error", [ConnectionError("broken"), TimeoutError(), EOFError(), OSError(5, "I/O"), HttpError(503), HttpError(429)]
)
def test_what_may_pass_is_tried_again(error: Exception) -> None:
    ask, given = asks(error, error, 7)
    assert persistently(ask, "s3://b/a", SOON) == 7
    assert len(given) == 3


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError("a"),
        PermissionError("a"),
        IsADirectoryError("a"),
        OSError(28, "No space left"),
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENFILE, "Too many open files in system"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        OSError(errno.EIO, "GenericError: ... Too many open files (os error 24)"),
        DataLossError("a"),
        NotImplementedError(),
        ValueError("a"),
        HttpError(400),
    ],
)
def test_what_will_not_pass_is_an_error_at_once(error: Exception) -> None:
    ask, given = asks(error, 7)
    with pytest.raises(type(error)):
        persistently(ask, "s3://b/a", SOON)
    assert len(given) == 1
    assert not transient(error)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(retries, "time", made)
    monkeypatch.setattr(retries, "_LEFT_SECONDS", 0.005)
    return made


def test_the_deadline_ends_it_and_the_error_says_how_often_it_was_tried(clock: Clock) -> None:
    def ask() -> None:
        clock.now += 10
        raise ConnectionError("broken")

    with pytest.raises(ConnectionError, match="broken") as error:
        persistently(ask, "s3://b/a", Retries(deadline=105, first_pause=0.001, longest_pause=0.002))
    assert error.value.__notes__ == ["while reading 's3://b/a', request 11 in 110.0 s"]


def test_answers_that_stay_short_are_an_error_soon() -> None:
    ask, given = asks(*[ShortAnswerError("short")] * 20)
    with pytest.raises(ShortAnswerError):
        persistently(ask, "s3://b/a", SOON)
    assert len(given) == 5


def test_a_request_that_does_not_come_back_is_made_again(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, release, looks, calls = Event(), Event(), [], []

    def monotonic() -> float:
        """Goes on once, while the first request is waited for: at the third look after it was made, or a later one."""
        if asked.is_set():
            looks.append(1)
        return 61.0 * (len(looks) > 2)

    def ask() -> int:
        calls.append(1)
        if len(calls) == 1:
            asked.set()
            release.wait(60)
        return len(calls)

    monkeypatch.setattr(clock, "monotonic", monotonic)
    assert persistently(ask, "s3://b/a", Retries(stall=60, first_pause=0.001)) == 2
    release.set()


def test_one_that_never_comes_back_is_a_timeout() -> None:
    release = Event()
    with pytest.raises(TimeoutError, match=r"s3://b/a: a request was not answered in 0\.0"):
        persistently(lambda: release.wait(60), "s3://b/a", Retries(deadline=0.05, stall=0.02, first_pause=0.001))
    release.set()


@pytest.mark.usefixtures("clock")
def test_a_read_that_nobody_waits_for_is_given_up() -> None:
    cancel, release = Event(), Event()

    def ask() -> None:
        cancel.set()
        raise ConnectionError("broken")

    with pytest.raises(ConnectionError):
        persistently(ask, "s3://b/a", Retries(first_pause=1000, longest_pause=1000, deadline=1e6), cancel)
    with pytest.raises(TimeoutError):
        persistently(lambda: release.wait(60), "s3://b/a", SOON, cancel)
    release.set()


@pytest.mark.parametrize("name", ["deadline", "stall", "first_pause", "longest_pause"])
def test_times_are_positive(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Retries: {name} must be more than 0 seconds, got 0"):
        Retries(**{name: 0})


@pytest.mark.parametrize("seconds", [np.int64(5), np.float32(5), Fraction(5)])
def test_times_are_numbers_of_any_kind(seconds: Any) -> None:
    assert Retries(deadline=seconds).deadline == 5


def _named(name: str, *bases: type) -> type[Exception]:
    """A class of the network's packages."""
    return type(name, bases or (Exception,), {"__module__": "botocore.exceptions"})


@pytest.mark.parametrize(
    "error",
    [
        _named("NoCredentialsError")(),
        _named("ParamValidationError")(),
        _named("InvalidURL", ValueError)(),
        _named("InvalidSchema", ValueError)(),
        ssl.SSLCertVerificationError(1, "certificate verify failed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_wrong_with_the_request_itself_is_not_asked_again(error: Exception) -> None:
    assert not transient(error)
    asked: list[int] = []

    def ask() -> None:
        asked.append(1)
        raise error

    with pytest.raises(type(error)):
        persistently(ask, "a", SOON)
    assert len(asked) == 1


class Answered(Exception):
    def __init__(self, status: int) -> None:
        self.status, self.message = status, "So"


@pytest.mark.parametrize(
    "cause, kind, passes",
    [
        (Answered(404), FileNotFoundError, False),
        (Answered(410), FileNotFoundError, False),
        (Answered(403), PermissionError, False),
        (Answered(416), OSError, False),
        (Answered(500), OSError, True),
        (Answered(429), OSError, True),
        (ConnectionResetError("so"), ConnectionResetError, True),
        (TimeoutError("so"), TimeoutError, True),
        (_named("InvalidURL", ValueError)("so"), ValueError, False),
        (FileNotFoundError("so"), FileNotFoundError, False),
        (OSError(errno.EMFILE, "Too many open files"), OSError, False),
        (KeyError("so"), FileNotFoundError, False),
    ],
    ids=repr,
)
def test_a_missing_file_is_what_the_server_says_is_missing(
    cause: Exception, kind: type[Exception], passes: bool
) -> None:
    error = FileNotFoundError("http://host/a")
    error.__cause__ = cause
    found = what_failed(error)
    assert isinstance(found, kind)
    assert transient(found) is passes
    assert isinstance(found, FileNotFoundError) == (kind is FileNotFoundError)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        OSError(errno.EIO, "GenericError: ... kind: ConnectionRefused"),
        OSError(errno.EIO, 'GenericError: ... "dns error"'),
        _named("EndpointConnectionError")('Could not connect to the endpoint URL: "http://a"'),
    ],
    ids=repr,
)
def test_a_server_that_is_not_there_is_not_waited_for(error: Exception, clock: Clock) -> None:
    asked: list[int] = []

    def ask() -> None:
        clock.now += 2
        asked.append(1)
        raise error

    with pytest.raises(type(error)):
        persistently(ask, "a", Retries(first_pause=0.01, longest_pause=0.02))
    assert len(asked) == 3, "for five seconds: it may be about to start"


def test_a_process_without_descriptors_is_not_waited_for_whoever_says_so() -> None:
    error = _named("EndpointConnectionError")("no endpoint")
    error.__cause__ = OSError(errno.EMFILE, "Too many open files")
    ask, given = asks(error, 7)
    with pytest.raises(type(error)):
        persistently(ask, "s3://b/a", SOON)
    assert len(given) == 1


@pytest.mark.parametrize("number", [socket.EAI_NONAME, socket.EAI_AGAIN])
def test_a_name_that_no_file_can_be_opened_to_look_up_is_not_waited_for(number: int) -> None:
    resource = pytest.importorskip("resource")
    error: Exception = HttpError(0)
    error.__cause__ = socket.gaierror(number, "Name or service not known")
    assert transient(what_failed(error))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        told = what_failed(error)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert isinstance(told, OSError)
    assert told.errno == errno.EMFILE
    assert "so no name of a server can be looked up" in str(told)
    assert not transient(told)


def test_errors_that_are_made_of_each_other_have_an_end() -> None:
    one, other = OSError("one"), OSError("other")
    one.__cause__, other.__cause__ = other, one
    assert transient(one)


class Denied(PermissionError):
    """One that can be watched."""


class Denying(MemoryFileSystem):
    """Files of which no range can be read."""

    protocol = "denying"

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        return {"name": path, "size": 10, "type": "file"}

    def cat_ranges(self, *args: Any, **options: Any) -> list[Any]:
        return [Denied(13, "no")]


def test_the_error_of_a_request_is_in_no_cycle() -> None:
    """Its traceback holds buffers, which would live until the garbage is collected."""
    fsspec.register_implementation("denying", Denying, clobber=True)

    def failing() -> weakref.ref[Denied]:
        try:
            read_range("denying://a", 0, 5)
        except Denied as error:
            return weakref.ref(error)
        raise AssertionError("it could be read")

    gc.disable()
    try:
        error = failing()
        wait_until(lambda: error() is None)
    finally:
        gc.enable()
