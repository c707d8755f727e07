# SPDX-License-Identifier: Apache-2.0
"""JAX by the key-value store of its coordination service.

Device collectives of JAX block the thread that posts them and have no time-outs, and a wrong size ends the process. So
nothing here touches a device: what workers tell each other goes through the store on rank 0, in pieces. That is right
for flags, headers, metrics and states; arrays of many megabytes are better reduced inside a jitted function.
"""

import atexit
import inspect
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from distinput.distribute.backends.address import check_place, split_address
from distinput.distribute.backends.channel import Array, Bytes
from distinput.distribute.backends.collectives import Collectives
from distinput.distribute.backends.failures import ChannelLost, CollectiveError, CollectiveTimeout, EngineMissing, PeerLost
from distinput.distribute.backends.fold import fold

__all__ = ["JaxChannel", "is_running", "open_group"]

_PIECE = 1 << 20  # bytes of one value; the service refuses messages of more than 4 MB
_BLOCK = 64  # operations whose small keys are removed at once
_SMALL = 4096  # bytes; larger values are removed as soon as everybody has them
_SLICE = 0.02  # seconds that the thread of agreements waits for one before it looks for new ones
_END = 5  # seconds that the end of a process waits for the others, where we initialised JAX
_END_BROKEN = 1  # the same after a failure, when some may never come
_LAST = 0.2  # seconds between the last word of the others and the end of the service


def _jax() -> tuple[Any, Any]:
    """jax, and the state of jax.distributed; it has no public way to the client."""
    try:
        return import_module("jax"), import_module("jax._src.distributed").global_state
    except ImportError as error:
        raise EngineMissing(
            f"engine 'jax': needs JAX, which is not installed ({error}); use `pip install 'distinput[jax]'`"
        ) from error


def is_running() -> bool:
    """Whether the user's program has called jax.distributed.initialize; jax must have been imported."""
    return _jax()[1].client is not None


def open_group(rank: int | None, size: int | None, address: str | None, *, timeout: float, name: str) -> Collectives:
    """The group of a job; see `open_collectives`.

    Uses jax.distributed if it is initialised, else initialises it with rank, size and address, which must come before
    the first computation.
    """
    _, state = _jax()
    if state.client is None:
        _initialize(rank, size, address, timeout)
    place = int(state.process_id), int(state.num_processes)
    check_place("engine 'jax': jax.distributed was initialised", (rank, size), place)
    _opened[name] += 1  # a second group, after the first one failed, does not read the keys of the first
    prefix = f"distinput/{name}.{_opened[name]}"
    board = _KeyBoard(state.client, place[0], prefix)
    return Collectives(JaxChannel(state.client, *place, prefix, board), name, timeout)


_opened: Counter[str] = Counter()
_broken = threading.Event()


def _initialize(rank: int | None, size: int | None, address: str | None, timeout: float) -> None:
    jax, _ = _jax()
    given: dict[str, Any] = {}
    if address is not None:
        split_address(address)
        given = {"coordinator_address": address, "num_processes": size, "process_id": rank}
        given["cluster_detection_method"] = "deactivate"
    known = inspect.signature(jax.distributed.initialize).parameters
    limits = {"initialization_timeout": max(1, round(timeout)), "shutdown_timeout_seconds": _END}
    given |= {key: value for key, value in limits.items() if key in known}
    recover = "jax_enable_recoverability"
    begin = time.monotonic()
    try:
        if hasattr(jax.config, recover):  # else the service ends the processes that survive the death of another one
            jax.config.update(recover, True)
        jax.distributed.initialize(**given)
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
    atexit.register(_leave)  # after JAX's own, so it runs before that


def _leave() -> None:
    """Rank 0, which hosts the service, ends last: JAX ends a process whose service is gone before its own end."""
    _, state = _jax()
    if state.client is None:
        return
    store = _Store(state.client)
    with suppress(ChannelLost):
        if state.process_id:
            store.set(f"distinput/exit/{state.process_id}", b"")
            return
        deadline = time.monotonic() + (_END_BROKEN if _broken.is_set() else _END)
        while len(store.folder("distinput/exit")) < state.num_processes - 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(_LAST)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


