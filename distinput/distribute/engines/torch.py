# SPDX-License-Identifier: Apache-2.0
"""torch.distributed with gloo: needs no launcher, has independent channels, and notices a dead peer at once.

Every channel consists of two gloo groups made directly over a store, one for calls and one for agreements, so that the
process's own `torch.distributed` state is not touched, and the process may train with NCCL at the same time. The groups
themselves never time out, since an agreement may be posted long before the others do: only waiting has a time limit.
"""

import ctypes
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from importlib import import_module
from typing import Any

import numpy as np

from distinput.distribute.collectives.channel import Array, Bytes, ChannelLost
from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.engines import too_old
from distinput.distribute.engines.background import (
    HostedStatusBoard,
    attempt_name,
    check_rank_and_size,
    is_loopback,
    listening,
    local_address,
    split_address,
)
from distinput.errors import CollectiveError, CollectiveTimeout, EngineMissing, PeerLost, importing

# ---- Operations of PyTorch's process groups as handles of a channel

FOREVER = timedelta(days=365)


def first_line(error: BaseException) -> str:
    """The first line of torch's text, without the place in its source and without its advice."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return re.sub(r"^\[[^]]*/[^]]*\]\s*", "", text).split(". This is typically")[0]


class TorchWorks:
    """Operations of a gloo group that complete together.

    Args:
      works: the `Work` objects of torch.
      under_way: all of the channel; those that complete are removed.
      value: the result.
    """

    def __init__(self, works: list[Any], under_way: set[Any], value: Callable[[], Any]) -> None:
        self._works, self._under_way, self._value = works, under_way, value

    def wait(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self._works:
            if not self._ended(self._works[-1], end - time.monotonic()):
                return False
            self._under_way.discard(self._works.pop())
        return True

    def _ended(self, work: Any, seconds: float) -> bool:
        try:
            if seconds < 0.001:  # gloo takes a limit below a millisecond for no limit at all
                return bool(work.is_completed() and work.wait(FOREVER))
            return bool(work.wait(timedelta(seconds=seconds)))
        except RuntimeError as error:
            if not work.is_completed():  # only the wait has ended, not the operation
                return False
            text = first_line(error)
        try:
            return bool(work.wait(FOREVER))  # completed in between
        except RuntimeError:
            raise ChannelLost(text) from None

    def value(self) -> Any:
        return self._value()


def started(under_way: set[Any], begin: Callable[..., Any], *args: Any) -> Any:
    """The `Work` of an operation that has begun, which is now under way.

    Raises:
      ChannelLost: it could not begin.
    """
    try:
        work = begin(*args)
    except RuntimeError as error:
        raise ChannelLost(first_line(error)) from error
    under_way.add(work)
    return work


# ---- Tensors between workers where they are: by gloo on CPUs, by NCCL on GPUs of CUDA

_TENSOR_DTYPES = frozenset({"bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"})
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
        return dtype in _TENSOR_DTYPES

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


# ---- torch.distributed with gloo: needs no launcher, has independent channels, and notices a dead peer at once

_DTYPES = frozenset({"int8", "int32", "int64", "uint8", "float32", "float64"})
_EXACT = _DTYPES - {"float32", "float64"}  # gloo's min and max do not agree with NumPy's about NaN


def _torch() -> tuple[Any, Any]:
    with importing(
        "engine 'torch': needs PyTorch, which is not installed ({error}); "
        "use `pip install 'distinput[torch]'`, from PyTorch's CPU index where there is no GPU"
    ):
        torch, distributed = import_module("torch"), import_module("torch.distributed")
    if old := too_old("torch"):
        raise EngineMissing(f"engine 'torch': {old}; use `pip install -U 'distinput[torch]'`")
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
        check_rank_and_size("engine 'torch': torch.distributed was initialised", (rank, size), place)
        store = distributed.distributed_c10d._get_default_store()
        host = None if isinstance(store, distributed.FileStore) else 0
        address = "torch.distributed"
    else:
        place, address = _place(rank, size, address)
        host = None if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else 0
        store = None
    deadline = time.monotonic() + timeout
    try:
        if store is None:
            store = _connect(distributed, place[0], address, timeout, listens=host is not None)
        folder = f"distinput/{name}"
        prefix = f"{folder}/{attempt_name(_StoreKeys(store), *place, folder, deadline - time.monotonic())}"
        device = None if address == "torch.distributed" else local_address(*split_address(address))
        channel = TorchChannel(store, *place, prefix, _StoreBoard(store, *place, prefix, host), device, timeout)
    except (ChannelLost, RuntimeError) as error:
        raise _not_opened(error, place, address, deadline) from error
    return Collectives(channel, name, timeout)


def _place(rank: int | None, size: int | None, address: str | None) -> tuple[tuple[int, int], str]:
    """Rank, size and address, from torchrun's environment where they were not given."""
    environment = os.environ
    rank = int(environment["RANK"]) if rank is None and "RANK" in environment else rank
    size = int(environment["WORLD_SIZE"]) if size is None and "WORLD_SIZE" in environment else size
    if address is None and "MASTER_ADDR" in environment and "MASTER_PORT" in environment:
        address = f"{environment['MASTER_ADDR']}:{environment['MASTER_PORT']}"
    if address is None or rank is None or size is None:
        raise ValueError(
            "engine 'torch': needs rank, size and the address of rank 0, or an initialised torch.distributed, or the "
            f"environment of torchrun, got rank {rank}, size {size}, address {address}; set TF_CONFIG, or pass them"
        )
    return (rank, size), address


