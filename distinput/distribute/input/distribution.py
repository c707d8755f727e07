# SPDX-License-Identifier: Apache-2.0
"""From a dataset of the user's to what feeds the replicas of this worker."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from distinput.core.nest import component
from distinput.core.spec import Spec, TensorSpec
from distinput.data.dataset import Dataset
from distinput.data.experimental import rebatch_for_worker
from distinput.distribute.input.comparison import compare_datasets, compare_inputs
from distinput.distribute.input.consumer import Consumer
from distinput.distribute.input.dealing import Cutter
from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedDatasetsFromFunction, Feed
from distinput.distribute.input.input_context import InputContext
from distinput.distribute.input.options import InputOptions, InputReplicationMode
from distinput.distribute.input.own_batches import OwnBatches
from distinput.distribute.input.tail import Padding, check_rows, global_batch_size, only_full
from distinput.distribute.peers import Request
from distinput.partition.assignment import Assignment
from distinput.plan.node import walk
from distinput.plan.options import AutoShardPolicy
from distinput.plan.policy import Decision
from distinput.plan.seeds import with_seed
from distinput.sharding.autoshard import auto_shard
from distinput.sharding.batches import FrameworkRebatch
from distinput.sharding.common_order import with_common_order
from distinput.sharding.decision import decide

__all__ = ["distribute_dataset", "distribute_from_function"]

_INFINITE = -1


def distribute_dataset(consumer: Consumer, dataset: Any, options: InputOptions) -> DistributedDataset:
    """Cut a dataset of global batches for the replicas; see `Strategy.experimental_distribute_dataset`."""
    if options.experimental_replication_mode is InputReplicationMode.PER_REPLICA:
        raise NotImplementedError(
            "InputReplicationMode.PER_REPLICA is only supported in `distribute_datasets_from_function`, not in "
            "`experimental_distribute_dataset`"
        )
    workers, replicas = consumer.replicas.workers, consumer.replicas.total

    def checked() -> Any:
        _check_dataset(dataset, "experimental_distribute_dataset needs")
        if consumer.splits_batches and replicas > 1:
            _check_batched(Spec.of(dataset.element_spec))
        return dataset

    hints: Sequence[str] = ()
    if workers > 1 and consumer.replicas.peers is not None:
        seed, hints = compare_datasets(consumer.replicas.peers, checked, options)
        # One seed of worker 0 behind every shuffle that was given none, and no counting of cores, so that all workers agree.
        dataset = Dataset(with_common_order(with_seed(dataset.node, seed)))
    else:
        checked()
    spec = Spec.of(dataset.element_spec)
    # One replica alone gets the batches as they are; where they would be cut one by one for more, it is at a place in them too.
    balanced = consumer.splits_batches and options.balanced_split and replicas > 1
    decision = None if balanced else decide(dataset.node, workers)
    by_batch = decision is None or (consumer.splits_batches and decision.applied.name == AutoShardPolicy.DATA.name)
    padding, full_rows, cardinality = 0, 0, int(dataset.cardinality())
    if options.tail != "partial":
        rows = _full_rows(consumer, dataset, options.tail)
        alike = by_batch or workers == 1  # every worker can see whether a global batch is full
        if options.tail == "pad":
            padding = -(-rows // replicas)
        elif options.tail == "drop" and alike:
            dataset = only_full(dataset)
        elif options.tail == "drop" or not (alike and check_rows(dataset, rows)):
            full_rows = rows
    if decision is None or by_batch:
        feed = _of_global_batches(consumer, dataset, options, looked_at=full_rows > 0)
    else:
        feed = _of_own_elements(consumer, dataset, options, decision, looked_at=full_rows > 0)
    feed = replace(
        feed, cardinality=cardinality, tail=options.tail, full_rows=full_rows, hints=hints,
        alike=options.balanced_split or decision is None or decision.asked.divides,
    )  # fmt: skip
    if padding:
        feed = replace(feed, padding=Padding(feed.spec, padding))
    partial = _keeps_partial(consumer, feed.sources[0], spec)
    return DistributedDataset(consumer, feed, keeps_partial=partial, fetch=options.experimental_fetch_to_device)


def _of_global_batches(consumer: Consumer, dataset: Any, options: InputOptions, *, looked_at: bool) -> Feed:
    """Every worker takes its own pieces of each global batch, so all have the same steps and a state is a place in the batches.

    Where rows can be reached by position a worker reads no others, unless each batch must be looked at as a whole.
    """
    workers, replicas = consumer.replicas.workers, consumer.replicas.total
    ahead = max(1, options.experimental_per_replica_buffer_size)
    source, cardinality = dataset.prefetch(ahead), int(dataset.cardinality())
    spec = Spec.of(dataset.element_spec)
    batches = dataset.node.count_elements() if workers > 1 else cardinality
    steps = batches if batches >= 0 else None
    if replicas == 1:
        return Feed([source], spec, cardinality, is_global=True, steps=steps)
    assignment = _assignment(consumer, options)
    cutter = Cutter(spec, assignment)
    part = cutter.spec(spec) if assignment.balanced else Spec.of(_rebatched(consumer, dataset).element_spec)
    own = (
        None
        if looked_at
        else _own(consumer, lambda: OwnBatches.of(source, dataset.node, assignment, ahead * consumer.replicas.count))
    )
    if own is None:
        return Feed([source], part, cardinality, is_global=True, steps=steps, assignment=assignment, cutter=cutter)
    return Feed([own], part, cardinality, is_global=True, steps=steps, assignment=assignment, own=own)


def _own(consumer: Consumer, make: Callable[[], OwnBatches | None]) -> OwnBatches | None:
    """This worker's own rows, if every worker can and will reach its own: whether that pays may differ between them."""
    if consumer.replicas.peers is None or consumer.replicas.peers.size == 1:
        return None
    made: OwnBatches | None = None

    def tell() -> tuple[Any, Sequence[Any]]:
        nonlocal made
        made = make()
        return made is not None, []

    request = Request("experimental_distribute_dataset: who can reach its own rows")
    return made if all(can for can, _ in consumer.replicas.peers.exchange(request, tell)) else None


