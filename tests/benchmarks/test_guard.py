# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks import guard
from benchmarks.guard import GUARDED, Guarded, fallen, loaded, ratio, recorded
from benchmarks.harness import Measured, Work


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTINPUT_KERNELS", "compiled")


@pytest.mark.parametrize("guarded", GUARDED, ids=str)
def test_no_ratio_has_fallen_by_half(guarded: Guarded) -> None:
    before = recorded()[str(guarded)]
    with loaded(guarded) as (ours, limit):
        now = fallen(ours, limit, before)
    assert now is None, (
        f"{guarded}: their time / our time was {before:g} and is {now:g}; `python benchmarks/guard.py` measures it"
    )


def test_work_that_takes_ten_times_as_long_is_noticed() -> None:
    with loaded(GUARDED[0]) as (ours, limit):
        slowed = replace(ours, once=lambda: [ours.once() for _ in range(10)])
        before = ratio(ours, limit, 15)
        assert fallen(ours, limit, before) is None
        now = fallen(slowed, limit, before)
    assert now is not None
    assert now < before / 2


def test_a_little_less_than_half_is_a_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = iter([0.3, 0.49, 0.4])
    monkeypatch.setattr(guard, "ratio", lambda *_: next(measured))
    work = Work(lambda: None)
    assert fallen(work, work, 1.0) == 0.49


def test_a_machine_that_is_busy_for_a_while_is_no_fall(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = iter([0.2, 0.4, 0.6])
    monkeypatch.setattr(guard, "ratio", lambda *_: next(measured))
    work = Work(lambda: None)
    assert fallen(work, work, 1.0) is None
    assert next(measured, None) is None


def test_a_ratio_is_taken_within_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, limit = iter([1.0, 10.0, 1.0]), iter([2.0, 30.0, 4.0])

    def taking(seconds: Iterator[float]) -> Work:
        return Work(lambda: Measured(next(seconds)))

    monkeypatch.setattr(guard, "LEAST_SECONDS", 0.0)
    assert ratio(taking(ours), taking(limit), 3) == 3


def test_every_guarded_ratio_is_recorded() -> None:
    assert list(recorded()) == [str(guarded) for guarded in GUARDED]
