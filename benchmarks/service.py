# SPDX-License-Identifier: Apache-2.0
"""What do input workers of a cluster cost, and bring, beside tf.data's service?"""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_any_order
from benchmarks.harness import ROOT, Case, Contender, Measured, Work, delivering, scaled
from benchmarks.images import prepare as prepare_images

QUESTION = "functions on 2 input workers, each a process, with a scheduler in a process of its own"
NOTES = """
Both services run on this machine: a scheduler or dispatcher, two workers of one thread each, and the consumer are four
processes on its cores. tf.data's workers make whole batches, in any order. Ours call the functions below `on_workers`;
elements come in the order without workers. `sleeping` has 16 workers, and a function that sleeps for 20 ms. `a killed
worker` gets SIGKILL, one of two, in the middle of a pass; `pieces lost` is what that costs, in the time of a piece. The
process that takes its place needs a second or two to start; until then the other one works alone. `2 processes, shared
memory` is the least that JPEG images from other processes cost: the decoder alone, and a message for each 16 images.
`2 workers of Dask, shared memory` is the same with a call of Dask for each 100 images, and a client that stays connected.
`distinput, 2 processes` are those that a dataset starts itself, without a cluster. A pass of 800 images lasts half a second
and shows what it costs to begin one; in the long pass there are ten times as many.
"""
SMALL, KILOBYTES_64, MEBIBYTE = 32, 16_384, 262_144
MANY, SLEEP, LONG_SLEEP = 16, 0.02, 0.5


def prepare(folder: Path, scale: float) -> None:
    """JPEG files."""
    if importlib.util.find_spec("simplejpeg"):
        prepare_images(folder, scale)


def cases(folder: Path, scale: float) -> list[Case]:
    """Batches of three sizes, then functions that take long."""
    if not importlib.util.find_spec("distributed"):
        return []
    found = [
        _batches("small batches", SMALL, scaled(20_000, scale, 40), 2.0),
        _batches("batches of 64 KiB", KILOBYTES_64, scaled(4000, scale, 20), None, {"seconds": 250e-6}),
        _batches("batches of 1 MiB", MEBIBYTE, scaled(400, scale, 6), 1.2),
        _sleeping(scaled(4800, scale, 64), scaled(MANY, scale, 2)),
        _killed(scaled(24, scale, 8), LONG_SLEEP * min(1.0, 100 * scale)),
    ]
    if importlib.util.find_spec("simplejpeg"):
        found += [
            _images("JPEG images", folder, scaled(800, scale, 16)),
            _images("JPEG images, a long pass", folder, scaled(8000, scale, 32)),
        ]
    return found


def _batches(name: str, size: int, count: int, reach: float | None, most: dict[str, float] | None = None) -> Case:
    return Case(
        name,
        {"batch": count, "byte": count * size * 4},
        [
            Contender("distinput on Dask", "ours", lambda: _ours(_maker(size), count, 2), most=most or {}),
            Contender("tf.data's service", "peer", lambda: _theirs(size, count), ("tensorflow",), reach),
        ],
    )


def _maker(size: int) -> Callable[[Any], Any]:
    return {SMALL: small, KILOBYTES_64: kilobytes_64, MEBIBYTE: mebibyte}[size]


def small(x: Any) -> Any:
    """32 numbers."""
    return np.full(SMALL, x, np.float32)


def kilobytes_64(x: Any) -> Any:
    """64 KiB of numbers."""
    return np.full(KILOBYTES_64, x, np.float32)


def mebibyte(x: Any) -> Any:
    """1 MiB of numbers."""
    return np.full(MEBIBYTE, x, np.float32)


def sleeping(x: Any) -> Any:
    """It costs no core."""
    time.sleep(SLEEP)
    return x


def sleeping_long(x: Any, seconds: float) -> Any:
    """Each call is a piece."""
    time.sleep(seconds)
    return x, os.getpid()


# ---- ours


def _input(count: int) -> Any:
    import distinput as di

    return di.data.Dataset.range(count)


def _ours(function: Callable[[Any], Any], count: int, workers: int) -> Work:
    dataset = _input(count).map(function).on_workers(_cluster(workers))
    return delivering(lambda: dataset, plain=np.atleast_1d, checksum=in_any_order)


def _sleeping(count: int, workers: int) -> Case:
    def bare() -> Work:
        def once() -> None:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(sleeping, range(count)))

        return Work(once)

    return Case(
        f"sleeping, {workers} workers",
        {"element": count},
        [
            Contender("distinput on Dask", "ours", lambda: _ours(sleeping, count, workers)),
            Contender(f"{workers} threads that sleep", "limit", bare, reach=0.9),
        ],
    )


