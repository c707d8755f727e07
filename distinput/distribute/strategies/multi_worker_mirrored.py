# SPDX-License-Identifier: Apache-2.0
"""Replicas in several processes, with equal copies of every variable."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from distinput.cluster.resolve import resolve, resolver_of
from distinput.cluster.resolver import ClusterResolver
from distinput.distribute.arithmetic import Arithmetic
from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.device_name import device_names
from distinput.distribute.engines import find_engine, open_collectives
from distinput.distribute.peers import Peers
from distinput.distribute.replicas import Replicas
from distinput.distribute.strategy import Strategy

_ENGINES = {"NCCL": "torch", "RING": "torch"}

__all__ = ["CommunicationOptions", "MultiWorkerMirroredStrategy"]

_TIMEOUT = 300.0


@dataclass(frozen=True)
class CommunicationOptions:
    """How workers communicate; the counterpart of `tf.distribute.experimental.CommunicationOptions`.

    Args:
      bytes_per_pack: accepted for compatibility with TensorFlow, and ignored: arrays are sent whole.
      timeout_seconds: how long a call waits for the other workers; None for 300 seconds.
      implementation: "AUTO", or the name of an engine: "torch", "mpi", "jax"; TensorFlow's "RING" and "NCCL" mean "torch".
      compare_call_sites: True if all workers must call `reduce`, `gather` and the like from the same places in the
        program, so that metrics reduced in a different order are an error; False for workers that run different
        programs.

    Raises:
      ValueError: `bytes_per_pack` is negative, or `timeout_seconds` is not positive.

    >>> import distinput as di
    >>> di.distribute.experimental.CommunicationOptions(timeout_seconds=60.0).implementation
    'AUTO'
    """

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: str = "AUTO"
    compare_call_sites: bool = True

    def __post_init__(self) -> None:
        if self.bytes_per_pack < 0:
            raise ValueError(f"CommunicationOptions: bytes_per_pack must be at least 0, got {self.bytes_per_pack}")
        if self.timeout_seconds is not None and self.timeout_seconds <= 0:
            raise ValueError(f"CommunicationOptions: timeout_seconds must be positive, got {self.timeout_seconds}")


class MultiWorkerMirroredStrategy(Strategy):
    """Synchronous replicas in several processes, each of which creates the same strategy.

    Every worker must make the same calls in the same order: distributing, iterating, `reduce`, `gather`, `all_reduce`.
    All workers take the same number of steps, however much data each of them has.

    Use it in a `with` block: if an exception leaves the block, the other workers are told and raise `AbortedError` with
    the reason instead of waiting.

    Args:
      cluster_resolver: describes the workers; None looks at the environment: TF_CONFIG, torchrun, MPI, Slurm,
        Kubernetes. Without a cluster there is one worker.
      communication_options: the engine and its time-out.
      devices: a name for each replica of this process; None for one CPU. Workers may have different numbers of
        replicas.
      backend: what the replicas of this process run on.
      collectives: a group that is already open; its owner closes it.

    Raises:
      ValueError: contradictory descriptions of the cluster.
      ImportError: several workers, and no engine is installed; the message says what to install.

    >>> import distinput as di
    >>> with di.distribute.MultiWorkerMirroredStrategy() as strategy:
    ...     strategy.num_replicas_in_sync
    1

    Source: `tf.distribute.MultiWorkerMirroredStrategy`.
    """

    def __init__(
        self,
        cluster_resolver: ClusterResolver | None = None,
        communication_options: CommunicationOptions | None = None,
        *,
        devices: Sequence[str] | None = None,
        backend: str = "threads",
        collectives: Collectives | None = None,
    ) -> None:
        super().__init__(device_names(devices or ["CPU:0"]), backend=backend)
        options = communication_options or CommunicationOptions()
        cluster = resolve(resolver=cluster_resolver)
        self._resolver = cluster_resolver or resolver_of(cluster)
        self._owned: Collectives | None = None
        self._calls: Collectives | None = None
        if collectives is None:
            if cluster.size == 1:
                return
            timeout = options.timeout_seconds or _TIMEOUT
            engine = _engine(options.implementation)
            address = cluster.coordinator or next(iter(cluster.addresses), None)
            collectives = open_collectives(
                engine, rank=cluster.rank, size=cluster.size, address=address, timeout=timeout
            )
            self._owned = collectives
        # Leaving the strategy's block does not close this group: its owner may go on using it.
        self._calls = self._owned or collectives.dup("strategy")
        control = collectives.dup("control")
        peers = Peers(self._calls, control, self._replicas.count, compare_call_sites=options.compare_call_sites)
        self._replicas = Replicas.of(self._replicas.devices, peers)
        self._arithmetic = Arithmetic(peers)

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """The description of the workers; `task_type` and `task_id` say which one this is.

        Source: `tf.distribute.MultiWorkerMirroredStrategy.cluster_resolver`.
        """
        return self._resolver

    def close(self) -> None:
        """Leave the group of workers; the strategy cannot be used any more."""
        if self._replicas.peers is not None:
            self._replicas.peers.control.close()
        if self._calls is not None:
            self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._owned is not None:
            self._owned.abort(f"{type(error).__name__}: {error}")
        self.close()

    def __repr__(self) -> str:
        replicas = self._replicas
        where = "one worker" if replicas.peers is None else f"worker {replicas.rank} of {replicas.workers}"
        return f"MultiWorkerMirroredStrategy({where}, {', '.join(replicas.devices.local)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> "MultiWorkerMirroredStrategy":
        raise RuntimeError("MultiWorkerMirroredStrategy cannot be copied: its workers know one another by this object")


def _engine(implementation: str) -> str:
    """The engine with this name; "AUTO" finds an installed one."""
    name = getattr(implementation, "name", implementation)
    return find_engine() if name == "AUTO" else _ENGINES.get(name, name)
