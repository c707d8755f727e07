# SPDX-License-Identifier: Apache-2.0
"""What counts of the parts of a ledger: the last time that a step was taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.lineage.history import Entry, History

parts = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 6)), max_size=6)


def entries(taken: list[tuple[int, int, int]]) -> list[Entry]:
    made = []
    for job, (epoch, first, steps) in enumerate(taken):
        made.append(Entry(begin={"epoch": epoch, "step": first, "job": job, "inputs": [(job, first)]}))
        made += [Entry(inputs=[(job, first + n + 1)]) for n in range(steps)]  # type: ignore[list-item]
    return made


@given(parts)
def test_it_is_a_list_whose_end_is_cut_off_by_each_restart(taken: list[tuple[int, int, int]]) -> None:
    model: list[tuple[int, int, int]] = []
    for job, (epoch, first, steps) in enumerate(taken):
        model = [step for step in model if step[:2] < (epoch, first)]
        model += [(epoch, first + n, job) for n in range(steps)]
    history = History.of(entries(taken))
    assert len(history) == len(model)
    for number, (epoch, step, job) in enumerate(model):
        part, found = history.part_of(number)
        assert (part.epoch, found, part.told["job"]) == (epoch, step, job)
        assert part.inputs_before(found) == (step, [(job, step)])
        assert history.part_of(number - len(model)) == (part, found)


def test_there_is_nothing_behind_the_end() -> None:
    history = History.of(entries([(0, 0, 3)]))
    for number in (3, -4):
        with pytest.raises(IndexError, match=f"no step {number} among the 3"):
            history.part_of(number)
