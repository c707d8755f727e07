# SPDX-License-Identifier: Apache-2.0
"""Tensors of all dtypes and sizes through gloo, between two threads that stand for processes."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402 - needs PyTorch

from distinput.distribute.collectives.channel import ChannelLost  # noqa: E402 - likewise
from distinput.distribute.engines.torch import TensorOperations  # noqa: E402 - likewise

DTYPES = ("bool", "uint8", "int16", "uint16", "uint64", "int64", "float16", "bfloat16", "float64", "complex64")


def on_workers(work: Any) -> list[Any]:
    store = dist.HashStore()
    # As long as both work: gloo takes a worker for lost whose group goes while the other one still connects.
    groups: dict[int, Any] = {}

    def start(rank: int) -> Any:
        groups[rank] = dist.ProcessGroupGloo(dist.PrefixStore("calls", store), rank, 2)
        operations = TensorOperations(rank, 2, "cpu", groups[rank], store, set())
        return work(operations, rank)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(start, range(2)))


def value(handle: Any) -> Any:
    assert handle.wait(60)
    return handle.value()


def test_all_dtypes_are_gathered_whatever_their_sizes() -> None:
    def work(operations: TensorOperations, rank: int) -> list[Any]:
        found = []
        for name in DTYPES:
            mine = torch.arange(3 * (1 - rank)).to(getattr(torch, name))
            found.append(value(operations.all_gather(mine, [3, 0])))
        return found

    for found in on_workers(work):
        for name, (first, second) in zip(DTYPES, found, strict=True):
            assert torch.equal(first, torch.arange(3).to(getattr(torch, name)))
            assert (second.dtype, len(second)) == (getattr(torch, name), 0)


def test_sums_are_in_new_memory() -> None:
    def work(operations: TensorOperations, rank: int) -> Any:
        assert operations.kind == "torch cpu"
        mine = torch.full((4,), 1.0 + rank)
        total = value(operations.all_reduce(mine))
        assert mine.tolist() == [1 + rank] * 4
        return total.tolist()

    assert on_workers(work) == [[3] * 4] * 2


def test_what_cannot_be_added_is_known() -> None:
    def work(operations: TensorOperations, rank: int) -> Any:
        return [operations.reducible(name) for name in ("float32", "bfloat16", "uint16", "bool", "complex64")]

    assert on_workers(work) == [[True, True, False, False, False]] * 2


def test_a_tensor_that_cannot_be_sent_is_a_lost_channel() -> None:
    def work(operations: TensorOperations, rank: int) -> str:
        with pytest.raises(ChannelLost) as caught:
            operations.all_reduce(torch.zeros(2, dtype=torch.uint16)).wait(60)
        return str(caught.value)

    assert all("Invalid scalar type" in text for text in on_workers(work))
