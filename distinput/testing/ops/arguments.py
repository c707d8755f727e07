# SPDX-License-Identifier: Apache-2.0
"""What the ops of random pipelines share: how arguments are drawn, and what an op fits behind."""

from typing import Any

from hypothesis import strategies as st

from distinput.plan.options import AutoShardPolicy, Options
from distinput.testing.pipeline import DrawFrom, Pipeline

__all__ = ["COUNTS", "PARALLEL", "SMALL", "OpArguments", "nothing", "tensors", "unchanged", "with_policy"]

OpArguments = dict[str, Any]
"""The arguments of an op or a source in a recipe: JSON values."""

SMALL = st.integers(1, 5)
COUNTS = st.sampled_from([3, 1, 2, 5, 8, 13, 0, -1])
PARALLEL = st.sampled_from([None, None, None, 1, 2, -1])


def nothing(_: DrawFrom, __: Pipeline) -> OpArguments:
    """No argument."""
    return {}


def unchanged(p: Pipeline, _: OpArguments) -> list[Any]:
    """The elements as they are."""
    return p.elements


def tensors(p: Pipeline) -> bool:
    """Whether no leaf is a dataset."""
    return p.tensors


def with_policy(name: str) -> Options:
    """Options with this policy for sharding."""
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[name]
    return options
