# SPDX-License-Identifier: Apache-2.0
"""Steps on a device ahead of the loop, with a model of a GPU: a copy takes place as late as it may.

The tests marked `gpu` are left out on machines without a GPU.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

import distinput as di
from distinput.errors import FailedPreconditionError, InvalidArgumentError
from distinput.interop.torch import Loader, loader
from distinput.interop.torch.loader import DeviceCopies

Dataset = di.data.Dataset
SHUFFLED = Dataset.range(30).shuffle(30, seed=1).batch(4)


class Stream:
    def __init__(self, cuda: "Cuda", name: str) -> None:
        self.cuda, self.name = cuda, name
        self.work: list[Any] = []

    def wait_event(self, event: "Event") -> None:
        self.cuda.log.append(f"{self.name} waits")
        event.happen()


class Event:
    """Happens when somebody waits for it, with all copies before it."""

    def __init__(self) -> None:
        self.happened = False

    def record(self, stream: Stream) -> None:
        self.stream = stream
        stream.work.append(self)

    def happen(self) -> None:
        while not self.happened:
            first = self.stream.work.pop(0)
            if isinstance(first, Event):
                first.happened = True
            else:
                first()

    def query(self) -> bool:
        return self.happened

    def synchronize(self) -> None:
        self.stream.cuda.log.append("the host waits" if not self.happened else "it happened")
        self.happen()


class Cuda:
    """What `torch.cuda` does, on the host."""

    Event = Event

    def __init__(self) -> None:
        self.log: list[str] = []
        self.loop = Stream(self, "the loop's stream")
        self.within: Stream | None = None

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 3

    def Stream(self, device: Any) -> Stream:
        self.log.append(f"stream on {device}")
        return Stream(self, "the stream of copies")

    def current_stream(self, device: Any) -> Stream:
        return self.loop

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        self.within = stream
        yield
        self.within = None


class OnGpu(torch.Tensor):  # type: ignore[misc]
    """A tensor on the host that passes for one on a GPU."""

    log: Any = None

    def record_stream(self, stream: Stream) -> None:
        self.log.append(f"used on {stream.name}")


class Copies(DeviceCopies):
    """Copies that take place when somebody waits for them."""

    last: "Copies"

    def __init__(self, device: Any, element_spec: Any) -> None:
        super().__init__(device, element_spec, Cuda())
        self.made: list[Any] = []
        Copies.last = self

    def _pinned(self, size: int) -> Any:
        self.made.append(torch.empty(size, dtype=torch.uint8))
        return self.made[-1]

    def _is_pinned(self, tensor: Any) -> bool:
        return False

    def _copy(self, pinned: Any) -> Any:
        stream = self._cuda.within
        assert stream is not None
        made = torch.zeros_like(pinned)
        stream.work.append(lambda: made.copy_(pinned))
        there = made.as_subclass(OnGpu)
        there.log = self._cuda.log
        return there


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "DeviceCopies", Copies)


def on_gpu(dataset: Any, ahead: int = 1, **options: Any) -> Loader:
    return Loader(dataset, device="cuda", prefetch_to_device=ahead, **options)


def rows(steps: Any) -> list[Any]:
    return [step.tolist() for step in steps]


@pytest.mark.parametrize("device", [None, "cpu"])
def test_on_the_cpu_nothing_is_copied_and_nothing_taken_ahead(device: str | None) -> None:
    array = np.zeros((300_000, 2))
    loader = Loader(Dataset.from_tensor_slices(array).batch(4), share_memory=True, device=device, prefetch_to_device=3)
    assert next(iter(loader)).data_ptr() == array.__array_interface__["data"][0]
    plain, ahead = Loader(SHUFFLED), Loader(SHUFFLED, device=device, prefetch_to_device=3)
    assert rows(ahead) == rows(plain)
    for _ in zip(plain, ahead, strict=False):
        assert ahead.state_dict() == plain.state_dict()
    next(iter(ahead))
    assert ahead.view.state_dict()["step"] == 1


@pytest.mark.usefixtures("gpu")
def test_a_stream_of_its_own_copies_and_that_of_the_loop_waits() -> None:
    steps = iter(on_gpu(Dataset.range(6).batch(2)))
    next(steps)
    assert Copies.last._cuda.log == ["stream on cuda:3", "the loop's stream waits", "used on the loop's stream"]
    assert len(Copies.last._stream.work) == 2, "one copy ahead, and its event"


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("ahead", [0, 1, 5, 40])
def test_steps_are_those_of_the_cpu_and_buffers_are_used_again(ahead: int) -> None:
    loader, plain = on_gpu(SHUFFLED, ahead), Loader(SHUFFLED)
    for _ in range(4):
        assert rows(loader) == rows(plain)
    assert len({buffer.data_ptr() for buffer in Copies.last.made}) <= min(ahead, 8) + 3, "32 steps have passed"


@pytest.mark.usefixtures("gpu")
def test_the_host_waits_before_it_pins_ever_more_memory() -> None:
    copies = Copies(torch.device("cuda"), SHUFFLED.element_spec)
    placed = [copies.begin(torch.full((4,), n)) for n in range(50)]
    assert len(copies.made) <= 10
    assert "the host waits" in copies._cuda.log
    assert [copies.deliver(each).tolist() for each in placed] == [[n] * 4 for n in range(50)]


@pytest.mark.usefixtures("gpu")
def test_nests_text_jagged_rows_and_empty_ones() -> None:
    ragged = di.RaggedTensor.from_row_splits(np.arange(6, dtype="i4"), [0, 1, 3, 3, 6])
    parts = {
        "x": np.arange(4, dtype="f4"),
        "r": ragged,
        "t": [b"a", b"b", b"c", b"d"],
        "e": np.zeros((4, 0)),
        "y": np.ones(4, "?"),
    }
    dataset = Dataset.from_tensor_slices(parts).batch(2)
    for here, there in zip(Loader(dataset), on_gpu(dataset, 2), strict=True):
        assert list(there) == list(here)
        assert there["t"].tolist() == here["t"].tolist()
        assert [row.tolist() for row in there["r"].unbind()] == [row.tolist() for row in here["r"].unbind()]
        for key in "xey":
            assert isinstance(there[key], OnGpu)
            assert (there[key].dtype, there[key].shape) == (here[key].dtype, here[key].shape)
            assert there[key].tolist() == here[key].tolist()
    pairs = Loader(Dataset.range(5).batch(4), 1, 2, tail="pad")
    assert [
        (x.tolist(), m.tolist()) for x, m in on_gpu(Dataset.range(5).batch(4), rank=1, world_size=2, tail="pad")
    ] == [(x.tolist(), m.tolist()) for x, m in pairs]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dataset", [SHUFFLED, SHUFFLED.unbatch().filter(lambda x: x >= 0).batch(4)])
@pytest.mark.parametrize("ahead", [1, 20])
def test_states_are_of_what_the_loop_has_taken(dataset: Any, ahead: int) -> None:
    loader, plain = on_gpu(dataset, ahead), Loader(dataset)
    whole = [rows(dataset.iter_pass(epoch)) for epoch in range(2)]
    assert loader.state_dict() == plain.state_dict()
    for epoch in range(2):
        for taken, _ in enumerate(zip(loader, plain, strict=True), 1):
            state = json.loads(json.dumps(loader.state_dict()))
            assert state == plain.state_dict()
            again = on_gpu(dataset, ahead)
            again.load_state_dict(state)
            assert [*rows(again), *(rows(again) if again.epoch < 2 else [])][: 8 - taken] == (
                whole[epoch][taken:] or whole[1][: 8 - taken]
            )
    assert loader.state_dict() == plain.state_dict()


@pytest.mark.usefixtures("gpu")
def test_an_error_comes_behind_the_steps_before_it_and_the_rest_behind_it() -> None:
    def fail(x: Any) -> Any:
        if x[0] == 4:
            raise ValueError("the third")
        return x

    loader = on_gpu(Dataset.range(10).batch(2).map(fail), 4)
    found: list[Any] = []
    steps = iter(loader)
    for _ in range(6):
        try:
            found.append(next(steps).tolist())
        except ValueError:
            found.append("error")
        except StopIteration:
            found.append("end")
    assert found == [[0, 1], [2, 3], "error", [6, 7], [8, 9], "end"]


@pytest.mark.usefixtures("gpu")
def test_an_interrupt_loses_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted: list[int] = []
    begin = Copies.begin

    def interrupt(self: Any, step: Any) -> Any:
        if int(step[0]) not in interrupted:
            interrupted.append(int(step[0]))
            raise KeyboardInterrupt
        return begin(self, step)

    monkeypatch.setattr(Copies, "begin", interrupt)
    loader, found = on_gpu(Dataset.range(6).batch(2), 2), []
    steps = iter(loader)
    while len(found) < 3:
        try:
            found.append(next(steps).tolist())
        except KeyboardInterrupt:
            continue
    assert found == [[0, 1], [2, 3], [4, 5]]
    assert interrupted == [0, 2, 4]


@pytest.mark.usefixtures("gpu")
def test_buffers_of_a_loop_in_inference_mode_serve_later_ones() -> None:
    loader = on_gpu(SHUFFLED)
    with torch.inference_mode():
        first = rows(loader)
    loader.set_epoch(0)
    assert rows(loader) == first


def test_other_devices_are_copied_to_one_by_one() -> None:
    steps = list(Loader(Dataset.range(6).map(lambda x: {"x": x, "t": b"a"}).batch(4), device="meta"))
    assert [(step["x"].device.type, tuple(step["x"].shape), len(step["t"])) for step in steps] == [
        ("meta", (4,), 4),
        ("meta", (2,), 2),
    ]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Loader: prefetch_to_device must be .*0.* -1"):
        Loader(SHUFFLED, device="cpu", prefetch_to_device=-1)
    if not torch.cuda.is_available():
        with pytest.raises(
            FailedPreconditionError, match=r"Loader: device is 'cuda:1', and PyTorch .* sees no GPU of CUDA"
        ):
            next(iter(Loader(SHUFFLED, device="cuda:1")))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("workers", [0, 2])
def test_steps_arrive_on_a_gpu_while_it_computes(workers: int) -> None:
    values = np.repeat(np.arange(64 * 512, dtype=np.float32), 512).reshape(-1, 512)
    dataset = Dataset.from_tensor_slices(values).global_shuffle(seed=1, reshuffle_each_iteration=False).batch(512)
    expected = [float(batch[:, 0].sum(dtype=np.float64)) for batch in dataset]
    busy = torch.ones(4096, 4096, device="cuda")
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        found = []
        with torch.cuda.stream(stream):
            for step in Loader(
                dataset, device="cuda", prefetch_to_device=2, num_workers=workers, pin_memory=bool(workers)
            ):
                busy = busy @ busy / 4096
                found.append(step[:, 0].double().sum())
        assert [float(each) for each in found] == expected


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_steps_on_a_gpu_go_to_jax_and_back_without_a_copy() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    if jax.default_backend() != "gpu":
        pytest.skip("jax is installed without CUDA")
    values = np.arange(64 * 512, dtype=np.float32).reshape(-1, 512)
    steps = []
    for step in Loader(Dataset.from_tensor_slices(values).batch(16), device="cuda", prefetch_to_device=2):
        array = jax.dlpack.from_dlpack(step)
        back = torch.from_dlpack(array)
        assert step.data_ptr() == array.unsafe_buffer_pointer() == back.data_ptr()
        steps.append(np.asarray(array))
    np.testing.assert_array_equal(np.concatenate(steps), values)
