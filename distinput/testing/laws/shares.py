# SPDX-License-Identifier: Apache-2.0
"""Laws of parts: shards, policies and replicas share a pipeline without loss."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.data.experimental import auto_shard_dataset, rebatch_for_worker
from distinput.distribute.core.strategy import Strategy
from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.ops.shard import Shard
from distinput.plan.options import AutoShardPolicy, Options, Policy
from distinput.sharding.own_rows import with_common_order
from distinput.sharding.policies import policy_named
from distinput.testing.elements import check_same, exact, rows_of
from distinput.testing.laws.trace import elements_from, most_of
from distinput.values.leaves import dtype_of
from distinput.values.nest import structure_of
from distinput.values.ragged_tensor import RaggedTensor

# ----------------------------------------------------------------------------
# Law 5: what several workers read of a pipeline is disjoint and complete.
# ----------------------------------------------------------------------------


def check_shards(dataset: Dataset, num_shards: int) -> None:
    """The shards of a pipeline are disjoint and complete: element i is in shard i modulo `num_shards`, in order.

    Of a pipeline that does not end, its first 200 elements are looked at; else the first 10,000.

    Raises:
      AssertionError: an element is in another shard, in two or in none.

    >>> import distinput as di
    >>> check_shards(di.data.Dataset.range(7), 3)
    """
    node = dataset.node
    most = most_of(dataset)
    whole = elements_from(node, node.start(0), most)
    for index in range(num_shards):
        part = Shard(node, num_shards, index)
        expected = whole[index::num_shards]
        # Behind the elements looked at, nothing is known of a shard; before the end of all, it must have no more.
        few = most if len(whole) < most else len(expected)
        check_same(f"shard {index} of {num_shards}", elements_from(part, part.start(0), few), expected)


def check_workers(fresh: Callable[[], Dataset], workers: int, replicas: int, *, even: bool) -> None:
    """Law 9 between machines: the workers' pieces of a batched pipeline hold every row exactly once.

    Args:
      fresh: makes the pipeline of global batches; its policy is in its options and is not OFF.
      workers: how many machines.
      replicas: on each of them.
      even: every worker must have the same number of pieces, as with policy DATA.

    Raises:
      AssertionError: a row is missing or delivered twice, or the workers are out of step.

    >>> import distinput as di
    >>> check_workers(lambda: di.data.Dataset.range(7).batch(3), workers=2, replicas=2, even=True)
    """
    dataset = fresh()  # one for all, since workers of a job agree on the seeds that were drawn
    whole = Counter(row for batch in dataset.iter_pass(0) for row in rows_of(batch))
    found: Counter[Any] = Counter()
    pieces = []
    for worker in range(workers):
        cut = rebatch_for_worker(dataset, workers, replicas, worker)
        part = list(auto_shard_dataset(cut, workers, worker, workers * replicas))
        pieces.append(len(part))
        found.update(row for batch in part for row in rows_of(batch))
    if found != whole:
        raise AssertionError(
            f"{workers} workers of {replicas} replicas: missing {list((whole - found).elements())[:5]}, "
            f"too many {list((found - whole).elements())[:5]}"
        )
    if even and len(set(pieces)) > 1:
        raise AssertionError(
            f"{workers} workers of {replicas} replicas: they have {pieces} pieces, which must be equal"
        )


# ----------------------------------------------------------------------------
# Law 5 for the policies of auto-sharding: what the workers read is the whole, and each element is read once.
# ----------------------------------------------------------------------------


def check_policy(fresh: Callable[[], Dataset], policy: AutoShardPolicy | Policy | str, workers: int) -> bool:
    """Law 5: under a policy, the workers together read each element exactly once; under DATA in turn, one each.

    Of a pipeline that does not end, its first 200 elements are looked at, and of one with more than 10,000 these: under DATA
    alone, since other policies tell nothing of which elements a worker reads first.

    Args:
      fresh: makes the pipeline.
      policy: an `AutoShardPolicy`, a `Policy` that was registered, or the name of one; not OFF, under which every worker reads
        everything.
      workers: how many there are.

    Returns:
      False if the policy refuses the pipeline, as FILE does where nothing is read from enough files, or there are too many
      elements to look at all of them.

    Raises:
      AssertionError: an element is missing or delivered twice, or is another worker's.

    >>> import distinput as di
    >>> check_policy(lambda: di.data.Dataset.range(7), "DATA", workers=3)
    True
    """
    chosen = _policy(policy)
    if isinstance(chosen, Policy) and not chosen.divides:
        return False
    # One dataset for all: workers of a job agree on the seeds that were drawn, and on what depends on the machine.
    dataset = _under(fresh(), chosen)
    most = most_of(dataset)
    whole = [exact(element) for element in islice(Dataset(with_common_order(dataset.node)), most)]
    cut = len(whole) == most
    try:
        sharded = [auto_shard_dataset(dataset, workers, worker, workers) for worker in range(workers)]
    except (InvalidArgumentError, NotFoundError):
        return False
    what = f"policy {chosen.name}, {workers} workers"
    if chosen is AutoShardPolicy.DATA:
        for worker, part in enumerate(sharded):
            expected = whole[worker::workers]
            few = len(expected) if cut else most
            check_same(f"{what}: worker {worker}", [exact(element) for element in islice(part, few)], expected)
        return True
    if cut:
        return False
    parts = [[exact(element) for element in islice(part, most)] for part in sharded]
    found, wanted = Counter([element for part in parts for element in part]), Counter(whole)
    if found != wanted:
        missing, too_many = list((wanted - found).elements()), list((found - wanted).elements())
        raise AssertionError(f"{what}: missing {missing[:5]!r}, too many {too_many[:5]!r}")
    return True


def _policy(policy: AutoShardPolicy | Policy | str) -> AutoShardPolicy | Policy:
    if not isinstance(policy, str):
        return policy
    return AutoShardPolicy[policy] if policy in AutoShardPolicy.__members__ else policy_named(policy)


def _under(dataset: Dataset, policy: AutoShardPolicy | Policy) -> Dataset:
    options = Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


# ----------------------------------------------------------------------------
# Laws 7 and 9: the replicas' parts are the batches, and so are sums and means over them.
# ----------------------------------------------------------------------------


def check_distributed(strategy: Strategy, dataset: Dataset, options: Any = None) -> None:
    """Laws 7 and 9 in one process: the replicas' parts are the batches, and so are sums and means over them.

    In each step the rows of all replicas follow each other in order; over all steps they are the rows of the dataset.
    `gather`, SUM and MEAN along axis 0 are those of the rows of the step, each computed by NumPy in one piece. From the state
    at every step exactly the rest follows.

    Args:
      strategy: any strategy of one process.
      dataset: global batches of numbers or strings.
      options: `InputOptions`.

    Raises:
      AssertionError: a row, a number or a restart is wrong.

    >>> import distinput as di
    >>> strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    >>> check_distributed(strategy, di.data.Dataset.range(7).batch(4))
    """
    distributed = strategy.experimental_distribute_dataset(dataset, options)
    steps: list[list[Any]] = []
    delivered: list[Any] = []
    states: list[State] = []
    with iter(distributed) as iterator:
        states.append(iterator.state())
        for step in iterator:
            parts = list(strategy.experimental_local_results(step))
            steps.append([exact(part) for part in parts])
            there = [part for part in parts if len(structure_of(part).flatten(part)[0])]
            delivered += [row for part in there for row in rows_of(part)]
            _check_step(strategy, step, parts)
            states.append(iterator.state())
        states.append(iterator.state())
    what = f"distributed over {strategy.num_replicas_in_sync}"
    check_same(what, delivered, [row for batch in dataset.iter_pass(0) for row in rows_of(batch)])
    for position, state in enumerate(states):
        with distributed.restore(json.loads(json.dumps(state))) as iterator:
            rest = [[exact(part) for part in strategy.experimental_local_results(step)] for step in iterator]
        check_same(f"{what}, restart at step {position}", rest, steps[position:])


def _check_step(strategy: Strategy, step: Any, parts: list[Any]) -> None:
    structure = structure_of(parts[0])
    columns = [structure.flatten(part) for part in parts]
    inner = [{leaf.shape[1:] for leaf in leaves} for leaves in zip(*columns, strict=True)]
    if any(len(shapes) > 1 for shapes in inner):
        return  # replicas without rows may not know dimensions that the data decides
    whole = [_joined(leaves) for leaves in zip(*columns, strict=True)]
    gathered = structure.flatten(strategy.gather(step, axis=0))
    for value, expected in zip(gathered, whole, strict=True):
        if exact(value) != exact(expected):
            raise AssertionError(f"gather over {strategy.num_replicas_in_sync}: got {value!r}, expected {expected!r}")
    for leaf in structure_of(step).flatten(step):
        each = strategy.experimental_local_results(leaf)
        if dtype_of(each[0]).kind not in "if":
            continue
        rows = _joined(each)
        if isinstance(rows, RaggedTensor):
            _check_ragged(strategy, leaf, rows)
            continue
        _check_number("SUM", strategy.reduce("SUM", leaf, axis=0), rows.sum(axis=0))
        if len(rows):
            _check_number("MEAN", strategy.reduce("MEAN", leaf, axis=0), rows.astype(np.float64).mean(axis=0))


def _joined(parts: Any) -> Any:
    """The rows of all parts, one after the other."""
    if not isinstance(parts[0], RaggedTensor):
        return np.concatenate(parts)
    lengths = np.concatenate([part.row_lengths() for part in parts])
    return RaggedTensor.from_row_lengths(_joined([part.values for part in parts]), lengths)


def _check_ragged(strategy: Strategy, leaf: Any, rows: RaggedTensor) -> None:
    """Sums and means over the values of all rows, and over the rows where there is one ragged dimension."""
    axes, flat = tuple(range(rows.ragged_rank + 1)), rows.flat_values
    _check_number("SUM", strategy.reduce("SUM", leaf, axis=axes), flat.sum(axis=0))
    if len(flat):
        _check_number("MEAN", strategy.reduce("MEAN", leaf, axis=axes), flat.astype(np.float64).mean(axis=0))
    if rows.ragged_rank == 1:
        there = np.arange(int(rows.row_lengths().max(initial=0))) < rows.row_lengths()[:, None]
        total = rows.to_padded(0).sum(axis=0)
        _check_number("SUM", strategy.reduce("SUM", leaf, axis=0), total)
        counts = there.sum(axis=0).reshape(-1, *[1] * (total.ndim - 1))
        _check_number("MEAN", strategy.reduce("MEAN", leaf, axis=0), total / counts)


def _check_number(operation: str, given: Any, expected: Any) -> None:
    close = np.allclose(np.asarray(given, np.float64), np.asarray(expected, np.float64), rtol=1e-6, atol=1e-6)
    if np.shape(given) != np.shape(expected) or not close:
        raise AssertionError(f"reduce({operation}, axis=0): got {given!r}, the rows in one piece give {expected!r}")
