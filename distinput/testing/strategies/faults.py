# SPDX-License-Identifier: Apache-2.0
"""What goes wrong: requests that fail, jobs that are stopped and go on, also on other ranks."""

from typing import Any, NamedTuple

from hypothesis import strategies as st

from distinput.testing.judge.job import Job

__all__ = ["Interruption", "file_faults", "interruptions"]


def file_faults(most: float = 0.3, *, stalls: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    """The arguments of a `FaultyFiles`: which share of requests fails, comes short, or does not come back.

    Args:
      most: the largest share of each kind.
      stalls: requests that do not come back are among them; these cost time.

    >>> from hypothesis import find
    >>> find(file_faults(), lambda faults: True)
    {'seed': 0, 'errors': 0.0, 'short': 0.0, 'stalls': 0.0}
    """
    share = st.floats(0, most).map(lambda value: round(value, 2))
    return st.fixed_dictionaries(
        {
            "seed": st.integers(0, 99),
            "errors": share,
            "short": share,
            "stalls": share.map(lambda value: round(value / 10, 3)) if stalls else st.just(0.0),
        }
    )


class Interruption(NamedTuple):
    """A job is stopped, and goes on from its state; `check_interrupted` does it.

    Attributes:
      steps: how many steps it makes before that.
      ranks: on how many ranks it goes on.
    """

    steps: int
    ranks: int


def interruptions(job: Job, most: int = 3, *, elastic: bool = True) -> st.SearchStrategy[list[Interruption]]:
    """Interruptions of a job, one after the other, as many steps apart as each says.

    Args:
      job: the job.
      most: how often it is stopped.
      elastic: it may go on with any number of ranks that divides the rows of a step; else with those that it had.

    >>> from hypothesis import find
    >>> find(interruptions(Job(20, 2, 2)), lambda made: any(each.ranks == 4 for each in made))
    [Interruption(steps=0, ranks=4)]
    """
    others = (
        [ranks for ranks in range(1, job.global_batch + 1) if job.on(ranks) is not None] if elastic else [job.ranks]
    )
    others.sort(key=lambda ranks: ranks != job.ranks)  # the simplest one changes nothing
    each = st.builds(Interruption, st.integers(0, job.steps), st.sampled_from(others))
    return st.lists(each, max_size=most)
