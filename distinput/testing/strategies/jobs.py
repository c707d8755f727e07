# SPDX-License-Identifier: Apache-2.0
"""Jobs: records, ranks and batches that end unevenly more often than by chance."""

from hypothesis import strategies as st

from distinput.testing.judge.job import Job

__all__ = ["jobs"]


@st.composite
def jobs(draw: st.DrawFn, most_ranks: int = 4, most_batch: int = 6, most_steps: int = 5, seeds: int = 3) -> Job:
    """Jobs for a loader, small ones first.

    Every second one ends at or beside a full step: with all its rows, with one row too many or too few, with fewer rows than
    ranks, or with none at all.

    Args:
      draw: given by Hypothesis.
      most_ranks: the most ranks.
      most_batch: the most rows of a rank in a step.
      most_steps: the most steps.
      seeds: the largest seed.

    >>> from hypothesis import find
    >>> find(jobs(), lambda job: 0 < job.records % job.global_batch < job.ranks)
    Job(records=1, ranks=2, batch=1, seed=0, epoch=0, workers=0)
    """
    ranks = draw(st.integers(1, most_ranks))
    batch = draw(st.integers(1, most_batch))
    rows = ranks * batch
    anywhere = st.integers(0, most_steps * rows)
    edge = st.builds(
        lambda steps, beside: max(0, steps * rows + beside),
        st.integers(0, most_steps - 1),
        st.sampled_from([0, 1, -1, ranks - 1, rows - 1]),
    )
    return Job(draw(anywhere | edge), ranks, batch, draw(st.integers(0, seeds)))
