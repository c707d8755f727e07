# SPDX-License-Identifier: Apache-2.0
"""Several resolvers taken as one."""

from typing import Any

import pytest

from distinput.distribute.cluster_resolver import (
    ClusterSpec,
    SimpleClusterResolver,
    UnionResolver,
)

TWO = {"worker": ["a:1", "b:2"]}


def simple(cluster: Any = TWO, **more: Any) -> SimpleClusterResolver:
    return SimpleClusterResolver(ClusterSpec(cluster), **more)


def test_a_union_keeps_task_id_zero() -> None:
    first = simple(task_type="worker", task_id=1)
    assert UnionResolver(first, task_id=0).task_id == 0
    assert UnionResolver(first).task_id == 1
    union = UnionResolver(first)
    union.task_id, union.task_type, union.rpc_layer = 0, "ps", "grpc"
    assert (union.task_id, union.task_type, union.rpc_layer) == (0, "ps", "grpc")
    assert first.task_id == 1


def test_a_union_joins_lists_and_merges_numbered_tasks() -> None:
    lists = UnionResolver(simple(), simple({"worker": ["c:3"], "ps": ["p:1"]}))
    assert lists.cluster_spec().as_dict() == {"worker": ["a:1", "b:2", "c:3"], "ps": ["p:1"]}
    gaps = UnionResolver(simple(), simple({"worker": {4: "e:5"}}))
    assert gaps.cluster_spec().as_dict() == {"worker": {0: "a:1", 1: "b:2", 4: "e:5"}}
    with pytest.raises(KeyError, match=r"Duplicate keys detected .* tasks \[4\] of job 'worker' are named twice"):
        UnionResolver(gaps, simple({"worker": {4: "f:1"}})).cluster_spec()


def test_a_union_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="At least one ClusterResolver is required"):
        UnionResolver()
    with pytest.raises(ValueError, match=r"Unexpected kwargs provided \['environment'\]; known are task_type"):
        UnionResolver(simple(), environment="x")
    with pytest.raises(TypeError, match="must be a sub-class of `ClusterResolver`, got int 3"):
        UnionResolver(simple(), 3)  # type: ignore[arg-type]
