# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong while a law is checked is told under its name."""

import pytest

from distinput.testing.elements import law


def test_what_is_broken_is_told_under_the_name_of_the_law() -> None:
    with pytest.raises(AssertionError, match=r"^restart: element 3 is missing$"), law("restart"):
        raise AssertionError("element 3 is missing")


def test_an_error_of_the_op_breaks_the_law_and_is_kept() -> None:
    with pytest.raises(AssertionError, match=r"^spec: KeyError\('input'\) was raised$") as told, law("spec"):
        raise KeyError("input")
    assert isinstance(told.value.__cause__, KeyError)


def test_an_interrupt_is_no_broken_law() -> None:
    with pytest.raises(KeyboardInterrupt), law("spec"):
        raise KeyboardInterrupt
