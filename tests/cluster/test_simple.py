# SPDX-License-Identifier: Apache-2.0
"""A resolver that answers what it was given."""

from typing import Any

import pytest

from distinput.distribute.cluster_resolver import (
    ClusterSpec,
    SimpleClusterResolver,
)

TWO = {"worker": ["a:1", "b:2"]}


def simple(cluster: Any = TWO, **more: Any) -> SimpleClusterResolver:
    return SimpleClusterResolver(ClusterSpec(cluster), **more)


def test_a_simple_resolver_wants_a_spec() -> None:
    with pytest.raises(TypeError, match=r"cluster_spec must be a ClusterSpec, got dict; write ClusterSpec"):
        SimpleClusterResolver(TWO)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="master must be a string, got int 1"):
        simple(master=1)
    with pytest.raises(TypeError, match=r"num_accelerators must be a dict .* got int 2"):
        simple(num_accelerators=2)


def test_a_simple_resolver_names_its_master_only_without_a_task() -> None:
    resolver = simple(master="m:0", task_type="worker", task_id=1)
    assert (resolver.master(), resolver.master("worker"), resolver.master("worker", 1)) == ("m:0", "m:0", "b:2")
