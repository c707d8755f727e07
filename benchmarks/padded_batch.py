# SPDX-License-Identifier: Apache-2.0
"""What does it cost to pad sequences of many lengths?"""

import ctypes
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled
from benchmarks.tfrecord_example import reading

QUESTION = "sequences of 10 to 2000 int32: padded_batch(64), and bucket_by_sequence_length"
NOTES = """
In the cases of buckets the limit writes the values of each row and the zeros behind them once, by `memcpy` and `memset`, and
has nothing to decide. It calls a Python function for the length of each element, as we do. With sequences in a cache,
tf.data itself reaches the speed of memory.
"""
BATCH = 64
BOUNDS = [100, 200, 400, 800, 1200, 1600]
TENSORFLOW = ("tensorflow",)


def prepare(folder: Path, scale: float) -> None:
    """A TFRecord file of sequences of varying length."""
    import distinput as di

    flat, starts, sizes = sequences(_records(scale))
    with di.io.TFRecordWriter(folder / "sequences.tfrecord") as writer:
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            writer.write(di.io.encode_example({"ids": flat[start : start + size]}))


def _records(scale: float) -> int:
    return scaled(4_000, scale, 300)


def sequences(count: int) -> tuple[Any, Any, Any]:
    """Values [m], and where each sequence begins and how long it is, [count]."""
    random = np.random.default_rng(SEED)
    sizes = random.integers(10, 2001, count)
    ends = np.cumsum(sizes)
    return random.integers(1, 30_000, int(ends[-1]), np.int32), ends - sizes, sizes


def arrays(count: int) -> list[Any]:
    """The sequences as arrays of their own."""
    flat, starts, sizes = sequences(count)
    return [flat[start : start + size].copy() for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)]


