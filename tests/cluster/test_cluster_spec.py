# SPDX-License-Identifier: Apache-2.0
"""`ClusterSpec` keeps what it is given, dense or with gaps."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute.cluster_resolver import ClusterSpec

addresses = st.text("abc:123", max_size=4)
dense = st.lists(addresses, max_size=4)
sparse = st.dictionaries(st.integers(0, 20), addresses, max_size=4)
clusters = st.dictionaries(st.sampled_from(["chief", "worker", "ps", "other"]), st.one_of(dense, sparse))


def by_index(tasks: Any) -> dict[int, str]:
    return dict(enumerate(tasks)) if isinstance(tasks, list) else tasks


@given(clusters)
def test_as_dict_round_trips(cluster: dict[str, Any]) -> None:
    spec = ClusterSpec(cluster)
    again = ClusterSpec(spec.as_dict())
    assert again == spec == ClusterSpec(spec)
    assert hash(again) == hash(spec)
    assert again.as_dict() == spec.as_dict()


@given(clusters)
def test_every_task_is_kept(cluster: dict[str, Any]) -> None:
    spec = ClusterSpec(cluster)
    assert spec.jobs == list(cluster)
    assert bool(spec) == bool(cluster)
    for job, tasks in cluster.items():
        numbered = by_index(tasks)
        assert spec.num_tasks(job) == len(numbered)
        assert spec.task_indices(job) == sorted(numbered)
        assert {index: spec.task_address(job, index) for index in numbered} == numbered
        assert spec.job_tasks(job) == [numbered.get(index) for index in range(max(numbered, default=-1) + 1)]


def test_a_job_without_gaps_becomes_a_list() -> None:
    assert ClusterSpec({"worker": {1: "b", 0: "a"}}).as_dict() == {"worker": ["a", "b"]}
    assert ClusterSpec({"worker": {1: "b"}}).as_dict() == {"worker": {1: "b"}}


def test_indices_may_be_texts_as_in_json() -> None:
    assert ClusterSpec({"worker": {"1": "b", "3": "d"}}) == ClusterSpec({"worker": {1: "b", 3: "d"}})


def test_changing_a_result_changes_no_spec() -> None:
    given_tasks = ["a", "b"]
    spec = ClusterSpec({"worker": given_tasks})
    given_tasks.append("c")
    spec.as_dict()["worker"].append("d")
    assert spec.as_dict() == {"worker": ["a", "b"]}


def test_specs_with_other_addresses_differ() -> None:
    assert ClusterSpec({"worker": ["a"]}) != ClusterSpec({"worker": ["b"]})
    assert ClusterSpec({"worker": ["a"]}) != {"worker": ["a"]}
    assert repr(ClusterSpec({"worker": ["a"]})) == "ClusterSpec({'worker': ['a']})"


@pytest.mark.parametrize(
    "cluster, error, says",
    [
        ("worker", TypeError, "`cluster` must be a dict .* got str 'worker'"),
        ({1: ["a"]}, TypeError, "name of a job must be a text, got int 1"),
        ({"worker": "a"}, TypeError, "tasks for job 'worker' must be a list or a dictionary .* got str 'a'"),
        ({"worker": [1]}, TypeError, "address of task 0 in job 'worker' must be a text .* got int 1"),
        ({"worker": {"x": "a"}}, TypeError, "index in job 'worker' must be an integer, got 'x'"),
        ({"worker": {True: "a"}}, TypeError, "must be an integer, got True"),
        ({"worker": {-1: "a"}}, ValueError, "must be at least 0, got -1"),
        ({"worker": {1: "a", "1": "b"}}, ValueError, "two tasks of job 'worker' have the same index"),
    ],
)
def test_a_wrong_cluster_is_refused(cluster: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        ClusterSpec(cluster)


def test_unknown_jobs_and_tasks_are_named() -> None:
    spec = ClusterSpec({"worker": ["a"]})
    for ask in (spec.num_tasks, spec.task_indices, spec.job_tasks):
        with pytest.raises(ValueError, match=r"No such job in cluster: 'ps'; its jobs are \['worker'\]"):
            ask("ps")
    with pytest.raises(ValueError, match=r"No task with index 1 in job 'worker'; its tasks are \[0\]"):
        spec.task_address("worker", 1)
