# SPDX-License-Identifier: Apache-2.0
"""Replicas in several processes, with equal copies of every variable."""

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from distinput.cluster.resolve import resolve, resolver_of
from distinput.cluster.resolver import ClusterResolver
from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.collectives.peers import OpenPeers
from distinput.distribute.collectives.reducer import WorkersReducer
from distinput.distribute.core.options import CommunicationImplementation, CommunicationOptions
from distinput.distribute.core.replicas import Replicas
from distinput.distribute.core.strategy import Strategy
from distinput.distribute.devices.names import chosen_devices
from distinput.distribute.engines import engine_runs, find_engine, open_collectives

__all__ = ["ExperimentalMultiWorkerMirroredStrategy", "MultiWorkerMirroredStrategy"]

_TIMEOUT = 300.0


class MultiWorkerMirroredStrategy(Strategy):
    """Synchronous replicas in several processes, each of which creates the same strategy.

    Every worker must make the same calls in the same order: distributing, iterating, `reduce`, `gather`, `all_reduce`.
    All workers take the same number of steps, however much data each of them has.

    Use it in a `with` block: if an exception leaves the block, the other workers are told and raise `AbortedError` with
    the reason instead of waiting.

    Args:
      cluster_resolver: describes the workers; None looks at the environment: TF_CONFIG, torchrun, MPI, Slurm,
        Kubernetes. Without a cluster there is one worker.
      communication_options: the engine and its time-out. The engine "torch" moves tensors between workers where they are,
        by gloo on CPUs and NCCL on CUDA, and "jax" arrays of JAX by compiled programs; with any other engine, values on devices
        pass the host.
      devices: a name for each replica of this process, or device objects of JAX or PyTorch; None for one CPU. Workers may
        have different numbers of replicas.
      backend: what the replicas of this process run on; None to choose by the devices, as `MirroredStrategy` does.
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
        devices: Sequence[Any] | None = None,
        backend: str | None = None,
        collectives: Collectives | None = None,
    ) -> None:
        labels, backend = chosen_devices(devices, backend, ["CPU:0"])
        options = communication_options or CommunicationOptions()
        cluster = resolve(resolver=cluster_resolver)
        self._resolver = cluster_resolver or resolver_of(cluster)
        self._owned: Collectives | None = None
        self._calls: Collectives | None = None
        if collectives is None and cluster.size > 1:
            timeout = options.timeout_seconds or _TIMEOUT
            engine = _engine(options.implementation, backend)
            address = cluster.coordinator or next(iter(cluster.addresses), None)
            collectives = open_collectives(
                engine, rank=cluster.rank, size=cluster.size, address=address, timeout=timeout
            )
            self._owned = collectives
        try:
            super().__init__(labels, backend=backend)  # after the engine: JAX wants to know of the others first
        except BaseException as error:
            if self._owned is not None:
                self._owned.abort(f"{type(error).__name__}: {error}")
                self._owned.close()
            raise
        if collectives is None:
            return
        # Leaving the strategy's block does not close this group: its owner may go on using it.
        self._calls = self._owned or collectives.dup("strategy")
        control = collectives.dup("control")
        peers = OpenPeers(self._calls, control, self._replicas.count, compare_call_sites=options.compare_call_sites)
        self._replicas = Replicas.of(self._replicas.devices, peers)
        self._reducer = WorkersReducer(peers, self._replicas.devices)

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """The description of the workers; `task_type` and `task_id` say which one this is.

        Source: `tf.distribute.MultiWorkerMirroredStrategy.cluster_resolver`.
        """
        return self._resolver

    def close(self) -> None:
        """Leave the group of workers; the strategy cannot be used any more."""
        if self._replicas.peers is not None:
            self._replicas.peers.close()
        if self._calls is not None:
            self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        agreed = getattr(error, "agreed", False)  # all workers end in the same way
        if error is not None and self._owned is not None and not agreed:
            self._owned.abort(f"{type(error).__name__}: {error}")
        self.close()

    def __repr__(self) -> str:
        replicas = self._replicas
        where = "one worker" if replicas.peers is None else f"worker {replicas.rank} of {replicas.workers}"
        return f"MultiWorkerMirroredStrategy({where}, {', '.join(replicas.devices.local)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> "MultiWorkerMirroredStrategy":
        raise RuntimeError("MultiWorkerMirroredStrategy cannot be copied: its workers know one another by this object")

    def __reduce__(self) -> tuple[Any, ...]:
        raise RuntimeError(
            "MultiWorkerMirroredStrategy cannot be sent to another process: make it there, from that process's own resolver"
        )


class _OldName(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, MultiWorkerMirroredStrategy)


class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy, metaclass=_OldName):
    """`MultiWorkerMirroredStrategy` with the arguments of its older name; `isinstance` takes the two for the same.

    Args:
      communication: the engine, a `CommunicationImplementation` or a name.
      cluster_resolver: as for `MultiWorkerMirroredStrategy`.
      devices: as for `MultiWorkerMirroredStrategy`.
      backend: what the replicas of this process run on; None to choose by the devices, as `MirroredStrategy` does.
      collectives: a group that is already open; its owner closes it.

    >>> import distinput as di
    >>> with di.distribute.experimental.MultiWorkerMirroredStrategy() as strategy:
    ...     strategy.num_replicas_in_sync
    1

    Source: `tf.distribute.experimental.MultiWorkerMirroredStrategy`.
    """

    def __init__(
        self,
        communication: CommunicationImplementation | str = CommunicationImplementation.AUTO,
        cluster_resolver: ClusterResolver | None = None,
        *,
        devices: Sequence[Any] | None = None,
        backend: str | None = None,
        collectives: Collectives | None = None,
    ) -> None:
        if isinstance(communication, ClusterResolver):
            raise TypeError(
                "experimental.MultiWorkerMirroredStrategy: the first argument is the communication, as in TensorFlow; "
                "write cluster_resolver=..., or use distribute.MultiWorkerMirroredStrategy"
            )
        options = CommunicationOptions(implementation=communication)
        super().__init__(cluster_resolver, options, devices=devices, backend=backend, collectives=collectives)


# Messages, which workers compare, name the strategy by the name that users know.
ExperimentalMultiWorkerMirroredStrategy.__name__ = MultiWorkerMirroredStrategy.__name__
ExperimentalMultiWorkerMirroredStrategy.__qualname__ = MultiWorkerMirroredStrategy.__qualname__


def _engine(implementation: CommunicationImplementation | str, backend: str) -> str:
    """The engine with this name; AUTO finds an installed one, JAX's own for devices of JAX if no other one is running."""
    if implementation is CommunicationImplementation.AUTO:
        found = find_engine()
        return "jax" if (backend, found) == ("jax", "torch") and not engine_runs("torch") else found
    return "torch" if isinstance(implementation, CommunicationImplementation) else implementation
