# SPDX-License-Identifier: Apache-2.0
"""What is said about an unknown name."""

import pytest

from distinput.names.words import meant


@pytest.mark.parametrize(
    "name, says",
    [
        ("drop_remaindr", "did you mean drop_remainder?"),
        ("Drop_remainder", "did you mean drop_remainder?"),
        ("zzz", "it takes batch_size, drop_remainder"),
        ("", "it takes batch_size, drop_remainder"),
    ],
)
def test_a_similar_name_is_suggested_and_else_all_are_listed(name: str, says: str) -> None:
    assert meant(name, ["batch_size", "drop_remainder"], "it takes") == says