class _Store:
    """The key-value store, with the errors of channels."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def set(self, key: str, value: bytes) -> None:
        """Write a value; a new one replaces the old one."""
        try:
            self._client.key_value_set_bytes(key, value, allow_overwrite=True)
        except RuntimeError as error:
            raise ChannelLost(_first_line(error)) from error

    def get(self, key: str, seconds: float) -> bytes | None:
        """The value, or None if there is none within the time."""
        try:
            return bytes(self._client.blocking_key_value_get_bytes(key, max(1, round(1000 * seconds))))
        except RuntimeError as error:
            if "DEADLINE_EXCEEDED" in str(error):
                return None
            raise ChannelLost(_first_line(error)) from error

    def folder(self, prefix: str) -> dict[str, bytes]:
        """All values below a prefix."""
        try:
            return dict(self._client.key_value_dir_get_bytes(prefix))
        except RuntimeError as error:
            if "NOT_FOUND" in str(error):
                return {}
            raise ChannelLost(_first_line(error)) from error

    def remove(self, prefix: str) -> None:
        """Remove all keys below a prefix."""
        try:
            self._client.key_value_delete(prefix)
        except RuntimeError as error:
            raise ChannelLost(_first_line(error)) from error


class _KeyBoard:
    """Notices as keys."""

    host = 0

    def __init__(self, client: Any, rank: int, prefix: str) -> None:
        self._store, self._rank, self._prefix = _Store(client), rank, f"{prefix}/notice"
        self.prefix = prefix

    def write(self, notice: str) -> None:
        self._store.set(f"{self._prefix}/{self._rank}", notice.encode())

    def read(self) -> Mapping[int, str]:
        found = {int(key.rpartition("/")[2]): value.decode() for key, value in self._store.folder(self._prefix).items()}
        return {rank: text for rank, text in found.items() if rank != self._rank}


class _Stream:
    """Operations in order: each worker writes under its rank and number, and reads what the others wrote."""

    def __init__(self, store: _Store, rank: int, size: int, prefix: str) -> None:
        self._store, self._rank, self._size, self._prefix = store, rank, size, prefix
        self._next = 0
        self._kept: list[int] = []  # numbers of large values that the others may not have read yet
        self._removed = 0

    def _key(self, rank: int, number: int) -> str:
        return f"{self._prefix}/{rank}/{number // _BLOCK}/{number}"

    def begin(self, mine: Bytes | None) -> int:
        """Write this worker's part of the next operation, if it has one."""
        number = self._next
        self._next += 1
        if mine is not None:
            if len(mine) > _SMALL:
                self._kept.append(number)
            for i in range(0, max(1, len(mine)), _PIECE):
                self._store.set(f"{self._key(self._rank, number)}/{i}", mine[i : i + _PIECE].tobytes())
        return number

    def fetch(self, rank: int, number: int, at: int, seconds: float) -> bytes | None:
        """The piece of another worker's part that begins at a byte."""
        return self._store.get(f"{self._key(rank, number)}/{at}", seconds)

    def met(self, number: int) -> None:
        """Everybody began this operation, so everybody has read all before it."""
        while self._kept and self._kept[0] < number:
            self._store.remove(self._key(self._rank, self._kept.pop(0)))
        while self._removed < number // _BLOCK:
            self._store.remove(f"{self._prefix}/{self._rank}/{self._removed}")
            self._removed += 1


