# SPDX-License-Identifier: Apache-2.0
"""How fast do Parquet files become exact batches of NumPy arrays?"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "2 Parquet files (10 numbers, string, list<int32>) to exact batches of 1024 rows"
NOTES = """
`read_row_group` is pyarrow's decoding alone. `small reads` adds the options that are fastest on local files. `decoded ahead,
bare loops` delivers the same batches as distinput, without states, specs and formats: it decodes two row groups ahead,
numbers are views, Arrow makes the bytes objects, and a compiled loop pads. Whoever has pyarrow decode is not much faster on
the cores of this machine: where a target is missed, these lines say how far the limit is. PyTorch's batches are those of
`pyarrow, by hand`. `datasets, arrow` gives Arrow tables as they are decoded, without padding their lists.
"""
FILES, BATCH, GROUP = 2, 1024, 50_000
NUMBERS = [f"f{i}" for i in range(5)] + [f"i{i}" for i in range(5)]
SMALL_READS: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 18}


def prepare(folder: Path, scale: float) -> None:
    """The files; the group size is no multiple of the batch size."""
    import pyarrow as pa

    random = np.random.default_rng(SEED)
    rows = scaled(200_000, scale, 2500)
    for number in range(FILES):
        columns: dict[str, Any] = {f"f{i}": random.standard_normal(rows) for i in range(5)}
        columns |= {f"i{i}": random.integers(0, 2**40, rows) for i in range(5)}
        columns["text"] = pa.array([f"{value:x}" for value in random.integers(0, 2**60, rows)], pa.binary())
        ends = np.cumsum(random.integers(0, 9, rows))
        values = random.integers(0, 1000, int(ends[-1]), np.int32)
        columns["list"] = pa.ListArray.from_arrays(pa.array(np.r_[0, ends], pa.int32()), pa.array(values))
        parquet.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=scaled(GROUP, scale, 700))


def cases(folder: Path, scale: float) -> list[Case]:
    """Numbers alone, with strings as bytes objects, and with lists padded."""
    files = [str(folder / f"{number}.parquet") for number in range(FILES)]
    return [
        _case("numbers", files, NUMBERS, scale, 0.9),
        _case("numbers and strings", files, [*NUMBERS, "text"], scale, None),
        _case("all, lists padded", files, [*NUMBERS, "text", "list"], scale, None),
    ]


def _case(name: str, files: list[str], columns: list[str], scale: float, reach: float | None) -> Case:
    padded = "list" in columns
    rows = FILES * scaled(200_000, scale, 2500)

    def ours() -> Work:
        import distinput as di

        source = di.data.ParquetDataset(files, columns=columns)
        dataset = source.padded_batch(BATCH) if padded else source.batch(BATCH)
        return delivering(lambda: dataset)

    def decoding(**options: Any) -> Work:
        def once() -> None:
            for file in files:
                opened = parquet.ParquetFile(file, **options)
                for group in range(opened.num_row_groups):
                    opened.read_row_group(group, columns)

        return Work(once)

    def bare() -> Work:
        return delivering(lambda: _ahead(files, columns))

    def pyarrow() -> Work:
        return delivering(lambda: _batches(files, columns))

    def tensorflow() -> Work:
        import tensorflow as tf

        kinds = {"f": tf.float64, "i": tf.int64, "t": tf.string, "l": tf.int32}
        signature = {
            column: tf.TensorSpec([None, None] if column == "list" else [None], kinds[column[0]]) for column in columns
        }
        dataset = tf.data.Dataset.from_generator(lambda: _batches(files, columns), output_signature=signature)
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
        return delivering(lambda: dataset)

    def torch() -> Work:
        """Batches made by the dataset, and automatic batching off, as its guide says for what is read in bulk."""
        import warnings

        from torch.utils.data import DataLoader, IterableDataset

        # Arrow's arrays are read-only; copying them for that would only make torch slower.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)

        class Batches(IterableDataset[dict[str, Any]]):  # type: ignore[misc]  # torch may be missing
            def __iter__(self) -> Iterator[dict[str, Any]]:
                return _batches(files, columns)

        loader = DataLoader(Batches(), batch_size=None)
        return delivering(lambda: loader)

    def hugging_face(kind: str) -> Work:
        """Read as a stream, as its guide says for files that are not to be converted first."""
        import datasets

        stream = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True, columns=columns)
        formatted = stream.with_format(kind)
        work = delivering(lambda: formatted.iter(BATCH), plain=_arrays_of_table)
        # Its arrays have float32 for float64, so that only those of the other format can be compared.
        return work if kind == "arrow" else Work(work.once)

    return Case(
        name,
        {"row": rows, "value": rows * len(columns)},
        [
            Contender("distinput", "ours", ours),
            Contender("read_row_group", "limit", decoding, reach=reach),
            Contender("read_row_group, small reads", "limit", lambda: decoding(**SMALL_READS)),
            Contender("decoded ahead, bare loops", "limit", bare),
            Contender("pyarrow, by hand", "peer", pyarrow),
            Contender("tf.data, from_generator", "peer", tensorflow, ("tensorflow",), 10.0),
            Contender("torch, IterableDataset of batches", "peer", torch, ("torch",), 10.0),
            Contender("datasets, arrow", "peer", lambda: hugging_face("arrow"), ("datasets",), 1.3),
            Contender("datasets, numpy", "peer", lambda: hugging_face("numpy"), ("datasets",), 50.0),
        ],
    )


def _batches(files: list[str], columns: list[str]) -> Iterator[dict[str, Any]]:
    """What one would write with pyarrow: exact batches of arrays, across the files."""
    waiting: list[Any] = []
    have = 0
    for file in files:
        for part in parquet.ParquetFile(file).iter_batches(BATCH, columns=columns):
            while len(part):
                cut = part.slice(0, BATCH - have)
                waiting.append(cut)
                have += len(cut)
                part = part.slice(len(cut))
                if have == BATCH:
                    yield _arrays(_joined(waiting))
                    waiting, have = [], 0
    if have:
        yield _arrays(_joined(waiting))


def _joined(parts: list[Any]) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def _arrays_of_table(table: Any) -> dict[str, Any]:
    return _arrays(table.combine_chunks().to_batches()[0])


def _arrays(batch: Any) -> dict[str, Any]:
    made = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == "list":
            sizes = column.value_lengths().to_numpy()
            made[name] = np.zeros((len(sizes), int(sizes.max(initial=0))), np.int32)
            made[name][np.arange(made[name].shape[1]) < sizes[:, None]] = column.flatten().to_numpy()
        else:
            made[name] = column.to_numpy(zero_copy_only=False)
    return made


# ---- the same batches with nothing around them


def _ahead(files: list[str], columns: list[str]) -> Iterator[dict[str, Any]]:
    """Exact batches of arrays, of which only those that cross a row group are copied."""
    rest: list[Any] = []
    for part in _decoded(files, columns):
        missing = BATCH - sum(map(len, rest))
        if rest and len(part) >= missing:
            yield from _cut(_joined([*rest, part.slice(0, missing)]))
            rest, part = [], part.slice(missing)
        whole = 0 if rest else len(part) // BATCH * BATCH
        yield from _cut(part.slice(0, whole))
        rest += [part.slice(whole)] if whole < len(part) else []
    if rest:
        yield from _cut(_joined(rest))


def _decoded(files: list[str], columns: list[str]) -> Iterator[Any]:
    """The row groups as record batches: while one is used, the next two are decoded, what takes longest first."""
    order = sorted(columns, key=lambda column: column in NUMBERS)
    ahead: deque[Any] = deque()
    with ThreadPoolExecutor(2) as pool:
        for file in files:
            readers = [parquet.ParquetFile(file, **SMALL_READS) for _ in range(2)]
            for group in range(readers[0].num_row_groups):
                ahead.append(pool.submit(readers[group % 2].read_row_group, group, order))
                if len(ahead) > 2:
                    yield ahead.popleft().result().select(columns).to_batches()[0]
        while ahead:
            yield ahead.popleft().result().select(columns).to_batches()[0]


def _cut(rows: Any) -> Iterator[dict[str, Any]]:
    """A record batch in batches of arrays, the last of which may be shorter."""
    makers = {name: _maker(name, column) for name, column in zip(rows.schema.names, rows.columns, strict=True)}
    for first in range(0, len(rows), BATCH):
        yield {name: made(first, min(first + BATCH, len(rows))) for name, made in makers.items()}


def _maker(name: str, column: Any) -> Callable[[int, int], Any]:
    """What makes the array of a column's rows from one to before another."""
    if name == "text":
        return lambda first, last: column.slice(first, last - first).to_numpy(zero_copy_only=False)
    if name != "list":
        values = column.to_numpy()
        return lambda first, last: values[first:last]
    pad, offsets, values = _pad(), column.offsets.to_numpy(), column.values.to_numpy()
    sizes = offsets[1:] - offsets[:-1]

    def padded(first: int, last: int) -> Any:
        out = np.empty((last - first, int(sizes[first:last].max())), np.int32)
        pad(offsets[first : last + 1], values, out)
        return out

    return padded


@cache
def _pad() -> Any:
    """The compiled loop: row i of out [n, width] is values[offsets[i]:offsets[i + 1]], then zeros."""
    import numba

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]  # numba has no types
    def pad(offsets: Any, values: Any, out: Any) -> None:
        width = out.shape[1]
        for i in range(len(out)):
            start = offsets[i]
            size = offsets[i + 1] - start
            for k in range(width):
                out[i, k] = values[start + k] if k < size else 0

    return pad
