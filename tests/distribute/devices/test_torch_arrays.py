# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch: what they have beside the rules of all libraries, which `test_arrays` has."""

import numpy as np
import pytest

from distinput.distribute.core.array_arithmetic import ReduceOp, gather_parts, reduce_parts, reduce_rows
from distinput.errors import InvalidArgumentError

torch = pytest.importorskip("torch")
from distinput.distribute.devices.torch import TORCH  # noqa: E402 - needs PyTorch


def test_nothing_looks_at_values() -> None:
    """Tensors on the device "meta" have none, so whatever took them to the host would fail."""
    parts = [torch.empty(n, 3, device="meta") for n in (4, 0, 2)]
    for op in ReduceOp:
        assert reduce_parts(op, parts[:1] * 2, TORCH).shape == (4, 3)
        assert reduce_rows(op, parts, 0, TORCH).device.type == "meta"
        assert reduce_rows(op, [part.to(torch.int32) for part in parts], (0, 1), TORCH).shape == ()
    assert gather_parts(parts, 0, TORCH).shape == (6, 3)
    assert TORCH.copy(TORCH.move(parts[0], "meta"), "meta").shape == (4, 3)
    assert TORCH.take(parts[0], np.array([1, 3])).shape == (2, 3)


def test_the_result_is_where_the_first_part_is() -> None:
    here, there = torch.zeros(2), torch.zeros(2, device="meta")
    assert reduce_parts(ReduceOp.SUM, [there, here], TORCH).device.type == "meta"
    assert gather_parts([there, here], 0, TORCH).device.type == "meta"


def test_results_have_no_gradient() -> None:
    part = torch.ones(2, 2, requires_grad=True)
    for made in (
        reduce_parts(ReduceOp.MEAN, [part, part * 2], TORCH),
        reduce_rows(ReduceOp.SUM, [part], 0, TORCH),
        gather_parts([part, part * 2], 0, TORCH),
        TORCH.copy(part, "cpu"),
        TORCH.take(part, np.array([0])),
    ):
        assert not made.requires_grad


def test_bfloat16_is_a_number() -> None:
    parts = [torch.full((2,), 1.5, dtype=torch.bfloat16), torch.full((2,), 2.5, dtype=torch.bfloat16)]
    mean = reduce_parts(ReduceOp.MEAN, parts, TORCH)
    assert mean.dtype == torch.bfloat16
    assert mean.tolist() == [2, 2]
    with pytest.raises(InvalidArgumentError, match="got bfloat16 on replica 0 and float32 on replica 1"):
        reduce_parts(ReduceOp.SUM, [parts[0], torch.zeros(2)], TORCH)


def test_the_caller_may_write_to_a_copy() -> None:
    shared = torch.zeros(3)
    TORCH.copy(shared, "cpu").add_(1)
    assert shared.tolist() == [0, 0, 0]
