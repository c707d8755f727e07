# SPDX-License-Identifier: Apache-2.0
"""JAX, through the key-value store of its coordination service.

Device collectives of JAX block the thread that posts them and have no timeouts, and a wrong size ends the process. So this
engine uses no device for what is on the host: that goes through the store on rank 0, in pieces, which suits flags, headers,
metrics and states. Arrays that are on devices go by `jax_devices`, once all workers have said what they have.
"""

import atexit
import ctypes
import inspect
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.distribute.collectives.channel import Array, Bytes, ChannelLost, fold
from distinput.distribute.collectives.collectives import Collectives
from distinput.distribute.engines import too_old
from distinput.distribute.engines.background import (
    BackgroundThread,
    HostedStatusBoard,
    attempt_name,
    check_rank_and_size,
    is_loopback,
    split_address,
)
from distinput.errors import CollectiveError, CollectiveTimeout, EngineMissing, PeerLost, importing
from distinput.names.lazy import later

if TYPE_CHECKING:
    from distinput.distribute.engines import jax_devices
else:
    # The engine needs JAX's store alone; what moves arrays of JAX needs all of it.
    jax_devices = later("distinput.distribute.engines.jax_devices")

_PIECE = 1 << 20  # bytes of one value; the service refuses messages of more than 4 MB
_BLOCK = 64  # operations whose small keys are removed at once
_SMALL = 4096  # bytes; larger values are removed as soon as everybody has them
_SLICE = 0.02  # seconds that a stream waits for a value before it looks for new operations
_EXIT_SECONDS = 5  # a process that initialised JAX through us waits so long for the others before it exits
_EXIT_SECONDS_BROKEN = 1  # the same after a failure, when some of them may never come
_SHUTDOWN_SECONDS = 0.5  # between the last exit message of the others and the end of the service


def _jax() -> tuple[Any, Any]:
    """jax, and the state of jax.distributed, which offers no public access to the client."""
    if old := too_old("jax"):
        raise EngineMissing(f"engine 'jax': {old}; use `pip install -U 'distinput[jax]'`")
    with importing("engine 'jax': needs JAX, which is not installed ({error}); use `pip install 'distinput[jax]'`"):
        return import_module("jax"), import_module("jax._src.distributed").global_state


def is_running() -> bool:
    """Whether the user's program has called jax.distributed.initialize; jax must have been imported."""
    return _jax()[1].client is not None


def open_group(rank: int | None, size: int | None, address: str | None, *, timeout: float, name: str) -> Collectives:
    """The group of a job; see `open_collectives`.

    Uses jax.distributed if it is initialised, else initialises it with rank, size and address, which must come before
    the first computation. JAX itself ends the process when rank 0 dies, or when the others do not come to that.
    """
    _, state = _jax()
    if state.client is None:
        _initialize(rank, size, address, timeout)
    place = int(state.process_id), int(state.num_processes)
    check_rank_and_size("engine 'jax': jax.distributed was initialised", (rank, size), place)
    folder = f"distinput/{name}"
    try:
        prefix = f"{folder}/{attempt_name(_Store(state.client), *place, folder, timeout)}"
    except ChannelLost as error:
        raise CollectiveTimeout(
            f"engine 'jax': rank {place[0]} of {place[1]} did not meet the others: {error}"
        ) from error
    board = _StoreBoard(state.client, place[0], prefix)
    return Collectives(JaxChannel(state.client, *place, prefix, board), name, timeout)


_broken = threading.Event()


