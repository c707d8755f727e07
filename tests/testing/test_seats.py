# SPDX-License-Identifier: Apache-2.0
"""The suite for coordinator engines: threads pass, and each way to be wrong is caught under the name of its law."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distinput.distribute.seats import Pickled, SeatLost, Seats
from distinput.distribute.seats.threads import PlacedHere, ThreadSeats
from distinput.testing import check_seats
from distinput.testing.seats import LAWS


def lose(seats: Any, name: str) -> None:
    seats.lose(name)


@pytest.mark.parametrize("packing", [None, pytest.param(Pickled(), marks=pytest.mark.needs("cloudpickle"))])
def test_threads_keep_all_laws(packing: Any) -> None:
    assert check_seats(ThreadSeats(2, 1, packing=packing), lose) == tuple(LAWS)


class OtherNames(ThreadSeats):
    @property
    def workers(self) -> tuple[str, ...]:
        return tuple(reversed(super().workers))


class OneObject(ThreadSeats):
    made: Any = None

    def place(self, seat: str, make: Callable[[], Any]) -> PlacedHere:
        self.made = self.made or super().place(seat, make)
        return self.made


class _Lossy(PlacedHere):
    def call(self, method: str, *args: Any, timeout: float | None = None) -> Any:
        found = super().call(method, *args)
        return found.astype(np.float32) if isinstance(found, np.ndarray) else found


class ChangesTheDtype(ThreadSeats):
    def place(self, seat: str, make: Callable[[], Any]) -> PlacedHere:
        placed = super().place(seat, make)
        return _Lossy(placed._life, placed._object)


class _Wrapping(PlacedHere):
    def call(self, method: str, *args: Any, timeout: float | None = None) -> Any:
        try:
            return super().call(method, *args)
        except SeatLost:
            raise
        except Exception as error:
            raise RuntimeError(str(error)) from error


class WrapsErrors(ThreadSeats):
    def place(self, seat: str, make: Callable[[], Any]) -> PlacedHere:
        placed = super().place(seat, make)
        return _Wrapping(placed._life, placed._object)


class TellsTwice(ThreadSeats):
    def watch(self, lost: Callable[[str], None]) -> None:
        super().watch(lost)
        super().watch(lost)


class NeverClosed(ThreadSeats):
    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "make, name",
    [
        (OtherNames, "names"),
        (OneObject, "objects"),
        (ChangesTheDtype, "values"),
        (WrapsErrors, "errors"),
        (TellsTwice, "losses"),
        (NeverClosed, "closing"),
    ],
)
def test_what_is_wrong_is_caught_under_the_name_of_the_law(make: Callable[[int, int], Seats], name: str) -> None:
    with pytest.raises(AssertionError, match=f"^{name}:"):
        check_seats(make(2, 1), lose)


def test_a_loss_that_goes_unnoticed_is_caught() -> None:
    with pytest.raises(AssertionError, match=r"^losses: a call under way"):
        check_seats(ThreadSeats(2, 1), lambda seats, name: None)