def _killed(count: int, seconds: float) -> Case:
    def ours(*, kill: bool) -> Work:
        address = _cluster(2)
        call = partial(sleeping_long, seconds=seconds)
        dataset = _input(count).map(call).on_workers(address)
        spent: dict[bool, list[float]] = {False: [], True: []}

        def once(kill: bool = kill) -> Measured:
            list(_input(8).map(call).on_workers(address))  # until both are there again
            seen: list[int] = []
            begin = time.perf_counter()
            for number, worker in dataset:
                seen.append(int(number))
                if kill and len(seen) >= count // 3 and int(worker) != os.getpid():
                    os.kill(int(worker), signal.SIGKILL)
                    kill = False
            assert seen == list(range(count))
            return Measured(time.perf_counter() - begin)

        def facts() -> dict[str, float]:
            if kill:
                for number in range(4):
                    spent[bool(number % 2)].append(once(bool(number % 2)))
            lost = np.mean(spent[True]) - np.mean(spent[False]) if kill else 0.0
            return {"pieces lost": max(0.0, float(lost)) / seconds} if kill else {}

        return Work(once, lambda: str(count * bool(once())), facts)

    return Case(
        "a killed worker",
        {"element": count},
        [
            Contender("distinput on Dask", "ours", lambda: ours(kill=True), most={"pieces lost": 2.0}),
            Contender("distinput, no worker is killed", "limit", lambda: ours(kill=False)),
        ],
    )


def _images(name: str, folder: Path, count: int) -> Case:
    def made(service: Callable[[], str]) -> Work:
        import distinput as di

        with np.load(folder / "images.npz") as saved:
            files = [saved[name].tobytes() for name in saved.files]
        files = [files[number % len(files)] for number in range(count)]
        dataset = di.data.Dataset.from_tensor_slices(np.array(files, object)).map(di.io.decode_jpeg)
        served = dataset.on_workers(service())
        return delivering(lambda: served)

    bare = [
        Contender("2 workers of Dask, shared memory", "limit", lambda: _dask_images(folder / "images.npz", count)),
        Contender("2 processes, shared memory", "limit", lambda: _bare_images(folder / "images.npz", count)),
    ]
    return Case(
        name,
        {"image": count},
        [
            Contender("distinput on Dask", "ours", lambda: made(lambda: _cluster(2))),
            Contender("distinput, 2 threads", "limit", lambda: made(lambda: "threads:2"), reach=0.9),
            Contender("distinput, 2 processes", "limit", lambda: made(lambda: "processes:2")),
            *(bare if hasattr(os, "memfd_create") else []),
        ],
    )


GROUP, CALL, SLOT = 16, 100, 1 << 20
"""Images in a message of a bare process, and in a call of Dask, about 64 MiB as in ours; and bytes of a place for an image."""


