# SPDX-License-Identifier: Apache-2.0
"""`agree`: agreements are posted ahead and complete in order."""

import time

from distinput.distribute.engines import Collectives, Mismatch
from distinput.testing.collectives.outcome import raises
from distinput.testing.collectives.parts import Check

__all__ = ["AGREEMENTS", "SLOW_AGREEMENTS"]


def _agreements_ahead(group: Collectives) -> None:
    ranks = sum(range(group.size))
    ahead = []
    for step in range(12):
        ahead.append(group.agree([1, group.rank, -step]))
        if step % 3 == 0:
            assert group.all_reduce(step).item() == step * group.size  # in between, while agreements are under way
        if len(ahead) > 4:
            assert ahead.pop(0).result() == [group.size, ranks, -(step - 4) * group.size]
    last = ahead[-1]
    assert last.result() == [group.size, ranks, -11 * group.size]
    assert all(agreement.done() for agreement in ahead)  # they complete in the order of posting
    assert last.result() == last.result()


def _an_agreement_is_not_done_early(group: Collectives) -> None:
    if group.size == 1:
        return
    group.barrier()
    if group.rank == group.size - 1:
        time.sleep(0.5)
        assert group.agree([7]).result() == [7 * group.size]
        return
    agreement = group.agree([7])
    assert not agreement.done()
    deadline = time.monotonic() + 10
    while not agreement.done() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert agreement.done()
    assert agreement.result() == [7 * group.size]


def _agreements_about_different_things(group: Collectives) -> None:
    odd = group.rank == group.size - 1 and group.size > 1
    agreement = group.agree([1], "validation" if odd else "training")
    if group.size > 1:
        text = str(raises(Mismatch, agreement.result))
        assert "training" in text, text
        assert "validation" in text, text
    assert group.agree([1], "training").result() == [group.size]
    group.barrier()  # nobody closes the board before all have read it


def _agreements_of_different_lengths(group: Collectives) -> None:
    odd = group.rank == group.size - 1 and group.size > 1
    first = group.agree([1] * (2 if odd else 1))
    second = group.agree([1])
    if group.size > 1:
        raises(Mismatch, first.result)
    assert second.result() == [group.size]
    if group.size > 1:
        if odd:
            raises(ValueError, lambda: group.agree([1 << 62]))
        else:
            third = group.agree([1])
            raises(Mismatch, third.result)
    assert group.agree([-(1 << 40)]).result() == [-(1 << 40) * group.size]


def _an_agreement_outlives_the_timeout(group: Collectives) -> None:
    late = group.rank == group.size - 1
    if late:
        time.sleep(1.5 * group.timeout)
    agreement = group.agree([1])
    if not late:
        time.sleep(1.5 * group.timeout)  # nobody waits, so nobody is late
    assert agreement.result() == [group.size]
    group.barrier()


AGREEMENTS: tuple[Check, ...] = (
    _agreements_ahead,
    _an_agreement_is_not_done_early,
    _agreements_about_different_things,
    _agreements_of_different_lengths,
)

SLOW_AGREEMENTS: tuple[Check, ...] = (_an_agreement_outlives_the_timeout,)
"""Checks that take longer than the timeout of the group."""
