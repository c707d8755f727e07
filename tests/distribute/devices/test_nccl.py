# SPDX-License-Identifier: Apache-2.0
"""NCCL among the GPUs of one process: which values it adds, in which call, and where the result is.

Tensors of the CPU that say to be on GPUs stand for those of GPUs, and a recorder for NCCL. The tests marked `gpu` need two.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from distinput.distribute.core.array_arithmetic import ReduceOp
from distinput.distribute.core.mirrored import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    MirroredStrategy,
    NcclAllReduce,
    OrderedReducer,
    ReductionToOneDevice,
)
from distinput.distribute.core.replica_reducer import LocalReducer
from distinput.distribute.core.values import PerReplica

torch: Any = pytest.importorskip("torch")
from distinput.distribute.devices.torch import TORCH  # noqa: E402 - needs PyTorch


class OnGpu(torch.Tensor):  # type: ignore[misc]
    """A tensor of the CPU that says to be on a GPU; what is computed of it is where its first operand was."""

    place: int

    @staticmethod
    def at(tensor: Any, place: int) -> "OnGpu":
        made = tensor.as_subclass(OnGpu)
        made.place = place
        return made  # type: ignore[no-any-return]

    @property
    def device(self) -> Any:
        return torch.device("cuda", self.place)

    @property
    def is_cuda(self) -> bool:
        return True

    def get_device(self) -> int:
        return self.place

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place = next(each.place for each in _flat(args) if isinstance(each, OnGpu))

        def there(value: Any) -> Any:
            nonlocal place
            if isinstance(value, torch.device):
                place = value.index
                return torch.device("cpu")
            return value

        args = [there(each) for each in args]
        kwargs = {name: there(each) for name, each in (kwargs or {}).items()}
        made = super().__torch_function__(func, types, tuple(args), kwargs)
        if isinstance(made, torch.Tensor):
            return made.as_subclass(torch.Tensor) if place is None else OnGpu.at(made, place)
        return made


def _flat(args: Any) -> Any:
    for each in args:
        if isinstance(each, list | tuple):
            yield from _flat(each)
        else:
            yield each


@dataclass
class RecordedNccl:
    """Stands for `torch.cuda.nccl`."""

    SUM = 0
    there: bool = True
    calls: list[Any] = field(default_factory=list)

    def is_available(self, tensors: Sequence[Any]) -> bool:
        places = [each.place for each in tensors]
        return self.there and len(set(places)) == len(places) and all(each.is_contiguous() for each in tensors)

    def reduce(self, inputs: Sequence[Any], output: Any, root: int = 0, op: int = 0) -> None:
        assert inputs[root].place == output.place
        assert all(each is not output for each in inputs)
        self.calls.append(([each.place for each in inputs], str(inputs[0].dtype), tuple(inputs[0].shape), root, op))
        with torch.no_grad():
            total = sum(each.as_subclass(torch.Tensor).double().numpy() for each in reversed(inputs))
            output.as_subclass(torch.Tensor).copy_(torch.from_numpy(np.asarray(total)))


@pytest.fixture
def nccl(monkeypatch: pytest.MonkeyPatch) -> RecordedNccl:
    recorded = RecordedNccl()
    monkeypatch.setattr(torch.cuda, "nccl", recorded)
    return recorded


def on_gpus(values: Any, dtype: str = "float32", places: Sequence[int] | None = None) -> list[Any]:
    return [
        OnGpu.at(torch.tensor(value, dtype=getattr(torch, dtype)), place)
        for value, place in zip(values, places or range(len(values)), strict=True)
    ]


def reducer(ops: CrossDeviceOps | None, count: int) -> LocalReducer:
    devices = SimpleNamespace(arrays=TORCH, devices=[torch.device("cuda", i) for i in range(count)])
    return LocalReducer(devices) if ops is None else OrderedReducer(ops, devices)


def reduced(ops: CrossDeviceOps | None, op: ReduceOp, parts: list[Any], axis: Any = None) -> Any:
    made = reducer(ops, len(parts)).reduce(op, parts, axis)
    assert made.device == torch.device("cuda", 0)
    return made.dtype, made.tolist()


FOUR = [[1e8, 1.0], [1.0, 2.0], [-1e8, 3.0], [1.0, 4.0]]


def test_nccl_adds_what_is_on_gpus(nccl: RecordedNccl) -> None:
    assert reduced(NcclAllReduce(), ReduceOp.SUM, on_gpus(FOUR))[1][1] == 10
    assert nccl.calls == [([0, 1, 2, 3], "torch.float32", (2,), 0, 0)]
    assert reduced(NcclAllReduce(), ReduceOp.MEAN, on_gpus(FOUR))[1][1] == 2.5
    assert reduced(NcclAllReduce(), ReduceOp.MEAN, on_gpus([[[1.0], [2.0]], [[6.0], [7.0]]]), 0)[1] == [4.0]
    assert [call[2] for call in nccl.calls] == [(2,), (2,), (1,)]


def test_a_batch_of_values_goes_in_packs(nccl: RecordedNccl) -> None:
    given = [(on_gpus([[1.0, 2.0], [3.0, 4.0]]), "a"), (on_gpus([[[5.0]], [[6.0]]]), "b")]
    made = reducer(NcclAllReduce(num_packs=1), 2).reduce_each(ReduceOp.SUM, given)
    assert [each.tolist() for each in made] == [[4, 6], [[11]]]
    assert [call[2] for call in nccl.calls] == [(3,)]
    made = reducer(NcclAllReduce(num_packs=0), 2).reduce_each(ReduceOp.SUM, given)
    assert [each.tolist() for each in made] == [[4, 6], [[11]]]
    assert [call[2] for call in nccl.calls[1:]] == [(2,), (1, 1)]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("op", ReduceOp)
@pytest.mark.parametrize("ops", [None, NcclAllReduce(), ReductionToOneDevice(), HierarchicalCopyAllReduce()])
def test_sums_and_means_are_those_of_the_host(
    ops: CrossDeviceOps | None, op: ReduceOp, dtype: str, nccl: RecordedNccl
) -> None:
    values = [[1, 100], [3, 120], [5, 7]]
    plain = [torch.tensor(value, dtype=getattr(torch, dtype)) for value in values]
    expected = LocalReducer(SimpleNamespace(arrays=TORCH, devices=[torch.device("cpu")])).reduce(op, plain, None)
    assert reduced(ops, op, on_gpus(values, dtype)) == (expected.dtype, expected.tolist())
    # Sums of three floats depend on the order, which is stated; a half of three are two and one. Means of integers of 64 bits
    # are sums of floats.
    exact = "int" in dtype and (op, dtype) != (ReduceOp.MEAN, "int64")
    by_nccl = isinstance(ops, NcclAllReduce | HierarchicalCopyAllReduce) or exact
    assert bool(nccl.calls) == by_nccl


def test_orders_that_are_stated_are_kept(nccl: RecordedNccl) -> None:
    parts = on_gpus(FOUR)
    host = [part.as_subclass(torch.Tensor) for part in parts]
    for ops in (None, ReductionToOneDevice(), HierarchicalCopyAllReduce()):
        plain = SimpleNamespace(arrays=TORCH, devices=[torch.device("cpu")])
        expected = (LocalReducer(plain) if ops is None else OrderedReducer(ops, plain)).reduce(ReduceOp.SUM, host, None)
        assert reduced(ops, ReduceOp.SUM, parts)[1] == expected.tolist()
    # (0 + 1) + (2 + 3): three sums of two, whose bits no order changes, between the GPUs that hold them
    assert [call[0] for call in nccl.calls] == [[0, 1], [2, 3], [0, 2]]


def test_two_gpus_add_by_nccl_in_every_strategy(nccl: RecordedNccl) -> None:
    assert reduced(None, ReduceOp.MEAN, on_gpus([[1.0], [4.0]])) == (torch.float32, [2.5])
    assert reduced(ReductionToOneDevice(), ReduceOp.SUM, on_gpus([[1.0], [4.0]])) == (torch.float32, [5.0])
    assert [call[0] for call in nccl.calls] == [[0, 1]] * 2


@pytest.mark.parametrize("ops", [None, NcclAllReduce()])
def test_all_else_is_added_as_before(ops: CrossDeviceOps | None, nccl: RecordedNccl) -> None:
    pair: Any = [[1, 2], [3, 4]]
    assert reduced(ops, ReduceOp.SUM, on_gpus(pair, places=[0, 0]))[1] == [4, 6]  # two replicas of one GPU
    mixed = [torch.tensor(pair[0], dtype=torch.float32), *on_gpus(pair[1:])]  # one on the host
    assert TORCH.total_of_devices(mixed, torch.float32) is None
    assert TORCH.total(mixed, torch.float32).tolist() == [4, 6]
    assert reduced(ops, ReduceOp.SUM, on_gpus(pair, "int16")) == (torch.int16, [4, 6])
    assert reduced(ops, ReduceOp.SUM, on_gpus(pair, "complex64"))[1] == [4, 6]
    assert reduced(ops, ReduceOp.SUM, on_gpus([[], []]))[1] == []
    assert reduced(ops, ReduceOp.SUM, on_gpus([1.0]))[1] == 1
    assert not nccl.calls
    nccl.there = False
    assert reduced(ops, ReduceOp.SUM, on_gpus(pair))[1] == [4, 6]
    assert not nccl.calls


def test_values_of_the_cpu_do_not_ask_for_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "nccl", None)
    strategy = MirroredStrategy(["CPU:0", "CPU:1"], NcclAllReduce(), backend="torch")
    assert strategy.reduce("SUM", PerReplica([torch.ones(2), torch.ones(2)]), axis=None).tolist() == [2, 2]


def test_a_column_that_is_not_contiguous_is_added(nccl: RecordedNccl) -> None:
    parts = [part.t() for part in on_gpus([[[1.0, 2.0], [3.0, 4.0]]] * 2)]
    assert reduced(NcclAllReduce(), ReduceOp.SUM, parts)[1] == [[2, 6], [4, 8]]
    assert len(nccl.calls) == 1


# ---- On two GPUs


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("ops", [None, NcclAllReduce(), HierarchicalCopyAllReduce()])
def test_gpus_add_as_the_host_does(ops: CrossDeviceOps | None, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = MirroredStrategy(["cuda:0", "cuda:1"], ops)
    calls: list[int] = []
    reduce = torch.cuda.nccl.reduce
    monkeypatch.setattr(
        torch.cuda.nccl,
        "reduce",
        lambda parts, *rest, **named: calls.append(len(parts)) or reduce(parts, *rest, **named),  # type: ignore[func-returns-value]
    )
    host = [torch.arange(1000).to(getattr(torch, dtype)) * (i + 1) for i in range(2)]
    for op in ("SUM", "MEAN"):
        found = strategy.reduce(op, PerReplica([part.to(f"cuda:{i}") for i, part in enumerate(host)]), axis=None)
        expected = LocalReducer(SimpleNamespace(arrays=TORCH, devices=["cpu"])).reduce(ReduceOp(op), host, None)
        assert (found.dtype, found.device.index) == (expected.dtype, 0)
        assert torch.equal(found.cpu(), expected)
    assert calls == [2, 2]


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_replicas_on_gpus_get_the_sum_where_they_are() -> None:
    import distinput as di

    strategy = MirroredStrategy(["cuda:0", "cuda:1"], NcclAllReduce())

    def step() -> Any:
        context = di.distribute.get_replica_context()
        mine = torch.full(
            (4,), 1.0 + context.replica_id_in_sync_group, device=f"cuda:{context.replica_id_in_sync_group}"
        )
        return context.all_reduce("SUM", mine)

    found = strategy.run(step).values
    assert [(each.device.index, each.tolist()) for each in found] == [(0, [3.0] * 4), (1, [3.0] * 4)]
