# SPDX-License-Identifier: Apache-2.0
"""Tensors of GPUs between workers go through a group of NCCL: a fake group records the calls."""

from types import SimpleNamespace
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from distinput.distribute.collectives.channel import ChannelLost  # noqa: E402 - needs PyTorch
from distinput.distribute.devices.torch import TORCH  # noqa: E402 - likewise
from distinput.distribute.engines.torch import TensorOperations, TorchChannel  # noqa: E402 - likewise


class Work:
    """A `Work` of NCCL: done after some looks, and asked to wait once it is."""

    def __init__(self, looks: int, calls: list[Any]) -> None:
        self.looks, self.calls = looks, calls

    def is_completed(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def wait(self) -> bool:
        self.calls.append("wait")
        return True


class Group:
    """Stands for `ProcessGroupNCCL` of worker 0 of 2, where the other worker has the same values."""

    calls: list[Any]

    class Options:
        pass

    def __init__(self, store: Any, rank: int, size: int, options: Any) -> None:
        if store == "lost":
            raise RuntimeError("NCCL error: remote process exited")
        self.calls.append(("group", store, rank, size))

    def allreduce(self, tensors: list[Any], options: Any) -> Work:
        self.calls.append(("allreduce", str(tensors[0].dtype), tuple(tensors[0].shape)))
        tensors[0].mul_(2)
        return Work(3, self.calls)

    def broadcast(self, tensors: list[Any], options: Any) -> Work:
        self.calls.append(("broadcast", options.rootRank, tensors[0].dtype, tensors[0].numel()))
        return Work(1, self.calls)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    monkeypatch.setattr(Group, "calls", made, raising=False)
    monkeypatch.setattr(torch.distributed, "ProcessGroupNCCL", Group, raising=False)
    return made


def test_sums_of_gpus_are_those_of_nccl(calls: list[Any]) -> None:
    under_way: set[Any] = set()
    operations = TensorOperations(0, 2, "cuda", None, "store", under_way)
    assert operations.kind == "torch cuda"
    assert not calls  # the group is made when it is first used
    mine = torch.ones(3)
    works = [operations.all_reduce(mine) for _ in range(2)]
    assert len(under_way) == 2
    assert not works[0].wait(0)
    assert all(work.wait(60) for work in works)
    assert [work.value().tolist() for work in works] == [[2, 2, 2]] * 2
    assert mine.tolist() == [1, 1, 1]
    assert not under_way
    summed = ("allreduce", "torch.float32", (3,))
    assert calls == [("group", "store", 0, 2), summed, summed, "wait", "wait"]


def test_tensors_of_all_sizes_travel_as_bytes(calls: list[Any]) -> None:
    operations = TensorOperations(0, 2, "cuda", None, "store", set())
    work = operations.all_gather(torch.arange(2), [2, 3])
    assert work.wait(60)
    assert [len(part) for part in work.value()] == [2, 3]
    assert calls[1:3] == [("broadcast", 0, torch.uint8, 16), ("broadcast", 1, torch.uint8, 24)]


def test_a_group_that_cannot_be_made_is_a_lost_channel(calls: list[Any]) -> None:
    with pytest.raises(ChannelLost, match="NCCL error: remote process exited"):
        TensorOperations(0, 2, "cuda", None, "lost", set()).all_reduce(torch.ones(1))
    assert not calls


@pytest.mark.parametrize("there", [True, False])
def test_a_channel_uses_nccl_where_pytorch_has_it(there: bool, calls: list[Any]) -> None:
    distributed = SimpleNamespace(is_nccl_available=lambda: there, PrefixStore=lambda name, store: (name, store))
    channel: Any = object.__new__(TorchChannel)
    channel._distributed, channel._tensors, channel._groups = distributed, None, ["gloo"]
    channel._name, channel._store, channel._under_way, channel.rank, channel.size = "c", "store", set(), 0, 2
    made = channel.on_devices(TORCH, torch.device("cuda", 0))
    if not there:
        assert made is None  # they go through the host
        return
    assert made.kind == "torch cuda"
    assert made.all_reduce(torch.ones(1)).wait(60)
    assert calls[0] == ("group", ("c/tensors", "store"), 0, 2)
    assert channel.on_devices(TORCH, torch.device("cuda", 1)) is made
