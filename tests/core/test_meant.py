# SPDX-License-Identifier: Apache-2.0
"""What is said about an unknown name."""

import pytest

from distinput.core.meant import UnknownNameError, meant


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


def test_the_words_of_an_unknown_name_are_looked_up_when_they_are_read() -> None:
    asked = []
    error = UnknownNameError(lambda: asked.append(1) or "no such name")
    assert asked == []
    assert str(error) == "no such name"
    assert asked == [1]
    with pytest.raises(AttributeError, match=r"^no such name$"):
        raise error
