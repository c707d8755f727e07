# SPDX-License-Identifier: Apache-2.0
"""Replicas on PyTorch devices: the laws of devices, and what strategies give to functions."""

import importlib
import sys
import threading
from collections import deque
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.testing import check_devices, check_strategy
from distinput.testing.devices import LAWS
from tests.patience import threads_since

torch = pytest.importorskip("torch")
from distinput.distribute.devices.torch import TorchDevices  # noqa: E402 - needs PyTorch


def devices(count: int = 2) -> TorchDevices:
    return TorchDevices([f"CPU:{i}" for i in range(count)])


def mirrored(count: int = 2, **settings: Any) -> Any:
    return di.distribute.MirroredStrategy([f"cpu:{i}" for i in range(count)], backend="torch", **settings)


def test_torch_devices_keep_all_laws() -> None:
    assert check_devices(TorchDevices) == tuple(LAWS)


def test_strategies_on_torch_devices_keep_all_laws() -> None:
    for strategy in (mirrored(3), di.distribute.OneDeviceStrategy("cpu:0", backend="torch")):
        assert "training" in check_strategy(strategy)


def test_memory_is_shared_where_nobody_else_sees_it() -> None:
    array = np.zeros(3)
    devices().put(array, 1, owned=True)[0] = 1
    devices().put(array, 1, owned=False)[1] = 1
    array.flags.writeable = False
    devices().put(array, 1, owned=True)[2] = 1
    assert array.tolist() == [1, 0, 0]


def test_an_old_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch, "accelerator")
    monkeypatch.delitem(sys.modules, "distinput.distribute.devices.torch")
    with pytest.raises(
        di.errors.CollectiveError, match=r"PyTorch .* is installed, 2\.6 or newer is needed; use `pip install -U"
    ):
        importlib.import_module("distinput.distribute.devices.torch")


def test_a_tensor_stays_a_tensor() -> None:
    tensor = torch.ones(2)
    assert devices().put(tensor, 0, owned=True) is tensor
    assert devices().put(tensor, 0, owned=False).data_ptr() != tensor.data_ptr()
    assert devices().get(torch.ones(2, requires_grad=True)).tolist() == [1, 1]


def test_text_stays_on_the_host() -> None:
    words = np.array([b"a", b"bc"], object)
    assert devices().put(words, 0, owned=True) is words
    assert devices().put_all([[b"a", b"b"], [np.float32(1), np.float32(2)]])[0] == [b"a", b"b"]


@pytest.mark.parametrize("label", ["GPU:0", "CUDA:7", "TPU:0", "CUDA:x"])
def test_devices_that_are_not_there(label: str) -> None:
    if torch.accelerator.is_available():
        pytest.skip("needs a machine without accelerators")
    with pytest.raises(
        ValueError, match=f"PyTorch .* has no device '{label}' in this process; it has no accelerator, and any"
    ):
        TorchDevices([label])


def test_the_device_that_torch_prefers() -> None:
    if torch.accelerator.is_available():
        pytest.skip("needs a machine without accelerators")
    assert TorchDevices.default_labels() == ("CPU:0",)
    assert TorchDevices(["TORCH:0", "CPU:3"]).devices == (torch.device("cpu"), torch.device("cpu"))


def test_functions_get_tensors_and_arithmetic_is_right() -> None:
    strategy = mirrored(3)
    sums = []
    for step in strategy.experimental_distribute_dataset(di.data.Dataset.range(8).batch(6)):
        assert all(isinstance(part, torch.Tensor) for part in step.values)
        doubled = strategy.run(lambda x: 2 * x, args=(step,))
        sums.append(int(strategy.reduce("SUM", doubled, axis=0)))
        np.testing.assert_array_equal(strategy.gather(doubled, axis=0), 2 * np.concatenate(step.values))
    assert sums == [30, 26]


def test_one_device() -> None:
    strategy = di.distribute.OneDeviceStrategy("cpu:0", backend="torch")
    (step,) = strategy.experimental_distribute_dataset(di.data.Dataset.range(4).batch(4))
    assert torch.equal(strategy.run(lambda x: x + 1, args=(step,)), torch.arange(1, 5))


def test_a_worker_of_a_cluster() -> None:
    with di.distribute.MultiWorkerMirroredStrategy(devices=["cpu:0", "cpu:1"], backend="torch") as strategy:
        (step,) = strategy.experimental_distribute_dataset(di.data.Dataset.range(4).batch(4))
        assert [part.tolist() for part in step.values] == [[0, 1], [2, 3]]
        assert all(isinstance(part, torch.Tensor) for part in step.values)


