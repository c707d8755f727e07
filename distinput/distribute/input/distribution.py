# SPDX-License-Identifier: Apache-2.0
"""Makes distributed datasets from the user's datasets: checks them, and chooses the source of their steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from distinput.data.dataset import Dataset
from distinput.data.iterator import Passes
from distinput.distribute.core.options import InputContext, InputOptions
from distinput.distribute.core.replicas import CallDescription, Consumer, Replicas
from distinput.distribute.input.dealing import (
    Cutter,
    Placeholders,
    StepPadding,
    check_rows,
    global_batch_size,
    only_full,
)
from distinput.distribute.input.delivery import Delivery, open_rows
from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedDatasetsFromFunction
from distinput.distribute.input.sources import CutBatches, DealtElements, OwnBatches, OwnPiecesSource, StepSource, Terms
from distinput.names.lazy import later
from distinput.ops.shard import Shard
from distinput.plan.batch_sizes import Assignment
from distinput.plan.families import with_seed
from distinput.plan.node import INFINITE, UNKNOWN, Node, walk
from distinput.plan.options import AutoShardPolicy, Decision
from distinput.sharding.own_rows import leaves_out_steps, rebatch_for, with_common_order
from distinput.sharding.policies import auto_shard, decide
from distinput.values.nest import component
from distinput.values.spec import SparseTensorSpec, Spec, TensorSpec

if TYPE_CHECKING:
    from distinput.distribute.input import comparison
    from distinput.distribute.input import lanes as worker_lanes
    from distinput.ops import balance_rows
else:
    comparison = later("distinput.distribute.input.comparison")  # for several workers
    worker_lanes = later("distinput.distribute.input.lanes")  # for what another number of workers goes on with
    balance_rows = later("distinput.ops.balance_rows")

# ---- Checks made before a dataset is distributed: of options, datasets, dataset functions and workers


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
      ValueError: one is a scalar, or a list of dicts.
    """
    if spec.structure.makes_rows:
        raise ValueError(
            "experimental_distribute_dataset: as_rows makes lists of dicts, of which replicas get no parts; map them to arrays"
        )
    spec = spec.folded
    for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
        fewest = 2 if isinstance(leaf, SparseTensorSpec) else 1  # a sparse tensor is taken apart from rank 2 on
        if isinstance(leaf, TensorSpec) and leaf.shape is not None and len(leaf.shape) < fewest:
            raise ValueError(
                f"experimental_distribute_dataset: {component(path)} has no batch axis to be cut for the "
                "replicas; call .batch(global_batch_size) on the dataset first"
            )


