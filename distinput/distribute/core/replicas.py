# SPDX-License-Identifier: Apache-2.0
"""The replicas of a strategy: which of them run in this process, how to reach them, and what is given to them from above."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, Protocol, Self

from distinput.distribute.devices import Devices
from distinput.names.lazy import dataclass, placed

# ----------------------------------------------------------------------------
# What is given to a strategy and stands above it: input, lineage, variables, names of TensorFlow. Loaded at the first use.
# ----------------------------------------------------------------------------


_INPUT = "distinput.distribute.input"
_LINEAGE = "distinput.lineage"
_VARIABLES = "distinput.distribute.variables"

PARTS: dict[str, str] = {
    "Dataset": "distinput.data.dataset:Dataset",
    "StepRecords": f"{_LINEAGE}.step_records:StepRecords",
    "HostStore": f"{_VARIABLES}.store:HostStore",
    "absent_member": "distinput.names.absent:absent_member",
    "aggregate": f"{_VARIABLES}.kinds:aggregate",
    "aggregating": f"{_VARIABLES}.kinds:aggregating",
    "check_dataset_function": f"{_INPUT}.distribution:check_dataset_function",
    "distribute_dataset": f"{_INPUT}.distribution:distribute_dataset",
    "distribute_from_function": f"{_INPUT}.distribution:distribute_from_function",
    "mirrored": f"{_VARIABLES}.kinds:mirrored",
    "replayed": f"{_LINEAGE}.step_records:replayed",
    "steps_left_out": f"{_LINEAGE}.step_records:steps_left_out",
    "single": f"{_VARIABLES}.kinds:single",
}
"""Each part, and where it is: `module:name`."""


@cache
def part(name: str) -> Any:
    """A function or class of the table.

    >>> part("mirrored").__name__
    'mirrored'
    """
    return placed(PARTS[name])


def missing(owner: Any, name: str) -> Any:
    """For `__getattr__`: raise the error that says what to write instead of a member of TensorFlow that is not here.

    Raises:
      AttributeError: always.
    """
    if hasattr(type(owner), name):  # a property failed: its own error says more
        return object.__getattribute__(owner, name)
    raise AttributeError(part("absent_member")(type(owner), name), name=name)


# ----------------------------------------------------------------------------
# The replicas of a strategy: which of them run in this process, and how to reach the others.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class CallDescription:
    """Describes a call between workers; `text` and `name` must be the same on every worker.

    Args:
      text: the call in words, such as "reduce SUM, axis=0".
      name: given by the user and compared instead of the call site; empty to compare call sites.
      given: a description of this worker's values, for messages only.
    """

    text: str
    name: str = ""
    given: Callable[[], str] = str


class Peers(Protocol):
    """All workers of a strategy, of which this process is one. `collectives.peers.OpenPeers` is the implementation.

    `group` is the channel for calls of the program, `control` the one for agreements of iterations, which may be ahead of the
    program; both are `Collectives`.
    """

    group: Any
    control: Any
    replicas: list[int]
    """How many replicas each worker has."""

    @property
    def rank(self) -> int:
        """The number of this worker."""

    @property
    def size(self) -> int:
        """How many workers there are."""

    @property
    def first_replica(self) -> int:
        """The number of this worker's first replica among all."""

    def reached(self, step: int) -> None:
        """Note that this thread has taken `step` steps of a distributed dataset; its next calls belong to that step."""

    def next_iteration(self) -> str:
        """Name an iteration at its first step; equal on all workers, which begin iterations in the same order."""

    def exchange(
        self,
        description: CallDescription,
        make: Callable[[], tuple[Any, Sequence[Any]]],
        group: Any = None,
        timeout: float | None = None,
    ) -> list[tuple[Any, list[Any]]]:
        """The results of `make` on all workers, each a JSON value and arrays, in worker order.

        Args:
          description: describes the exchange.
          make: returns this worker's contribution.
          group: the channel to use, regardless of the step that workers have reached; None for `self.group`.
          timeout: seconds to wait for the others; None for as long as the group's calls wait.

        Raises:
          Mismatch: not all workers made this call.
          Exception: the error that `make` raised here; or, if it raised on another worker, one of the same kind that
            names the worker.
        """

    def close(self) -> None:
        """Close all groups but the one for calls of the program."""


@dataclass(frozen=True)
class Replicas:
    """All replicas of a strategy, as one of its workers sees them. Strategies make it; input and arithmetic take it.

    Args:
      devices: the devices of this process, one for each of its replicas.
      peers: all workers, this one included; None for a strategy of one process.
      count: how many replicas run in this process.
      first: the number of the first of these among all replicas.
      total: the number of replicas over all workers.

    >>> from distinput.distribute.devices import open_devices
    >>> replicas = Replicas.of(open_devices("threads", ["CPU:0", "CPU:1"]))
    >>> replicas.count, replicas.first, replicas.total, replicas.workers, replicas.wraps
    (2, 0, 2, 1, True)
    """

    devices: Devices
    peers: Peers | None
    count: int
    first: int
    total: int

    @classmethod
    def of(cls, devices: Devices, peers: Peers | None = None) -> Self:
        """The replicas on these devices and on the devices of the other workers."""
        count = len(devices.local)
        if peers is None:
            return cls(devices, None, count, 0, count)
        return cls(devices, peers, count, peers.first_replica, sum(peers.replicas))

    @property
    def workers(self) -> int:
        """The number of processes that the replicas run in."""
        return 1 if self.peers is None else self.peers.size

    @property
    def rank(self) -> int:
        """The number of this process among the workers."""
        return 0 if self.peers is None else self.peers.rank

    @property
    def wraps(self) -> bool:
        """True if values of replicas are distributed values, even for one replica."""
        return self.count > 1 or self.peers is not None


# ---- The consumer of a distributed dataset: the replicas that take its steps


@dataclass(frozen=True)
class Consumer:
    """The replicas that take the steps of a distributed dataset, and what their strategy requires of the steps.

    Args:
      replicas: the replicas.
      strategy: their strategy, compared by identity only: steps are not taken while another one is current.
      name: the name of its class, for messages.
      splits_batches: False to leave global batches whole.
      keeps_partial_steps: False to drop a last step that has no element for some replica, as TensorFlow does there.
      per_replica_input: what PER_REPLICA does to a dataset function: "made" calls it for each replica, "ignored" calls
        it once for the worker, "refused" raises.
      puts_only_numbers: True if steps that are put on devices must consist of numbers.
    """

    replicas: Replicas
    strategy: object
    name: str
    splits_batches: bool = True
    keeps_partial_steps: bool = True
    per_replica_input: Literal["made", "ignored", "refused"] = "refused"
    puts_only_numbers: bool = False
