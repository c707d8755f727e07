# SPDX-License-Identifier: Apache-2.0
"""Copies of steps to GPUs: through pinned memory, on streams of their own, so that GPUs compute meanwhile.

The stream on which a program computes does not wait for these copies. So the thread that makes them does, before a step is
delivered; and memory on the GPU is not used again before the program's stream has finished reading it.
"""

from collections.abc import Iterable
from typing import Any

import torch

from distinput.distribute.values import DistributedValues, replica_leaves

__all__ = ["PinnedCopies"]


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
        cuda, used, copies = self._cuda, dict[Any, Any](), []
        for tensor, device in tensors:
            stream = used[device] = self._stream(device)
            # The driver copies memory that is not pinned in small pieces, and keeps the thread waiting.
            pinned = self._pinned(tensor)
            pinned.copy_(tensor)
            with cuda.stream(stream):
                there = pinned.to(device, non_blocking=True)
            # Else this stream could fill the memory again while the program's stream still reads it.
            there.record_stream(cuda.default_stream(device))
            copies.append(there)
        for stream in used.values():
            stream.synchronize()
        return copies

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
