# SPDX-License-Identifier: Apache-2.0
"""`DeviceCopies`: copies of steps to a device, which nobody waits for before the loop takes the step."""

from collections import deque
from typing import Any

import torch

from distinput.errors import FailedPreconditionError
from distinput.values.spec import Spec

__all__ = ["BegunCopies", "DeviceCopies"]


# ----------------------------------------------------------------------------
# Copies to a GPU: through pinned memory, on a stream of their own, so that the GPU computes meanwhile.
#
# No thread waits for a copy. The stream on which the loop computes waits for it when the loop takes the step, and the memory
# on the GPU is not used again before that stream has finished reading it.
# ----------------------------------------------------------------------------


BegunCopies = tuple[Any, list[Any], Any]
"""A step, its tensors on the device, and the event after their copies; None: they are there."""


_IN_FLIGHT = 8
"""Steps whose copies may be under way before the host waits for the oldest of them."""


class DeviceCopies:
    """Copies of steps to a device. Text and other values that are no tensors stay on the host.

    Args:
      device: any of PyTorch's but the CPU. Only GPUs of CUDA have streams here; to others tensors are copied one by one.
      element_spec: of the steps.
      cuda: `torch.cuda`, or what stands for it in a test.

    Raises:
      FailedPreconditionError: it is a GPU of CUDA, and PyTorch sees none here.
    """

    def __init__(self, device: torch.device, element_spec: Any, cuda: Any = torch.cuda) -> None:
        if device.type == "cuda" and not cuda.is_available():
            raise FailedPreconditionError(
                f"Loader: device is {str(device)!r}, and PyTorch {torch.__version__} sees no GPU of CUDA in this process; "
                "install PyTorch for CUDA, or leave device out"
            )
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", cuda.current_device())
        self._device, self._structure, self._cuda = device, Spec.of(element_spec).structure, cuda
        self._stream = cuda.Stream(device) if device.type == "cuda" else None
        self._free: dict[int, list[Any]] = {}  # pinned buffers, by their sizes
        self._copied: deque[tuple[Any, list[Any], list[Any]]] = deque()
        """Events, and the buffers and other tensors that are read until then."""

    def begin(self, step: Any) -> BegunCopies:
        """Begin the copies of a step. Its memory is not read after the call, unless it is pinned."""
        structure = self._structure
        leaves = [step] if structure.is_leaf else list(structure.flatten(step))
        with torch.inference_mode(False):  # buffers outlive a loop in inference mode
            there, tensors, event = self._begin_all(leaves)
        return (there[0] if structure.is_leaf else structure.build(there)), tensors, event

    def _begin_all(self, leaves: list[Any]) -> tuple[list[Any], list[Any], Any]:
        if self._stream is None:
            there = [leaf.to(self._device) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            return there, [], None
        self._take_back()
        cuda, buffers, kept, tensors = self._cuda, list[Any](), list[Any](), list[Any]()
        with cuda.stream(self._stream):
            there = [
                self._begin(leaf, buffers, kept, tensors) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves
            ]
            event = cuda.Event()
            event.record(self._stream)
        # An error before this line leaves the buffers to PyTorch, which knows what is copied from them.
        self._copied.append((event, buffers, kept))
        return there, tensors, event

    def deliver(self, placed: BegunCopies) -> Any:
        """The step; the stream on which the calling thread computes waits until it has arrived."""
        step, tensors, event = placed
        if event is not None:
            stream = self._cuda.current_stream(self._device)
            stream.wait_event(event)
            for tensor in tensors:  # else their memory could be filled again while that stream still reads it
                tensor.record_stream(stream)
        return step

    def _begin(self, tensor: Any, buffers: list[Any], kept: list[Any], tensors: list[Any]) -> Any:
        """The tensor on the GPU, where it arrives later; notes what is read meanwhile, and the tensors that are written."""
        if tensor.is_nested:
            parts = [self._begin(part, buffers, kept, tensors) for part in (tensor.values(), tensor.offsets())]
            return torch.nested.nested_tensor_from_jagged(*parts)
        size = tensor.numel() * tensor.element_size()
        if size and not self._is_pinned(tensor):
            buffer = self._buffer(size)
            buffers.append(buffer)
            pinned = buffer[:size].view(tensor.dtype).view(tensor.shape)
            pinned.copy_(tensor)
        else:
            pinned = tensor
            kept.append(tensor)
        there = self._copy(pinned)
        tensors.append(there)
        return there

    def _buffer(self, size: int) -> Any:
        """A pinned buffer that nobody holds, of a power of two bytes, as PyTorch would reserve for any size."""
        whole = 1 << (size - 1).bit_length()
        free = self._free.get(whole)
        return free.pop() if free else self._pinned(whole)

    def _take_back(self) -> None:
        """Note the buffers whose copies are complete, to use them again."""
        copied = self._copied
        while copied and (copied[0][0].query() or len(copied) > _IN_FLIGHT):
            event, buffers, _ = copied[0]
            event.synchronize()  # the host is ahead of the copies, and would pin more and more memory
            copied.popleft()
            for buffer in buffers:
                self._free.setdefault(buffer.numel(), []).append(buffer)

    def _pinned(self, size: int) -> Any:
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)

    def _is_pinned(self, tensor: Any) -> bool:
        return bool(tensor.is_pinned())

    def _copy(self, pinned: Any) -> Any:
        return pinned.to(self._device, non_blocking=True)