def _initialize(rank: int | None, size: int | None, address: str | None, timeout: float) -> None:
    jax, _ = _jax()
    options: dict[str, Any] = {}
    if address is not None:
        split_address(address)
        options = {"coordinator_address": address, "num_processes": size, "process_id": rank}
        options["cluster_detection_method"] = "deactivate"
    known = inspect.signature(jax.distributed.initialize).parameters
    if address is not None and is_loopback(split_address(address)[0]):
        options |= {"coordinator_bind_address": address} if "coordinator_bind_address" in known else {}
    limits = {"initialization_timeout": max(1, round(timeout)), "shutdown_timeout_seconds": _EXIT_SECONDS}
    options |= {key: value for key, value in limits.items() if key in known}
    recover = "jax_enable_recoverability"
    begin = time.monotonic()
    try:
        if hasattr(jax.config, recover):  # otherwise the service ends the processes that survive the death of another
            jax.config.update(recover, True)
        jax.distributed.initialize(**options)
    except ValueError as error:
        raise ValueError(
            f"engine 'jax': needs rank, size and the address of rank 0, or an environment that JAX knows, got rank {rank}, "
            f"size {size}, address {address}: {error}; set TF_CONFIG, or pass them"
        ) from error
    except RuntimeError as error:
        message = (
            f"engine 'jax': rank {rank} of {size} did not meet the others at {address}: {_first_line(error)}; see that all "
            "workers are started with the same address of rank 0, that its port is free, and that this comes before the "
            "first computation"
        )
        late = time.monotonic() - begin >= timeout - 1
        failure: CollectiveError = CollectiveTimeout(message) if late else PeerLost(message)
        raise failure from error
    atexit.register(_leave)  # after JAX's own handler, so it runs before that


def _leave() -> None:
    """Make rank 0, which hosts the service, exit last: JAX kills a process that loses the service before it has exited."""
    _, state = _jax()
    if state.client is None:
        return
    seconds = _EXIT_SECONDS_BROKEN if _broken.is_set() else _EXIT_SECONDS
    # On a background thread: a service that does not answer must not keep this process from exiting.
    thread, client = BackgroundThread("distinput-exit"), state.client
    announced = thread.submit(_announce_exit, _Store(client), state, seconds)
    if not announced.wait(seconds + 2 * _SHUTDOWN_SECONDS):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))  # its destructor would call the service again
        state.client = state.preemption_sync_manager = None


def _announce_exit(store: "_Store", state: Any, seconds: float) -> None:
    with suppress(ChannelLost):
        if state.process_id:
            store.put_bytes(f"distinput/exit/{state.process_id}", b"")
            state.shutdown()  # at once: when JAX's handler does it, on a busy machine, the service may have ended
            return
        deadline = time.monotonic() + seconds
        while len(store.folder("distinput/exit")) < state.num_processes - 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(_SHUTDOWN_SECONDS)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


