# SPDX-License-Identifier: Apache-2.0
"""Padding values, from the arguments of an op."""

from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.streaming.padding import for_leaves, padding_fills
from distinput.values.spec import Spec

SPEC = Spec.of({"ids": di.TensorSpec([None], "int32"), "text": di.TensorSpec([None], "string")})


def test_none_is_zero_or_an_empty_string() -> None:
    assert padding_fills("op", SPEC, None) == (0, b"")
    assert padding_fills("op", SPEC, {"ids": 7, "text": None}) == (np.int32(7), b"")


@pytest.mark.parametrize("dtype", [np.dtype([("x", "<i4"), ("y", ">f8", 2)]), np.dtype("V3")], ids=str)
def test_rows_of_a_structured_array_are_padded_with_zeros(dtype: np.dtype[Any]) -> None:
    one = np.frombuffer(bytes(range(1, dtype.itemsize + 1)), dtype)[0]
    rows = di.data.Dataset.range(1, 3).map(lambda n: np.full(int(n), one, dtype)).padded_batch(2)
    (batch,) = rows.as_numpy_iterator()
    assert batch.dtype == dtype
    assert batch.tobytes() == one.tobytes() + bytes(dtype.itemsize) + one.tobytes() * 2


def test_messages_name_the_op() -> None:
    with pytest.raises(
        TypeError, match=r"op: the padding value of component .'text'. must have its dtype string, got int32"
    ):
        padding_fills("op", SPEC, 7)
    with pytest.raises(InvalidArgumentError, match=r"op: the padding value of component .'ids'. must be a scalar"):
        padding_fills("op", SPEC, {"ids": [1], "text": "x"})
    with pytest.raises(TypeError, match="op: shapes: "):
        for_leaves("op", "shapes", SPEC.structure, (1, 2))
