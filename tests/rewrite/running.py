# SPDX-License-Identifier: Apache-2.0
"""What runs for a dataset, in words, after one rule alone; with the laws that the rule must keep."""

from distinput.data.dataset import Dataset
from distinput.plan.node import walk
from distinput.rewrite.rules import FIRST, RULES, rewrite
from distinput.testing.laws import check_rewrites

__all__ = ["fires", "ops_after"]


def ops_after(dataset: Dataset, name: str) -> list[str]:
    """The ops of the tree that runs, sources first, where only rule `name` is tried; its laws are checked, too."""
    check_rewrites(dataset)
    assert name in {rule.__name__ for rule in (*FIRST, *RULES)}
    running, _ = rewrite(dataset.node, only=[name])
    return [step.op for step in walk(running)]


def fires(dataset: Dataset, name: str) -> bool:
    """Whether rule `name` fires where it alone is tried."""
    assert name in {rule.__name__ for rule in (*FIRST, *RULES)}
    return name in rewrite(dataset.node, only=[name])[1]
