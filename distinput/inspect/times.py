# SPDX-License-Identifier: Apache-2.0
"""Times of Arrow arrays as NumPy has them, which knows nanoseconds and years after 9999."""

from typing import Any

import pyarrow as pa
from pyarrow import types

__all__ = ["times_of"]


def times_of(array: Any) -> Any:
    """Times [n] as NumPy has them, NaT for nulls; None for intervals, which it has not.

    >>> times_of(pa.array([5, None], pa.time64("ns")))
    array([    5, 'NaT'], dtype='timedelta64[ns]')
    """
    kind = array.type
    if types.is_interval(kind):
        return None
    if types.is_time(kind):
        array = array.view(pa.int32() if types.is_time32(kind) else pa.int64())
        array = array.cast(pa.int64()).cast(pa.duration(kind.unit))
    return array.to_numpy(zero_copy_only=False)
