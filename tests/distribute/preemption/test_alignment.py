# SPDX-License-Identifier: Apache-2.0
"""The workers decide alike, in the same call."""

import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distinput.distribute.engines.local import open_groups
from distinput.distribute.preemption import Alignment, SaveDecision


def decisions(
    size: int, noticed_in: dict[int, int], calls: int, seconds: float = 0.0
) -> list[list[tuple[int, SaveDecision]]]:
    """For each worker the calls after which it decided something."""
    groups = open_groups(size, timeout=60)
    found: list[list[tuple[int, SaveDecision]]] = [[] for _ in range(size)]

    def work(rank: int) -> None:
        now = [0]
        alignment = Alignment(groups[rank], lambda: now[0] >= noticed_in.get(rank, 1 << 30), lambda: True)
        for call in range(1, calls + 1):
            now[0] = call
            alignment.before(call)
            time.sleep(seconds * (1 + rank))
            decision = alignment.after(call)
            if decision is not None:
                found[rank].append((call, decision))
                break
        alignment.close()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return found


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.dictionaries(st.integers(0, 3), st.integers(1, 60), max_size=2))
def test_all_decide_after_the_same_call(size: int, noticed_in: dict[int, int]) -> None:
    """Law: all workers decide the same after the same call, not before a notice, and not much later."""
    noticed_in = {rank: call for rank, call in noticed_in.items() if rank < size}
    found = decisions(size, noticed_in, 300)
    assert all(each == found[0] for each in found)
    if not noticed_in:
        assert found[0] == []
        return
    (call, decision), first = found[0][0], min(noticed_in.values())
    assert first <= call <= first + 128 + 1
    assert decision.final
    assert decision.worker in (*noticed_in, None)


def test_long_calls_are_agreed_on_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distinput.distribute.preemption._EVERY_SECONDS", 0.02)
    found = decisions(2, {1: 5}, 20, seconds=0.02)
    assert found[0] == found[1] == [(5, SaveDecision(1, True))]


def test_a_process_without_others_asks_itself() -> None:
    answers: Any = {"noticed": False, "expired": False}
    alignment = Alignment(None, lambda: answers["noticed"], lambda: answers["expired"])
    alignment.before(1)
    assert alignment.after(1) is None
    alignment.before(2)
    answers["noticed"] = True
    assert alignment.after(2) == SaveDecision(0, False)
    alignment.close()
