# SPDX-License-Identifier: Apache-2.0
"""Copies to GPUs, with a model of one: a copy takes place when its stream is waited for, or later.

The tests at the end are left out on machines without a GPU.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.distribute.core.values import PerReplica
from distinput.distribute.devices.threads import ThreadDevices
from distinput.testing import check_devices
from distinput.testing.devices import check_recycled_buffers

torch = pytest.importorskip("torch")
from distinput.distribute.devices.tensors import can_hold  # noqa: E402
from distinput.distribute.devices.torch import PinnedCopies, TorchDevices  # noqa: E402


class Stream:
    def __init__(self, cuda: "Cuda", device: Any, name: str) -> None:
        self.cuda, self.device, self.name = cuda, device, name
        self.waiting: list[Any] = []

    def synchronize(self) -> None:
        self.cuda.log.append(f"wait for {self.name}")
        if not self.cuda.never_waits:
            for copy in self.waiting:
                copy()
            self.waiting.clear()


class Cuda:
    """What `torch.cuda` does, on the host."""

    def __init__(self, *, never_waits: bool = False) -> None:
        self.log: list[str] = []
        self.never_waits = never_waits
        self.current: dict[Any, Stream] = {}
        self._default: dict[Any, Stream] = {}
        self.within: Stream | None = None

    def Stream(self, device: Any) -> Stream:
        return Stream(self, device, f"stream of {device}")

    def default_stream(self, device: Any) -> Stream:
        return self._default.setdefault(device, Stream(self, device, "default"))

    def current_stream(self, device: Any) -> Stream:
        return self.current.get(device) or self.default_stream(device)

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        self.within = stream
        yield
        self.within = None


class OnGpu(torch.Tensor):  # type: ignore[misc]
    """A tensor on the host that passes for one on a GPU."""

    place: Any = None
    log: Any = None

    @property
    def device(self) -> Any:
        return self.place

    def record_stream(self, stream: Stream) -> None:
        self.log.append(f"used on {stream.name}")


class Pinned:
    def __init__(self, cuda: Cuda, like: Any) -> None:
        self.cuda, self.memory = cuda, torch.empty(like.shape, dtype=like.dtype)

    def copy_(self, tensor: Any) -> None:
        self.memory.copy_(tensor)

    def to(self, device: Any, *, non_blocking: bool) -> Any:
        assert non_blocking
        stream = self.cuda.within
        assert stream is not None
        assert stream.device == device
        made = torch.zeros(self.memory.shape, dtype=self.memory.dtype)
        stream.waiting.append(lambda: made.copy_(self.memory))
        there = made.as_subclass(OnGpu)
        there.place, there.log = device, self.cuda.log
        self.cuda.log.append(f"copy on {stream.name}")
        return there


class Copies(PinnedCopies):
    def __init__(self, cuda: Cuda) -> None:
        super().__init__(cuda)

    def _pinned(self, tensor: Any) -> Any:
        return Pinned(self._cuda, tensor)


class Gpus(TorchDevices):
    """As many GPUs as there are labels."""

    def __init__(self, labels: Sequence[str], **settings: Any) -> None:
        super().__init__(labels)
        self.devices = tuple([torch.device("cuda", i) for i in range(len(labels))])
        self._accelerated = True
        self._copies = Copies(Cuda(**settings))

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        if not can_hold(value):
            return value
        parts: list[Any] = [np.zeros(0)] * len(self.local)
        parts[device] = value if owned else value.copy()
        return self.put_all([parts])[0][device]

    def run(self, function: Any, per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        return self._threads.run(function, per_device_args)  # the CPU computes


def host(tensor: Any) -> Any:
    return tensor.as_subclass(torch.Tensor).tolist()


def test_a_step_is_copied_on_streams_of_its_own_and_waited_for() -> None:
    gpus = Gpus(["CPU:0", "CPU:1"])
    words = [b"a", b"b"]
    numbers, text = gpus.put_step([[np.arange(2), np.arange(3)], words])
    assert [host(part) for part in numbers.values] == [[0, 1], [0, 1, 2]]
    assert list(text.values) == words
    assert gpus._copies._cuda.log == [
        "copy on stream of cuda:0",
        "used on default",
        "copy on stream of cuda:1",
        "used on default",
        "wait for stream of cuda:0",
        "wait for stream of cuda:1",
    ]
    gpus.put_step([[np.arange(2), np.arange(3)]])
    assert len(gpus._copies._streams) == 2


def test_what_is_copied_needs_the_memory_of_the_batch_no_more() -> None:
    check_recycled_buffers(Gpus, 2)


def test_without_waiting_a_step_would_not_be_there() -> None:
    with pytest.raises(AssertionError, match="is wrong"):
        check_recycled_buffers(lambda labels: Gpus(labels, never_waits=True), 2)


def test_a_read_only_batch_is_copied_once_and_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    array = np.arange(4.0)
    array.flags.writeable = False
    assert host(Gpus(["CPU:0"]).put_step([[array]])[0].values[0]) == [0, 1, 2, 3]
    assert not [told for told in recwarn.list if told.category is not ResourceWarning]  # of what earlier tests left


def test_the_stream_that_takes_a_step_is_told() -> None:
    gpus = Gpus(["CPU:0", "CPU:1"])
    step = {"x": gpus.put_step([[np.arange(2), np.arange(3)]])[0], "y": np.zeros(2), "z": PerReplica([b"a", b"b"])}
    cuda = gpus._copies._cuda
    cuda.log.clear()
    assert gpus.delivered is not None
    gpus.delivered(step)
    assert cuda.log == []
    cuda.current[torch.device("cuda", 1)] = Stream(cuda, torch.device("cuda", 1), "mine")
    gpus.delivered(step)
    assert cuda.log == ["used on mine"]


@pytest.mark.parametrize("ahead", [0, 2])
def test_every_step_is_told_where_it_is_taken(ahead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = di.distribute.MirroredStrategy(["cpu:0", "cpu:1"], backend="torch")
    taken: list[Any] = []
    monkeypatch.setattr(TorchDevices, "delivered", taken.append)
    options = di.distribute.InputOptions(experimental_per_replica_buffer_size=ahead)
    steps = list(strategy.experimental_distribute_dataset(di.data.Dataset.range(10).batch(4), options))
    assert len(taken) == 3
    assert all(a is b for a, b in zip(taken, steps, strict=True))


def test_devices_on_the_host_have_nothing_to_tell() -> None:
    assert TorchDevices(["CPU:0"]).delivered is None


class FirstGpu(TorchDevices):
    """The first GPU under the names that the suite gives."""

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(["CUDA:0"])
        self._threads = ThreadDevices(labels)


with_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@with_gpu
def test_a_gpu_keeps_all_laws() -> None:
    check_devices(FirstGpu, counts=[1])


@with_gpu
def test_steps_arrive_on_a_gpu_while_it_computes() -> None:
    strategy = di.distribute.OneDeviceStrategy("cuda:0")
    rows = np.repeat(np.arange(64 * 512, dtype=np.float32), 512).reshape(-1, 512)
    dataset = di.data.Dataset.from_tensor_slices(rows).global_shuffle(seed=1, reshuffle_each_iteration=False).batch(512)
    expected = [float(batch[:, 0].sum(dtype=np.float64)) for batch in dataset]
    busy = torch.ones(4096, 4096, device="cuda:0")
    found = []
    for step in strategy.experimental_distribute_dataset(dataset):
        busy = busy @ busy / 4096
        found.append(strategy.run(lambda x: x[:, 0].double().sum(), args=(step,)))
    assert [float(each) for each in found] == expected
