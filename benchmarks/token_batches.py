# SPDX-License-Identifier: Apache-2.0
"""What does it cost to make padded batches of a limited number of tokens?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Case, Contender, Work, delivering, scaled
from benchmarks.pack import sequences

QUESTION = "sequences of log-normal lengths from 10 to 2000 int32: batch_by_tokens(16384), padded and ragged"
NOTES = """
The lengths have a median of 148 tokens and a sigma of 1. Padding counts as tokens; `fill` is the part that is not padding.
PyTorch has no such batches: a batch sampler in Python is given the lengths and decides which sequences share a batch, and
`pad_sequence` pads them. Grain has none either: it pads every sequence to 2000 and takes 8 of them. That is as many tokens a
batch, most of them padding.
"""
MOST, LONGEST, MEAN = 16_384, 2000, 5.0


def prepare(folder: Path, scale: float) -> None:
    """Nothing: the sequences are in memory."""


def cases(folder: Path, scale: float) -> list[Case]:
    """Padded and ragged batches."""
    count = scaled(40_000, scale, 500)
    values, _ = sequences(count, MEAN)
    units = {"sequence": count, "token": len(values), "byte": values.nbytes}
    return [
        Case(
            "padded",
            units,
            [
                Contender("distinput", "ours", lambda: _padded(count)),
                Contender("the same in NumPy", "peer", lambda: _by_hand(count)),
                Contender("torch, batch sampler", "peer", lambda: _torch(count), ("torch",), 5.0),
                Contender("grain, padded to 2000", "peer", lambda: _grain(count), ("grain",), 5.0),
            ],
        ),
        Case(
            "ragged",
            units,
            [
                Contender("distinput", "ours", lambda: _ragged(count)),
                Contender("views of the values", "limit", lambda: _views(count)),
            ],
        ),
    ]


def _dataset(count: int) -> Any:
    import distinput as di

    values, sizes = sequences(count, MEAN)
    return di.data.Dataset.from_tensor_slices(di.RaggedTensor.from_row_lengths(values, sizes))


def _padded(count: int) -> Work:
    dataset = _dataset(count).batch_by_tokens(MOST)
    work = delivering(lambda: dataset)

    def fill() -> dict[str, float]:
        values, _ = sequences(count, MEAN)
        return {"fill": len(values) / sum(batch.size for batch in dataset)}

    return Work(work.once, work.check, fill)


def _ragged(count: int) -> Work:
    dataset = _dataset(count).batch_by_tokens(MOST, "ragged")
    return delivering(lambda: dataset, plain=lambda batch: (batch.flat_values, batch.row_lengths()))


def _cuts(sizes: Any, *, padded: bool) -> Iterator[range]:
    """Which sequences share a batch."""
    first, longest, total = 0, 0, 0
    for number, size in enumerate(sizes.tolist()):
        longest, total = max(longest, size), total + size
        if ((number + 1 - first) * longest if padded else total) > MOST:
            yield range(first, number)
            first, longest, total = number, size, size
    yield range(first, len(sizes))


def _by_hand(count: int) -> Work:
    """Zeros, and each sequence copied to its row."""
    values, sizes = sequences(count, MEAN)
    parts = np.split(values, np.cumsum(sizes)[:-1])

    def batches() -> Iterator[Any]:
        for rows in _cuts(sizes, padded=True):
            batch = np.zeros((len(rows), int(sizes[rows.start : rows.stop].max())), np.int32)
            for row, number in zip(batch, rows, strict=True):
                row[: len(parts[number])] = parts[number]
            yield batch

    return delivering(batches)


def _views(count: int) -> Work:
    """Slices, once it is known where batches end."""
    values, sizes = sequences(count, MEAN)
    ends = np.concatenate(([0], np.cumsum(sizes)))
    cuts = list(_cuts(sizes, padded=False))
    return delivering(lambda: [(values[ends[r.start] : ends[r.stop]], sizes[r.start : r.stop]) for r in cuts])


def _torch(count: int) -> Work:
    import torch
    from torch.nn.utils.rnn import pad_sequence
    from torch.utils.data import DataLoader

    values, sizes = sequences(count, MEAN)
    parts = list(torch.from_numpy(values).split(sizes.tolist()))
    cuts = [list(rows) for rows in _cuts(sizes, padded=True)]
    loader: Any = DataLoader(
        parts,
        batch_sampler=cuts,
        collate_fn=lambda rows: pad_sequence(rows, batch_first=True),
    )
    return delivering(lambda: loader)


def _grain(count: int) -> Work:
    import grain.python as grain

    values, sizes = sequences(count, MEAN)
    parts = np.split(values, np.cumsum(sizes)[:-1])
    options = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    padded = grain.MapDataset.source(parts).map(lambda part: np.pad(part, (0, LONGEST - len(part))))
    dataset = padded.batch(MOST // LONGEST).to_iter_dataset(options)
    return Work(delivering(lambda: dataset).once, None, lambda: {"fill": len(values) / (count * LONGEST)})
