# SPDX-License-Identifier: Apache-2.0
"""How long a call may still wait."""

import math
from typing import Any

import pytest

from distinput.distribute.collectives import membership as deadline
from distinput.distribute.collectives.membership import Deadline
from tests.patience import Clock


def test_time_runs_down_to_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(deadline, "time", clock)
    one = Deadline(2.5)
    assert one.remaining() == 2.5
    clock.now += 2
    assert one.remaining() == 0.5
    clock.now += 2
    assert (one.remaining(), one.seconds) == (0.0, 2.5)


def test_no_limit_is_infinity() -> None:
    assert Deadline(math.inf).remaining() == math.inf


@pytest.mark.parametrize("seconds", [-1, math.nan, True, False])
def test_what_is_no_time(seconds: Any) -> None:
    with pytest.raises(ValueError, match="timeout must be a number of seconds, at least 0, got"):
        Deadline(seconds)
