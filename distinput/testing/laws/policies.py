# SPDX-License-Identifier: Apache-2.0
"""Law 5 for the policies of auto-sharding: what the workers read is the whole, and each element is read once."""

from collections import Counter
from collections.abc import Callable
from itertools import islice

from distinput.data.dataset import Dataset
from distinput.data.experimental import auto_shard_dataset
from distinput.errors import InvalidArgumentError, NotFoundError
from distinput.plan.options import AutoShardPolicy, Options
from distinput.plan.policy import Policy
from distinput.sharding.common_order import with_common_order
from distinput.sharding.policies import policy_named
from distinput.testing.elements import difference, exact
from distinput.testing.laws.trace import most_of

__all__ = ["check_policy"]


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
            wrong = difference([exact(element) for element in islice(part, few)], expected)
            if wrong is not None:
                raise AssertionError(f"{what}: worker {worker}: {wrong}")
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
