# SPDX-License-Identifier: Apache-2.0
"""A host answers the members of its cluster, whatever strangers and functions do."""

import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator
from io import FileIO

import pytest

from distinput.distribute.seats.links import CALLS, PULSE, Links, connect, leave_cluster
from distinput.distribute.seats.packing import Pickled
from distinput.distribute.seats.remote_seats import Host
from distinput.errors import UnknownError
from tests.exhausted import ThreadStarts
from tests.patience import threads_since, wait_until

CLUSTER = "of-strangers"


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host("worker-0", CLUSTER, b"k" * 32, "127.0.0.1")
    yield made
    made.end()
    leave_cluster(CLUSTER)


class Object:
    def end(self, kind: type[BaseException]) -> None:
        raise kind("now")

    def one(self) -> int:
        return 1


def test_members_get_in_beside_strangers(host: Host) -> None:
    threads = threading.enumerate()
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(socket.create_connection(host.address, timeout=60))
        stack.enter_context(connect(CLUSTER, host.address, PULSE))
        stack.enter_context(connect(CLUSTER, host.address, CALLS))
        assert len(threads_since(threads, "distinput-worker-0")) < 100


def test_a_host_that_had_no_descriptors_left_still_hears(host: Host) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = []
    caller = socket.socket()
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                files.append(FileIO("/dev/null"))
        caller.connect(host.address)
        time.sleep(0.1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for each in [*files, caller]:
            each.close()
    connect(CLUSTER, host.address, CALLS).close()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_would_end_a_program_is_an_error_of_the_call(host: Host, kind: type[BaseException]) -> None:
    links = Links(CLUSTER, "worker-0", host.address)
    try:
        number = links.call(0, "place", (Pickled().pack(Object),))
        with pytest.raises(UnknownError, match=f"worker-0: the function raised {kind.__name__}: now"):
            links.call(number, "end", (kind,))
        assert links.call(number, "one", ()) == 1
    finally:
        links.close("the test is over")


def test_a_host_without_a_thread_leaves_no_door(monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.enumerate()
    ThreadStarts(monkeypatch).fail(2)  # the first one is the door's
    try:
        with pytest.raises(RuntimeError, match="can't start new thread"):
            Host("worker-7", "no-thread", b"k" * 32, "127.0.0.1")
    finally:
        leave_cluster("no-thread")
    wait_until(lambda: not threads_since(before))