class _Store:
    """The key-value store, with `ChannelLost` for its errors."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def put_bytes(self, key: str, value: bytes) -> None:
        """Write a value; it replaces an older one."""
        self._call("key_value_set_bytes", key, value, allow_overwrite=True)

    def get_bytes(self, key: str, seconds: float) -> bytes | None:
        """The value, None if there is none within the time."""
        limit = max(1, round(1000 * seconds))
        found = self._call("blocking_key_value_get_bytes", key, limit, absent="DEADLINE_EXCEEDED")
        return None if found is None else bytes(found)

    def put(self, key: str, value: str) -> None:
        """Write a text; it replaces an older one."""
        self.put_bytes(key, value.encode())

    def get(self, key: str) -> str | None:
        """The text, None if there is none; does not wait for one."""
        value = self.get_bytes(key, 0.0)
        return None if value is None else value.decode()

    def folder(self, prefix: str) -> dict[str, bytes]:
        """All values below a prefix."""
        return dict(self._call("key_value_dir_get_bytes", prefix, absent="NOT_FOUND") or {})

    def remove(self, prefix: str) -> None:
        """Remove all keys below a prefix."""
        self._call("key_value_delete", prefix)

    def _call(self, method: str, *args: Any, absent: str = "", **named: Any) -> Any:
        """What a method of the client returns; None if its error says that nothing is there."""
        try:
            return getattr(self._client, method)(*args, **named)
        except RuntimeError as error:
            if absent and absent in str(error):
                return None
            raise ChannelLost(_first_line(error)) from error


class _StoreBoard(HostedStatusBoard):
    """Statuses as keys of the store."""

    def __init__(self, client: Any, rank: int, prefix: str) -> None:
        super().__init__(0)
        self._store, self._rank, self.prefix = _Store(client), rank, prefix

    def store_status(self, status: str) -> None:
        self._store.put_bytes(f"{self.prefix}/status/{self._rank}", status.encode())

    def fetch_statuses(self) -> Mapping[int, str]:
        found = self._store.folder(f"{self.prefix}/status")
        statuses = {int(key.rpartition("/")[2]): value.decode() for key, value in found.items()}
        return {rank: text for rank, text in statuses.items() if rank != self._rank}


class _Stream:
    """Operations in order: each worker writes under its rank and number, and reads what the others wrote.

    A background thread uses the store, since that may stop answering. The thread writes for the latest operation before it
    goes on reading for the oldest one, so that workers may be several operations apart.
    """

    def __init__(self, store: _Store, rank: int, size: int, prefix: str) -> None:
        self._store, self._rank, self._size, self._prefix = store, rank, size, prefix
        self._thread = BackgroundThread("distinput-keys")
        self._next = 0
        self._waiting: deque[_Operation] = deque()
        self._kept: list[int] = []  # numbers of large values that the others may not have read yet
        self._removed = 0
        self._ended = threading.Event()
        self._lost: ChannelLost | None = None

    def begin(
        self, mine: Bytes | None, sizes: Mapping[int, int], finish: Callable[[dict[int, Bytes]], Any]
    ) -> "_Operation":
        """Start the next operation.

        Args:
          mine: this worker's part, None if it only reads.
          sizes: whose parts to read, and how large they are.
          finish: makes the result of the parts.
        """
        operation = _Operation(self._next, sizes, finish, meets=len(sizes) == self._size - 1)
        self._next += 1
        self._thread.submit(self._advance, operation, mine)
        return operation

    def close(self) -> None:
        """Stop waiting for the others."""
        self._ended.set()
        self._thread.close()

    def _advance(self, operation: "_Operation", mine: Bytes | None) -> None:
        """On the thread: write one part, then read until a new operation is queued or nothing is left to read."""
        self._waiting.append(operation)
        try:
            if self._lost is None and mine is not None:
                self._write(operation.number, mine)
            while self._lost is None and self._waiting and not self._ended.is_set():
                if self._read(self._waiting[0]):
                    self._waiting.popleft().done.set()
                elif self._thread.has_queued():
                    return
        except ChannelLost as error:
            self._lost = error
        if self._lost is not None:
            while self._waiting:
                lost = self._waiting.popleft()
                lost.error = self._lost
                lost.done.set()

    def _key(self, rank: int, number: int) -> str:
        return f"{self._prefix}/{rank}/{number // _BLOCK}/{number}"

    def _write(self, number: int, mine: Bytes) -> None:
        if len(mine) > _SMALL:
            self._kept.append(number)
        for at in range(0, max(1, len(mine)), _PIECE):
            self._store.put_bytes(f"{self._key(self._rank, number)}/{at}", mine[at : at + _PIECE].tobytes())

    def _read(self, operation: "_Operation") -> bool:
        """Read the next piece; True when there is none left."""
        if operation.missing:
            rank, at = operation.missing[-1]
            data = self._store.get_bytes(f"{self._key(rank, operation.number)}/{at}", _SLICE)
            if data is None:
                return False
            operation.parts[rank][at : at + _PIECE] = np.frombuffer(data, np.uint8)
            operation.missing.pop()
        if operation.missing:
            return False
        if operation.meets:
            self._tidy(operation.number)
        return True

    def _tidy(self, number: int) -> None:
        """Remove old keys: every worker has started this operation, so it has read those long before it.

        Agreements are started ahead, so a worker may still have to read the last ones; calls are not, and they alone have
        large values.
        """
        while self._kept and self._kept[0] < number:
            self._store.remove(self._key(self._rank, self._kept.pop(0)))
        while self._removed < number // _BLOCK - 1:
            self._store.remove(f"{self._prefix}/{self._rank}/{self._removed}")
            self._removed += 1


class _Operation:
    """One operation of a stream, as its caller sees it."""

    def __init__(
        self, number: int, sizes: Mapping[int, int], finish: Callable[[dict[int, Bytes]], Any], *, meets: bool
    ) -> None:
        self.number, self.meets, self._finish = number, meets, finish
        self.parts: dict[int, Bytes] = {rank: np.empty(n, np.uint8) for rank, n in sizes.items()}
        self.missing = [(rank, at) for rank, n in sizes.items() for at in range(0, max(1, n), _PIECE)]
        self.done = threading.Event()
        self.error: ChannelLost | None = None

    def wait(self, seconds: float) -> bool:
        if not self.done.wait(seconds):
            return False
        if self.error is not None:
            raise ChannelLost(str(self.error)) from self.error
        return True

    def value(self) -> Any:
        return self._finish(self.parts)


class JaxChannel:
    """Two streams of keys, one for calls and one for agreements.

    Args:
      client: that of the coordination service.
      rank: this worker.
      size: how many workers there are.
      name: the prefix of the keys; no other channel may have it.
      status_board: shared with the channels of the same origin.
    """

    reducible: Mapping[str, frozenset[str]] = {}  # it would have to fold in rank order, too
    post_is_cheap = True  # it has a thread of its own for that

    def __init__(self, client: Any, rank: int, size: int, name: str, status_board: _StoreBoard) -> None:
        self.rank, self.size, self.status_board = rank, size, status_board
        self._client = client
        self._devices: Any = None
        self._calls = _Stream(_Store(client), rank, size, f"{name}/calls")
        self._agreements = _Stream(_Store(client), rank, size, f"{name}/agreements")

    def _exchange(
        self, stream: _Stream, mine: Bytes, sizes: Sequence[int], finish: Callable[[list[Bytes]], Any]
    ) -> _Operation:
        others = {rank: n for rank, n in enumerate(sizes) if rank != self.rank}
        own = mine.copy()
        return stream.begin(own, others, lambda parts: finish([{**parts, self.rank: own}[r] for r in range(self.size)]))

    def all_gather(self, mine: Bytes) -> _Operation:
        """[n] of every worker -> [size, n]."""
        return self._exchange(self._calls, mine, [len(mine)] * self.size, np.stack)

    def all_gather_uneven(self, mine: Bytes, sizes: Sequence[int]) -> _Operation:
        """[sizes[rank]] of every worker -> list of [sizes[i]]."""
        return self._exchange(self._calls, mine, sizes, list)

    def broadcast(self, values: Bytes, root: int) -> _Operation:
        """[n] of the root -> [n]."""
        if self.rank == root:
            return self._calls.begin(values.copy(), {}, lambda _: values)
        return self._calls.begin(None, {root: len(values)}, lambda parts: parts[root])

    def _folded(self, stream: _Stream, values: Array, op: str) -> _Operation:
        mine = values.reshape(-1).view(np.uint8)
        sizes = [len(mine)] * self.size
        return self._exchange(stream, mine, sizes, lambda parts: fold([part.view(values.dtype) for part in parts], op))

    def all_reduce(self, values: Array, op: str) -> _Operation:
        """[n] of every worker -> [n]; not used, as no dtype is `reducible`."""
        return self._folded(self._calls, values, op)

    def post_sum(self, values: Array) -> _Operation:
        """int64 [n] of every worker, summed."""
        return self._folded(self._agreements, values, "sum")

    def on_devices(self, ops: Any, device: Any) -> Any:
        """Operations on arrays of JAX by compiled programs; None for those of other libraries."""
        if ops.library != "jax":
            return None
        if self._devices is None:
            self._devices = jax_devices.JaxDeviceOperations(self.rank, device.platform)
        return self._devices

    def dup(self, name: str, timeout: float) -> "JaxChannel":
        """Another pair of streams."""
        return JaxChannel(self._client, self.rank, self.size, f"{self.status_board.prefix}/{name}", self.status_board)

    def close(self, *, broken: bool) -> None:
        """End the threads."""
        if broken:
            _broken.set()
        if self._devices is not None:
            self._devices.close()
        self._calls.close()
        self._agreements.close()
