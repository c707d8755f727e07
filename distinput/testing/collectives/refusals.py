# SPDX-License-Identifier: Apache-2.0
"""Calls that differ between workers, or cannot be, are refused on all of them."""

from collections.abc import Callable

import numpy as np

from distinput.distribute.engines import Collectives, Mismatch
from distinput.testing.collectives.outcome import raises
from distinput.testing.collectives.parts import Check

__all__ = ["REFUSALS"]


def _different_calls_are_refused_everywhere(group: Collectives) -> None:
    odd = group.rank == group.size - 1
    calls: list[Callable[[], object]] = [
        lambda: group.all_reduce(np.zeros(4 if odd else 3)),
        lambda: group.all_reduce(np.zeros((2, 3) if odd else (3, 2))),
        lambda: group.all_reduce(np.zeros(5000 if odd else 3)),
        lambda: group.all_reduce(np.zeros(3, "f4" if odd else "f8")),
        lambda: group.all_reduce(np.zeros(3), "max" if odd else "sum"),
        lambda: group.all_reduce(np.zeros(3), deterministic=odd),
        lambda: group.all_gather(np.zeros((2, 3 if odd else 4))),
        lambda: group.all_gather(np.zeros(() if odd else (1,))),
        lambda: group.all_gather(np.zeros(2, "i4" if odd else "u4")),
        lambda: group.all_gather(np.array(["x"], object if odd else "U1")),
        lambda: group.broadcast(np.zeros(2), group.size - 1 if odd else 0),
        lambda: group.barrier() if odd else group.all_reduce(1),
        lambda: group.dup("x" if odd else "y"),
    ]
    if group.size == 1:
        return
    for call in calls:
        error = raises(Mismatch, call)
        assert f"rank {group.size - 1}: " in str(error), f"no table of who called what: {error}"
        assert group.all_reduce(1).item() == group.size  # and the next call works


def _calls_with_different_names_are_refused_everywhere(group: Collectives) -> None:
    odd = group.rank == group.size - 1
    name = "accuracy" if odd and group.size > 1 else "loss"
    calls: list[Callable[[], object]] = [
        lambda: group.all_reduce(1.0, name=name),
        lambda: group.all_gather(np.zeros(3), name=name),
        lambda: group.broadcast(np.zeros(3), name=name),
        lambda: group.barrier(name=name),
    ]
    for call in calls if group.size > 1 else ():
        text = str(raises(Mismatch, call))
        assert "name='loss'" in text, f"the call of the others is not named: {text}"
        assert "name='accuracy'" in text, f"the call of the odd one is not named: {text}"
        assert group.all_reduce(1, name="after").item() == group.size


def _a_call_from_elsewhere_is_refused(group: Collectives) -> None:
    odd = group.rank == group.size - 1 and group.size > 1
    refused = []
    for turn in range(3):
        try:
            if odd and turn == 2:
                group.all_reduce(800)  # one more than the others, who are there where all were before
            else:
                group.all_reduce(8)
        except Mismatch:
            refused.append(turn)
    assert refused == ([2] if group.size > 1 else [])


def _a_branch_may_have_calls_of_its_own(group: Collectives) -> None:
    for _ in range(3):
        if group.rank == 0:
            assert group.all_reduce(1).item() == group.size
        else:
            assert group.all_reduce(1).item() == group.size


def _an_impossible_call_of_one_worker(group: Collectives) -> None:
    odd = group.rank == group.size - 1
    calls: list[tuple[type[BaseException], Callable[[], object]]] = [
        (TypeError, lambda: group.all_reduce(np.array([None]) if odd else 1)),
        (TypeError, lambda: group.all_reduce("x" if odd else 1)),
        (ValueError, lambda: group.all_reduce(1, "median" if odd else "sum")),
        (TypeError, lambda: group.all_gather(np.array([{}]) if odd else [1])),
        (ValueError, lambda: group.broadcast(1, group.size if odd else 0)),
        (TypeError, lambda: group.broadcast(None, group.size - 1)),
    ]
    for kind, call in calls:
        error = raises(kind if odd else Mismatch, call)
        assert isinstance(error, kind if odd else Mismatch)
        assert group.all_reduce(1).item() == group.size


REFUSALS: tuple[Check, ...] = (
    _different_calls_are_refused_everywhere,
    _calls_with_different_names_are_refused_everywhere,
    _a_call_from_elsewhere_is_refused,
    _a_branch_may_have_calls_of_its_own,
    _an_impossible_call_of_one_worker,
)
