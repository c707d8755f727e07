# SPDX-License-Identifier: Apache-2.0
"""Options of strategies, of distributed datasets and of `run`."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from distinput.names.lazy import dataclass

# ---- Options of distributed datasets and of `run`

TAILS = ("drop", "error", "pad", "partial")


class InputReplicationMode(Enum):
    """How many input pipelines a dataset function makes: one per worker or one per replica.

    Source: `tf.distribute.InputReplicationMode`.
    """

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@dataclass(frozen=True)
class InputOptions:
    """How a dataset is distributed.

    Args:
      experimental_fetch_to_device: put the pieces on the replicas' devices; False leaves them on the host. The values
        are the same. None means True.
      experimental_replication_mode: one pipeline for each worker, or, with `distribute_datasets_from_function` on
        `MirroredStrategy`, for each replica.
      experimental_place_dataset_on_device: only with PER_REPLICA and `experimental_fetch_to_device=False`.
      experimental_per_replica_buffer_size: how many pieces to read ahead for each replica, in addition to the one
        global batch that is always read ahead if producing it takes time.
      balanced_split: cut every global batch into pieces whose sizes differ by at most one; False cuts as TensorFlow
        does. Only for `experimental_distribute_dataset`.
      tail: what happens to a step with fewer rows than the global batch size. "partial" delivers it as it is, as
        TensorFlow does. "pad" pads every replica's part with zeros to the same number of rows, and each step is a pair
        (element, mask) whose mask is true for the rows that are data; `reduce` and `gather` accept it. "drop" leaves
        the step out. "error" raises, already when the dataset is distributed if the rows can be counted. Only for
        `experimental_distribute_dataset`.
      balance_replicas: a function from a global batch to a number for each row, such as its tokens, or to several, [rows,
        modules], such as tokens of text and of images; the components of a tuple are its arguments. Or the name of a component
        that holds the numbers ("outer.inner" in an inner dict), or a list of names, one for each module. The rows of the batch
        are dealt to the replicas so that the costs of each module are even, and the numbers of rows differ by at most one.
        Every row is still in the same step, once. Implies `balanced_split`: every worker reads all global batches. Only for
        `experimental_distribute_dataset`.

    Raises:
      TypeError: an unknown name; `balance_replicas` is neither a function nor names.
      ValueError: an unknown tail.

    >>> import distinput as di
    >>> di.distribute.InputOptions(balanced_split=True).experimental_fetch_to_device
    True

    Source: `tf.distribute.InputOptions`; `balanced_split`, `tail` and `balance_replicas` are distinput's own.
    """

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1
    balanced_split: bool = False
    tail: str = "partial"
    balance_replicas: Callable[..., Any] | str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        given = self.balance_replicas
        if self.tail not in TAILS:
            raise ValueError(f"InputOptions: tail must be one of {', '.join(TAILS)}, got {self.tail!r}")
        if not isinstance(given, Callable | str | list | tuple | None) or given in ("", [], ()):  # type: ignore[arg-type]
            raise TypeError(f"InputOptions: balance_replicas must be a function, or names, got {given!r}")
        if self.experimental_fetch_to_device is None:
            object.__setattr__(self, "experimental_fetch_to_device", True)
        object.__setattr__(self, "balanced_split", self.balanced_split or given is not None)

    @property
    def per_replica(self) -> bool:
        """True if each replica gets an input pipeline of its own."""
        return self.experimental_replication_mode is InputReplicationMode.PER_REPLICA


@dataclass(frozen=True)
class RunOptions:
    """Options of `Strategy.run` that matter only to accelerators with static shapes; other devices ignore them.

    Args:
      experimental_enable_dynamic_batch_size: allow batches of different sizes.
      experimental_bucketizing_dynamic_shape: round sizes up to buckets.
      experimental_xla_options: settings of the compiler.

    Source: `tf.distribute.RunOptions`.
    """

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


# ---- The input pipeline that a dataset function builds: its number, and how many there are


@dataclass(frozen=True, eq=False)
class InputContext:
    """The argument that `distribute_datasets_from_function` passes to the function.

    Args:
      num_input_pipelines: the number of input pipelines.
      input_pipeline_id: the number of this one, from 0.
      num_replicas_in_sync: the number of replicas that the pipelines feed.

    >>> import distinput as di
    >>> context = di.distribute.InputContext(num_input_pipelines=2, input_pipeline_id=1, num_replicas_in_sync=4)
    >>> context.get_per_replica_batch_size(32)
    8
    >>> print(context)
    tf.distribute.InputContext(input pipeline id 1, total: 2)

    Source: `tf.distribute.InputContext`.
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The global batch size divided by the number of replicas.

        Raises:
          TypeError: it is not an integer.
          ValueError: it is not divisible.

        Source: `tf.distribute.InputContext.get_per_replica_batch_size`.
        """
        if not hasattr(global_batch_size, "__index__"):
            raise TypeError(
                f"get_per_replica_batch_size: global_batch_size must be an integer, got {global_batch_size!r}"
            )
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync!r}; batch by it yourself, or use experimental_distribute_dataset, which "
                "cuts any size"
            )
        return global_batch_size // self.num_replicas_in_sync

    def __str__(self) -> str:
        pipeline, total = self.input_pipeline_id, self.num_input_pipelines
        return f"tf.distribute.InputContext(input pipeline id {pipeline}, total: {total})"


# ---- How workers communicate: TensorFlow's names for the engine, and the options that carry it


class CommunicationImplementation(Enum):
    """TensorFlow's choices of how workers communicate; AUTO takes an installed engine, RING and NCCL take "torch".

    Source: `tf.distribute.experimental.CommunicationImplementation`.
    """

    AUTO = "AUTO"
    NCCL = "NCCL"
    RING = "RING"


CollectiveCommunication = CommunicationImplementation


@dataclass(frozen=True)
class CommunicationOptions:
    """How workers communicate; the counterpart of `tf.distribute.experimental.CommunicationOptions`.

    Args:
      bytes_per_pack: accepted for compatibility with TensorFlow, and ignored: arrays are sent whole.
      timeout_seconds: how long a call waits for the other workers; None for 300 seconds.
      implementation: a `CommunicationImplementation` or its name, or the name of an engine: "torch", "mpi", "jax".
      compare_call_sites: True if all workers must call `reduce`, `gather` and the like from the same places in the
        program, so that metrics reduced in a different order are an error; False for workers that run different
        programs.

    Raises:
      ValueError: `bytes_per_pack` is negative, or `timeout_seconds` is not positive.
      TypeError: `implementation` is neither a `CommunicationImplementation` nor a name.

    >>> import distinput as di
    >>> di.distribute.experimental.CommunicationOptions(timeout_seconds=60.0, implementation="RING").implementation
    <CommunicationImplementation.RING: 'RING'>
    """

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: CommunicationImplementation | str = CommunicationImplementation.AUTO
    compare_call_sites: bool = True

    def __post_init__(self) -> None:
        if self.bytes_per_pack < 0:
            raise ValueError(f"CommunicationOptions: bytes_per_pack must be at least 0, got {self.bytes_per_pack}")
        if self.timeout_seconds is not None and self.timeout_seconds <= 0:
            raise ValueError(f"CommunicationOptions: timeout_seconds must be positive, got {self.timeout_seconds}")
        given = self.implementation
        if not isinstance(given, CommunicationImplementation | str):
            raise TypeError(
                "CommunicationOptions: implementation must be a CommunicationImplementation or the name of an engine, "
                f"got {given!r}"
            )
        if isinstance(given, str) and given in CommunicationImplementation.__members__:
            object.__setattr__(self, "implementation", CommunicationImplementation[given])


def CollectiveHints(bytes_per_pack: int = 0, timeout_seconds: float | None = None) -> CommunicationOptions:  # noqa: N802 - TensorFlow's name
    """Make `CommunicationOptions`; the older name of TensorFlow.

    >>> import distinput as di
    >>> di.distribute.experimental.CollectiveHints(timeout_seconds=60.0).timeout_seconds
    60.0

    Source: `tf.distribute.experimental.CollectiveHints`.
    """
    return CommunicationOptions(bytes_per_pack=bytes_per_pack, timeout_seconds=timeout_seconds)
