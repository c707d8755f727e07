# SPDX-License-Identifier: Apache-2.0
"""Where files end."""

from typing import Any

import pytest

from distinput.errors import InvalidArgumentError
from distinput.writers.open_file import SHARD_BYTES, Cut


def test_rows_of_each_file() -> None:
    assert [Cut(shards=4).rows(index, 6) for index in range(4)] == [2, 2, 1, 1]
    assert Cut(shard_rows=3).rows(7, -1) == 3
    assert Cut(shards=1).rows(0, -2) == 1 << 62
    assert Cut().rows(0, 10) is None
    assert (Cut().bytes, Cut(shard_bytes=7).bytes) == (SHARD_BYTES, 7)


@pytest.mark.parametrize(
    "given, says",
    [
        ({"shards": 0}, "shards must be greater than zero"),
        ({"shards": 1, "shard_rows": 2}, "give one of shards and shard_rows"),
    ],
)
def test_what_cannot_be_is_refused(given: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        Cut(**given)