class _Exchange:
    """One operation of a stream: reads the parts of some workers, piece by piece."""

    def __init__(self, stream: _Stream, number: int, sizes: Mapping[int, int], *, meets: bool) -> None:
        self._stream, self._number, self._meets = stream, number, meets
        self._parts: dict[int, Bytes] = {rank: np.empty(n, np.uint8) for rank, n in sizes.items()}
        self._missing = [(rank, at) for rank, n in sizes.items() for at in range(0, max(1, n), _PIECE)]
        self._finish: Callable[[dict[int, Bytes]], Any] = dict

    def then(self, finish: Callable[[dict[int, Bytes]], Any]) -> "_Exchange":
        """What to make of the parts."""
        self._finish = finish
        return self

    def wait(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self._missing:
            rank, at = self._missing[-1]
            data = self._stream.fetch(rank, self._number, at, end - time.monotonic())
            if data is None:
                return False
            self._parts[rank][at : at + _PIECE] = np.frombuffer(data, np.uint8)
            self._missing.pop()
            if not self._missing and self._meets:
                self._stream.met(self._number)
        return True

    def value(self) -> Any:
        return self._finish(self._parts)


class _Sum:
    """An agreement under way in the thread."""

    def __init__(self, values: Array) -> None:
        self.values = values
        self.done = threading.Event()
        self.error: ChannelLost | None = None

    def wait(self, seconds: float) -> bool:
        if not self.done.wait(seconds):
            return False
        if self.error is not None:
            raise ChannelLost(str(self.error)) from self.error
        return True

    def value(self) -> Any:
        return self.values


class JaxChannel:
    """Two streams of keys, one for calls and one for agreements; the latter has a thread of its own once it is used.

    Args:
      client: the client of the coordination service.
      rank: this worker.
      size: how many there are.
      name: the prefix of the keys; no other channel may have it.
      board: the notice board.
    """

    reducible: Mapping[str, frozenset[str]] = {}

    def __init__(self, client: Any, rank: int, size: int, name: str, board: _KeyBoard) -> None:
        self.rank, self.size, self.board = rank, size, board
        self._client, self._name = client, name
        self._calls = _Stream(_Store(client), rank, size, f"{name}/calls")
        self._agreements: queue.SimpleQueue[_Sum | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def gather(self, mine: Bytes) -> _Exchange:
        """[n] of every worker -> [size, n]."""
        return self.gather_uneven(mine, [len(mine)] * self.size).then(lambda parts: _in_order(parts, self.rank, mine))

    def gather_uneven(self, mine: Bytes, sizes: Sequence[int]) -> _Exchange:
        """[sizes[rank]] of every worker -> list of [sizes[i]]."""
        number = self._calls.begin(mine)
        others = {rank: n for rank, n in enumerate(sizes) if rank != self.rank}
        exchange = _Exchange(self._calls, number, others, meets=True)
        return exchange.then(lambda parts: _in_order(parts, self.rank, mine))

    def broadcast(self, values: Bytes, root: int) -> _Exchange:
        """[n] of the root -> [n]."""
        number = self._calls.begin(values if self.rank == root else None)
        if self.rank == root:
            return _Exchange(self._calls, number, {}, meets=False).then(lambda _: values)
        return _Exchange(self._calls, number, {root: len(values)}, meets=False).then(lambda parts: parts[root])

    def reduce(self, values: Array, op: str) -> _Exchange:
        """[n] of every worker -> [n]; no dtype is `reducible`, so this is for completeness."""
        return self.gather(values.view(np.uint8)).then(
            lambda parts: fold(_in_order({r: p.view(values.dtype) for r, p in parts.items()}, self.rank, values), op)
        )

    def add(self, values: Array) -> _Sum:
        """int64 [n] of every worker, summed."""
        if self._thread is None:
            stream = _Stream(_Store(self._client), self.rank, self.size, f"{self._name}/agreements")
            args = stream, self._agreements, self.rank, self.size
            self._thread = threading.Thread(target=_serve, args=args, name="distinput-agree", daemon=True)
            self._thread.start()
        job = _Sum(values)
        self._agreements.put(job)
        return job

    def dup(self, name: str, timeout: float) -> "JaxChannel":
        """Another pair of streams."""
        return JaxChannel(self._client, self.rank, self.size, f"{self.board.prefix}/{name}", self.board)

    def close(self, *, broken: bool) -> None:
        """End the thread."""
        if broken:
            _broken.set()
        if self._thread is not None:
            self._agreements.put(None)
            self._thread.join(1.0)
            self._thread = None


def _in_order(parts: Mapping[int, Array], rank: int, mine: Array) -> list[Array]:
    return [mine.copy() if r == rank else parts[r] for r in range(len(parts) + 1)]


def _serve(stream: _Stream, jobs: "queue.SimpleQueue[_Sum | None]", rank: int, size: int) -> None:
    """Write every agreement as soon as it is posted, and complete them in order."""
    pending: list[tuple[_Sum, _Exchange]] = []
    error: ChannelLost | None = None
    while True:
        try:
            job = jobs.get(block=not pending)
            if job is None:
                return
            if error is not None:
                job.error = error
                job.done.set()
                continue
            mine = job.values.view(np.uint8)
            others = {other: len(mine) for other in range(size) if other != rank}
            pending.append((job, _Exchange(stream, stream.begin(mine), others, meets=True)))
        except queue.Empty:
            pass
        except ChannelLost as lost:
            error = job.error = lost
            job.done.set()
        try:
            if pending and error is None and pending[0][1].wait(_SLICE):
                job, exchange = pending.pop(0)
                job.values = fold([job.values, *(part.view(np.int64) for part in exchange.value().values())], "sum")
                job.done.set()
        except ChannelLost as lost:
            error = lost
        if error is not None:
            for job, _ in pending:
                job.error = error
                job.done.set()
            pending.clear()
