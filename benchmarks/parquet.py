# SPDX-License-Identifier: Apache-2.0
"""How fast do Parquet files become exact batches of NumPy arrays?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import parquet

from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "2 Parquet files (10 numbers, string, list<int32>) to exact batches of 1024 rows"
NOTES = """
`read_row_group` is pyarrow's decoding alone, as it comes, and `small reads` with the options that are quickest on local
files: on the cores of this machine nobody who lets pyarrow decode is quicker. Where a wanted ratio falls short, that line
says how far the limit is. In several runs decoding took 62 to 95 ns a row for numbers, where a tenth of torch leaves 36 to 57
and a fiftieth of `datasets, numpy` 48 to 54; 111 to 131 ns with strings, where these leave 58 to 68 and 52 to 63, and a tenth
of tf.data 124 to 143; 116 to 151 ns for all, where a tenth of torch leaves 79 to 104. `datasets, arrow` gives Arrow's tables
as they are decoded; bytes objects, padding and batches take one core 95 ns a row more, so that with lists two cores are busy
for 163 ns a row at best, and 1.3 times `datasets, arrow` would be 143 to 163, a tenth of tf.data 143 to 188. torch's batches
are those of `pyarrow, by hand`.
"""
FILES, BATCH, GROUP = 2, 1024, 50_000
NUMBERS = [f"f{i}" for i in range(5)] + [f"i{i}" for i in range(5)]


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
        """Batches made by the data set, and automatic batching off, as its guide says for what is read in bulk."""
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
            Contender("read_row_group, small reads", "limit", lambda: decoding(pre_buffer=False, buffer_size=1 << 18)),
            Contender("pyarrow, by hand", "peer", pyarrow),
            Contender("tf.data, from_generator", "peer", tensorflow, ("tensorflow",), 10.0),
            Contender("torch, IterableDataset of batches", "peer", torch, ("torch",), 10.0),
            Contender("datasets, arrow", "peer", lambda: hugging_face("arrow"), ("datasets",), 1.3),
            Contender("datasets, numpy", "peer", lambda: hugging_face("numpy"), ("datasets",), 50.0),
        ],
    )


def _batches(files: list[str], columns: list[str]) -> Iterator[dict[str, Any]]:
    """What one would write with pyarrow: exact batches of arrays, across the files."""
    import pyarrow as pa

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
                    yield _arrays(pa.Table.from_batches(waiting).combine_chunks().to_batches()[0])
                    waiting, have = [], 0
    if have:
        yield _arrays(pa.Table.from_batches(waiting).combine_chunks().to_batches()[0])


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