def _connect(distributed: Any, rank: int, address: str, timeout: float, *, listens: bool) -> Any:
    """The store on rank 0; all stores of this process with the same port share its server."""
    host, port = split_address(address)
    listens = rank == 0 and listens
    options: dict[str, Any] = {}
    if listens and port and is_loopback(host):  # by itself it listens on all interfaces
        with suppress(OSError):  # another store of this process does so already; any other reason is told by this one
            options["master_listen_fd"] = listening(host, port, 128).detach()
    return distributed.TCPStore(
        host,
        port,
        is_master=listens,
        timeout=timedelta(seconds=max(timeout, 0.001)),
        wait_for_workers=False,
        multi_tenant=True,
        **options,
    )


def _not_opened(error: Exception, place: tuple[int, int], address: str, deadline: float) -> CollectiveError:
    message = (
        f"engine 'torch': rank {place[0]} of {place[1]} did not meet the others at {address}: {first_line(error)}; see "
        "that all workers are started with the same address of rank 0, and that its port is free and reachable"
    )
    return CollectiveTimeout(message) if time.monotonic() >= deadline - 0.1 else PeerLost(message)


class _StoreKeys:
    """The keys of a store, with `ChannelLost` for its errors."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def put(self, key: str, value: str) -> None:
        _call(self._store.set, key, value)

    def get(self, key: str) -> str | None:
        return _call(self._store.get, key).decode() if _call(self._store.check, [key]) else None


def _call(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except RuntimeError as error:
        raise ChannelLost(f"the store of rank 0 cannot be reached ({first_line(error)})") from error


class _StoreBoard(HostedStatusBoard):
    """Statuses as keys of the store."""

    def __init__(self, store: Any, rank: int, size: int, prefix: str, host_rank: int | None) -> None:
        super().__init__(host_rank)
        # A connection of its own, since the other one is busy while a group waits for its members.
        self._store = store.clone() if hasattr(store, "clone") else store
        self._rank = rank
        self._others = [other for other in range(size) if other != rank]
        self.prefix = prefix
        self._complete = False
        self.publish("")

    def store_status(self, status: str) -> None:
        key = self._key(self._rank)
        _call(self._store.set, key, status)
        _call(self._store.check, [key])  # `set` does not wait until the store has it

    def fetch_statuses(self) -> Mapping[int, str]:
        keys = [self._key(other) for other in self._others]
        self._complete = self._complete or _call(self._store.check, keys)
        if not self._complete or not keys:
            return {}
        texts = _call(self._store.multi_get, keys)
        return {other: text.decode() for other, text in zip(self._others, texts, strict=True)}

    def _key(self, rank: int) -> str:
        return f"{self.prefix}/status/{rank}"


class TorchChannel:
    """Two gloo groups over a store.

    Args:
      store: a `torch.distributed.Store` that all workers share.
      rank: this worker.
      size: how many workers there are.
      name: the prefix of the keys; no other channel may have it.
      status_board: shared with the channels of the same origin.
      device: the address of this machine to listen on, None for gloo's own choice.
      timeout: seconds to wait for the others.
    """

    reducible: Mapping[str, frozenset[str]] = {"max": _EXACT, "min": _EXACT, "prod": _DTYPES, "sum": _DTYPES}
    post_is_cheap = False

    def __init__(
        self, store: Any, rank: int, size: int, name: str, status_board: _StoreBoard, device: str | None, timeout: float
    ) -> None:
        self._torch, self._distributed = _torch()
        self.rank, self.size, self.status_board = rank, size, status_board
        self._store, self._device = store, device
        operations = self._distributed.ReduceOp
        self._options = {
            "max": self._reduction(operations.MAX),
            "min": self._reduction(operations.MIN),
            "prod": self._reduction(operations.PRODUCT),
            "sum": self._reduction(operations.SUM),
        }
        self._name = name
        self._tensors: TensorOperations | None = None
        self._under_way: set[Any] = set()
        limit = timedelta(seconds=max(timeout, 0.001))
        self._meet(f"{name}/here", limit)
        self._groups = [self._group(f"{name}/{kind}", limit) for kind in ("calls", "agreements")]
        # Gloo takes a worker for lost that closes its groups while another one still connects.
        self._meet(f"{name}/connected", limit)

    def _group(self, name: str, limit: timedelta) -> Any:
        gloo = self._distributed.ProcessGroupGloo
        options = gloo._Options()
        if self._device is None or "GLOO_SOCKET_IFNAME" in os.environ:
            options._devices = [gloo.create_default_device()]
        else:
            options._devices = [gloo.create_device(hostname=self._device)]
        options._timeout = limit
        try:
            group = gloo(self._distributed.PrefixStore(name, self._store), self.rank, self.size, options)
            group._set_default_timeout(FOREVER)  # the first limit was for connecting to the others
        except RuntimeError as error:
            raise ChannelLost(first_line(error)) from error
        # The destructor waits for what is under way, so for ever if a peer is frozen, even when Python exits. Only a close
        # with nothing under way drops this reference.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
        return group

    def _meet(self, name: str, limit: timedelta) -> None:
        """Wait for all workers, or raise an error that names those that do not come, which gloo does not."""
        keys = [f"{name}/{rank}" for rank in range(self.size)]
        try:
            self._store.set(keys[self.rank], "")
            self._store.wait(keys, limit)
        except RuntimeError as error:
            late = [str(rank) for rank, key in enumerate(keys) if not _call(self._store.check, [key])]
            raise ChannelLost(f"rank {', '.join(late)} did not come" if late else first_line(error)) from error

    def _start(self, begin: Callable[..., Any], *args: Any) -> Any:
        return started(self._under_way, begin, *args)

    def _tensor(self, values: Array) -> Any:
        return self._torch.from_numpy(values if values.flags.writeable else values.copy())

    def all_gather(self, mine: Bytes) -> TorchWorks:
        """[n] of every worker -> [size, n]."""
        rows = np.empty((self.size, len(mine)), np.uint8)
        parts = list(self._torch.from_numpy(rows).unbind(0))
        work = self._start(self._groups[0].allgather, [parts], [self._tensor(mine)])
        return TorchWorks([work], self._under_way, lambda: rows)

    def all_gather_uneven(self, mine: Bytes, sizes: Sequence[int]) -> TorchWorks:
        """[sizes[rank]] of every worker -> list of [sizes[i]]; one broadcast for each that is not empty."""
        parts = [mine if rank == self.rank else np.empty(n, np.uint8) for rank, n in enumerate(sizes)]
        works = [self._broadcast(part, root) for root, part in enumerate(parts) if len(part)]
        return TorchWorks(works, self._under_way, lambda: parts)

    def _broadcast(self, values: Bytes, root: int) -> Any:
        options = self._distributed.BroadcastOptions()
        options.rootRank, options.rootTensor = root, 0
        return self._start(self._groups[0].broadcast, [self._tensor(values)], options)

    def broadcast(self, values: Bytes, root: int) -> TorchWorks:
        """[n] of the root -> [n]."""
        return TorchWorks([self._broadcast(values, root)], self._under_way, lambda: values)

    def _reduction(self, operation: Any) -> Any:
        options = self._distributed.AllreduceOptions()
        options.reduceOp = operation
        return options

    def _reduce(self, group: Any, values: Array, op: str) -> TorchWorks:
        result = values.copy()
        work = self._start(group.allreduce, [self._torch.from_numpy(result)], self._options[op])
        return TorchWorks([work], self._under_way, lambda: result)

    def all_reduce(self, values: Array, op: str) -> TorchWorks:
        """[n] of every worker -> [n]."""
        return self._reduce(self._groups[0], values, op)

    def post_sum(self, values: Array) -> TorchWorks:
        """int64 [n] of every worker, summed."""
        return self._reduce(self._groups[1], values, "sum")

    def on_devices(self, ops: Any, device: Any) -> TensorOperations | None:
        """Operations on tensors of the CPU through gloo, of CUDA through NCCL; None for others."""
        if ops.library != "torch" or device.type not in ("cpu", "cuda"):
            return None
        if device.type == "cuda" and not self._distributed.is_nccl_available():
            return None
        if self._tensors is None:
            gloo = self._groups[0] if device.type == "cpu" else None
            store = self._distributed.PrefixStore(f"{self._name}/tensors", self._store)
            self._tensors = TensorOperations(self.rank, self.size, device.type, gloo, store, self._under_way)
        return self._tensors

    def dup(self, name: str, timeout: float) -> "TorchChannel":
        """Another pair of groups over the same store."""
        prefix = f"{self.status_board.prefix}/{name}"
        return TorchChannel(self._store, self.rank, self.size, prefix, self.status_board, self._device, timeout)

    def close(self, *, broken: bool) -> None:
        """Drop the groups; those with something under way live until the process ends."""
        groups, self._groups = self._groups, []
        self._tensors = None
        if broken:
            # A thread that drops an operation also drops its tensors, and needs the interpreter for that. Doing so while
            # Python exits would abort the process, so operations under way are never dropped.
            for work in self._under_way:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(work))
        else:
            for group in groups:
                ctypes.pythonapi.Py_DecRef(ctypes.py_object(group))
        self._store = None
