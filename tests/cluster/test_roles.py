# SPDX-License-Identifier: Apache-2.0
"""What a task is in its cluster, by TensorFlow's rules."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.cluster.topology import task_at, worker_addresses
from distinput.distribute.cluster_resolver import collective_leader, id_in_cluster, is_chief, worker_count

FULL = {"chief": ["c:1"], "worker": ["a:1", "b:1"], "ps": ["p:1", "q:1"], "evaluator": ["e:1"]}
PLAIN = {"worker": ["a:1", "b:1"], "ps": ["p:1"]}


@pytest.mark.parametrize(
    "cluster, task_type, task_id, chief, count, number, leader",
    [
        (FULL, "chief", 0, True, 3, 0, "/job:chief/replica:0/task:0"),
        (FULL, "worker", 0, False, 3, 1, "/job:chief/replica:0/task:0"),
        (FULL, "worker", 1, False, 3, 2, "/job:chief/replica:0/task:0"),
        (FULL, "evaluator", 0, True, 1, 0, ""),
        (PLAIN, "worker", 0, True, 2, 0, "/job:worker/replica:0/task:0"),
        (PLAIN, "worker", 1, False, 2, 1, "/job:worker/replica:0/task:0"),
        (PLAIN, "evaluator", 0, True, 1, 0, ""),
    ],
)
def test_the_role_of_a_task(
    cluster: Any, task_type: str, task_id: int, chief: bool, count: int, number: int, leader: str
) -> None:
    assert is_chief(cluster, task_type, task_id) is chief
    assert worker_count(cluster, task_type) == count
    assert id_in_cluster(cluster, task_type, task_id) == number
    assert collective_leader(cluster, task_type, task_id) == leader


def test_a_parameter_server_is_no_chief_and_has_no_number() -> None:
    assert not is_chief(PLAIN, "ps", 0)
    with pytest.raises(ValueError, match="There is no id for task_type 'ps'"):
        id_in_cluster(PLAIN, "ps", 0)
    with pytest.raises(ValueError, match="Unexpected `task_type` 'ps'"):
        worker_count(PLAIN, "ps")


def test_nobody_leads_where_there_is_no_cluster() -> None:
    assert collective_leader({}, None, 0) == ""
    with pytest.raises(ValueError, match=r"must have a chief or a worker, got the jobs \['ps'\]"):
        collective_leader({"ps": ["p:1"]}, "ps", 0)


@pytest.mark.parametrize(
    "cluster, task_type, task_id, says",
    [
        ({"master": ["a:1"]}, None, 0, r"Disallowed task type found in cluster spec: \['master'\]"),
        (PLAIN, "master", 0, "Unrecognized task_type: 'master', valid task types are"),
        (PLAIN, "chief", 0, "`task_type` 'chief' not found in cluster_spec"),
        ({"chief": ["a:1", "b:1"]}, "chief", 0, "at most one 'chief' job, got 2"),
        ({"evaluator": ["a:1", "b:1"]}, "evaluator", 0, "at most one 'evaluator' job, got 2"),
        (PLAIN, "worker", 2, "`task_id` 2 exceeds the maximum id of 'worker', whose ids are from 0 to 1"),
        (PLAIN, "worker", -1, "`task_id` -1 exceeds"),
        (PLAIN, "evaluator", 1, "`task_id` 1 exceeds the maximum id of 'evaluator', which is 0"),
        ({"worker": {1: "b:1", 3: "d:1"}}, "worker", 1, r"without a gap to compute together, got \[1, 3\]"),
    ],
)
def test_a_cluster_that_breaks_the_rules_is_refused(cluster: Any, task_type: Any, task_id: int, says: str) -> None:
    for ask in (is_chief, id_in_cluster, collective_leader):
        with pytest.raises(ValueError, match=says):
            ask(cluster, task_type, task_id)


@given(st.booleans(), st.integers(1, 6))
def test_numbers_are_dense_and_tell_the_task(chief: bool, workers: int) -> None:
    cluster = {"worker": [f"w:{i}" for i in range(workers)]} | ({"chief": ["c:0"]} if chief else {})
    tasks = [("chief", 0)] * chief + [("worker", i) for i in range(workers)]
    assert [id_in_cluster(cluster, *task) for task in tasks] == list(range(worker_count(cluster, "worker")))
    assert [task_at(cluster, rank) for rank in range(len(tasks))] == tasks
    assert worker_addresses(cluster) == [cluster[job][index] for job, index in tasks]
    assert sum(is_chief(cluster, *task) for task in tasks) == 1
