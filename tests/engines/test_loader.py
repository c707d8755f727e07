# SPDX-License-Identifier: Apache-2.0
"""Datasets in the worker processes of PyTorch's DataLoader: a new order every epoch, and a word where all read everything."""

from itertools import chain
from typing import Any

import pytest

from tests.depth import sampled
from tests.engines.processes import run

pytestmark = pytest.mark.needs_engine("torch")
ALL = list(range(12))


def epochs(given: dict[str, Any]) -> tuple[list[list[int]], str]:
    outcome = run("torch", [1], "loader", given)
    return outcome.results[0], outcome.output


@pytest.mark.parametrize("method", sampled(["fork"], ["spawn"]))  # those that are spawned: below
def test_workers_that_live_for_an_epoch_share_an_order_that_is_another_in_every_epoch(method: str) -> None:
    found, said = epochs({"workers": 2, "method": method, "count": 3})
    assert [sorted(epoch) for epoch in found] == [ALL] * 3
    assert len({tuple(epoch) for epoch in found}) == 3
    assert "InputWarning" not in said


def test_the_orders_of_such_workers_follow_the_seed_of_pytorch() -> None:
    given = {"workers": 2, "method": "fork", "torch_seed": 7}
    first, again = epochs(given)[0], epochs(given)[0]
    assert first == again
    assert first != epochs(given | {"torch_seed": 8})[0]


@pytest.mark.parametrize(
    "given",
    [
        {"workers": 0},
        {"workers": 0, "sharded": False},
        {"workers": 2, "method": "fork", "persistent": True},
        {"workers": 2, "method": "fork", "tells": True},
        {"workers": 1, "method": "fork", "tells": True, "sharded": False},
        {"workers": 2, "method": "fork", "tells": True, "seed": None},
    ],
    ids=str,
)
def test_those_who_do_it_right_get_every_record_in_other_orders_and_no_warning(given: dict[str, Any]) -> None:
    found, said = epochs(given)
    assert [sorted(epoch) for epoch in found] == [ALL, ALL]
    assert found[0] != found[1]
    assert "InputWarning" not in said


@pytest.mark.parametrize("before", [False, True])
def test_ranks_that_share_the_elements_have_one_order_and_say_so(before: bool) -> None:
    """What PyTorch draws for an epoch is another number on another rank, so it cannot be the number of the pass."""
    given = {"workers": 2, "method": "fork", "ranks": 2, "before": before}
    ranks = [epochs(given | {"rank": rank, "torch_seed": rank}) for rank in range(2)]
    for shares in zip(*[found for found, _ in ranks], strict=True):
        assert sorted(row for share in shares for row in share) == ALL
    for _, said in ranks:
        assert said.count("InputWarning: every epoch of this DataLoader will have the same order") == 2, "once an epoch"


def test_ranks_that_count_the_epochs_share_their_orders() -> None:
    given = {"workers": 2, "method": "fork", "ranks": 2, "tells": True}
    ranks = [epochs(given | {"rank": rank, "torch_seed": rank}) for rank in range(2)]
    assert [sorted(chain(*shares)) for shares in zip(*[found for found, _ in ranks], strict=True)] == [ALL, ALL]
    assert all(found[0] != found[1] and "InputWarning" not in said for found, said in ranks)


def test_a_number_that_workers_which_stay_do_not_see_change_is_said() -> None:
    found, said = epochs({"workers": 1, "method": "fork", "tells": True, "persistent": True})
    assert found[0] == found[1]
    assert said.count("InputWarning: iter_pass: pass 0 begins again") == 1


def test_an_order_that_is_to_stay_is_none_to_warn_of() -> None:
    found, said = epochs({"workers": 2, "method": "fork", "reshuffle": False})
    assert found[0] == found[1]
    assert "InputWarning" not in said


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_that_all_read_everything_say_so(persistent: bool) -> None:
    given = {"workers": 2, "method": "fork", "sharded": False, "reshuffle": False, "persistent": persistent}
    found, said = epochs(given)
    assert [sorted(epoch) for epoch in found] == [sorted(ALL + ALL)] * 2
    assert said.count("each one is delivered 2 times") == (1 if persistent else 2)
    assert "dataset.shard(info.num_workers, info.id)" in said


def test_spawned_workers_say_the_same() -> None:
    found, said = epochs({"workers": 2, "method": "spawn", "sharded": False, "count": 1})
    assert sorted(found[0]) == sorted(ALL + ALL)
    assert said.count("InputWarning: ") == 1
