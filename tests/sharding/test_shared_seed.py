# SPDX-License-Identifier: Apache-2.0
"""One number that all workers share makes seedless shuffles the same on all of them."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.data.dataset import Dataset
from distinput.plan.families import drawn_seeds, with_seed
from distinput.sharding.policies import auto_shard

BUILDS: dict[str, Callable[[int], Dataset]] = {
    "shuffle": lambda n: di.data.Dataset.range(n).shuffle(5),
    "twice": lambda n: di.data.Dataset.range(n).shuffle(5).shuffle(3),
    "global": lambda n: di.data.Dataset.range(n).global_shuffle(),
    "sample": lambda n: di.data.Dataset.sample_from_datasets(
        [di.data.Dataset.range(n), di.data.Dataset.range(n, 2 * n)]
    ),
    "inner": lambda n: di.data.Dataset.range(3).flat_map(lambda i: di.data.Dataset.range(i * n, i * n + n).shuffle(4)),
    "mixed": lambda n: (
        di.data.Dataset.range(n).shuffle(9).concatenate(di.data.Dataset.range(n, 2 * n).shuffle(9)).shuffle(4)
    ),
    "filtered": lambda n: di.data.Dataset.range(n).shuffle(5).filter(lambda x: x % 3 > 0),
}


@given(
    build=st.sampled_from(sorted(BUILDS)),
    n=st.integers(0, 30),
    num_workers=st.integers(1, 5),
    seed=st.integers(),
    batch=st.booleans(),
)
def test_shards_of_a_seedless_pipeline_are_disjoint_and_complete(
    build: str, n: int, num_workers: int, seed: int, batch: bool
) -> None:
    found = []
    for worker in range(num_workers):
        dataset = BUILDS[build](n)  # each worker builds its own, and draws its own seeds
        node = (dataset.batch(3) if batch else dataset).node
        options = di.data.Options()
        options.experimental_distribute.auto_shard_policy = di.data.experimental.AutoShardPolicy.DATA
        mine = Dataset(auto_shard(with_seed(Dataset(node).with_options(options).node, seed), num_workers, worker))
        found += [int(x) for element in mine for x in (element if batch else [element])]
    assert sorted(found) == sorted(int(x) for x in BUILDS[build](n))


def test_places_have_seeds_of_their_own() -> None:
    def seeds(number: int) -> list[int]:
        return drawn_seeds(with_seed(BUILDS["mixed"](9).node, number))

    assert len(set(seeds(7))) == 3
    assert seeds(7) == seeds(7)
    assert not set(seeds(7)) & set(seeds(8))


def test_a_seed_of_the_users_own_stays() -> None:
    node = di.data.Dataset.range(9).shuffle(9, seed=3).node
    assert list(Dataset(with_seed(node, 5))) == list(Dataset(node))
