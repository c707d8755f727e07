# SPDX-License-Identifier: Apache-2.0
"""What is known of an error stays with it."""

from distinput.columns.block import Trouble, trouble_of


def test_what_was_filled_in_stays_with_the_error() -> None:
    error = ValueError("a")
    assert trouble_of(error) == Trouble()
    trouble_of(error).place = "file", {"row": 3}
    assert trouble_of(error).place == ("file", {"row": 3})
    assert trouble_of(ValueError("a")) == Trouble()
