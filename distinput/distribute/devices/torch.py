# SPDX-License-Identifier: Apache-2.0
"""Replicas as threads of this process, each on a PyTorch device.

A tensor on the CPU uses the memory of the NumPy array that it was made of, where it can. It holds a reference to that array,
and buffers of this library are used again only when nobody refers to them. So a batch may be put without a copy, and is never
overwritten. Tensors can always be written to, so arrays that are read-only, because others see the same memory, are copied.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from distinput.distribute.devices.threads import ThreadDevices
from distinput.distribute.values import PerReplica
from distinput.errors import EngineMissing

try:
    import torch

    from distinput.distribute.devices.pinned_copies import PinnedCopies
    from distinput.distribute.devices.tensors import array_of, can_hold, tensor_of
    from distinput.distribute.devices.torch_arrays import TORCH
    from distinput.distribute.devices.torch_modes import USUAL, TorchModes
except ImportError as error:
    raise EngineMissing(
        f"backend 'torch': needs PyTorch, which is not installed ({error}); use `pip install 'distinput[torch]'`, from "
        "PyTorch's CPU index where there is no GPU"
    ) from error
if not hasattr(torch, "accelerator"):
    raise EngineMissing(
        f"backend 'torch': PyTorch {torch.__version__} is installed, 2.6 or newer is needed; use "
        "`pip install -U 'distinput[torch]'`"
    )

__all__ = ["TorchDevices", "array_of", "can_hold", "tensor_of"]


class TorchDevices:
    """PyTorch devices of this process, one for each replica; replicas run eagerly, on a thread each.

    Text and other values that are not numbers stay on the host. All CPU replicas share PyTorch's only CPU device. Where the
    caller of `run` computes without gradients, in inference mode, with autocast, or with another default device, so do all
    replicas. What a function creates without naming a device is made on the default device, as everywhere in PyTorch; "cuda"
    without a number is the replica's own GPU.

    Steps are copied to GPUs through pinned memory, on streams of their own. Their tensors may be used on the stream that is the
    current one when a step is taken, and on the default one; before they are used on others, say `tensor.record_stream`.

    Args:
      labels: a name for each replica: "CPU:0", "CPU:1" and so on for replicas on the CPU, "CUDA:0" or "GPU:0" for the first
        GPU, or the name of another kind of accelerator that PyTorch has, such as "MPS:0" or "XPU:1". "TORCH:0" is the first
        accelerator, or the CPU where there is none.

    Raises:
      EngineMissing: PyTorch is not installed.
      ValueError: PyTorch has no such device, or an accelerator is named twice.

    >>> from distinput.distribute.devices.torch import TorchDevices
    >>> devices = TorchDevices(["CPU:0", "CPU:1"])
    >>> parts = [devices.put(np.arange(3), i, owned=True) for i in range(2)]
    >>> devices.run(lambda x: (x + 1).sum(), [(part,) for part in parts])
    [tensor(6), tensor(6)]

    Source: the meaning is that of the replica threads of `tf.distribute.MirroredStrategy`.
    """

    host_memory = False
    arrays = TORCH

    def __init__(self, labels: Sequence[str]) -> None:
        self._devices = _devices(labels)
        self._threads = ThreadDevices(labels)
        self._kinds = tuple(dict.fromkeys(["cpu", *[device.type for device in self._devices]]))
        self._accelerated = len(self._kinds) > 1
        self._copies = PinnedCopies() if "cuda" in self._kinds else None

    @staticmethod
    def default_labels() -> tuple[str, ...]:
        """The devices used if none is named: all accelerators that this process has, else one CPU."""
        kind, count = _accelerator()
        return tuple([f"{kind}:{i}" for i in range(count)]) or ("CPU:0",)

    @staticmethod
    def has_gpus() -> bool:
        """True if PyTorch has an accelerator in this process."""
        return _accelerator()[1] > 0

    @property
    def local(self) -> tuple[str, ...]:
        """The devices' names, in replica order."""
        return self._threads.local

    @property
    def devices(self) -> tuple[Any, ...]:
        """The PyTorch devices, in replica order."""
        return self._devices

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        """The value as a tensor on the device, in the same memory where it can be; see `Devices.put`.

        Raises:
          InvalidArgumentError: PyTorch has no dtype for it.
        """
        if not can_hold(value):
            return self._threads.put(value, device, owned=owned)
        place = self._devices[device]
        if place.type != "cpu":  # nothing is left of the host's memory once the copy has been made
            return tensor_of(value, shared=True).to(place, copy=not owned)
        return tensor_of(value, shared=False) if owned else tensor_of(value, shared=True).clone()

    def put_all(self, leaves: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """The values of several leaves, one for each device, as `put(..., owned=True)` puts each.

        They have arrived when this returns. What goes to GPUs is copied on streams of its own, while they compute.
        """
        put = self.put
        if not self._accelerated:
            return [[tensor_of(part) if can_hold(part) else part for part in parts] for parts in leaves]
        if self._copies is None:
            return [[put(part, i, owned=True) for i, part in enumerate(parts)] for parts in leaves]
        places = [place if place.type == "cuda" else None for place in self._devices]
        results: list[list[Any]] = []
        pairs: list[tuple[Any, Any]] = []
        gaps: list[tuple[list[Any], int]] = []
        for parts in leaves:
            there: list[Any] = []
            for i, part in enumerate(parts):
                if places[i] is None or not can_hold(part) or isinstance(part, torch.Tensor):
                    there.append(put(part, i, owned=True))
                    continue
                pairs.append((tensor_of(part, shared=True), places[i]))
                gaps.append((there, i))
                there.append(None)
            results.append(there)
        for (row, i), tensor in zip(gaps, self._copies.put(pairs), strict=True):
            row[i] = tensor
        return results

    def put_step(self, leaves: Sequence[Sequence[Any]]) -> list[PerReplica]:
        """The values of several leaves, one for each device, as a step has them; nobody writes to them any more."""
        return [PerReplica(parts) for parts in self.put_all(leaves)]

    def variable_value(self, value: Any, copy: int) -> Any:
        """What a replica reads of a variable, a tensor, since PyTorch takes no NumPy arrays; it must not be modified."""
        with torch.inference_mode(False):  # it may be read again where gradients are computed
            return self.put(value, min(copy, len(self._devices) - 1), owned=False)

    @property
    def delivered(self) -> Callable[[Any], None] | None:
        """Called with each step on the thread that takes it; None if there is nothing to do."""
        return None if self._copies is None else self._copies.delivered

    def get(self, value: Any) -> Any:
        """A NumPy array of the values of a tensor, which may share its memory; anything else itself."""
        return array_of(value) if isinstance(value, torch.Tensor) else value

    def run(self, function: Callable[..., Any], per_device_args: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call `function(*args)` for every device at the same time, in the caller's modes; see `Devices.run`."""
        modes = TorchModes.here(self._kinds) if len(per_device_args) > 1 else USUAL
        if modes == USUAL and not self._accelerated:
            return self._threads.run(function, per_device_args)

        def on_device(index: int, args: tuple[Any, ...]) -> Any:
            with ExitStack() as stack:
                for context in [*(modes.contexts() if index else ()), *_current(self._devices[index])]:
                    stack.enter_context(context)
                return function(*args)

        return self._threads.run(on_device, list(enumerate(per_device_args)))

    def close(self) -> None:
        """End the idle threads."""
        self._threads.close()


def _accelerator() -> tuple[str, int]:
    """The kind of accelerator that PyTorch has here, and how many of them; none of it on a machine without one."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return ("", 0) if found is None else (found.type.upper(), torch.accelerator.device_count())


def _current(place: Any) -> tuple[AbstractContextManager[Any], ...]:
    """What makes a device the current one of its kind, on the calling thread."""
    make = None if place.type == "cpu" else getattr(torch.get_device_module(place), "device", None)
    return () if make is None else (make(place),)


def _devices(labels: Sequence[str]) -> tuple[Any, ...]:
    found = [_device(label) for label in labels]
    for i, device in enumerate(found):
        if device.type != "cpu" and device in found[:i]:
            raise ValueError(f"backend 'torch': {labels[found.index(device)]} and {labels[i]} are the same device")
    return tuple(found)


def _device(label: str) -> Any:
    kind, _, number = label.partition(":")
    accelerator, count = _accelerator()
    if kind in ("GPU", "TORCH") and count:
        kind = accelerator
    if kind == "CPU" or (kind == "TORCH" and not count):
        return torch.device("cpu")
    place = int(number) if number.isdigit() else -1
    if kind != accelerator or not 0 <= place < count:
        there = f"{accelerator}:0 to {accelerator}:{count - 1}" if count else "no accelerator"
        raise ValueError(
            f"backend 'torch': PyTorch {torch.__version__} has no device {label!r} in this process; it has {there}, and any "
            "number of replicas on the CPU, as CPU:0, CPU:1, ..."
        )
    return torch.device(kind.lower(), place)
