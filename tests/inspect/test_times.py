# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from distinput.inspect.columns import times_of


@pytest.mark.parametrize(
    "kind, dtype",
    [
        (pa.time32("s"), "m8[s]"),
        (pa.time32("ms"), "m8[ms]"),
        (pa.time64("us"), "m8[us]"),
        (pa.time64("ns"), "m8[ns]"),
        (pa.duration("ns"), "m8[ns]"),
        (pa.timestamp("s"), "M8[s]"),
        (pa.timestamp("ns", "UTC"), "M8[ns]"),
        (pa.date32(), "M8[D]"),
        (pa.date64(), "M8[ms]"),
    ],
    ids=str,
)
def test_times_keep_their_unit(kind: Any, dtype: str) -> None:
    number = 86_400_000 if kind == pa.date64() else 5
    stored = pa.array([number, None], pa.int32() if kind.bit_width == 32 else pa.int64())
    found = times_of(stored.view(kind))
    assert found.dtype == np.dtype(dtype)
    assert found[0] == np.array(number, "i8").astype(dtype)
    assert np.isnat(found[1])


def test_intervals_are_no_times_of_numpy() -> None:
    assert times_of(pa.array([None], pa.month_day_nano_interval())) is None
