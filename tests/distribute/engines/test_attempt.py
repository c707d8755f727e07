# SPDX-License-Identifier: Apache-2.0
"""A name that the workers of one attempt share, whatever earlier ones have left in the store; see also the regressions."""

import pytest

from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.engines.background import _Follower, _Leader, attempt_name


class Store(dict[str, str]):
    """A store in memory."""

    def put(self, key: str, value: str) -> None:
        self[key] = value


def test_one_worker_needs_no_store() -> None:
    store = Store()
    names = {attempt_name(store, 0, 1, "job", 0.0) for _ in range(3)}
    assert len(names) == 3
    assert store == {}


def test_a_follower_confirms_only_what_was_proposed_for_its_own_token() -> None:
    store = Store({"job/proposal": "old-name mine-0 mine-1", "job/name": "old-name"})
    follower = _Follower(store, 1, "job", "fresh")
    assert follower.step() is None
    assert "job/confirmed/1" not in store
    store["job/proposal"] = "new-name other fresh"
    assert follower.step() is None  # it has confirmed, but the name is not final yet
    assert store["job/confirmed/1"] == "new-name"
    store["job/name"] = "new-name"
    assert follower.step() == "new-name"


def test_a_token_in_the_place_of_another_rank_is_not_one_s_own() -> None:
    store = Store({"job/proposal": "name fresh other"})
    assert _Follower(store, 1, "job", "fresh").step() is None
    assert "job/confirmed/1" not in store


def test_the_leader_proposes_anew_when_a_token_changes() -> None:
    store = Store({"job/token/1": "old"})
    leader = _Leader(store, 2, "job", "mine")
    assert leader.step() is None
    first = store["job/proposal"].split(" ")[0]
    assert store["job/proposal"] == f"{first} mine old"
    assert leader.late() == [1]
    store["job/token/1"] = "fresh"
    store["job/confirmed/1"] = first  # a worker of the earlier attempt, which has ended since
    assert leader.step() is None
    second = store["job/proposal"].split(" ")[0]
    assert second != first
    store["job/confirmed/1"] = second
    assert leader.step() == second
    assert store["job/name"] == second


def test_those_who_did_not_come_are_named() -> None:
    with pytest.raises(ChannelLost, match="rank 1, 2 did not come"):
        attempt_name(Store(), 0, 3, "job", 0.05)
    with pytest.raises(ChannelLost, match="rank 0 did not come"):
        attempt_name(Store(), 1, 3, "job", 0.05)
