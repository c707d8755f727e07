# SPDX-License-Identifier: Apache-2.0
"""Options of distributed datasets and of `run`."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from distinput.plan.check import callable_argument

__all__ = ["TAILS", "InputOptions", "InputReplicationMode", "RunOptions"]

TAILS = ("drop", "error", "pad", "partial")


class InputReplicationMode(Enum):
    """How many input pipelines a dataset function makes: one per worker or one per replica.

    Source: `tf.distribute.InputReplicationMode`.
    """

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@dataclass(frozen=True, init=False)
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
      balance_replicas: a function from a global batch to a number for each row, such as its tokens; the components of a tuple
        are its arguments. The rows of the batch are dealt to the replicas so that these costs are even, and the numbers of
        rows differ by at most one. Every row is still in the same step, once. Implies `balanced_split`: every worker reads
        all global batches. Only for `experimental_distribute_dataset`.

    Raises:
      TypeError: an unknown name; `balance_replicas` is no function.
      ValueError: an unknown tail.

    >>> import distinput as di
    >>> di.distribute.InputOptions(balanced_split=True).experimental_fetch_to_device
    True

    Source: `tf.distribute.InputOptions`; `balanced_split`, `tail` and `balance_replicas` are distinput's own.
    """

    experimental_fetch_to_device: bool
    experimental_replication_mode: InputReplicationMode
    experimental_place_dataset_on_device: bool
    experimental_per_replica_buffer_size: int
    balanced_split: bool
    tail: str
    balance_replicas: Callable[..., Any] | None

    def __init__(
        self,
        experimental_fetch_to_device: bool | None = None,
        experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
        experimental_place_dataset_on_device: bool = False,
        experimental_per_replica_buffer_size: int = 1,
        balanced_split: bool = False,
        tail: str = "partial",
        balance_replicas: Callable[..., Any] | None = None,
    ) -> None:
        if tail not in TAILS:
            raise ValueError(f"InputOptions: tail must be one of {', '.join(TAILS)}, got {tail!r}")
        if balance_replicas is not None:
            callable_argument("InputOptions", "balance_replicas", balance_replicas)
        fetch = True if experimental_fetch_to_device is None else experimental_fetch_to_device
        put = object.__setattr__
        put(self, "experimental_fetch_to_device", fetch)
        put(self, "experimental_replication_mode", experimental_replication_mode)
        put(self, "experimental_place_dataset_on_device", experimental_place_dataset_on_device)
        put(self, "experimental_per_replica_buffer_size", experimental_per_replica_buffer_size)
        put(self, "balanced_split", balanced_split or balance_replicas is not None)
        put(self, "tail", tail)
        put(self, "balance_replicas", balance_replicas)

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
