# SPDX-License-Identifier: Apache-2.0
"""Batches that are partial or empty, and parts of data that end at different times."""

from typing import Any

from hypothesis import strategies as st

from distinput.core.nest import structure_of
from distinput.core.spec import TensorSpec
from distinput.testing.strategies.specs import specs, values

__all__ = ["batch_sizes", "partial_batches", "uneven_ends"]


def uneven_ends(most_parts: int = 4, most_rows: int = 7) -> st.SearchStrategy[list[int]]:
    """The rows of files, or of ranks: two parts or more, not all of them equal, empty ones among them.

    Args:
      most_parts: the most parts, at least 2.
      most_rows: the most rows in one.

    >>> from hypothesis import find
    >>> find(uneven_ends(), lambda rows: 0 in rows[:-1])
    [0, 1]
    """
    parts = st.lists(st.integers(0, most_rows), min_size=2, max_size=most_parts)
    return parts.filter(lambda rows: len(set(rows)) > 1)


def batch_sizes(batch: int, most_steps: int = 4, *, anywhere: bool = False) -> st.SearchStrategy[list[int]]:
    """The rows of batches in order: full ones, then one with 0 to `batch` rows.

    Args:
      batch: the rows of a full one.
      most_steps: the most batches.
      anywhere: all of them may be partial, as behind a filter.
    """
    size = st.integers(0, batch)
    if anywhere:
        return st.lists(size, max_size=most_steps)
    return st.builds(lambda full, last: [batch] * full + [last], st.integers(0, most_steps - 1), size)


@st.composite
def partial_batches(
    draw: st.DrawFn, spec: Any = None, batch: int = 4, most_steps: int = 4, *, anywhere: bool = False
) -> list[Any]:
    """Batches of one spec, as a loader delivers them: alike but for their rows.

    Args:
      draw: given by Hypothesis.
      spec: a nest of `TensorSpec` of one element with known shapes; any where None.
      batch: the rows of a full batch.
      most_steps: the most batches.
      anywhere: all of them may be partial.

    >>> from distinput import TensorSpec
    >>> from hypothesis import find
    >>> find(partial_batches(TensorSpec((), np.int64), batch=2), lambda made: [len(each) for each in made] == [2, 1])
    [array([0, 0]), array([0])]
    """
    spec = draw(specs(unknown=False)) if spec is None else spec
    structure = structure_of(spec)
    leaves: list[TensorSpec] = structure.flatten(spec)
    for leaf in leaves:
        if leaf.shape is None or None in leaf.shape:
            raise ValueError(f"partial_batches: shapes must be known, got {leaf}")
    return [
        structure.build([draw(values(leaf.dtype, (rows, *leaf.shape))) for leaf in leaves])  # type: ignore[misc]
        for rows in draw(batch_sizes(batch, most_steps, anywhere=anywhere))
    ]
