# SPDX-License-Identifier: Apache-2.0
"""Files that were made to do harm do none: no code runs, nothing is written, memory is bounded, errors name the file."""

from collections.abc import Callable

import pytest

from tests.formats.hostile.every_attack import ATTACKS
from tests.formats.hostile.hunt import attacked


@pytest.mark.needs("PIL")
def test_attacks(record_property: Callable[[str, object], None]) -> None:
    found = list(attacked(range(len(ATTACKS))))
    record_property("tried", len(found))
    assert [(name, line) for _, name, line in found if not line.startswith("fine")] == []
    assert [number for number, _, _ in found] == list(range(len(ATTACKS)))
