# SPDX-License-Identifier: Apache-2.0
"""A reduction is named by its member or by its name, in any case."""

from typing import Any

import pytest

from distinput.distribute.core.array_arithmetic import ReduceOp


@pytest.mark.parametrize("value", ["sum", "SUM", "Sum", ReduceOp.SUM])
def test_names_find_their_member(value: Any) -> None:
    assert ReduceOp.of(value) is ReduceOp.SUM
    assert ReduceOp.of("mean") is ReduceOp("MEAN") is ReduceOp.MEAN


def test_other_values_are_refused() -> None:
    with pytest.raises(ValueError, match="'max' is not a valid ReduceOp; it has SUM, MEAN"):
        ReduceOp.of("max")
    for value in (None, 1, ["SUM"]):
        with pytest.raises(TypeError, match="Expected `reduce_op` to be a ReduceOp"):
            ReduceOp.of(value)
