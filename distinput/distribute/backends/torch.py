# SPDX-License-Identifier: Apache-2.0
"""torch.distributed with gloo: needs no launcher, several independent channels, and notices a dead peer at once.

Every channel is two gloo groups made directly over a store, one for calls and one for agreements, so that nothing of
the process's own `torch.distributed` state is touched, and a process may train with NCCL beside it. The groups
themselves never time out: an agreement may be posted long before the others come to it, so only whoever waits counts.
"""

import ctypes
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

import numpy as np

from distinput.distribute.backends.channel import Array, Bytes
from distinput.distribute.backends.collectives import Collectives
from distinput.distribute.backends.failures import ChannelLost, EngineMissing

__all__ = ["TorchChannel", "is_running", "open_group"]

_DTYPES = frozenset({"int8", "int32", "int64", "uint8", "float32", "float64"})
_EXACT = _DTYPES - {"float32", "float64"}  # gloo's min and max do not agree with NumPy's about NaN
_FOREVER = timedelta(days=365)


def _torch() -> tuple[Any, Any]:
    try:
        torch, distributed = import_module("torch"), import_module("torch.distributed")
    except ImportError as error:
        raise EngineMissing(
            f"engine 'torch': needs PyTorch, which is not installed ({error}); "
            "use `pip install 'distinput[torch]'`, from PyTorch's CPU index where there is no GPU"
        ) from error
    if not distributed.is_available():
        raise EngineMissing("engine 'torch': this build of PyTorch has no torch.distributed; install another one")
    return torch, distributed


def is_running() -> bool:
    """Whether the user's program has initialised torch.distributed; torch must have been imported."""
    distributed = import_module("torch.distributed")
    return bool(distributed.is_available() and distributed.is_initialized())


def open_group(rank: int | None, size: int | None, address: str | None, *, timeout: float, name: str) -> Collectives:
    """The group of a job; see `open_collectives`.

    With an address, rank 0 listens there and the others come to it. Without one, an initialised torch.distributed is
    used (its store only: the group is one of its own), else what torchrun put into the environment.
    """
    _, distributed = _torch()
    if address is None and distributed.is_initialized():
        place = distributed.get_rank(), distributed.get_world_size()
        for what, given, found in (("rank", rank, place[0]), ("size", size, place[1])):
            if given is not None and given != found:
                raise ValueError(f"engine 'torch': torch.distributed was initialised with {what} {found}, got {given}")
        store = _default_store(distributed)
        number = store.add(f"distinput/{name}/opened/{place[0]}", 1)  # every opening has keys of its own
        host = None if isinstance(store, distributed.FileStore) else 0
        return Collectives(_channel(store, *place, f"{name}.{number}", timeout, None, host), name, timeout)
    if address is None and "MASTER_ADDR" in os.environ and "MASTER_PORT" in os.environ:
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    rank = _from_environment("rank", rank, "RANK")
    size = _from_environment("size", size, "WORLD_SIZE")
    if address is None or rank is None or size is None:
        raise ValueError(
            "engine 'torch': needs rank, size and the address of rank 0, or an initialised torch.distributed, or the "
            f"environment of torchrun, got rank {rank}, size {size}, address {address}; set TF_CONFIG or pass them"
        )
    host_name, port = split_address(address)
    # torchrun's own store may listen there already; then rank 0 is a client of it as well.
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    try:
        store = distributed.TCPStore(
            host_name,
            port,
            is_master=rank == 0 and not agent,
            timeout=timedelta(seconds=timeout),
            wait_for_workers=False,
        )
    except Exception as error:
        raise ChannelFailure.opening(error, rank, address, timeout) from error
    try:
        channel = _channel(store, rank, size, name, timeout, _own_address(host_name, port), None if agent else 0)
    except ChannelLost as error:
        raise ChannelFailure.opening(error, rank, address, timeout) from error
    return Collectives(channel, name, timeout)