def _of_own_elements(
    consumer: Consumer, dataset: Any, options: InputOptions, decision: Decision, *, looked_at: bool
) -> Feed:
    """Every worker cuts the batches of its own part of the data, one element for each of its replicas in each step."""
    workers, replicas = consumer.replicas.workers, consumer.replicas.total
    cut = consumer.splits_batches and replicas > 1
    rebatched = _rebatched(consumer, dataset) if cut else dataset
    source = Dataset(auto_shard(rebatched.node, workers, consumer.replicas.rank, replicas, decision=decision))
    ahead = options.experimental_per_replica_buffer_size
    if ahead > 1:
        source = source.prefetch(ahead * replicas)
    steps = None if workers == 1 or looked_at else _counted(consumer, source)
    return Feed([source], Spec.of(rebatched.element_spec), int(dataset.cardinality()), steps=steps)


def _assignment(consumer: Consumer, options: InputOptions) -> Assignment:
    """Which pieces of the global batches are this worker's."""
    replicas = consumer.replicas.total
    if options.balanced_split:
        return Assignment(
            replicas, consumer.replicas.first, period=replicas, own=consumer.replicas.count, balanced=True
        )
    _check_equal(consumer)
    return Assignment(replicas, consumer.replicas.rank, period=consumer.replicas.workers)


def _rebatched(consumer: Consumer, dataset: Any) -> Any:
    _check_equal(consumer)
    return rebatch_for_worker(dataset, consumer.replicas.workers, consumer.replicas.count, consumer.replicas.rank)


def _check_equal(consumer: Consumer) -> None:
    if consumer.replicas.peers is not None and len(set(consumer.replicas.peers.replicas)) > 1:
        raise ValueError(
            "tf.distribute expects every worker to have the same number of replicas; cut the batches with "
            "InputOptions(balanced_split=True) for workers of different sizes"
        )


def _full_rows(consumer: Consumer, dataset: Any, tail: str) -> int:
    if not consumer.splits_batches and consumer.replicas.total > 1:
        raise ValueError(
            f"InputOptions(tail={tail!r}): {consumer.name} gives whole batches to its replicas; only 'partial' works"
        )
    return global_batch_size(dataset, tail)


