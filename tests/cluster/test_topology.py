# SPDX-License-Identifier: Apache-2.0
"""The place of a process among those that compute together."""

import pytest

from distinput.cluster.cluster_spec import ClusterSpec
from distinput.cluster.topology import Cluster, Sighting, host_of, neighbours


@pytest.mark.parametrize(
    "place, says",
    [
        ({"rank": 2, "size": 2}, "rank must be from 0 to size - 1, got rank=2 and size=2 from explicit"),
        ({"rank": -1, "size": 2}, "rank must be from 0 to size - 1, got rank=-1"),
        ({"rank": 0, "size": 0}, "rank must be from 0 to size - 1, got rank=0 and size=0"),
        ({"rank": 0, "size": 4, "local_rank": 2, "local_size": 2}, "local_rank must be from 0 to local_size - 1"),
        ({"rank": 0, "size": 1, "local_size": 2}, "local_size must be at most size, got local_size=2 and size=1"),
    ],
)
def test_a_place_that_cannot_be(place: dict[str, int], says: str) -> None:
    with pytest.raises(ValueError, match=f"^Cluster: {says}"):
        Cluster(**place)  # type: ignore[arg-type]


def test_one_process_is_the_chief() -> None:
    assert Cluster(0, 2).is_chief
    assert not Cluster(1, 2).is_chief
    assert not Cluster(0, 2, task_type="ps").is_chief
    assert Cluster(0, 1, task_type="evaluator").is_chief


def test_addresses_go_by_rank_chief_first() -> None:
    jobs = ClusterSpec({"worker": ["b:1", "c:1"], "chief": ["a:1"], "ps": ["p:1"]})
    assert Cluster(1, 3, jobs=jobs).addresses == ("a:1", "b:1", "c:1")
    assert Cluster(0, 1).addresses == ()


@pytest.mark.parametrize("address, host", [("a:1", "a"), ("a", "a"), ("[::1]:80", "[::1]"), ("a:b", "a:b"), ("", "")])
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host


def test_neighbours_have_the_same_host() -> None:
    addresses = ["a:1", "b:1", "a:2", "", "a:3", ""]
    assert [neighbours(addresses, rank) for rank in range(6)] == [(0, 3), (0, 1), (1, 3), (0, 1), (2, 3), (0, 1)]


def test_a_sighting_says_how_it_knows() -> None:
    seen = Sighting("torchrun", rank=1, size=2, words={"size": "WORLD_SIZE=2"})
    assert (seen.say("size"), seen.say("rank")) == ("torchrun says WORLD_SIZE=2", "torchrun says rank=1")
