# SPDX-License-Identifier: Apache-2.0
"""A scheduled function until it has a result."""

import pytest

from distinput.distribute.coordinator.closures import Closure
from distinput.errors import CancelledError


def test_a_cancelled_closure_says_why_and_lets_go_of_what_it_kept() -> None:
    closure = Closure("step", None, keep=object())
    closure.cancel("another function failed")
    assert closure.keep is None
    with pytest.raises(CancelledError, match=r"Please reschedule the function. \(step: another function failed\)"):
        closure.result.fetch()