def test_gradients_of_replicas_that_compute_at_the_same_time() -> None:
    strategy = mirrored(4)
    weights = torch.ones(2, requires_grad=True)

    def slope(x: Any) -> Any:
        return torch.autograd.grad((x * weights).sum(), weights)[0]

    (step,) = strategy.experimental_distribute_dataset(
        di.data.Dataset.from_tensor_slices(np.arange(8, dtype=np.float32).reshape(4, 2)).batch(4)
    )
    found = strategy.run(slope, args=(step,))
    assert [part.tolist() for part in found.values] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_what_a_step_writes_to_its_tensors_stays_there() -> None:
    rows = np.zeros((64, 4), np.float32)
    strategy = mirrored(2)
    for _ in range(2):
        for step in strategy.experimental_distribute_dataset(di.data.Dataset.from_tensor_slices(rows).batch(16)):
            strategy.run(lambda x: x.add_(1), args=(step,))
    assert not rows.any()


@pytest.mark.parametrize("write", ["assign", "assign_add", "assign_sub"])
@pytest.mark.parametrize("aggregation", ["SUM", "MEAN", "ONLY_FIRST_REPLICA"])
def test_variables_take_tensors(write: str, aggregation: str) -> None:
    """With a gradient too, from which NumPy cannot make an array, as little as from one on a GPU."""
    strategy = mirrored(3)
    with strategy.scope():
        variable = di.Variable(np.ones(2, np.float32), aggregation=aggregation)
    strategy.run(lambda: getattr(variable, write)(torch.full((2,), 3.0, requires_grad=True)))
    total = 9 if aggregation == "SUM" else 3
    expected = {"assign": total, "assign_add": 1 + total, "assign_sub": 1 - total}[write]
    assert variable.numpy().tolist() == [expected] * 2
    variable.assign(torch.zeros(2, requires_grad=True))
    variable.scatter_add(di.IndexedSlices(torch.ones(1, requires_grad=True), torch.tensor([1])))
    assert variable.numpy().tolist() == [0, 1]


@pytest.mark.parametrize("synchronization", ["AUTO", "ON_READ"])
def test_variables_are_read_as_tensors(synchronization: str) -> None:
    strategy = mirrored(2)
    with strategy.scope():
        variable = di.Variable(np.arange(3.0), aggregation="SUM", synchronization=synchronization)
        scalar = di.Variable(np.float32(2))
    with torch.inference_mode():
        strategy.run(lambda: variable.value())

    def step() -> Any:
        x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        (x * variable.value() + variable * x + scalar).sum().backward()
        assert variable.value() is variable.read_value()
        return x.grad

    assert [part.tolist() for part in strategy.run(step).values] == [[0, 2, 4]] * 2
    strategy.run(lambda: variable.assign_add(torch.ones(3, dtype=torch.float64)))
    assert strategy.run(lambda: variable.value().sum()).values[0] == (9 if synchronization == "AUTO" else 6)
    total = [2.0, 3.0, 4.0] if synchronization == "AUTO" else [2.0, 4.0, 6.0]
    assert variable.numpy().tolist() == np.asarray(variable).tolist() == total
    assert "numpy=array([" in repr(variable)
    assert float(scalar) == 2


@pytest.mark.parametrize("fetch", [True, False])
def test_host_arrays_if_steps_are_not_to_be_fetched(fetch: bool) -> None:
    options = di.distribute.InputOptions(experimental_fetch_to_device=fetch)
    (step,) = mirrored().experimental_distribute_dataset(di.data.Dataset.range(4).batch(4), options)
    assert [type(part) for part in step.values] == [torch.Tensor if fetch else np.ndarray] * 2


ROWS, WIDTH = 128, 256  # 128 KiB in a batch: large enough for the pool of buffers


@pytest.mark.parametrize("waiting", [0, 1, 5])
@pytest.mark.parametrize("pipeline", ["shuffled", "mapped", "copied"])
def test_a_batch_that_a_tensor_refers_to_is_not_overwritten(waiting: int, pipeline: str) -> None:
    rows = np.repeat(np.arange(ROWS * 24, dtype=np.float32), WIDTH).reshape(-1, WIDTH)
    source = di.data.Dataset.from_tensor_slices(rows)
    dataset = {
        "shuffled": source.global_shuffle(seed=1, reshuffle_each_iteration=False).batch(ROWS),
        "mapped": source.batch(ROWS).map(lambda x: x + 0),
        "copied": source.batch(ROWS).copied(),
    }[pipeline]
    expected = [batch[:, 0].sum(dtype=np.float64) for batch in dataset]
    strategy, late, found = mirrored(4), deque[Any](), []
    for step in strategy.experimental_distribute_dataset(dataset):
        late.append([part[:, 0] for part in step.values])  # views, which keep the memory of the whole batch
        del step
        if len(late) > waiting:
            found.append(float(torch.cat(late.popleft()).sum()))
    found += [float(torch.cat(parts).sum()) for parts in late]
    assert found == expected


def test_nothing_is_left_when_devices_are_closed() -> None:
    before = threading.enumerate()
    there = devices(4)
    there.run(lambda i: i, [(i,) for i in range(4)])
    there.close()
    assert threads_since(before) == []
