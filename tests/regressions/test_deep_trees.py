# SPDX-License-Identifier: Apache-2.0
"""A loop may add thousands of steps: trees of a thousand floors are described, run, saved, restored and sent."""

import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import distinput as di
from distinput.plan.node import allow_depth
from tests.depth import cases

Dataset = di.data.Dataset
_FLOORS = 150 if sys.version_info[:2] == (3, 12) else cases(350, 700)
"""Python 3.12 ends at some 1,500 calls of Python by C, whatever its limit of recursion is; each floor makes several."""


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)


STEPS: dict[str, Callable[[Any], Any]] = {
    "concatenate": lambda ds: ds.concatenate(Dataset.range(1)),
    "map": lambda ds: ds.map(lambda x: x),
    "zip": lambda ds: Dataset.zip((ds, Dataset.range(5))).map(lambda a, _: a),
    "filter": lambda ds: ds.filter(lambda _: True),
    "take": lambda ds: ds.take(9000),
}


@pytest.mark.parametrize("name", list(STEPS))
def test_a_pipeline_of_many_steps_runs_and_restores(name: str) -> None:
    dataset = Dataset.range(3)
    for _ in range(_FLOORS):
        dataset = STEPS[name](dataset)
    iterator = iter(dataset)
    first = [next(iterator)]
    state = iterator.state()
    assert dataset.explain()
    assert str(dataset)
    rest = list(dataset.restore(state))
    assert [*first, *rest] == [0, 1, 2, *[0] * (_FLOORS * (name == "concatenate"))]
    if name in ("concatenate", "take"):  # functions of a test cannot be sent
        assert len(list(pickle.loads(pickle.dumps(dataset)))) == len(rest) + 1


def test_others_leave_the_limit_alone() -> None:
    before = sys.getrecursionlimit()
    allow_depth(Dataset.range(3).batch(2).node)
    assert sys.getrecursionlimit() == before
