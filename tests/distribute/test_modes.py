# SPDX-License-Identifier: Apache-2.0
"""The stack of modes says who acts: nobody outside of scopes, all replicas in a scope, one replica in its own code."""

import threading

import pytest

from distinput.distribute.core.contexts import (
    Mode,
    Scope,
    in_replica_of,
    modes,
    require_cross_replica,
)
from distinput.distribute.core.current import default_strategy, get_strategy

ONE, OTHER = "strategy one", "strategy other"


def test_outside_of_scopes_everything_is_allowed() -> None:
    assert not in_replica_of(ONE)
    require_cross_replica(ONE)


def test_a_scope_makes_its_strategy_current_and_may_be_entered_again() -> None:
    scope = Scope(ONE)
    with scope as entered:
        assert entered is ONE
        assert not in_replica_of(ONE)
        with scope:
            assert [mode.strategy for mode in modes.stack] == [ONE, ONE]
        assert len(modes.stack) == 1
    assert not modes.stack


def test_two_strategies_are_not_mixed() -> None:
    with Scope(ONE):
        for call in (in_replica_of, require_cross_replica, lambda strategy: Scope(strategy).__enter__()):
            with pytest.raises(RuntimeError, match="'strategy other' was used while 'strategy one' is current; leave"):
                call(OTHER)
        assert len(modes.stack) == 1


def test_the_code_of_a_replica_may_not_act_for_all() -> None:
    with Mode(ONE, "replica 0"):
        assert in_replica_of(ONE)
        with pytest.raises(RuntimeError, match="requires being in cross-replica context"):
            require_cross_replica(ONE)
        with pytest.raises(RuntimeError, match=r"^not here$"):
            require_cross_replica(ONE, "not here")
        with Mode(ONE, None):
            assert not in_replica_of(ONE)
    assert not modes.stack


def test_an_error_leaves_the_scope() -> None:
    with pytest.raises(KeyError), Scope(ONE):
        raise KeyError
    assert not modes.stack


def test_each_thread_has_a_stack_of_its_own() -> None:
    seen: list[int] = []
    with Scope(ONE):
        thread = threading.Thread(target=lambda: seen.append(len(modes.stack)))
        thread.start()
        thread.join()
    assert seen == [0]


def test_the_current_strategy_is_that_of_the_innermost_mode() -> None:
    assert get_strategy() is default_strategy()
    with Mode(ONE, None), Mode(OTHER, "replica"):
        assert get_strategy() is OTHER


def test_an_update_is_cross_replica_context_for_one_copy() -> None:
    with Mode(ONE, None, 3):
        assert modes.stack[-1].copy == 3
        assert not in_replica_of(ONE)
    assert Mode(ONE, None).copy is None


def test_one_scope_of_several_threads_is_left_by_each() -> None:
    scope = Scope(ONE)
    there, leave = threading.Event(), threading.Event()

    def other() -> None:
        with scope:
            there.set()
            leave.wait(60)
            assert get_strategy() is ONE

    thread = threading.Thread(target=other)
    with scope:
        thread.start()
        there.wait(60)
    assert not modes.stack
    leave.set()
    thread.join(60)
