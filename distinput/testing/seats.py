# SPDX-License-Identifier: Apache-2.0
"""The suite for a coordinator engine: seats, as coordinators and parameter servers use them; and a cluster for tests."""

import importlib.util
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from distinput.cluster.dask import DaskClusterResolver
from distinput.cluster.launchers import LocalClusterResolver
from distinput.cluster.resolver import ClusterResolver
from distinput.distribute.coordinator import ClusterCoordinator
from distinput.distribute.coordinator.parameter_server import ParameterServerStrategy
from distinput.distribute.seats import Placed, SeatLost, Seats
from distinput.distribute.seats.local_cluster import LocalCluster
from distinput.testing.elements import hold

# ----------------------------------------------------------------------------
# The suite for a coordinator engine: seats, as coordinators and parameter servers use them.
# ----------------------------------------------------------------------------


Lose = Callable[[Seats, str], None]

_VALUES: tuple[Any, ...] = (
    None,
    7,
    "text",
    b"\x00bytes",
    [1, (2, {"three": 4.0})],
    np.float32(1.5),
    np.zeros((), np.int64),
    np.zeros((0, 3), np.float32),
    np.arange(6, dtype=np.uint8).reshape(2, 3),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.arange(10, dtype=np.int32)[::3],
    np.array([b"a", b"", b"ccc"], object),
    np.arange(300_000, dtype=np.float64),
)
"""Values of every kind that calls take and return."""

_SECONDS = 30.0
"""The longest time that a law waits for what must happen."""