def _bare_images(path: Path, count: int) -> Work:
    """Two processes that decode into memory that this one has mapped; each has room for two groups of images."""
    memory = os.memfd_create("images")
    os.ftruncate(memory, 4 * GROUP * SLOT)
    shared, groups = np.memmap(f"/proc/self/fd/{memory}", np.uint8), -(-count // GROUP)
    decoders = []
    for which in "01":
        _started("decoder", f"/proc/{os.getpid()}/fd/{memory}", str(path), which, str(count))
        decoders.append(_RUNNING[-1])

    def asked(group: int) -> None:
        line = decoders[group % 2].stdin
        if group < groups and line is not None:
            print(group, file=line, flush=True)

    def images() -> Iterator[Any]:
        for group in range(min(4, groups)):
            asked(group)
        for group in range(groups):
            line = decoders[group % 2].stdout
            assert line is not None
            first, *sizes = map(int, line.readline().split())
            for number, (height, width) in enumerate(zip(sizes[::2], sizes[1::2], strict=True)):
                yield _room(shared, first + number, height, width)
            asked(group + 4)

    return delivering(images)


def _decode(memory: str, path: str, which: str, count: str) -> None:
    decode = _decoder(memory, path)
    print("ready", flush=True)
    for line in sys.stdin:
        numbers = range(GROUP * int(line), min(int(count), GROUP * (int(line) + 1)))
        first = GROUP * (2 * int(which) + int(line) // 2 % 2)
        print(first, *decode(numbers, first), flush=True)


@cache
def _decoder(memory: str, path: str) -> Callable[[range, int], list[int]]:
    """What decodes the images with some numbers into rooms, of which it is told the first, and returns their sizes."""
    import simplejpeg

    shared = np.memmap(memory, np.uint8)
    with np.load(path) as saved:
        files = [saved[name].tobytes() for name in saved.files]

    def decode(numbers: range, first: int) -> list[int]:
        sizes = []
        for place, number in enumerate(numbers, first):
            file = files[number % len(files)]
            height, width, *_ = simplejpeg.decode_jpeg_header(file)
            simplejpeg.decode_jpeg(file, "RGB", buffer=_room(shared, place, height, width))
            sizes += [height, width]
        return sizes

    return decode


def _room(shared: Any, place: int, height: int, width: int) -> Any:
    return shared[place * SLOT : place * SLOT + height * width * 3].reshape(height, width, 3)


def _dask_images(path: Path, count: int) -> Work:
    """Two workers of Dask that decode into memory that this process has mapped, two calls each under way."""
    client = _client(2)
    memory = os.memfd_create("images")
    os.ftruncate(memory, 4 * CALL * SLOT)
    shared, name = np.memmap(f"/proc/self/fd/{memory}", np.uint8), f"/proc/{os.getpid()}/fd/{memory}"

    def called(call: int) -> Any:
        numbers = range(CALL * call, min(count, CALL * (call + 1)))
        return client.submit(_decoded, name, str(path), numbers, call % 4 * CALL, pure=False)

    def images() -> Iterator[Any]:
        calls = -(-count // CALL)
        waiting = [called(call) for call in range(min(4, calls))]
        for call in range(calls):
            sizes = waiting.pop(0).result()
            for place, (height, width) in enumerate(zip(sizes[::2], sizes[1::2], strict=True), call % 4 * CALL):
                yield _room(shared, place, height, width)
            if call + 4 < calls:
                waiting.append(called(call + 4))

    return delivering(images)


def _decoded(memory: str, path: str, numbers: range, first: int) -> list[int]:
    """What a worker of Dask does."""
    return _decoder(memory, path)(numbers, first)


# ---- tf.data's service


def _theirs(size: int, count: int) -> Work:
    address, *_ = _started("dispatcher")
    for _ in range(2):
        _started("worker", address)
    import tensorflow as tf

    service = tf.data.experimental.service
    dataset = tf.data.Dataset.range(count).map(lambda x: tf.fill([size], tf.cast(x, tf.float32)))
    dataset = dataset.apply(service.distribute(service.ShardingPolicy.DYNAMIC, f"grpc://{address}"))
    return delivering(lambda: dataset, plain=lambda batch: batch.numpy(), checksum=in_any_order)


# ---- processes of both


_RUNNING: list[subprocess.Popen[str]] = []
_CLIENTS: list[Any] = []


@cache
def _cluster(workers: int) -> str:
    """The address of a cluster of ours, which all contenders of a process use."""
    return _started("distinput", str(workers))[0]


def _started(*words: str) -> list[str]:
    """What a process of this module says first, which ends with this one."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.service", *words],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    _RUNNING.append(process)  # with its input
    assert process.stdout is not None
    return process.stdout.readline().split()


@cache
def _client(workers: int) -> Any:
    """A client of Dask that stays connected to this cluster."""
    import distributed

    client = distributed.Client(_cluster(workers), set_as_default=False, direct_to_workers=True)
    _CLIENTS.append(client)
    return client


def end() -> None:
    """End these processes before this one does: a scheduler that has nothing to do looks around fifty times a second."""
    while _CLIENTS:
        _CLIENTS.pop().close()
    _client.cache_clear()
    _cluster.cache_clear()
    while _RUNNING:
        with _RUNNING.pop():
            """Its input is closed, and it is waited for."""


def _run(kind: str, argument: str = "", *more: str) -> None:
    if kind == "decoder":
        return _decode(argument, *more)
    if kind == "distinput":
        from distinput.distribute.seats.local_cluster import LocalCluster

        with LocalCluster(0, 0, inputs=int(argument)) as cluster:
            cluster.wait()
            _tell(cluster.address)
        return None
    import tensorflow as tf

    service = tf.data.experimental.service
    if kind == "dispatcher":
        running = service.DispatchServer()
        _tell(running.target.partition("://")[2])
    else:
        running = service.WorkerServer(service.WorkerConfig(dispatcher_address=argument))
        _tell(argument)
    os._exit(0)


def _tell(address: str) -> None:
    """Say where it is, and wait for the end of who has started this."""
    print(address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _run(*sys.argv[1:])
