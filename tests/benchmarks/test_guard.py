# SPDX-License-Identifier: Apache-2.0
import gc
from collections.abc import Iterator

import pytest

from benchmarks import guard
from benchmarks.guard import GUARDED, Guarded, fallen, loaded, ratio, recorded
from benchmarks.harness import Measured, Work


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTINPUT_KERNELS", "compiled")


@pytest.mark.needs("google_crc32c")  # checksums are a limit
@pytest.mark.parametrize("guarded", GUARDED, ids=str)
def test_ours_and_the_limit_deliver_the_same_values(guarded: Guarded) -> None:
    with loaded(guarded) as works:
        assert all(work.once is not None for work in works)


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


def test_what_is_left_out_of_collections_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "LEAST_SECONDS", 0.0)
    gc.freeze()  # as the tests do when they are collected
    work = Work(lambda: Measured(1.0))
    assert ratio(work, work, 1) == 1
    assert gc.get_freeze_count() > 0


def test_every_guarded_ratio_is_recorded() -> None:
    assert list(recorded()) == [str(guarded) for guarded in GUARDED]
