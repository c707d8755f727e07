# SPDX-License-Identifier: Apache-2.0
"""What reaches a GPU, and what more cores add: `python benchmarks/run.py gpu` on a machine with a GPU of CUDA."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np

from benchmarks.checksum import in_any_order, in_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = (
    "steps copied to a GPU beside bare copies of pinned memory; steps of 5 ms that wait for their data; sums over "
    "several GPUs; 1 to 16 cores"
)
NOTES = """
A step on a GPU keeps it busy by `torch.cuda._sleep`, whose cycles are counted first. `pinned memory` copies the same pinned
batch again and again; a program that reads other data must write it into pinned memory as well. Without a GPU of CUDA the
same programs run on the CPU: nothing is copied, and a step of 5 ms sleeps. This shows that they run, and no more.
"""
ROWS, WIDTH = 2048, 1024
"""A batch is 8 MiB of float32."""
STEP = 0.005
CORES = (1, 2, 4, 8, 16)
TORCH, JAX = ("torch",), ("jax",)


def prepare(folder: Path, scale: float) -> None:
    """Rows in memory, and Parquet files for the readers."""
    import distinput as di

    rows = _rows(scaled(16, scale, 2))
    for number in range(max(_cores())):
        di.io.write_parquet(str(folder / f"{number}.parquet"), {"x": rows[: scaled(4 * ROWS, scale, 64), :16]})


def cases(folder: Path, scale: float) -> list[Case]:
    """Copies, steps, JAX; then threads, processes and readers, as many as there are cores."""
    steps = scaled(40, scale, 2)
    moved = {"step": steps, "byte": 4 * steps * ROWS * WIDTH}
    calls = scaled(2000, scale, 16)
    files = [str(folder / f"{number}.parquet") for number in range(max(_cores()))]
    return [
        Case(
            "copies",
            moved,
            [
                Contender("distinput", "ours", lambda: _loader(steps)),
                Contender("pinned memory", "limit", lambda: _pinned(steps), TORCH, reach=0.9),
                Contender("DataLoader, pin_memory", "peer", lambda: _data_loader(steps), TORCH),
            ],
        ),
        Case(
            "a step of 5 ms",
            {"step": steps},
            [
                Contender("distinput", "ours", lambda: _busy(lambda: _ours(_normalized(steps)), steps)),
                Contender(
                    "steps alone", "limit", lambda: _busy(lambda: iter(range(steps)), steps, None), TORCH, reach=0.98
                ),
                Contender(
                    "DataLoader, pin_memory", "peer", lambda: _busy(lambda: map(_scaled, _theirs(steps)), steps), TORCH
                ),
            ],
        ),
        Case(
            "JAX",
            moved,
            [
                Contender("distinput", "ours", lambda: _jax(lambda rows, place: _ours_for_jax(rows, place), steps)),
                Contender("device_put", "limit", lambda: _jax(_device_put, steps), JAX, reach=0.9),
            ],
        ),
        Case(
            "DLPack, to JAX and back",
            moved,
            [
                Contender("distinput", "ours", lambda: _through_jax(steps)),
                Contender("pinned memory, nobody else", "limit", lambda: _pinned(steps), TORCH, reach=0.9),
            ],
        ),
        *([_sums(steps)] if _gpus() > 1 else []),
        *(case for workers in _cores() for case in _several(workers, calls, files)),
    ]


def _sums(steps: int) -> Case:
    """Sums of a gradient over all GPUs of this process."""
    return Case(
        "sums over GPUs",
        {"step": steps, "byte": 4 * steps * ROWS * WIDTH * _gpus()},
        [
            Contender("distinput, NcclAllReduce", "ours", lambda: _reduced(steps)),
            Contender("torch.cuda.nccl.reduce", "limit", lambda: _bare_sums(steps), TORCH, reach=0.8),
            Contender("copies to one GPU", "peer", lambda: _copied_sums(steps), TORCH),
        ],
    )


def _several(workers: int, calls: int, files: list[str]) -> list[Case]:
    """So many threads, processes and readers."""
    threads = Contender("a pool of threads", "limit", lambda: _pool(calls, workers), reach=0.8)
    one_thread = Contender("one thread", "peer", lambda: _mapped(calls, 1, held))
    one_reader = Contender("one reader", "peer", lambda: _read(files, 1))
    return [
        Case(f"threads: {workers}", {"call": calls}, [_ours_by(lambda: _mapped(calls, workers)), threads]),
        Case(f"processes: {workers}", {"call": calls}, [_ours_by(lambda: _in_processes(calls, workers)), one_thread]),
        Case(f"readers: {workers}", {"file": len(files)}, [_ours_by(lambda: _read(files, workers)), one_reader]),
    ]


def _ours_by(load: Callable[[], Work]) -> Contender:
    return Contender("distinput", "ours", load)


def _cores() -> list[int]:
    """Numbers of workers: up to the cores of this machine."""
    return [n for n in CORES if n <= (os.cpu_count() or 1)]


@cache
def _rows(steps: int) -> Any:
    return np.random.default_rng(SEED).standard_normal((steps * ROWS, WIDTH), np.float32)


# ---- PyTorch


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _gpus() -> int:
    try:
        import torch
    except ImportError:
        return 0
    return int(torch.cuda.device_count())


def _finished() -> None:
    """Wait for what all GPUs have been given."""
    import torch

    for number in range(_gpus()):
        torch.cuda.synchronize(number)


def _gradients() -> list[Any]:
    """A tensor on each GPU."""
    import torch

    return [torch.from_numpy(_rows(1)).to(f"cuda:{number}") for number in range(_gpus())]


def _repeated(steps: int, reduce: Callable[[], Any]) -> Work:
    def once() -> None:
        for _ in range(steps):
            reduce()
        _finished()

    return Work(once)


def _reduced(steps: int) -> Work:
    import distinput as di

    places = [f"cuda:{number}" for number in range(_gpus())]
    strategy = di.distribute.MirroredStrategy(places, di.distribute.NcclAllReduce())
    parts = di.distribute.PerReplica(_gradients())
    return _repeated(steps, lambda: strategy.reduce("SUM", parts, axis=None))


def _bare_sums(steps: int) -> Work:
    import torch

    parts = _gradients()
    total = torch.empty_like(parts[0])
    return _repeated(steps, lambda: torch.cuda.nccl.reduce(parts, total))


def _copied_sums(steps: int) -> Work:
    parts = _gradients()

    def reduce() -> None:
        total = parts[0].clone()
        for part in parts[1:]:
            total.add_(part.to(total.device))

    return _repeated(steps, reduce)


def _arrived(steps: Callable[[], Iterator[Any]]) -> Work:
    """Steps on the device; a pass ends when all of them are there."""

    def pass_over() -> Iterator[Any]:
        yield from steps()
        _finished()

    return delivering(pass_over, plain=lambda step: np.asarray(step.cpu()))


def _ours(dataset: Any) -> Iterator[Any]:
    import distinput as di

    return iter(di.interop.torch.Loader(dataset, rank=0, world_size=1, device=_device(), prefetch_to_device=2))


def _loader(steps: int) -> Work:
    import distinput as di

    dataset = di.data.Dataset.from_tensor_slices(_rows(steps)).batch(ROWS)
    return _arrived(lambda: _ours(dataset))


def _normalized(steps: int) -> Any:
    """Batches with a little work of the host's, ahead of the loop."""
    import distinput as di

    dataset = di.data.Dataset.from_tensor_slices(_rows(steps)).batch(ROWS)
    return dataset.map(_scaled, num_parallel_calls=2).prefetch(2)


