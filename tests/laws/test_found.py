# SPDX-License-Identifier: Apache-2.0
"""Pipelines in which random search once found something broken."""

import json
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.seal import sealed
from distinput.testing import check_blocks, check_positions, check_restart, check_rewrites, check_same_as, check_spec
from distinput.testing.pipelines import built

Dataset = di.data.Dataset

RECIPES: dict[str, list[Any]] = {
    "a restart behind a filter whose first elements are left out": [
        ["range", {"start": 0, "stop": 7, "step": 1, "dtype": "int64"}],
        ["filter", {"modulus": 2, "rest": 0}],
        ["batch", {"size": 3, "drop": False, "parallel": None}],
    ],
    "empty rows whose other dimension differs": [
        ["generator", {"kind": "uneven", "n": 5, "salt": 0}],
        ["sample", {"others": ["same"], "weights": None, "seed": 0, "stop": False}],
    ],
    "names in another order in each pass": [
        ["own", {"rows": [3, 3], "workers": 2, "worker": 0, "mixed": True, "format": "fixed"}],
    ],
    "parts in another order in each pass": [
        ["part", {"rows": [3, 2, 6], "workers": 2, "worker": 0, "mixed": True, "format": "fixed"}],
    ],
    "a cache that need not be read to its end again": [
        ["list_files", {"rows": [3, 3, 3, 3], "shuffle": True, "seed": 0}],
        ["cache", {}],
        ["global_shuffle", {"seed": None, "again": None}],
        ["cache", {}],
        ["shuffle", {"buffer": 3, "seed": None, "again": None}],
    ],
    "a shuffle without a seed, then a cache": [
        ["text", {"rows": [4], "reads": None, "compression": ""}],
        ["shuffle", {"buffer": 4, "seed": None, "again": None}],
        ["cache", {}],
        ["skip", {"count": 1}],
        ["repeat", {"count": 3}],
    ],
}


@pytest.mark.parametrize("name", RECIPES)
def test_what_was_found_keeps_the_laws(name: str) -> None:
    def fresh() -> di.data.Dataset:
        return built(RECIPES[name])

    check_spec(fresh())
    check_restart(fresh(), fresh=fresh)
    check_rewrites(fresh())
    check_positions(fresh())
    check_blocks(fresh)


def test_a_restart_knows_which_data_sets_have_run_out() -> None:
    choice = Dataset.from_tensor_slices(np.array([0, 0])).concatenate(Dataset.from_tensors(np.int64(1)).repeat())
    check_restart(Dataset.choose_from_datasets([Dataset.range(1), Dataset.range(5, 7)], choice, False))


def test_a_cache_between_random_access_and_a_shuffle_is_filled_once() -> None:
    calls = []
    cached = Dataset.range(4).map(lambda x: calls.append(int(x)) or x * 2).cache()
    assert cached.element_spec.shape == ()
    calls.clear()
    shuffled = cached.shuffle(3, seed=1).repeat(3)
    assert sorted(map(int, shuffled)) == sorted([0, 2, 4, 6] * 3)
    assert sorted(calls) == [0, 1, 2, 3]


def test_a_cache_keeps_the_order_of_a_pass_that_was_restarted() -> None:
    def pipeline() -> di.data.Dataset:
        return Dataset.range(5).filter(lambda x: x >= 0).shuffle(5, seed=3).cache()

    with iter(pipeline().repeat(2)) as whole:
        first = [int(next(whole)) for _ in range(2)]
        state = whole.state()
        rest = [int(x) for x in whole]
    assert first + rest[:3] == rest[3:]
    assert [int(x) for x in pipeline().repeat(2).restore(state)] == rest


def test_states_are_restored_with_the_seeds_that_were_drawn() -> None:
    def pipeline() -> di.data.Dataset:
        return Dataset.range(6).shuffle(6).repeat(2)

    with iter(pipeline()) as whole:
        state = whole.state()
        elements = list(whole)
    check_same_as(Dataset.from_tensor_slices([int(x) for x in pipeline().restore(state)]), [int(x) for x in elements])
    with pytest.raises(di.errors.StateError, match="a seed for each of the 1 steps that draw one"):
        pipeline().restore(sealed({**pipeline().__iter__().place(), "seeds": []}, state["plan"]))


@pytest.mark.parametrize(
    "build",
    [
        lambda: di.data.Dataset.range(3).flat_map(lambda i: di.data.Dataset.range(10 * i, 10 * i + 6).shuffle(6)),
        lambda: di.data.Dataset.range(3).interleave(lambda i: di.data.Dataset.range(10 * i, 10 * i + 6).shuffle(6)),
        lambda: di.data.Dataset.range(2).flat_map(
            lambda i: di.data.Dataset.range(2).flat_map(lambda j: di.data.Dataset.range(9).shuffle(9))
        ),
    ],
)
def test_a_shuffle_in_a_function_goes_on_in_a_new_process_as_it_began(build: Any) -> None:
    """Seeds that the function's datasets draw were lost when the pipeline was built again."""
    whole, states = [], []
    with iter(build()) as iterator:
        states.append(iterator.state())
        for element in iterator:
            whole.append(int(element))
            states.append(iterator.state())
    for place, state in enumerate(states):
        assert [int(x) for x in build().restore(json.loads(json.dumps(state)))] == whole[place:]


def test_files_are_shuffled_differently_within() -> None:
    dataset = di.data.Dataset.range(2).flat_map(lambda i: di.data.Dataset.range(40).shuffle(40))
    first = [int(x) for x in dataset]
    assert first[:40] != first[40:]
    assert [int(x) for x in dataset] != first, "each pass anew"
