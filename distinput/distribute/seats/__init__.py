# SPDX-License-Identifier: Apache-2.0
"""The engines of a coordinator by name, and how one is opened."""

from typing import Protocol

from distinput.cluster.resolver import ClusterResolver
from distinput.distribute.seats.packing import AsIs as AsIs
from distinput.distribute.seats.packing import Pickled as Pickled
from distinput.distribute.seats.seats import Packing as Packing
from distinput.distribute.seats.seats import Placed as Placed
from distinput.distribute.seats.seats import SeatLost as SeatLost
from distinput.distribute.seats.seats import Seats as Seats
from distinput.names.lazy import Registry


class OpenSeats(Protocol):
    """The entry point of an engine: makes the seats of a cluster.

    Args:
      resolver: describes the cluster: as many seats as it has tasks "worker" and "ps". An engine may come with a resolver
        of its own, which has what else it needs, such as a client.
      worker_timeout_seconds: how long a worker may stand still before it counts as lost.

    Raises:
      EngineMissing: a package that it needs is not installed; the message says what to install.
      UnavailableError: not all tasks came.
    """

    def __call__(self, resolver: ClusterResolver, *, worker_timeout_seconds: float) -> Seats:
        """The seats of the cluster."""


SEATS: Registry[OpenSeats] = Registry(
    "coordinator engine",
    {
        "dask": "distinput.distribute.seats.dask:open_seats",
        "ray": "distinput.distribute.seats.ray:open_seats",
        "threads": "distinput.distribute.seats.threads:open_seats",
    },
)
"""The engines by name; `register_seats` adds one."""


def register_seats(name: str, open_seats: str | OpenSeats) -> None:
    """Register an engine under a name, for `ParameterServerStrategy(engine=name)`.

    `distinput.testing.check_seats` tests a new engine.

    Args:
      name: lower-case letters, digits and underscores.
      open_seats: an `OpenSeats`, or `package.module:attribute` of one, which is imported when it is first used.

    Raises:
      ValueError: the name or the place is malformed, or another engine has the name.
      TypeError: `open_seats` can be neither called nor imported.
    """
    SEATS.register(name, open_seats)


def open_seats(engine: str, resolver: ClusterResolver, *, worker_timeout_seconds: float = 30.0) -> Seats:
    """The seats of a cluster, through an engine that is imported on first use.

    Args:
      engine: one of `SEATS`.
      resolver: describes the cluster.
      worker_timeout_seconds: how long a worker may stand still before it counts as lost.

    Raises:
      ValueError: an unknown engine, or a cluster that it cannot open.
      EngineMissing: its package is not installed.

    >>> from distinput.distribute.cluster_resolver import ClusterSpec, SimpleClusterResolver
    >>> resolver = SimpleClusterResolver(ClusterSpec({"worker": ["a:1", "b:1"], "ps": ["c:1"]}))
    >>> seats = open_seats("threads", resolver)
    >>> seats.workers, seats.servers
    (('worker-0', 'worker-1'), ('ps-0',))
    >>> seats.place("ps-0", list).call("__len__")
    0
    """
    if worker_timeout_seconds <= 0:
        raise ValueError(f"worker_timeout_seconds must be positive, got {worker_timeout_seconds}")
    return SEATS.find(engine)(resolver, worker_timeout_seconds=worker_timeout_seconds)
