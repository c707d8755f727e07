# SPDX-License-Identifier: Apache-2.0
"""Every op with a seed of its own: what it says of it, and what its states hold of it."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.plan.families import Seeded, drawn_seeds, own_draw
from distinput.plan.node import walk

RANGE = Dataset.range

OPS: dict[str, Callable[[Any], Dataset]] = {
    "global_shuffle": lambda seed: RANGE(9).global_shuffle(seed=seed),
    "map": lambda seed: RANGE(9).map(lambda x, generator: x + generator.integers(9), rng=True, seed=seed),
    "random": lambda seed: Dataset.random(seed=seed).take(9),
    "rejection_resample": lambda seed: RANGE(9).rejection_resample(lambda x: np.int32(0), [1.0], seed=seed),
    "sample_from_datasets": lambda seed: Dataset.sample_from_datasets([RANGE(9), RANGE(9)], seed=seed),
    "shuffle": lambda seed: RANGE(9).shuffle(9, seed=seed),
    "shuffle of all": lambda seed: RANGE(9).shuffle(di.data.UNKNOWN_CARDINALITY, seed=seed),
}


@pytest.mark.parametrize("name", OPS)
def test_a_seed_of_numpy_gives_the_same_numbers_and_a_plain_state(name: str) -> None:
    plain, numpys = OPS[name](3), OPS[name](np.int64(3))
    assert repr(plain.to_list()) == repr(numpys.to_list())
    elements = iter(numpys)
    next(elements)
    assert json.loads(json.dumps(elements.state_dict())) == elements.state_dict()


@pytest.mark.parametrize("name", OPS)
def test_a_seed_is_drawn_where_none_is_given_and_only_there(name: str) -> None:
    (step,) = [step for step in walk(OPS[name](None).node) if isinstance(step, Seeded)]
    assert drawn_seeds(step) == [step.drawn_seed] == [step.seeded(0)["seed"]]
    assert drawn_seeds(OPS[name](3).node) == []


@pytest.mark.parametrize("name", OPS)
def test_others_are_told_which_elements_come_by_a_drawn_seed(name: str) -> None:
    assert (own_draw(OPS[name](None).node, 2) is not None) == (name != "map")
    assert own_draw(OPS[name](3).node, 2) is None


@pytest.mark.parametrize("name", sorted({*OPS} - {"sample_from_datasets", "shuffle of all"}))
def test_a_seed_that_is_no_integer_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"{name}: seed must be an integer, got 'x'")):
        OPS[name]("x")