def check_no_hint(node: Node, options: InputOptions) -> None:
    """Check that no placeholder waits to be filled in, where every worker reads the same global batches.

    Raises:
      ValueError: one does.
    """
    for step in walk(node):
        if isinstance(step, Shard) and step.is_hint:
            given = "balanced_split=True" if options.balance_replicas is None else "balance_replicas"
            raise ValueError(
                f"experimental_distribute_dataset: InputOptions({given}) cuts global batches that are the same on all workers, "
                "under auto_shard_policy HINT too, so nothing fills in shard(SHARD_HINT, SHARD_HINT), made at "
                f"{step.origin}; leave out the shard, or {given.partition('=')[0]}"
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


# ---- Makes distributed datasets from the user's datasets: chooses the source of their steps


def distribute_dataset(consumer: Consumer, dataset: Any, options: InputOptions) -> DistributedDataset:
    """Cut a dataset of global batches for the replicas; see `Strategy.experimental_distribute_dataset`."""
    check_options(options, consumer)
    replicas = consumer.replicas
    hints: Sequence[str] = ()

    refusal: Exception | None = None
    original = dataset
    try:
        check_dataset(dataset, "experimental_distribute_dataset needs")
        if consumer.puts_only_numbers:
            check_fetched(Spec.of(dataset.element_spec), options, consumer)
        if consumer.splits_batches and replicas.total > 1:
            check_batched(dataset.node.spec)
        if consumer.splits_batches and options.balanced_split:
            check_no_hint(dataset.node, options)
        if options.balance_replicas is not None:
            dataset = Dataset(balance_rows.BalanceRows(dataset.node, options.balance_replicas, replicas.total))
    except Exception as error:
        if replicas.workers == 1:
            raise
        refusal = error  # raised on all workers
    if replicas.peers is not None and replicas.workers > 1:
        seed, hints = comparison.compare_datasets(replicas.peers, dataset, refusal, options)
        # Shuffles without a seed use one of worker 0, and no choice depends on the number of cores: all workers agree.
        dataset, original = (Dataset(with_common_order(with_seed(each.node, seed))) for each in (dataset, original))
    terms = _terms(consumer, dataset)
    # A single replica gets whole batches; its states are places in them if batches would be cut one by one for more.
    balanced = consumer.splits_batches and options.balanced_split and replicas.total > 1
    decision = None if balanced else decide(dataset.node, replicas.workers)
    # The batches of a strategy that never cuts them are those of any other one, if it has a single replica.
    cuts = consumer.splits_batches or replicas.total == 1
    by_batch = decision is None or (cuts and decision.applied.name == AutoShardPolicy.DATA.name)
    rows = full_rows = 0
    if options.tail != "partial":
        rows = global_batch_size(dataset, options.tail)
        alike = by_batch or replicas.workers == 1  # every worker can tell whether a global batch is full
        if options.tail == "drop" and alike:
            dataset = only_full(dataset)
        elif options.tail == "drop" or (options.tail == "error" and not (alike and check_rows(dataset, rows))):
            full_rows = rows
    terms = replace(
        terms, tail=options.tail, full_rows=full_rows, hints=hints,
        alike=options.balanced_split or decision is None or decision.asked.divides,
    )  # fmt: skip
    passes = dataset._passes if by_batch else Passes()
    earlier = partial(
        _of_earlier_job, consumer, replace(terms, full_rows=rows), Dataset(original.node, passes), options
    )
    terms = replace(terms, earlier=earlier)
    source: StepSource
    if decision is None or by_batch:
        source = _of_global_batches(consumer, terms, dataset, options, _assignment(consumer, options))
    else:
        source = _of_own_elements(consumer, terms, dataset, options, decision, passes)
    if consumer.puts_only_numbers:
        check_same_shapes(source.spec, options, consumer, agrees=source.agrees)
    ahead = options.experimental_per_replica_buffer_size
    padding = StepPadding(source.spec, -(-rows // replicas.total)) if options.tail == "pad" else None
    return DistributedDataset(source, Delivery(consumer, padding, bool(options.experimental_fetch_to_device), ahead))


def _terms(consumer: Consumer, dataset: Any) -> Terms:
    """The properties of the steps of a dataset, as the user gave it."""
    replicas, cardinality = consumer.replicas, int(dataset.cardinality())
    if cardinality == INFINITE and isinstance(dataset, Dataset):
        # TensorFlow counts a placeholder of two elements as -1, which means that it has no end.
        endless = auto_shard(dataset.node, 1, 0, policy=AutoShardPolicy.HINT).cardinality == INFINITE
        cardinality = INFINITE if endless else UNKNOWN
    keeps_partial = consumer.keeps_partial_steps and cardinality != INFINITE
    if keeps_partial and replicas.workers == 1:  # as in TensorFlow: only if elements may differ in size
        leaves = Spec.of(dataset.element_spec).leaves
        keeps_partial = any(
            isinstance(leaf, TensorSpec) and (leaf.shape is None or None in leaf.shape) for leaf in leaves
        )
    return Terms(replicas, cardinality, keeps_partial)


def pieces_of_batches(
    consumer: Consumer, dataset: Any, options: InputOptions, assignment: Assignment, rows: int
) -> StepSource:
    """The pieces of each global batch that a process needs, for callers that place rows on devices themselves.

    Args:
      consumer: its replicas stand for the pieces.
      dataset: the global batches.
      options: with `balanced_split`, which makes states positions in the global batches.
      assignment: the pieces; those of several processes may overlap.
      rows: the rows of a full batch.

    Raises:
      FailedPreconditionError: the processes built different datasets.
      InvalidArgumentError: a batch is known to be short, and the tail is "error".
    """
    peers = consumer.replicas.peers
    hints: Sequence[str] = ()
    if peers is not None and peers.size > 1:
        seed, hints = comparison.compare_datasets(peers, dataset, None, options, consumer.name)
        dataset = Dataset(with_common_order(with_seed(dataset.node, seed)))
    terms = _terms(consumer, dataset)
    full_rows = rows if options.tail == "error" and not check_rows(dataset, rows) else 0
    if options.tail == "drop":
        dataset = only_full(dataset)
    terms = replace(terms, tail=options.tail, full_rows=full_rows, hints=hints, alike=True)
    return _of_global_batches(consumer, terms, dataset, options, assignment, rows)


def _of_global_batches(
    consumer: Consumer,
    terms: Terms,
    dataset: Any,
    options: InputOptions,
    assignment: Assignment,
    rows: int | None = None,
) -> StepSource:
    """Every worker takes its own pieces of each global batch: all have the same steps, and states are batch positions.

    With random access, a worker reads only its own rows, unless each batch must be examined as a whole.
    """
    replicas = terms.replicas
    ahead = max(1, options.experimental_per_replica_buffer_size)
    whole, spec = dataset.prefetch(ahead), dataset.node.spec
    batches = dataset.node.count_elements() if replicas.workers > 1 else int(dataset.cardinality())
    terms = replace(terms, steps=batches if batches >= 0 else None)
    if replicas.total == replicas.workers == 1:
        return DealtElements(terms, [whole], spec, whole=True)
    cutter = Cutter(spec, assignment, rows)
    part = cutter.spec(spec) if assignment.balanced or assignment.fixed else _rebatched(consumer, dataset).node.spec
    if not terms.full_rows:
        own = _own(consumer, lambda: OwnBatches.of(whole, dataset.node, assignment, ahead * replicas.count))
        if own is not None:
            return OwnPiecesSource(terms, own, part, assignment.balanced)
    return CutBatches(terms, whole, cutter, part, assignment.balanced)


def _own(consumer: Consumer, make: Callable[[], OwnBatches | None]) -> OwnBatches | None:
    """This worker's own rows, if all workers have random access to theirs; whether it pays may differ between them."""
    peers = consumer.replicas.peers
    if peers is None or peers.size == 1:
        return None
    made: OwnBatches | None = None

    def tell() -> tuple[Any, Sequence[Any]]:
        nonlocal made
        made = make()
        return made is not None, []

    description = CallDescription("experimental_distribute_dataset: who can reach its own rows")
    return made if all(can for can, _ in peers.exchange(description, tell)) else None


def _assignment(consumer: Consumer, options: InputOptions) -> Assignment:
    """The pieces of the global batches that belong to this worker."""
    replicas = consumer.replicas
    if options.balanced_split:
        return Assignment(replicas.total, replicas.first, period=replicas.total, own=replicas.count, balanced=True)
    check_equal_workers(replicas)
    return Assignment(replicas.total, replicas.rank, period=replicas.workers)


def _rebatched(consumer: Consumer, dataset: Any, rank: int | None = None) -> Any:
    """The dataset with its batches cut for the replicas of a worker, this one unless `rank` is given."""
    replicas = consumer.replicas
    check_equal_workers(replicas)
    own = replicas.rank if rank is None else rank
    return Dataset(rebatch_for(dataset.node, replicas.workers, replicas.count, own))


def _of_own_elements(
    consumer: Consumer, terms: Terms, dataset: Any, options: InputOptions, decision: Decision, passes: Passes
) -> DealtElements:
    """Every worker cuts the batches of its own part of the data: one element for each of its replicas per step."""
    replicas = terms.replicas
    cut = consumer.splits_batches and replicas.total > 1
    spec = (_rebatched(consumer, dataset) if cut else dataset).node.spec

    def tree_of(rank: int) -> Node:
        whole = _rebatched(consumer, dataset, rank) if cut else dataset
        return auto_shard(whole.node, replicas.workers, rank, replicas.total, decision=decision)

    mine = Dataset(tree_of(replicas.rank), passes)
    ahead = options.experimental_per_replica_buffer_size
    if ahead > 1:
        mine = mine.prefetch(ahead * replicas.total)
    counts = None if replicas.workers == 1 or terms.full_rows else _counted(consumer, mine)
    if counts is not None:
        terms = replace(terms, steps=max(counts), open_ends=len(set(counts)) > 1 and Placeholders(spec).watches)
    if replicas.total == replicas.workers == 1:  # its own part is everything, and its elements are the global batches
        elements = int(mine.cardinality())
        return DealtElements(replace(terms, steps=elements if elements >= 0 else None), [mine], spec, whole=True)
    return DealtElements(terms, [mine], spec, tree_of=tree_of)


def _of_earlier_job(
    consumer: Consumer, terms: Terms, original: Any, options: InputOptions, layout: Mapping[str, Any]
) -> StepSource | None:
    """The source that continues with the states of a job with other workers, replicas, or another way to divide the data.

    Args:
      consumer: of the steps.
      terms: the properties of its steps, with the rows of a full step unless a short one is kept.
      original: the dataset that the user distributes.
      options: of the input.
      layout: what a state says of the job that saved it.
    """
    replicas, tail = consumer.replicas, options.tail
    if layout.get("cut") not in ("batches", "lanes") or not (consumer.splits_batches or replicas.total == 1):
        return None
    full_rows = terms.full_rows if tail in ("drop", "error") else 0
    if layout["cut"] == "batches":
        if options.balance_replicas is not None:
            return None  # rows were dealt in each batch for another number of replicas
        dataset = only_full(original) if tail == "drop" else original
        decision = decide(dataset.node, 1)
        if decision.applied.name == AutoShardPolicy.HINT.name:  # a lone replica reads what its place in the tree leaves
            dataset = Dataset(auto_shard(dataset.node, 1, 0, 1, decision=decision), original._passes)
        terms = replace(terms, alike=True, full_rows=full_rows if tail == "error" else 0, steps=None, open_ends=False)
        return _of_global_batches(consumer, terms, dataset, options, _assignment(consumer, options))
    workers, total = layout["workers"], layout["replicas"]
    dataset = original
    if options.balance_replicas is not None:
        dataset = Dataset(balance_rows.BalanceRows(dataset.node, options.balance_replicas, total))
    if tail == "drop" and workers == 1:
        dataset = only_full(dataset)
    decision = decide(dataset.node, workers)

    def lane(rank: int) -> Dataset:
        cut = rebatch_for(dataset.node, workers, total // workers, rank) if total > 1 else dataset.node
        return Dataset(auto_shard(cut, workers, rank, total, decision=decision), original._passes)

    return _of_lanes(consumer, replace(terms, full_rows=full_rows), options, layout, lane)


def _of_lanes(
    consumer: Consumer, terms: Terms, options: InputOptions, layout: Mapping[str, Any], lane: Callable[[int], Dataset]
) -> StepSource:
    """The global batches of an earlier job, put together from the inputs of its workers and cut for the replicas of this one.

    Args:
      consumer: of the steps.
      terms: the properties of its steps.
      options: of the input.
      layout: how many workers and replicas the earlier job had.
      lane: makes the input of one of its workers.
    """
    replicas, workers, total = consumer.replicas, layout["workers"], layout["replicas"]
    lanes, ahead = [lane(rank) for rank in range(workers)], options.experimental_per_replica_buffer_size
    if ahead > 1:
        lanes = [each.prefetch(ahead * total) for each in lanes]
    spec = lanes[0].node.spec.map(open_rows)
    terms = replace(terms, alike=True, steps=None, open_ends=False)
    source = worker_lanes.WorkerLanes(lanes, total // workers)
    kept = worker_lanes.layout_of_lanes(workers, total)
    if replicas.total == 1:
        return DealtElements(terms, [source], spec, whole=True, of_lanes=kept)
    assignment = _assignment(consumer, options)
    cutter = Cutter(spec, assignment)
    return CutBatches(terms, source, cutter, cutter.spec(spec), assignment.balanced, kept)


def _counted(consumer: Consumer, mine: Any) -> list[int] | None:
    """The numbers of steps of all workers, if each can count its own; exchanged once, before the first step."""
    replicas = consumer.replicas
    if replicas.peers is None:
        return None

    def own() -> tuple[Any, Sequence[Any]]:
        if leaves_out_steps(mine.node, replicas.count):
            return None, []
        elements = mine.node.count_elements()
        return (None if elements < 0 else -(-elements // replicas.count)), []

    description = CallDescription("experimental_distribute_dataset: how many steps")
    found = [steps for steps, _ in replicas.peers.exchange(description, own)]
    return None if None in found else found


def distribute_from_function(
    consumer: Consumer, dataset_fn: Callable[[InputContext], Any], options: InputOptions
) -> DistributedDatasetsFromFunction:
    """Deal the elements of the user's own datasets; see `Strategy.distribute_datasets_from_function`."""
    check_dataset_function(dataset_fn, options, consumer)
    check_uncut(options)
    replicas = consumer.replicas
    contexts = [InputContext(replicas.workers, replicas.rank, replicas.total)]
    if options.per_replica and consumer.per_replica_input == "made":
        contexts = [InputContext(replicas.total, i, replicas.total) for i in range(replicas.total)]
    datasets: list[Any] = []

    def made() -> list[Any]:
        datasets.extend([dataset_fn(context) for context in contexts])
        for dataset in datasets:
            check_dataset(dataset, "distribute_datasets_from_function: dataset_fn must return")
            if consumer.puts_only_numbers:
                check_fetched(Spec.of(dataset.element_spec), options, consumer)
        return datasets

    if replicas.peers is None or replicas.workers == 1:
        made()
    else:
        comparison.compare_inputs(replicas.peers, made)
    terms, spec = _terms(consumer, datasets[0]), Spec.of(datasets[0].element_spec)
    if (
        len(datasets) == 1
        and isinstance(datasets[0], Dataset)
        and all(leaf.shape is None or leaf.shape for leaf in spec.leaves if isinstance(leaf, TensorSpec))
    ):
        passes = datasets[0]._passes  # elements with an axis of rows, which can be put together and cut

        def earlier(layout: Mapping[str, Any]) -> StepSource | None:
            if layout.get("cut") != "lanes" or not consumer.splits_batches:
                return None

            def lane(rank: int) -> Dataset:
                return Dataset(dataset_fn(InputContext(layout["workers"], rank, layout["replicas"])).node, passes)

            return _of_lanes(consumer, terms, options, layout, lane)

        terms = replace(terms, earlier=earlier)
    ahead = options.experimental_per_replica_buffer_size
    if ahead > 1:
        each = ahead * replicas.total // len(datasets)
        datasets = [dataset.prefetch(each) for dataset in datasets]
    source = DealtElements(terms, datasets, spec, has_rows=False)
    if consumer.puts_only_numbers:
        check_same_shapes(spec, options, consumer, agrees=source.agrees)
    return DistributedDatasetsFromFunction(
        source, Delivery(consumer, fetch=bool(options.experimental_fetch_to_device), ahead=ahead)
    )