def _scaled(rows: Any) -> Any:
    return (rows - 0.5) * 2.0


def _theirs(steps: int) -> Iterator[Any]:
    import torch
    from torch.utils.data import BatchSampler, DataLoader, SequentialSampler, TensorDataset

    rows: Any = TensorDataset(torch.from_numpy(_rows(steps)))
    cuda = torch.cuda.is_available()
    batches = BatchSampler(SequentialSampler(rows), ROWS, drop_last=False)
    for (batch,) in DataLoader(rows, batch_size=None, sampler=batches, pin_memory=cuda):
        yield batch.to(_device(), non_blocking=True)


def _data_loader(steps: int) -> Work:
    return _arrived(lambda: _theirs(steps))


def _pinned(steps: int) -> Work:
    """A pinned batch, copied as often as there are steps, with nothing else to do."""
    import torch

    batch = torch.from_numpy(_rows(steps)[:ROWS].copy())
    if torch.cuda.is_available():
        batch = batch.pin_memory()

    def once() -> None:
        for _ in range(steps):
            batch.to(_device(), non_blocking=True, copy=True)
        _finished()

    return Work(once)


def _busy(
    batches: Callable[[], Iterator[Any]], steps: int, checksum: Callable[[Any], str] | None = in_any_order
) -> Work:
    """A device that computes for 5 ms with each batch."""
    import torch

    cycles = _cycles() if torch.cuda.is_available() else 0

    def once() -> None:
        for _ in islice(batches(), steps):
            if cycles:
                torch.cuda._sleep(cycles)
            else:
                sleep(STEP)
        _finished()

    def check() -> str:
        assert checksum is not None
        return checksum(np.asarray(batch.cpu()) for batch in batches())

    return Work(once, None if checksum is None else check)