def _counted(consumer: Consumer, source: Any) -> int | None:
    """How many steps all workers take, where each can count its own; told to one another once, before the first step."""
    if consumer.replicas.peers is None:
        return None

    def own() -> tuple[Any, Sequence[Any]]:
        cuts = [step for step in walk(source.node) if isinstance(step, FrameworkRebatch)]
        if any(0 in cut.sizes for cut in cuts):  # steps in which nobody has a row must be found out together
            return None, []
        elements = source.node.count_elements()
        return (None if elements < 0 else -(-elements // consumer.replicas.count)), []

    found = [
        steps
        for steps, _ in consumer.replicas.peers.exchange(
            Request("experimental_distribute_dataset: how many steps"), own
        )
    ]
    return None if None in found else max(found)


def distribute_from_function(
    consumer: Consumer, dataset_fn: Callable[[InputContext], Any], options: InputOptions
) -> DistributedDatasetsFromFunction:
    """Deal the elements of the user's own datasets; see `Strategy.distribute_datasets_from_function`."""
    check_dataset_function(dataset_fn, options, consumer.per_replica_input)
    per_replica = options.experimental_replication_mode is InputReplicationMode.PER_REPLICA
    if per_replica and consumer.per_replica_input == "refused":
        raise NotImplementedError(
            f"InputReplicationMode.PER_REPLICA is only supported in `MirroredStrategy`, not in {consumer.name}"
        )
    for name, given, usual in (("tail", options.tail, "partial"), ("balanced_split", options.balanced_split, False)):
        if given != usual:
            raise ValueError(
                f"distribute_datasets_from_function: {name}={given!r} is for global batches, which "
                "experimental_distribute_dataset cuts; here you batch for each replica yourself"
            )

    datasets: list[Any] = []
    workers, rank, total = consumer.replicas.workers, consumer.replicas.rank, consumer.replicas.total
    contexts = [InputContext(workers, rank, total)]
    if per_replica and consumer.per_replica_input == "made":
        contexts = [InputContext(total, i, total) for i in range(total)]

    def made() -> list[Any]:
        datasets.extend([dataset_fn(context) for context in contexts])
        for dataset in datasets:
            _check_dataset(dataset, "distribute_datasets_from_function: dataset_fn must return")
        return datasets

    if consumer.replicas.peers is None or consumer.replicas.peers.size == 1:
        made()
    else:
        compare_inputs(consumer.replicas.peers, made)
    first = datasets[0]
    spec = Spec.of(first.element_spec)
    ahead = options.experimental_per_replica_buffer_size
    if ahead > 1:
        each = ahead * consumer.replicas.total // len(datasets)
        datasets = [dataset.prefetch(each) for dataset in datasets]
    return DistributedDatasetsFromFunction(
        consumer,
        Feed(datasets, spec, int(first.cardinality())),
        keeps_partial=_keeps_partial(consumer, first, spec),
        fetch=options.experimental_fetch_to_device,
    )


def check_dataset_function(
    dataset_fn: Any, options: InputOptions, per_replica_input: Literal["made", "ignored", "refused"]
) -> None:
    """Check what was given to `Strategy.distribute_datasets_from_function`.

    Raises:
      TypeError: `dataset_fn` is not callable.
      ValueError: options that exclude one another.
    """
    per_replica = options.experimental_replication_mode is InputReplicationMode.PER_REPLICA
    if options.experimental_place_dataset_on_device and not per_replica:
        raise ValueError(
            "`experimental_place_dataset_on_device` is only supported together with "
            "experimental_replication_mode=InputReplicationMode.PER_REPLICA"
        )
    device = options.experimental_place_dataset_on_device and options.experimental_fetch_to_device
    if device and per_replica_input == "made":  # the other strategies refuse or ignore PER_REPLICA itself
        raise ValueError(
            "`experimental_place_dataset_on_device` with PER_REPLICA needs experimental_fetch_to_device=False: a dataset "
            "on the device has nothing to fetch"
        )
    if not callable(dataset_fn):
        raise TypeError(
            f"distribute_datasets_from_function: dataset_fn must be callable, got a {type(dataset_fn).__name__}"
        )


def _check_dataset(dataset: Any, what: str) -> None:
    if isinstance(dataset, DistributedDataset):
        raise TypeError(f"{what} a dataset, got one that is distributed already")
    if not all(hasattr(dataset, name) for name in ("element_spec", "cardinality", "restore")):
        raise TypeError(f"{what} a dataset, got a {type(dataset).__name__}")


def _check_batched(spec: Spec) -> None:
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        if isinstance(leaf, TensorSpec) and leaf.shape == ():
            raise ValueError(
                f"experimental_distribute_dataset: {component(path)} has no batch axis to be cut for the "
                "replicas; call .batch(global_batch_size) on the dataset first"
            )


def _keeps_partial(consumer: Consumer, dataset: Any, spec: Spec) -> bool:
    """True when `next` delivers a last step for which some replicas have no element."""
    if not consumer.keeps_partial_steps or int(dataset.cardinality()) == _INFINITE:
        return False
    if consumer.replicas.workers > 1:
        return True
    return any(isinstance(leaf, TensorSpec) and (leaf.shape is None or None in leaf.shape) for leaf in spec.leaves)
