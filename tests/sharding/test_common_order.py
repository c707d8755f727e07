# SPDX-License-Identifier: Apache-2.0
"""No step depends on the machine that it runs on, so that all workers have one order."""

from typing import Any

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.ops import interleave
from distinput.sharding.own_rows import with_common_order

RANGE = di.data.Dataset.range


def open_datasets(monkeypatch: pytest.MonkeyPatch, cores: int, **how: Any) -> list[int]:
    monkeypatch.setattr(interleave, "cores", lambda: cores)
    dataset = RANGE(40).interleave(lambda n: RANGE(10 * n, 10 * n + 3), **how)
    return Dataset(with_common_order(dataset.node)).to_list()


@pytest.mark.parametrize("how", [{}, {"num_parallel_calls": di.data.AUTOTUNE}, {"cycle_length": di.data.AUTOTUNE}])
def test_machines_with_other_cores_have_one_order(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_datasets(monkeypatch, 2, **how) == open_datasets(monkeypatch, 64, **how)


def test_the_order_that_was_asked_for_stays() -> None:
    node = RANGE(4).interleave(lambda n: RANGE(n), cycle_length=2).batch(2).node
    assert with_common_order(node) is node


def test_it_is_found_below_other_steps() -> None:
    node = RANGE(4).interleave(lambda n: RANGE(n)).prefetch(1).batch(2).node
    assert with_common_order(node) is not node
    assert [step.op for step in with_common_order(node).steps] == [step.op for step in node.steps]