class _Shelf:
    """What the suite places at seats."""

    def __init__(self, content: Any = 0) -> None:
        self.content = content
        self.lock = threading.Lock()

    def echo(self, value: Any) -> Any:
        return value

    def add(self, amount: Any) -> Any:
        with self.lock:
            self.content = self.content + amount
            return self.content

    def doubled(self, packing: Any, packed: Any) -> Any:
        return packing.pack(2 * packing.unpack(packed))

    def add_to(self, other: Placed, amount: int) -> Any:
        return other.call("add", amount)

    def add_to_packed(self, packing: Any, packed: Any) -> Any:
        other, amount = packing.unpack(packed)
        return other.call("add", amount)

    def refuse(self, text: str) -> None:
        raise KeyError(text)

    def wait(self, seconds: float) -> str:
        time.sleep(seconds)
        return "waited"

    def kill(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def _refusing() -> None:
    raise LookupError("cannot be made")


def _names(seats: Seats) -> None:
    for kind, names in (("worker", seats.workers), ("ps", seats.servers)):
        expected = tuple(f"{kind}-{index}" for index in range(len(names)))
        if tuple(names) != expected:
            raise AssertionError(f"the seats must be {expected}, got {names!r}")
    if len(seats.workers) < 2 or not seats.servers:
        raise AssertionError(f"the suite needs two workers and a server, got {seats.workers} and {seats.servers}")


def _objects(seats: Seats) -> None:
    for seat in (*seats.workers, *seats.servers):
        first, second = seats.place(seat, _Shelf), seats.place(seat, partial(_Shelf, 100))
        if first.seat != seat:
            raise AssertionError(f"an object placed at {seat} says that it is at {first.seat}")
        found = [first.call("add", 1), first.call("add", 2), second.call("add", 5), first.call("add", 0)]
        if found != [1, 3, 105, 3]:
            raise AssertionError(
                f"two objects at {seat} were added 1, 2 and 5 to: got {found}, expected [1, 3, 105, 3]"
            )


def _values(seats: Seats) -> None:
    shelf = seats.place(seats.workers[-1], _Shelf)
    for value in _VALUES:
        _same("sent to a seat and back", shelf.call("echo", value), value)
    given = np.arange(200_000.0)
    packed = seats.packing.pack(given)
    for what in ("packed, doubled there and unpacked", "the same, packed once and sent twice"):
        _same(what, seats.packing.unpack(shelf.call("doubled", seats.packing, packed)), given * 2)


def _same(what: str, found: Any, expected: Any) -> None:
    if isinstance(expected, np.ndarray | np.generic):
        right = isinstance(found, type(expected)) and found.dtype == expected.dtype and found.shape == expected.shape
        right = right and bool(np.array_equal(found, expected))
    else:
        right = type(found) is type(expected) and found == expected
    if not right:
        raise AssertionError(f"{what}: got {found!r}, expected {expected!r}")


def _functions(seats: Seats) -> None:
    factor = 3
    placed = seats.place(seats.workers[0], lambda: _Shelf(factor))
    if (found := placed.call("add", 1)) != 4:
        raise AssertionError(f"an object made by a lambda over a local name: got {found}, expected 4")


def _errors(seats: Seats) -> None:
    shelf = seats.place(seats.workers[0], _Shelf)
    for what, call, expected in (
        ("a method", lambda: shelf.call("refuse", "no"), KeyError("no")),
        ("a method that is not there", lambda: shelf.call("missing"), AttributeError()),
        ("what makes an object", lambda: seats.place(seats.workers[0], _refusing), LookupError("cannot be made")),
    ):
        try:
            call()
        except Exception as error:
            if type(error) is not type(expected) or (expected.args and error.args != expected.args):
                raise AssertionError(f"{what} raised {expected!r}, and the caller got {error!r}") from error
        else:
            raise AssertionError(f"{what} raised {expected!r}, and the caller got no error")
    if shelf.call("add", 1) != 1:
        raise AssertionError("an object must live on after an error of a method")


def _references(seats: Seats) -> None:
    counter = seats.place(seats.servers[0], _Shelf)
    for seat in seats.workers:
        worker = seats.place(seat, _Shelf)
        worker.call("add_to", counter, 1)
        worker.call("add_to_packed", seats.packing, seats.packing.pack((counter, 10)))
    if (found := counter.call("add", 0)) != 11 * len(seats.workers):
        raise AssertionError(
            f"workers added {11 * len(seats.workers)} to an object at {counter.seat}, which holds {found}"
        )


def _at_once(seats: Seats) -> None:
    counter = seats.place(seats.servers[0], _Shelf)

    def add(_: int) -> None:
        for _ in range(25):
            counter.call("add", 1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    if (found := counter.call("add", 0)) != 200:
        raise AssertionError(f"8 threads added 1 for 25 times each: got {found}, expected 200")


def _losses(seats: Seats, lose: Lose) -> None:
    lost: list[str] = []
    seats.watch(lost.append)
    gone, other = seats.workers[0], seats.workers[1]
    old, untouched = seats.place(gone, _Shelf), seats.place(other, _Shelf)
    untouched.call("add", 5)
    end_errors: list[BaseException | Any] = []

    def wait() -> None:
        try:
            end_errors.append(old.call("wait", 3.0))
        except BaseException as error:  # noqa: BLE001 - looked at below
            end_errors.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    time.sleep(0.2)
    lose(seats, gone)
    waiting.join(_SECONDS)
    if not end_errors or not isinstance(end_errors[0], SeatLost) or end_errors[0].seat != gone:
        raise AssertionError(
            f"a call under way when {gone} was lost must raise SeatLost of it, got {end_errors or 'nothing'}"
        )
    seats.wait_back(gone, _SECONDS)
    if lost != [gone]:
        raise AssertionError(f"watchers must be told of the loss of {gone} once, they were told of {lost}")
    new = seats.place(gone, _Shelf)
    if new.call("add", 1) != 1:
        raise AssertionError(f"{gone} must be empty when it is back")
    try:
        old.call("add", 1)
    except SeatLost:
        pass
    else:
        raise AssertionError(f"an object of {gone} from before its loss must stay lost")
    if untouched.call("add", 1) != 6:
        raise AssertionError(f"an object at {other} must not notice the loss of {gone}")


def _closing(seats: Seats) -> None:
    placed = seats.place(seats.workers[0], _Shelf)
    seats.close()
    seats.close()
    calls: tuple[Callable[[], Any], ...] = (
        lambda: placed.call("add", 1),
        lambda: seats.place(seats.workers[0], _Shelf),
        lambda: seats.wait_back(seats.workers[0], _SECONDS),
    )
    for call in calls:
        with suppress(SeatLost):
            call()
            raise AssertionError("seats that were closed must raise SeatLost")


LAWS: Mapping[str, Callable[..., None]] = MappingProxyType(
    {
        "names": _names,
        "objects": _objects,
        "values": _values,
        "functions": _functions,
        "errors": _errors,
        "references": _references,
        "at once": _at_once,
        "losses": _losses,
        "closing": _closing,
    }
)
"""The laws by name, in the order in which they are checked; the last one closes the seats."""


def kill(seats: Seats, seat: str) -> None:
    """Lose a seat by killing its process: the object placed there does it itself."""
    try:
        seats.place(seat, _Shelf).call("kill")
    except SeatLost:
        return
    raise AssertionError(f"the process at {seat} was killed, and the call came back")


def check_seats(seats: Seats, lose: Lose = kill) -> tuple[str, ...]:
    """Check that a coordinator engine keeps the laws of `Seats`.

    Args:
      seats: two workers or more, and at least one parameter server; closed at the end.
      lose: makes a worker go and come back, given the seats and its name. By default its process is killed, and whoever
        started it is expected to start it again.

    Returns:
      The names of the laws that were checked.

    Raises:
      AssertionError: a law is broken; the message begins with its name.

    >>> from distinput.distribute.seats.threads import ThreadSeats
    >>> check_seats(ThreadSeats(2, 1), lambda seats, name: seats.lose(name))
    ('names', 'objects', 'values', 'functions', 'errors', 'references', 'at once', 'losses', 'closing')

    Source: distinput's own.
    """
    try:
        return hold("check_seats", LAWS, lambda check: check(seats, lose) if check is _losses else check(seats))
    finally:
        seats.close()


# ----------------------------------------------------------------------------
# A parameter-server cluster on this machine, for tests and for trying programs out.
# ----------------------------------------------------------------------------


@contextmanager
def local_parameter_server_cluster(
    num_workers: int = 2,
    num_ps: int = 1,
    *,
    engine: str | None = None,
    worker_timeout_seconds: float = 30.0,
    **options: Any,
) -> Iterator[tuple[Any, Any]]:
    """A `ParameterServerStrategy` on this machine, and its `ClusterCoordinator`; both end with the block.

    Where Dask is installed (`pip install distinput[dask]`), each worker and each parameter server is a process of its own, with
    the same `sys.path` as this one; a worker's process that ends is started again. Starting takes about two seconds.

    Args:
      num_workers: how many workers.
      num_ps: how many parameter servers.
      engine: what they run on, such as "dask", "ray", or "threads" for threads of this process; None takes "dask" if it is
        installed, and "threads" otherwise.
      worker_timeout_seconds: how long a worker may stand still before it counts as lost.
      options: for `ParameterServerStrategy`, such as `variable_partitioner`.

    Raises:
      EngineMissing: the engine is not installed.

    >>> import distinput as di
    >>> with di.testing.local_parameter_server_cluster(num_workers=2, engine="threads") as (strategy, coordinator):
    ...     coordinator.schedule(lambda: 1).fetch()
    1

    Source: distinput's own.
    """
    if engine is None:
        engine = "dask" if importlib.util.find_spec("distributed") else "threads"

    @contextmanager
    def opened(resolver: ClusterResolver) -> Iterator[tuple[Any, Any]]:
        made = ParameterServerStrategy(
            resolver, engine=engine, worker_timeout_seconds=worker_timeout_seconds, **options
        )
        with made as strategy:
            yield strategy, ClusterCoordinator(strategy)

    if engine != "dask":
        with opened(LocalClusterResolver(num_workers, num_ps)) as pair:
            yield pair
        return
    with LocalCluster(num_workers, num_ps, worker_timeout_seconds=worker_timeout_seconds) as cluster:
        cluster.wait()
        resolver = DaskClusterResolver(cluster.address, num_workers=num_workers, num_ps=num_ps)
        with opened(resolver) as pair:
            yield pair