def cases(folder: Path, scale: float) -> list[Case]:
    """From memory, from functions of Python, from a cache, from a file, and by buckets."""
    count = scaled(20_000, scale, 300)
    records = _records(scale)
    return [
        Case(
            "sequences in memory",
            _units(count),
            [
                Contender("distinput", "ours", lambda: _in_memory(count)),
                *_limits(count),
                Contender("numpy, in a loop", "peer", lambda: _looping(count)),
                Contender("tf.data", "peer", lambda: _tensorflow_in_memory(count), TENSORFLOW, 25.0),
                Contender("tf.data, ragged gather", "peer", lambda: _tensorflow_gathered(count), TENSORFLOW, 3.0),
                Contender("torch, pad_sequence", "peer", lambda: _torch(count), ("torch",), 3.0),
                Contender("grain", "peer", lambda: _grain(count), ("grain",), 3.0),
            ],
        ),
        Case(
            "arrays from a generator",
            _units(count),
            [
                Contender("distinput", "ours", lambda: _from_generator(count)),
                Contender("numpy, one buffer", "limit", lambda: _pulling(count)),
                Contender("tf.data", "peer", lambda: _tensorflow_from_generator(count), TENSORFLOW, 25.0),
                Contender("torch, pad_sequence", "peer", lambda: _torch(count), ("torch",)),
                Contender("grain", "peer", lambda: _grain(count), ("grain",)),
            ],
        ),
        Case(
            "sequences from a map",
            _units(count),
            [
                Contender("distinput", "ours", lambda: _from_map(count)),
                Contender("the calls and numpy, one buffer", "limit", lambda: _calling(count)),
                Contender("numpy, in a loop", "peer", lambda: _looping(count)),
                Contender("tf.data", "peer", lambda: _tensorflow_padded(_tensorflow_mapped(count)), TENSORFLOW),
                Contender("tf.data, ragged gather", "peer", lambda: _tensorflow_gathered(count), TENSORFLOW),
            ],
        ),
        Case(
            "sequences from a cache",
            _units(count),
            [
                Contender("distinput", "ours", lambda: _cached(count)),
                *_limits(count),
                Contender("numpy, in a loop", "peer", lambda: _looping(count)),
                Contender("tf.data", "peer", lambda: _tensorflow_padded(_tensorflow_mapped(count).cache()), TENSORFLOW),
                Contender("tf.data, ragged gather", "peer", lambda: _tensorflow_gathered(count), TENSORFLOW, 3.0),
            ],
        ),
        Case(
            "TFRecord",
            {"batch": -(-records // BATCH), "row": records},
            [
                Contender("distinput", "ours", lambda: _from_records(folder)),
                Contender("read + crc32c", "limit", lambda: reading([str(folder / "sequences.tfrecord")])),
                Contender("tf.data", "peer", lambda: _tensorflow_from_records(folder), TENSORFLOW),
                Contender("tf.data, parse_example", "peer", lambda: _tensorflow_parsed(folder), TENSORFLOW),
            ],
        ),
        *[
            Case(
                f"buckets{name}, from a cache",
                {"row": count},
                [
                    Contender("distinput", "ours", partial(_bucketed, count, length)),
                    Contender(limit, "limit", partial(_filling, count, length)),
                    Contender("tf.data", "peer", lambda: _tensorflow_bucketed(count), TENSORFLOW, 50.0),
                ],
            )
            for name, length, limit in (
                ("", _length, "the calls, memcpy and memset of rows, one buffer"),
                (", by len", len, "memcpy and memset of rows, one buffer"),
            )
        ],
    ]


def _units(count: int) -> dict[str, float]:
    _, _, sizes = sequences(count)
    widths = [sizes[first : first + BATCH].max() for first in range(0, count, BATCH)]
    parts = [min(BATCH, count - first) for first in range(0, count, BATCH)]
    return {"batch": len(parts), "row": count, "byte": 4 * int(np.dot(widths, parts))}


def _limits(count: int) -> list[Contender]:
    return [
        Contender("memcpy of the padded bytes, warm", "limit", lambda: _copying(count, warm=True)),
        Contender("memcpy of the padded bytes, fresh memory", "limit", lambda: _copying(count, warm=False)),
        Contender("memcpy of the values, warm, and zeros", "limit", lambda: _copying_values(count), reach=0.67),
    ]


def _in_memory(count: int) -> Work:
    import pyarrow as pa

    import distinput as di

    flat, starts, sizes = sequences(count)
    lists = pa.LargeListArray.from_arrays(pa.array(np.append(starts, starts[-1] + sizes[-1])), pa.array(flat))
    dataset = di.data.Dataset.from_tensor_slices(lists).padded_batch(BATCH)
    return delivering(lambda: dataset)


def _from_generator(count: int) -> Work:
    import distinput as di

    rows = arrays(count)
    made = di.data.Dataset.from_generator(lambda: rows, output_signature=di.TensorSpec([None], np.int32))
    dataset = made.padded_batch(BATCH)
    return delivering(lambda: dataset)


def _mapped(count: int) -> Any:
    import distinput as di

    flat, starts, sizes = sequences(count)
    return di.data.Dataset.from_tensor_slices((starts, sizes)).map(lambda a, n: flat[a : a + n])


def _from_map(count: int) -> Work:
    dataset = _mapped(count).padded_batch(BATCH)
    return delivering(lambda: dataset)


def _cached(count: int) -> Work:
    dataset = _mapped(count).cache().padded_batch(BATCH)
    return delivering(lambda: dataset)


def _from_records(folder: Path) -> Work:
    import distinput as di

    made = di.data.TFRecordDataset(str(folder / "sequences.tfrecord"))
    dataset = made.parse_example({"ids": di.io.VarLenFeature("int64")}).padded_batch(BATCH).prefetch(di.data.AUTOTUNE)
    return delivering(lambda: dataset)


def _bucketed(count: int, length: Any) -> Work:
    dataset = _mapped(count).cache().bucket_by_sequence_length(length, BOUNDS, [BATCH] * (len(BOUNDS) + 1))
    return delivering(lambda: dataset)


def _tensorflow_in_memory(count: int) -> Work:
    import tensorflow as tf

    values, _, sizes = sequences(count)
    ragged = tf.RaggedTensor.from_row_lengths(values, sizes)
    # Rows of a ragged tensor are padded once a function has made tensors of them.
    return _tensorflow_padded(tf.data.Dataset.from_tensor_slices(ragged).map(lambda row: row, tf.data.AUTOTUNE))


def _tensorflow_gathered(count: int) -> Work:
    """The best way to do it with tf.data: gather a ragged batch at a time."""
    import tensorflow as tf

    values, _, sizes = sequences(count)
    ragged = tf.RaggedTensor.from_row_lengths(values, sizes)
    numbers = tf.data.Dataset.range(count).batch(BATCH)
    dataset = numbers.map(lambda i: tf.gather(ragged, i).to_tensor(), tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return delivering(lambda: dataset)


def _tensorflow_from_generator(count: int) -> Work:
    import tensorflow as tf

    rows = arrays(count)
    made = tf.data.Dataset.from_generator(lambda: rows, output_signature=tf.TensorSpec([None], tf.int32))
    return _tensorflow_padded(made)


def _tensorflow_mapped(count: int) -> Any:
    import tensorflow as tf

    values, starts, sizes = sequences(count)
    flat = tf.constant(values)
    made = tf.data.Dataset.from_tensor_slices((starts, sizes))
    return made.map(lambda a, n: flat[a : a + n], tf.data.AUTOTUNE)


def _tensorflow_padded(made: Any) -> Work:
    import tensorflow as tf

    dataset = made.padded_batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return delivering(lambda: dataset)


def _tensorflow_from_records(folder: Path) -> Work:
    """Each record for itself, as most programs do."""
    import tensorflow as tf

    features = {"ids": tf.io.RaggedFeature(tf.int64)}
    made = tf.data.TFRecordDataset(str(folder / "sequences.tfrecord"))
    made = made.map(lambda record: tf.io.parse_single_example(record, features), tf.data.AUTOTUNE)
    return _tensorflow_padded(made)


def _tensorflow_parsed(folder: Path) -> Work:
    """The best way to do it with tf.data: the records of a batch together."""
    import tensorflow as tf

    features = {"ids": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    made = tf.data.TFRecordDataset(str(folder / "sequences.tfrecord")).batch(BATCH)
    dataset = made.map(lambda records: tf.io.parse_example(records, features), tf.data.AUTOTUNE)
    return delivering(lambda: dataset.prefetch(tf.data.AUTOTUNE))


def _tensorflow_bucketed(count: int) -> Work:
    import tensorflow as tf

    made = _tensorflow_mapped(count).cache()
    made = made.bucket_by_sequence_length(lambda row: tf.shape(row)[0], BOUNDS, [BATCH] * (len(BOUNDS) + 1))
    dataset = made.prefetch(tf.data.AUTOTUNE)
    return delivering(lambda: dataset)


def _torch(count: int) -> Work:
    import torch
    from torch.nn.utils.rnn import pad_sequence
    from torch.utils.data import DataLoader

    rows: Any = [torch.from_numpy(row) for row in arrays(count)]
    loader = DataLoader(rows, BATCH, collate_fn=lambda batch: pad_sequence(batch, batch_first=True))
    return delivering(lambda: loader)


def _grain(count: int) -> Work:
    import grain.python as grain

    def padded(rows: Any) -> Any:
        out = np.zeros((len(rows), max(map(len, rows))), np.int32)
        for number, row in enumerate(rows):
            out[number, : len(row)] = row
        return out

    dataset = grain.MapDataset.source(arrays(count)).batch(BATCH, batch_fn=padded)
    return delivering(lambda: dataset)


def _length(sequence: Any) -> Any:
    return sequence.shape[0]


def _looping(count: int) -> Work:
    """New zeros for every batch, filled row by row."""
    flat, starts, sizes = sequences(count)

    def batches() -> Iterator[Any]:
        for first in range(0, count, BATCH):
            lengths = sizes[first : first + BATCH].tolist()
            out = np.zeros((len(lengths), max(lengths)), np.int32)
            for row, (start, size) in enumerate(zip(starts[first : first + BATCH].tolist(), lengths, strict=True)):
                out[row, :size] = flat[start : start + size]
            yield out

    return delivering(batches)


def _copying(count: int, *, warm: bool) -> Work:
    """As many bytes as the batches have, from memory that is warm, to memory that is warm or fresh."""
    _, _, sizes = sequences(count)
    shapes = [sizes[first : first + BATCH] for first in range(0, count, BATCH)]
    lengths = [len(part) * int(part.max()) for part in shapes]
    source = np.ones(max(lengths), np.int32)
    buffer = np.empty_like(source)

    def once() -> None:
        kept = []
        for length in lengths:
            out = buffer[:length] if warm else np.empty(length, np.int32)
            np.copyto(out, source[:length])
            kept.append(out)  # so that no memory is used again

    return Work(once)


def _copying_values(count: int) -> Work:
    """The values of each batch, from where they are, to memory that is warm; and as many zeros as pad them."""
    flat, starts, sizes = sequences(count)
    batches = []
    for first in range(0, count, BATCH):
        part = sizes[first : first + BATCH]
        batches.append((int(starts[first]), int(part.sum()), len(part) * int(part.max())))
    buffer = np.empty(max([length for _, _, length in batches]), np.int32)

    def once() -> None:
        for start, size, length in batches:
            np.copyto(buffer[:size], flat[start : start + size])
            buffer[size:length] = 0

    return Work(once)


def _pulling(count: int) -> Work:
    """Arrays as they come, padded by hand in one buffer."""
    rows = arrays(count)
    return _padding(lambda: rows)


def _calling(count: int) -> Work:
    """The same with what a function returns."""
    flat, starts, sizes = sequences(count)
    return _padding(lambda: map(lambda a, n: flat[a : a + n], starts, sizes))


def _padding(elements: Callable[[], Iterable[Any]]) -> Work:
    buffer = np.empty(BATCH * 2000, np.int32)

    def batches() -> Iterator[Any]:
        left = iter(elements())
        while part := list(islice(left, BATCH)):
            width = max(map(len, part))
            out = buffer[: len(part) * width].reshape(len(part), width)
            out[...] = 0
            for row, item in zip(out, part, strict=True):
                row[: len(item)] = item
            yield out

    return delivering(batches)


def _filling(count: int, length: Any) -> Work:
    """The rows of each batch, known beforehand, copied from where they are to one buffer, and zeros behind them.

    A function for the lengths is called with each row; `len` need not be.
    """
    flat, starts, sizes = sequences(count)
    pad, buffer = _libc_pad(), np.empty(BATCH * 2000, np.int32)
    plan = [(starts[rows], sizes[rows], len(rows), int(sizes[rows].max())) for rows in _buckets(sizes)]

    def batches() -> Iterator[Any]:
        if length is not len:
            ends = (starts + sizes).tolist()
            list(map(length, map(flat.__getitem__, map(slice, starts.tolist(), ends))))
        for begins, lengths, rows, width in plan:
            out = buffer[: rows * width].reshape(rows, width)
            pad(flat, begins, lengths, out)
            yield out

    return delivering(batches)


def _buckets(sizes: Any) -> list[Any]:
    """The rows of each batch, in the order in which batches become full; at the end what is left, by bucket."""
    full: list[Any] = []
    waiting: list[list[int]] = [[] for _ in range(len(BOUNDS) + 1)]
    for row, bucket in enumerate(np.searchsorted(BOUNDS, sizes, "right").tolist()):
        waiting[bucket].append(row)
        if len(waiting[bucket]) == BATCH:
            full.append(np.asarray(waiting[bucket]))
            waiting[bucket] = []
    return full + [np.asarray(rows) for rows in waiting if rows]


def _libc_pad() -> Any:
    """A loop over rows that calls the C library and nothing else."""
    import numba

    library = ctypes.CDLL(None)
    memcpy, memset = library.memcpy, library.memset
    memcpy.argtypes, memset.argtypes = [ctypes.c_size_t] * 3, [ctypes.c_size_t, ctypes.c_int, ctypes.c_size_t]
    memcpy.restype = memset.restype = ctypes.c_size_t

    @numba.njit  # type: ignore[untyped-decorator]
    def pad(flat: Any, starts: Any, sizes: Any, out: Any) -> None:
        item, source, to = flat.itemsize, flat.ctypes.data, out.ctypes.data
        width = out.shape[1] * item
        for start, size in zip(starts, sizes):  # noqa: B905 - numba has no `strict`
            memcpy(to, source + start * item, size * item)
            memset(to + size * item, 0, width - size * item)
            to += width

    return pad