def _cycles() -> int:
    """Cycles of this GPU in 5 ms."""
    import torch

    cycles = 10_000_000
    torch.cuda._sleep(cycles)
    _finished()
    begin = perf_counter()
    torch.cuda._sleep(cycles)
    _finished()
    return max(1, round(cycles * STEP / (perf_counter() - begin)))


# ---- JAX


def _jax(steps_of: Callable[[Any, Any], Iterator[Any]], steps: int) -> Work:
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    rows = _rows(steps).reshape(steps, ROWS, WIDTH)
    place = NamedSharding(jax.make_mesh((1,), ("data",)), PartitionSpec("data"))

    def pass_over() -> Iterator[Any]:
        last = None
        for last in steps_of(rows, place):
            yield last
        jax.block_until_ready(last)

    return delivering(pass_over, plain=np.asarray)


def _through_jax(steps: int) -> Work:
    """Steps of the Loader that JAX is given, and gives back: the same memory, so neither way costs a copy on a GPU."""
    import distinput as di

    dataset = di.data.Dataset.from_tensor_slices(_rows(steps)).batch(ROWS)
    return _arrived(lambda: map(_given_and_back, _ours(dataset)))


def _given_and_back(step: Any) -> Any:
    import jax
    import torch

    return torch.from_dlpack(jax.dlpack.from_dlpack(step))


def _ours_for_jax(rows: Any, place: Any) -> Iterator[Any]:
    import distinput as di

    dataset = di.data.Dataset.from_tensor_slices(rows.reshape(-1, WIDTH)).batch(ROWS)
    return (batch for batch, _ in di.interop.jax.batches(dataset, place, tail="pad"))


def _device_put(rows: Any, place: Any) -> Iterator[Any]:
    import jax

    return (jax.device_put(batch, place) for batch in rows)


# ---- the cores of the machine


def released(x: Any) -> Any:
    """About 300 us of NumPy, which releases the interpreter's lock."""
    return np.int64(x) + np.int64(np.sin(_wave()).argmin())


def held(x: Any) -> Any:
    """About 300 us of Python, which holds it."""
    return np.int64(x) + np.int64(sum(i & 3 for i in range(5_000)) & 1)


@cache
def _wave() -> Any:
    return np.linspace(0.0, 1.0, 60_000)


def _mapped(calls: int, threads: int, function: Callable[[Any], Any] = released) -> Work:
    import distinput as di

    dataset = di.data.Dataset.range(calls).map(function, num_parallel_calls=threads, vectorize=False)
    return delivering(lambda: dataset, checksum=in_order)


def _pool(calls: int, threads: int) -> Work:
    pool = ThreadPoolExecutor(threads)
    return delivering(lambda: pool.map(released, range(calls)), checksum=in_order)


def _in_processes(calls: int, processes: int) -> Work:
    import distinput as di

    dataset = di.data.Dataset.range(calls).map(held, num_parallel_calls=processes, processes=True, vectorize=False)
    return delivering(lambda: dataset, checksum=in_order)


def _read(files: list[str], readers: int) -> Work:
    import distinput as di

    dataset = di.data.ParquetDataset(files, num_parallel_reads=readers).batch(ROWS)
    return delivering(lambda: dataset, checksum=in_any_order)
