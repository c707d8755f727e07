# SPDX-License-Identifier: Apache-2.0
"""Replicas as threads of this process, each on a PyTorch device.

A tensor on the CPU uses the memory of the NumPy array that it was made of, where it can. It holds a reference to that array,
and buffers of this library are used again only when nobody refers to them. So a batch may be put without a copy, and is never
overwritten. Tensors can always be written to, so arrays that are read-only, because others see the same memory, are copied.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, ClassVar

import numpy as np

from distinput.distribute.core.values import DistributedValues, replica_leaves
from distinput.distribute.devices.threads import FrameworkDevices
from distinput.errors import EngineMissing, importing
from distinput.names.lazy import dataclass

with importing(
    "backend 'torch': needs PyTorch, which is not installed ({error}); use `pip install 'distinput[torch]'`, from "
    "PyTorch's CPU index where there is no GPU"
):
    import torch

    from distinput.distribute.devices.tensors import array_of as array_of
    from distinput.distribute.devices.tensors import can_hold as can_hold
    from distinput.distribute.devices.tensors import tensor_of as tensor_of
if not hasattr(torch, "accelerator"):
    raise EngineMissing(
        f"backend 'torch': PyTorch {torch.__version__} is installed, 2.6 or newer is needed; use "
        "`pip install -U 'distinput[torch]'`"
    )

# ---- Settings that PyTorch keeps for each thread, such as `torch.no_grad()`, carried to the threads of replicas


@dataclass(frozen=True, slots=True)
class TorchModes:
    """The settings of one thread, which the threads of replicas do not see by themselves.

    Args:
      gradients: whether operations are recorded for gradients.
      inference: whether inference mode is on, in which tensors never take part in gradients.
      autocast: the kinds of devices for which it is enabled, each with its dtype.
      cached: whether autocast keeps the weights that it has cast.
      default: the device of new tensors, None for the CPU.
    """

    gradients: bool = True
    inference: bool = False
    autocast: tuple[tuple[str, Any], ...] = ()
    cached: bool = True
    default: Any = None

    @classmethod
    def here(cls, kinds: Sequence[str]) -> "TorchModes":
        """Those of the calling thread."""
        gradients, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        autocast = tuple([(kind, torch.get_autocast_dtype(kind)) for kind in kinds if torch.is_autocast_enabled(kind)])
        # Making a tensor takes a quarter of the time that asking for the default device does.
        default = None if torch.empty(0).device.type == "cpu" else torch.get_default_device()
        if gradients and not (inference or autocast or default):
            return USUAL
        return cls(gradients, inference, autocast, torch.is_autocast_cache_enabled(), default)

    def contexts(self) -> list[AbstractContextManager[Any]]:
        """Context managers in which a thread has them."""
        found: list[AbstractContextManager[Any]] = []
        if self.inference:
            found.append(torch.inference_mode())
        if self.gradients == self.inference:  # inference mode disables gradients, without it they are enabled
            found.append(torch.set_grad_enabled(self.gradients))
        found += [torch.autocast(kind, dtype, cache_enabled=self.cached) for kind, dtype in self.autocast]
        if self.default is not None:
            found.append(self.default)
        return found


USUAL = TorchModes()
"""Those of a thread on which nothing was set."""

# ---- Arithmetic with tensors of PyTorch, on the devices where they are: see `ArrayOps`
#
# Results have no gradient: what replicas add together is not part of the graph of any of them.


@dataclass(frozen=True, slots=True)
class TorchArrays:
    """Tensors of PyTorch."""

    library: ClassVar[str] = "torch"
    """See `ArrayOps.library`."""

    @staticmethod
    def owns(value: Any) -> bool:
        """True for a tensor."""
        return isinstance(value, torch.Tensor)

    @staticmethod
    def array(value: Any) -> Any:
        """See `ArrayOps.array`."""
        if isinstance(value, torch.Tensor):
            return value.detach()
        array = np.asarray(value)
        return torch.tensor(array) if array.dtype.kind in "biufc" else array

    @staticmethod
    def value(array: Any) -> Any:
        """See `ArrayOps.value`."""
        return array

    @staticmethod
    def kind(dtype: Any) -> str:
        """See `ArrayOps.kind`."""
        if isinstance(dtype, np.dtype):
            return dtype.kind
        if dtype.is_floating_point:
            return "f"
        return "b" if dtype == torch.bool else "c" if dtype.is_complex else "i" if dtype.is_signed else "u"

    @staticmethod
    def name(dtype: Any) -> str:
        """See `ArrayOps.name`."""
        return str(dtype).removeprefix("torch.")

    @staticmethod
    def dtype(name: str) -> Any:
        """See `ArrayOps.dtype`."""
        return getattr(torch, name)

    def wide(self, dtype: Any) -> Any:
        """See `ArrayOps.wide`."""
        kind = self.kind(dtype)
        if kind == "f" and dtype.itemsize < torch.float32.itemsize:
            return torch.float32
        if kind in "iu":
            return torch.float64 if dtype.itemsize == 8 else torch.int64
        return dtype

    @staticmethod
    def sum(array: Any, axes: tuple[int, ...], dtype: Any) -> Any:
        """See `ArrayOps.sum`."""
        if not axes:  # which torch takes for all of them
            return array.detach().to(dtype, copy=True)
        within = _added_as(dtype)
        array = array.detach().to(within) if array.dtype in _NOT_ADDED else array.detach()
        return torch.sum(array, dim=axes, dtype=within).to(dtype)

    def total(self, arrays: Sequence[Any], dtype: Any) -> Any:
        """See `ArrayOps.total`."""
        if len(arrays) == 2 or self.kind(dtype) in "iu":  # every order gives the same bits
            total = self.total_of_devices(arrays, dtype)
            if total is not None:
                return total
        within = _added_as(dtype)
        total = arrays[0].detach().to(within, copy=True)
        for array in arrays[1:]:
            total.add_(array.detach().to(device=total.device, dtype=within))
        return total.to(dtype)

    @staticmethod
    def total_of_devices(arrays: Sequence[Any], dtype: Any) -> Any:
        """By NCCL, of tensors on GPUs of CUDA, each on another one; see `ArrayOps.total_of_devices`."""
        within = _added_as(dtype)
        if within not in _ADDED_BY_NCCL or len(arrays) < 2 or not all(array.is_cuda for array in arrays):
            return None
        nccl = torch.cuda.nccl
        parts = [array.detach().to(within).contiguous() for array in arrays]
        if not parts[0].numel() or not nccl.is_available(parts):
            return None
        total = torch.empty_like(parts[0])
        nccl.reduce(parts, total, root=0, op=nccl.SUM)
        return total.to(dtype)

    def mean(self, total: Any, count: int, dtype: Any) -> Any:
        """See `ArrayOps.mean`."""
        if self.kind(dtype) in "iu":
            return total.to(torch.float64) / count
        return (total / count).to(dtype)

    def concatenate(self, arrays: Sequence[Any], axis: int) -> Any:
        """See `ArrayOps.concatenate`."""
        return torch.cat(self.together(arrays), dim=axis)

    @staticmethod
    def together(arrays: Sequence[Any]) -> list[Any]:
        """See `ArrayOps.together`."""
        return [array.detach().to(arrays[0].device) for array in arrays]

    @staticmethod
    def move(array: Any, device: Any) -> Any:
        """See `ArrayOps.move`."""
        return array.detach().to(device)

    @staticmethod
    def copy(array: Any, device: Any) -> Any:
        """See `ArrayOps.copy`."""
        return array.detach().to(device, copy=True)

    @staticmethod
    def zeros(shape: Sequence[int], dtype: Any, device: Any) -> Any:
        """See `ArrayOps.zeros`."""
        return torch.zeros(tuple(shape), dtype=dtype, device=device)

    @staticmethod
    def take(array: Any, rows: Any) -> Any:
        """See `ArrayOps.take`."""
        return array.detach().index_select(0, torch.from_numpy(rows).to(array.device))

    @staticmethod
    def to_host(array: Any) -> Any:
        """See `ArrayOps.to_host`; bfloat16, which NumPy lacks, as float32."""
        array = array.detach().cpu()
        return array.float().numpy() if array.dtype == torch.bfloat16 else array.numpy()


def _added_as(dtype: Any) -> Any:
    """The dtype in which torch adds values of a dtype; the sum, converted back, wraps around as it should."""
    return torch.int64 if dtype in _NOT_ADDED else dtype


_NOT_ADDED = frozenset({torch.uint16, torch.uint32, torch.uint64})
_ADDED_BY_NCCL = frozenset(
    {
        torch.bfloat16,
        torch.float16,
        torch.float32,
        torch.float64,
        torch.int8,
        torch.int32,
        torch.int64,
        torch.uint8,
    }
)

TORCH = TorchArrays()
"""The tensors of PyTorch."""

# ---- Copies of steps to GPUs: through pinned memory, on streams of their own, so that GPUs compute meanwhile
#
# The stream on which a program computes does not wait for these copies. So the thread that makes them does, before a step is
# delivered; and memory on the GPU is not used again before the program's stream has finished reading it.


class PinnedCopies:
    """Copies to the GPUs of a process.

    Args:
      cuda: `torch.cuda`, or what stands for it in a test.
    """

    def __init__(self, cuda: Any = torch.cuda) -> None:
        self._cuda = cuda
        self._streams: dict[Any, Any] = {}

    def put(self, tensors: Iterable[tuple[Any, Any]]) -> list[Any]:
        """The tensors on their GPUs, once they have arrived there.

        Args:
          tensors: each tensor on the host, and the GPU that it is copied to. Their memory is not read after the call.
        """
        cuda, used, placed_tensors = self._cuda, dict[Any, Any](), []
        for tensor, device in tensors:
            stream = used[device] = self._stream(device)
            # The driver copies memory that is not pinned in small pieces, and keeps the thread waiting.
            pinned = self._pinned(tensor)
            pinned.copy_(tensor)
            with cuda.stream(stream):
                there = pinned.to(device, non_blocking=True)
            # Else this stream could fill the memory again while the program's stream still reads it.
            there.record_stream(cuda.default_stream(device))
            placed_tensors.append(there)
        for stream in used.values():
            stream.synchronize()
        return placed_tensors

    def delivered(self, step: Any) -> None:
        """Keep the memory of a step's tensors until the stream that the calling thread computes on has finished with them.

        Args:
          step: a nest of `PerReplica` values or tensors.
        """
        cuda = self._cuda
        others = {device: cuda.current_stream(device) for device in list(self._streams)}
        others = {device: stream for device, stream in others.items() if stream != cuda.default_stream(device)}
        if not others:  # the default stream was recorded when they were copied
            return
        for leaf in replica_leaves(step)[1]:
            for part in leaf.values if isinstance(leaf, DistributedValues) else (leaf,):
                stream = others.get(getattr(part, "device", None))
                if stream is not None:
                    part.record_stream(stream)

    def _stream(self, device: Any) -> Any:
        stream = self._streams.get(device)
        if stream is None:
            stream = self._streams[device] = self._cuda.Stream(device)
        return stream

    def _pinned(self, tensor: Any) -> Any:
        """Pinned memory for a tensor; PyTorch uses it again when it is released and the copy from it is complete."""
        return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)


# ---- Replicas as threads of this process, each on a PyTorch device


class TorchDevices(FrameworkDevices):
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

    arrays = TORCH

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(labels, [_device(label) for label in labels])
        self._kinds = tuple(dict.fromkeys(["cpu", *[device.type for device in self.devices]]))
        self._accelerated = len(self._kinds) > 1
        self._copies = PinnedCopies() if "cuda" in self._kinds else None

    def _is_shared(self, device: Any) -> bool:
        return bool(device.type == "cpu")

    @staticmethod
    def default_labels() -> tuple[str, ...]:
        """The devices used if none is named: all accelerators that this process has, else one CPU."""
        kind, count = _accelerator()
        return tuple([f"{kind}:{i}" for i in range(count)]) or ("CPU:0",)

    @staticmethod
    def has_gpus() -> bool:
        """True if PyTorch has an accelerator in this process."""
        return _accelerator()[1] > 0

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        """The value as a tensor on the device, in the same memory where it can be; see `Devices.put`.

        Raises:
          InvalidArgumentError: PyTorch has no dtype for it.
        """
        if not can_hold(value):
            return self._threads.put(value, device, owned=owned)
        place = self.devices[device]
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
        places = [place if place.type == "cuda" else None for place in self.devices]
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

    def variable_value(self, value: Any, copy: int) -> Any:
        """What a replica reads of a variable, a tensor, since PyTorch takes no NumPy arrays; it must not be modified."""
        with torch.inference_mode(False):  # it may be read again where gradients are computed
            return self.put(value, min(copy, len(self.devices) - 1), owned=False)

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
                for context in [*(modes.contexts() if index else ()), *_current(self.devices[index])]:
                    stack.enter_context(context)
                return function(*args)

        return self._threads.run(on_device, list(enumerate(per_device_args)))


def _accelerator() -> tuple[str, int]:
    """The kind of accelerator that PyTorch has here, and how many of them; none of it on a machine without one."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return ("", 0) if found is None else (found.type.upper(), torch.accelerator.device_count())


def _current(place: Any) -> tuple[AbstractContextManager[Any], ...]:
    """What makes a device the current one of its kind, on the calling thread."""
    make = None if place.type == "cpu" else getattr(torch.get_device_module(place), "device", None)
    return () if make is None else (make(place),)


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
