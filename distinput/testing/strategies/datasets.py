# SPDX-License-Identifier: Apache-2.0
"""Datasets: random pipelines, of which only the dataset is wanted."""

from collections.abc import Sequence

from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.testing.pipeline import Ingredient, Pipeline
from distinput.testing.pipelines import OPS, SOURCES, pipelines

__all__ = ["datasets"]


def datasets(
    most_ops: int = 4,
    sources: Sequence[Ingredient] = SOURCES,
    ops: Sequence[Ingredient] = OPS,
    *,
    tensors: bool = False,
    batched: bool = False,
) -> st.SearchStrategy[Dataset]:
    """Datasets of random sources and ops; take `pipelines` where the elements that they must give are wanted too.

    Args:
      most_ops: the longest chain of ops.
      sources: what they may begin with.
      ops: what may follow.
      tensors: only those without datasets among their components.
      batched: only those whose elements can be taken apart along their first axis.

    >>> from hypothesis import find
    >>> find(datasets(tensors=True), lambda dataset: dataset.cardinality() == 3).cardinality()
    3
    """

    def wanted(made: Pipeline) -> bool:
        return (made.tensors or not tensors) and (not batched or made.batched)

    last = "batch" if batched and any(op.name == "batch" for op in ops) else None
    return pipelines(most_ops, sources, ops, last).filter(wanted).map(Pipeline.build)
