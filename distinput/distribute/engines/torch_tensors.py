# SPDX-License-Identifier: Apache-2.0
"""Tensors between workers where they are: by gloo on CPUs, by NCCL on GPUs of CUDA."""

import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.engines.torch_works import TorchWorks, first_line, started

__all__ = ["TensorOperations"]

_DTYPES = frozenset({"bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"})
_POLL = 0.0002  # seconds


class TensorOperations:
    """Operations on the tensors of one channel; see `DeviceOperations`.

    Tensors travel as bytes, since gloo and NCCL lack some dtypes, and each by a broadcast of its size, since both gather only
    tensors of one size.

    Args:
      rank: this worker.
      size: how many workers there are.
      device: the kind of device, "cpu" or "cuda".
      gloo: the channel's group for calls; None for CUDA.
      store: shared by all workers, with a prefix that nothing else has; NCCL's group is made over it when it is first used.
      under_way: all operations of the channel.
    """

    def __init__(self, rank: int, size: int, device: str, gloo: Any, store: Any, under_way: set[Any]) -> None:
        self._torch, self._distributed = import_module("torch"), import_module("torch.distributed")
        self._rank, self._size = rank, size
        self._group, self._store, self._under_way = gloo, store, under_way
        self._works = TorchWorks if device == "cpu" else _CudaWorks
        self.kind = f"torch {device}"

    def reducible(self, dtype: str) -> bool:
        """True for dtypes that both gloo and NCCL add."""
        return dtype in _DTYPES

    def all_gather(self, flat: Any, sizes: Sequence[int]) -> TorchWorks:
        """[sizes[rank]] of every worker -> list of [sizes[i]]; one broadcast for each that is not empty."""
        torch = self._torch
        parts = [
            flat.contiguous() if rank == self._rank else torch.empty(n, dtype=flat.dtype, device=flat.device)
            for rank, n in enumerate(sizes)
        ]
        works = []
        for root, part in enumerate(parts):
            if sizes[root]:
                options = self._distributed.BroadcastOptions()
                options.rootRank, options.rootTensor = root, 0
                works.append(started(self._under_way, self._calls().broadcast, [part.view(torch.uint8)], options))
        return self._works(works, self._under_way, lambda: parts)

    def all_reduce(self, flat: Any) -> TorchWorks:
        """[n] of every worker -> [n]."""
        result = flat.clone()
        work = started(self._under_way, self._calls().allreduce, [result], self._distributed.AllreduceOptions())
        return self._works([work], self._under_way, lambda: result)

    def close(self) -> None:
        """The channel drops the group of gloo; that of NCCL is dropped here."""
        self._group = None

    def _calls(self) -> Any:
        if self._group is None:
            nccl = self._distributed.ProcessGroupNCCL
            try:
                self._group = nccl(self._store, self._rank, self._size, nccl.Options())
            except RuntimeError as error:
                raise ChannelLost(first_line(error)) from error
        return self._group


class _CudaWorks(TorchWorks):
    """Operations of NCCL, which are complete when the GPU is done; asking for that does not block."""

    def _ended(self, work: Any, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not work.is_completed():
            if time.monotonic() >= end:
                return False
            time.sleep(_POLL)
        try:
            work.wait()  # what the caller does next on the device comes after it
        except RuntimeError as error:
            raise ChannelLost(first_line(error)) from error
        return True
