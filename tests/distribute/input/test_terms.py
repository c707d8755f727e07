# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace
from typing import Any

import pytest

from distinput.distribute import MirroredStrategy
from distinput.distribute.input.sources import Terms
from distinput.errors import InvalidArgumentError
from distinput.plan.node import INFINITE
from tests.distribute.workers import on_workers

ALONE = MirroredStrategy(["CPU:0", "CPU:1"])._replicas


def test_workers_agree_where_neither_count_nor_infinity_tells_the_end() -> None:
    def body(strategy: Any, worker: int) -> Any:
        replicas = strategy._replicas
        return [
            Terms(replicas, n, steps=steps).agrees for n, steps in ((-2, None), (8, None), (8, 4), (INFINITE, None))
        ]

    assert on_workers([1, 1], body) == [[True, True, False, False]] * 2
    assert not Terms(ALONE, -2).agrees, "one worker has nobody to agree with"


@pytest.mark.parametrize("tail", ["drop", "partial", "pad"])
def test_a_step_that_is_not_full_is_left_out(tail: str) -> None:
    terms = Terms(ALONE, 8, tail=tail, full_rows=4)
    assert [terms.leaves_out(rows) for rows in (0, 3, 4, 5)] == [True, True, False, False]


def test_or_an_error() -> None:
    terms = Terms(ALONE, 8, tail="error", full_rows=4)
    assert not terms.leaves_out(4)
    with pytest.raises(InvalidArgumentError, match="every step needs 4 rows, one has 3"):
        terms.leaves_out(3)


def test_workers_that_have_counted_their_steps_agree_where_one_learns_shapes_from_others() -> None:
    replicas = SimpleNamespace(workers=2)
    assert Terms(replicas, 5).agrees  # type: ignore[arg-type]
    assert not Terms(replicas, 5, steps=3).agrees  # type: ignore[arg-type]
    assert Terms(replicas, 5, steps=3, open_ends=True).agrees  # type: ignore[arg-type]
    assert not Terms(replicas, -1, steps=3, open_ends=True).agrees  # type: ignore[arg-type]
    assert not Terms(SimpleNamespace(workers=1), 5, open_ends=True).agrees  # type: ignore[arg-type]
