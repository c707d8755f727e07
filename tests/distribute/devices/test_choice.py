# SPDX-License-Identifier: Apache-2.0
"""Which backend devices choose, on machines with and without GPUs."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import distinput as di
from distinput.distribute import devices as choice
from distinput.distribute.devices import chosen_devices
from distinput.errors import EngineMissing


@pytest.mark.parametrize(
    "devices, backend, chosen",
    [
        (None, None, (("CPU:0",), "threads")),
        ([], None, (("CPU:0",), "threads")),
        ("cpu:3", None, (("CPU:3",), "threads")),
        (["CPU:0", "TPU:1", "XLA_CPU:0"], None, (("CPU:0", "TPU:1", "XLA_CPU:0"), "threads")),
        (["JAX:0", "CPU:1"], None, (("JAX:0", "CPU:1"), "jax")),
        (["cuda:0", "cuda:1"], None, (("CUDA:0", "CUDA:1"), "torch")),
        (["mps"], None, (("MPS:0",), "torch")),
        (["TORCH:0"], None, (("TORCH:0",), "torch")),
        (["cuda:0"], "jax", (("CUDA:0",), "jax")),
        (["cuda:0"], "threads", (("CUDA:0",), "threads")),
        (["gpu:1"], "mine", (("GPU:1",), "mine")),
    ],
)
def test_names_choose_a_backend(devices: Any, backend: str | None, chosen: Any) -> None:
    assert chosen_devices(devices, backend) == chosen


def test_a_number_of_devices_is_refused_with_their_names() -> None:
    with pytest.raises(TypeError, match=r"expected a name for each replica, such as \['CPU:0', 'CPU:1'\], got 2"):
        di.distribute.MirroredStrategy(2)  # type: ignore[arg-type]


def test_the_default_may_be_given() -> None:
    assert chosen_devices((), None, ["CPU:0"]) == (("CPU:0",), "threads")
    assert chosen_devices(None, "jax", ["CPU:0"]) == (("CPU:0",), "jax")


def test_names_of_two_frameworks_are_refused() -> None:
    with pytest.raises(ValueError, match="must run on one framework, got 'JAX:0' of JAX and 'CUDA:0' of PyTorch"):
        chosen_devices(["cuda:0", "JAX:0"], None)


def test_device_objects_choose_their_framework() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    assert chosen_devices([torch.device("cpu"), torch.device("cpu", 1)], None) == (("CPU:0", "CPU:1"), "torch")
    assert chosen_devices(torch.device("cuda", 2), None) == (("CUDA:2",), "torch")
    assert chosen_devices(jax.devices("cpu")[:2], None) == (("CPU:0", "CPU:1"), "jax")
    assert chosen_devices(jax.devices("cpu")[1], None) == (("CPU:1",), "jax")
    assert chosen_devices([torch.device("cpu", 1)], "threads") == (("CPU:1",), "threads")
    with pytest.raises(ValueError, match=r"is a device of PyTorch, but backend='jax' was given; write backend='torch'"):
        chosen_devices([torch.device("cpu")], "jax")
    with pytest.raises(ValueError, match="must run on one framework"):
        chosen_devices([torch.device("cpu"), jax.devices("cpu")[1]], None)
    with pytest.raises(AssertionError, match="No duplicates allowed"):
        chosen_devices([torch.device("cpu"), torch.device("cpu", 0)], None)


def test_strategies_take_device_objects() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    mirrored = di.distribute.MirroredStrategy([torch.device("cpu", i) for i in range(2)])
    dataset = di.data.Dataset.range(4).batch(4)
    (step,) = mirrored.experimental_distribute_dataset(dataset)
    assert [type(part) for part in step.values] == [torch.Tensor] * 2
    one = di.distribute.OneDeviceStrategy(jax.devices("cpu")[1])
    (step,) = one.experimental_distribute_dataset(dataset)
    assert step.devices() == {jax.devices("cpu")[1]}
    central = di.distribute.experimental.CentralStorageStrategy(torch.device("cpu"), torch.device("cpu"))
    assert central.extended.parameter_devices == ("CPU:0",)


class _WithGpus:
    @staticmethod
    def has_gpus() -> bool:
        return True


class _Without:
    @staticmethod
    def has_gpus() -> bool:
        return False


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine with GPUs: which frameworks are imported, which are installed, and which of them have GPUs."""

    def made(imported: str, installed: str, having: str) -> None:
        for name in ("jax", "torch"):
            monkeypatch.delitem(sys.modules, name, raising=False)
            if name in imported:
                monkeypatch.setitem(sys.modules, name, sys)
        monkeypatch.setattr(choice.glob, "glob", lambda _: ["/dev/nvidia0"])
        monkeypatch.setattr(choice.util, "find_spec", lambda name: name in installed)
        found = {name: _WithGpus if name in having else _Without for name in ("jax", "torch")}
        monkeypatch.setattr(choice, "BACKENDS", SimpleNamespace(find=found.__getitem__))

    return made


@pytest.mark.parametrize(
    "imported, installed, having, backend",
    [
        ("", "", "", "threads"),
        ("", "torch", "torch", "torch"),
        ("", "jax torch", "torch", "torch"),
        ("", "jax torch", "jax", "jax"),
        ("jax", "jax torch", "jax torch", "jax"),
        ("torch", "jax torch", "jax torch", "torch"),
        ("jax torch", "jax torch", "jax", "jax"),
        ("jax", "jax torch", "torch", "torch"),
        ("jax", "jax", "torch", "threads"),
    ],
)
def test_gpus_are_those_of_the_framework_that_has_them(
    machine: Any, imported: str, installed: str, having: str, backend: str
) -> None:
    machine(imported, installed, having)
    assert chosen_devices(["GPU:0", "GPU:1"], None) == (("GPU:0", "GPU:1"), backend)
    assert chosen_devices(["GPU:0"], "threads") == (("GPU:0",), "threads")
    assert chosen_devices(["CPU:0"], None) == (("CPU:0",), "threads")


def test_two_frameworks_with_gpus_need_a_word(machine: Any) -> None:
    machine("", "jax torch", "jax torch")
    with pytest.raises(ValueError, match="JAX and PyTorch both have GPUs here; write backend='jax' or backend='torch'"):
        chosen_devices(["GPU:0"], None)


def test_without_gpus_nothing_is_imported(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine("", "jax torch", "jax torch")
    monkeypatch.setattr(choice.glob, "glob", lambda _: [])
    monkeypatch.setattr(choice, "BACKENDS", None)
    assert chosen_devices(["GPU:0"], None) == (("GPU:0",), "threads" if sys.platform == "linux" else "jax")


def test_a_framework_that_cannot_be_imported_has_no_gpus(
    machine: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(name: str) -> Any:
        raise EngineMissing(name)

    machine("", "torch", "torch")
    monkeypatch.setattr(choice.BACKENDS, "find", broken)
    assert chosen_devices(["GPU:0"], None) == (("GPU:0",), "threads")
    assert "no framework here has a GPU; threads of the CPU, with NumPy arrays, take the place of GPU:0" in caplog.text
    caplog.clear()
    assert chosen_devices(["GPU:0"], "threads") == (("GPU:0",), "threads")  # who says so is told nothing
    assert "GPU:0" not in caplog.text
