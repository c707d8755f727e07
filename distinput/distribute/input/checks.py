# SPDX-License-Identifier: Apache-2.0
"""Checks made before a dataset is distributed: of options, datasets, dataset functions and workers."""

from typing import Any

from distinput.core.nest import component
from distinput.core.spec import SparseTensorSpec, Spec, TensorSpec
from distinput.distribute.input.consumer import Consumer
from distinput.distribute.input.distributed_dataset import DistributedDataset
from distinput.distribute.input.options import InputOptions
from distinput.distribute.replicas import Replicas

__all__ = [
    "check_batched",
    "check_dataset",
    "check_dataset_function",
    "check_equal_workers",
    "check_fetched",
    "check_options",
    "check_same_shapes",
    "check_uncut",
]


def check_options(options: InputOptions, consumer: Consumer) -> None:
    """Check the options of `Strategy.experimental_distribute_dataset`.

    Raises:
      NotImplementedError: PER_REPLICA replication.
      ValueError: a tail other than "partial", or `balance_replicas`, for replicas that get whole batches.
    """
    if options.per_replica:
        raise NotImplementedError(
            "InputReplicationMode.PER_REPLICA is only supported in `distribute_datasets_from_function`, not in "
            "`experimental_distribute_dataset`"
        )
    if options.tail != "partial" and not consumer.splits_batches and consumer.replicas.total > 1:
        raise ValueError(
            f"InputOptions(tail={options.tail!r}): {consumer.name} gives whole batches to its replicas; only 'partial' works"
        )
    if options.balance_replicas is not None and not consumer.splits_batches and consumer.replicas.total > 1:
        raise ValueError(
            f"InputOptions(balance_replicas): {consumer.name} gives whole batches to its replicas; leave it out"
        )


def check_dataset(dataset: Any, what: str) -> None:
    """Check that a value is a dataset that can be distributed.

    Raises:
      TypeError: it is not; the message begins with `what`.
    """
    if isinstance(dataset, DistributedDataset):
        raise TypeError(f"{what} a dataset, got one that is distributed already")
    if not all(hasattr(dataset, name) for name in ("element_spec", "cardinality", "restore")):
        raise TypeError(f"{what} a dataset, got a {type(dataset).__name__}")


def check_batched(spec: Spec) -> None:
    """Check that every component has a batch axis.

    Raises:
      ValueError: one is a scalar.
    """
    spec = spec.folded
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        fewest = 2 if isinstance(leaf, SparseTensorSpec) else 1  # a sparse tensor is taken apart from rank 2 on
        if isinstance(leaf, TensorSpec) and leaf.shape is not None and len(leaf.shape) < fewest:
            raise ValueError(
                f"experimental_distribute_dataset: {component(path)} has no batch axis to be cut for the "
                "replicas; call .batch(global_batch_size) on the dataset first"
            )


def check_fetched(spec: Spec, options: InputOptions, consumer: Consumer) -> None:
    """Check that every component can be put on devices that hold only numbers.

    Raises:
      ValueError: one is text, or a dataset, and the strategy's devices hold only numbers.
    """
    if not options.experimental_fetch_to_device:
        return
    spec = spec.folded
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        if not isinstance(leaf, TensorSpec) or leaf.dtype.kind not in "biufcV" or leaf.ragged_rank or leaf.is_sparse:
            raise ValueError(
                f"Found tensor {path or 'element'} with spec {leaf}. {consumer.name} does not support distributed datasets "
                "with device prefetch when using sparse, ragged or string tensors. If you intend to use them, please pass a "
                "tf.distribute.InputOptions object with experimental_fetch_to_device set to False to your dataset "
                "distribution function."
            )


def check_same_shapes(spec: Spec, options: InputOptions, consumer: Consumer, *, agrees: bool) -> None:
    """Check that every step has the same shape on all processes, where one program runs on the devices of all of them.

    Args:
      spec: that of one replica's part.
      options: how the dataset is distributed.
      consumer: takes the steps.
      agrees: True if workers may run out of data at different steps.

    Raises:
      ValueError: some step may differ.
    """
    if not options.experimental_fetch_to_device or consumer.replicas.workers == 1:
        return
    open_rows = [
        leaf for leaf in spec.leaves if isinstance(leaf, TensorSpec) and (leaf.shape is None or None in leaf.shape)
    ]
    if options.tail == "pad" or (not open_rows and (options.tail == "drop" or not agrees)):
        return
    raise ValueError(
        f"{consumer.name} on several processes: every step must have the same shape on all of them, got parts of "
        f"{spec.nest}{' that may end at different steps' if agrees else ''}; batch with drop_remainder=True, by a size that "
        "the number of replicas divides, and use InputOptions(tail='drop') or tail='pad'; repeat the datasets of a function"
    )


def check_equal_workers(replicas: Replicas) -> None:
    """Check that all workers have the same number of replicas.

    Raises:
      ValueError: the numbers differ.
    """
    if replicas.peers is not None and len(set(replicas.peers.replicas)) > 1:
        raise ValueError(
            "tf.distribute expects every worker to have the same number of replicas; cut the batches with "
            "InputOptions(balanced_split=True) for workers of different sizes"
        )


def check_dataset_function(dataset_fn: Any, options: InputOptions, consumer: Consumer) -> None:
    """Check the arguments of `Strategy.distribute_datasets_from_function`.

    Raises:
      TypeError: `dataset_fn` is not callable.
      ValueError: options that exclude one another.
      NotImplementedError: PER_REPLICA replication, if this strategy does not support it.
    """
    if options.experimental_place_dataset_on_device and not options.per_replica:
        raise ValueError(
            "`experimental_place_dataset_on_device` is only supported together with "
            "experimental_replication_mode=InputReplicationMode.PER_REPLICA"
        )
    device = options.experimental_place_dataset_on_device and options.experimental_fetch_to_device
    if device and consumer.per_replica_input == "made":  # the other strategies refuse or ignore PER_REPLICA itself
        raise ValueError(
            "`experimental_place_dataset_on_device` with PER_REPLICA needs experimental_fetch_to_device=False: a dataset "
            "on the device has nothing to fetch"
        )
    if not callable(dataset_fn):
        raise TypeError(
            f"distribute_datasets_from_function: dataset_fn must be callable, got a {type(dataset_fn).__name__}"
        )
    if options.per_replica and consumer.per_replica_input == "refused":
        raise NotImplementedError(
            f"InputReplicationMode.PER_REPLICA is only supported in `MirroredStrategy`, not in {consumer.name}"
        )


def check_uncut(options: InputOptions) -> None:
    """Check that no option applies to the cutting of global batches.

    Raises:
      ValueError: one does.
    """
    for name, given, usual in (
        ("tail", options.tail, "partial"),
        ("balance_replicas", options.balance_replicas, None),
        ("balanced_split", options.balanced_split, False),
    ):
        if given != usual:
            raise ValueError(
                f"distribute_datasets_from_function: {name}={given!r} is for global batches, which "
                "experimental_distribute_dataset cuts; here you batch for each replica yourself"
            )
