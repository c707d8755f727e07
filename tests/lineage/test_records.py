# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from distinput.lineage import Records


def test_one_record_or_a_range_of_them() -> None:
    assert list(Records("a", 3).numbers) == [3]
    assert list(Records("a", range(2, 5)).numbers) == [2, 3, 4]
    assert not len(Records("a", range(0)).numbers)


@pytest.mark.parametrize("records", [-1, range(-2, 3), "3", True, None])
def test_what_is_no_record_is_refused(records: Any) -> None:
    with pytest.raises(ValueError, match="a number from 0 on, or a range of them, got"):
        Records("a", records)
