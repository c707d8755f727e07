# SPDX-License-Identifier: Apache-2.0
"""Law 5: what several workers read of a pipeline is disjoint and complete."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from distinput.data.dataset import Dataset
from distinput.data.experimental import auto_shard_dataset, rebatch_for_worker
from distinput.ops.shard import Shard
from distinput.testing.elements import difference, rows_of
from distinput.testing.laws.trace import elements_from, most_of

__all__ = ["check_shards", "check_workers"]


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
        wrong = difference(elements_from(part, part.start(0), few), expected)
        if wrong is not None:
            raise AssertionError(f"shard {index} of {num_shards}: {wrong}")


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
