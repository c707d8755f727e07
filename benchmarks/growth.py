# SPDX-License-Identifier: Apache-2.0
"""Does an element cost the same however many there are, wherever they stand, and in however many files and columns?"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.harness import SEED, BenchmarkError, Case, Contender, Measured, Work, delivering, scaled

QUESTION = "time for each element at 10^4 to 10^7 elements, early and late, in few and many files, columns and steps"
NOTES = """
pyarrow's `read_row_group` alone takes a quarter more for a value of 100 columns than for one of 10: it hardly reaches the
target of `columns: Parquet` itself. What distinput adds is a fixed cost for each column of each block.
"""
MOST, STEPS = 10_000_000, 4
CHUNK = 1000
COLUMNS = (1, 10, 100)
LINES = 20
# A dictionary holds so many different values, and columns of fewer rows would be coded in another way than those of many.
PLAIN: dict[str, Any] = {"compression": "none", "use_dictionary": False}
REACH = 0.8
"""Their time / our time, in seconds of all cores: an element of the largest case may cost a quarter more than one of a
smaller case."""


def sizes(scale: float) -> list[int]:
    """10^4, 10^5, 10^6 and 10^7 elements at scale 1."""
    most = scaled(MOST, scale, 10_000)
    return [most // 10**step for step in reversed(range(STEPS))]


def prepare(folder: Path, scale: float) -> None:
    """Files of each size: records, lines and tables; and many small files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import distinput as di

    random = np.random.default_rng(SEED)
    numbers = random.integers(0, 2**40, CHUNK)
    with di.io.TFRecordWriter(folder / "chunk") as writer:
        for number in numbers.tolist():
            tags = random.integers(0, 50_000, int(random.integers(0, 8)))
            writer.write(di.io.encode_example({"id": [number], "tags": tags}))
    records = (folder / "chunk").read_bytes()
    lines = b"".join(b"line %d of a text\n" % number for number in numbers.tolist())
    for size in sizes(scale):
        times = -(-size // CHUNK)
        _repeat(folder / f"{size}.tfrecord", records, times)
        _repeat(folder / f"{size}.txt", lines, times)
        values = random.standard_normal(size)
        pq.write_table(pa.table({"a": np.arange(size), "b": values}), folder / f"{size}.parquet", **PLAIN)
    for number in range(_files(scale)[-1]):
        (folder / f"part-{number:04}.tfrecord").write_bytes(records)
    for count in COLUMNS:
        rows = sizes(scale)[-1] // count
        table = pa.table({f"c{i:03}": random.standard_normal(rows) for i in range(count)})
        pq.write_table(table, folder / f"{count}-columns.parquet", **PLAIN)
    for columns in _tenths(PIPELINES["columns: CSV"][2], scale):
        names, line = (",".join(map(str, range(start, start + columns))) for start in (0, 1))
        (folder / f"{columns}-columns.csv").write_text(f"{names}\n" + f"{line}\n" * LINES)
    (folder / "lines").mkdir()
    for number in range(_tenths(PIPELINES["files of one line"][2], scale)[-1]):
        (folder / "lines" / f"{number:06}.txt").write_text(f"line {number}\n")


def _repeat(path: Path, data: bytes, times: int) -> None:
    with path.open("wb") as file:
        for _ in range(times):
            file.write(data)


def _files(scale: float) -> list[int]:
    most = scaled(1000, scale, 100)
    return [most // 100, most // 10, most]


def _tenths(most: int, scale: float) -> list[int]:
    """A tenth of as many, and as many at scale 1."""
    count = scaled(most, scale, 20)
    return [count // 10, count]


# ---- pipelines of so many parts: (folder, how many) -> a dataset


def _csv(folder: Path, columns: int) -> Any:
    import distinput as di

    return di.data.experimental.make_csv_dataset(
        str(folder / f"{columns}-columns.csv"), LINES, num_epochs=1, shuffle=False
    )


def _leaves(folder: Path, leaves: int) -> Any:
    import distinput as di

    rows = {f"leaf{number}": np.arange(8) for number in range(leaves)}
    dataset = di.data.Dataset.from_tensor_slices(rows).map(lambda element: {**element})
    assert len(dataset.element_spec) == leaves
    return dataset.batch(4)


def _steps(folder: Path, times: int) -> Any:
    import distinput as di

    dataset: Any = di.data.Dataset.range(100)
    for _ in range(times):
        dataset = dataset.skip(1).concatenate(di.data.Dataset.range(1)).shuffle(3, seed=SEED)
    return dataset.batch(10)


def _epochs(folder: Path, epochs: int) -> Any:
    import distinput as di

    return di.data.Dataset.range(10).shuffle(10, seed=SEED).repeat(epochs).batch(4)


def _small_files(folder: Path, files: int) -> Any:
    import distinput as di

    return di.data.TextLineDataset([str(folder / "lines" / f"{number:06}.txt") for number in range(files)]).batch(64)


def _first_file(folder: Path, files: int) -> Any:
    return _small_files(folder, files).take(1)


PIPELINES: dict[str, tuple[str, Callable[[Path, int], Any], int]] = {
    "columns: CSV": ("column", _csv, 8000),
    "leaves": ("leaf", _leaves, 1000),
    "steps: skip, concatenate, shuffle": ("three steps", _steps, 30),
    "epochs of 10 rows": ("epoch", _epochs, 1000),
    "files of one line": ("file", _small_files, 100_000),
    "files of which few are read": ("file", _first_file, 100_000),
}


# ---- the works: (folder, elements) -> a dataset


def _numbers(folder: Path, n: int) -> Any:
    import distinput as di

    return di.data.Dataset.range(n).batch(1024)


def _chain(folder: Path, n: int) -> Any:
    import distinput as di

    dataset = di.data.Dataset.range(n)
    for _ in range(4):
        dataset = dataset.map_rows(_bumped).enumerate().map_rows(_second)
    return dataset.batch(1024)


def _mapped(folder: Path, n: int) -> Any:
    import distinput as di

    return di.data.Dataset.range(n).map(_bumped).batch(1024)


def _buffered(folder: Path, n: int) -> Any:
    import distinput as di

    return di.data.Dataset.range(n).shuffle(10_000, seed=SEED).batch(256)


def _shuffled(folder: Path, n: int) -> Any:
    import distinput as di

    return di.data.Dataset.range(n).global_shuffle(seed=SEED).batch(256)


def _rebatched(folder: Path, n: int) -> Any:
    import distinput as di

    return di.data.Dataset.range(n).batch(1000).rebatch(96)


def _dealt(folder: Path, n: int) -> Any:
    import distinput as di

    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(8)])
    return strategy.experimental_distribute_dataset(di.data.Dataset.range(n).batch(1024))


def _records(folder: Path, n: int) -> Any:
    return _parsed([folder / f"{n}.tfrecord"]).padded_batch(256)


def _lines(folder: Path, n: int) -> Any:
    import distinput as di

    return di.data.TextLineDataset(str(folder / f"{n}.txt")).batch(1024)


def _table(folder: Path, n: int) -> Any:
    import distinput as di

    return di.data.ParquetDataset(str(folder / f"{n}.parquet")).batch(1024)


WORKS: Mapping[str, Callable[[Path, int], Any]] = {
    "range, batch": _numbers,
    "chain of 8 map_rows and 4 enumerate": _chain,
    "map, Python function": _mapped,
    "shuffle(10000)": _buffered,
    "global_shuffle": _shuffled,
    "rebatch": _rebatched,
    "8 replicas": _dealt,
    "TFRecord, padded_batch": _records,
    "text lines": _lines,
    "Parquet": _table,
}


def _bumped(x: Any) -> Any:
    return x + 1


def _second(_: Any, x: Any) -> Any:
    return x


def _parsed(files: Sequence[Path]) -> Any:
    import distinput as di

    features: dict[str, Any] = {"id": di.io.FixedLenFeature([], "int64"), "tags": di.io.VarLenFeature("int64")}
    return di.data.TFRecordDataset([str(file) for file in files]).parse_example(features)


# ---- the questions


def cases(folder: Path, scale: float) -> list[Case]:
    """Each work at all sizes; then places, files and columns."""
    return [
        *[_sizes(name, work, folder, scale) for name, work in WORKS.items()],
        *[_places(name, WORKS[name], folder, scale) for name in ("shuffle(10000)", "TFRecord, padded_batch")],
        _restores(scale),
        _many_files(folder, scale),
        _many_columns(folder, scale),
        *[_pipelines(name, unit, make, most, folder, scale) for name, (unit, make, most) in PIPELINES.items()],
    ]


def _sizes(name: str, work: Callable[[Path, int], Any], folder: Path, scale: float) -> Case:
    *fewer, most = sizes(scale)

    def load(n: int) -> Work:
        dataset = work(folder, n)
        made = delivering(lambda: dataset)
        return replace(made, check=made.check if n == most else None, share=n / most)

    return _case(f"elements: {name}", "element", most, load, [(f"{n:,} elements", n) for n in [*fewer, most]])


def _case(name: str, unit: str, units: float, load: Callable[[Any], Work], points: Sequence[tuple[str, Any]]) -> Case:
    """The last point is ours, and the others are what it is compared with.

    By the seconds of all cores, which a busy machine changes less.
    """
    *fewer, (most, last) = points
    return Case(
        name,
        {unit: units},
        [
            Contender(most, "ours", lambda: load(last)),
            *[Contender(other, "limit", lambda point=point: load(point), reach_cpu=REACH) for other, point in fewer],  # type: ignore[misc]
        ],
    )


def _places(name: str, work: Callable[[Path, int], Any], folder: Path, scale: float) -> Case:
    """The first tenth of a pass and the last one: both make the whole pass and take the time of their part."""
    n = sizes(scale)[-2]

    def load(place: int) -> Work:
        dataset = work(folder, n)
        batches = sum(1 for _ in dataset)
        tenth = max(1, batches // 10)
        first = 0 if place == 0 else batches - tenth

        def once() -> Measured:
            iterator = iter(dataset)
            _drain(iterator, first)
            begin = perf_counter()
            _drain(iterator, tenth)
            taken = perf_counter() - begin
            _drain(iterator, batches)
            return Measured(taken)

        return Work(once, delivering(lambda: dataset).check, share=tenth / batches)

    return Case(
        f"place: {name}",
        {"element": n},
        [
            Contender("last tenth", "ours", lambda: load(1)),
            Contender("first tenth", "limit", lambda: load(0), reach=REACH),
        ],
    )


def _drain(iterator: Iterator[Any], count: int) -> None:
    for _ in range(count):
        if next(iterator, None) is None:
            return


def _restores(scale: float) -> Case:
    """State after so many elements, beyond the first buffer of them: restore it and get the next batch."""
    rows = sizes(scale)[1:]

    def load(place: int) -> Work:
        dataset = _buffered(Path(), rows[-1] + 1000)
        iterator = iter(dataset)
        _drain(iterator, place // 256)
        state = iterator.state()
        expected = next(iterator)

        def once() -> Any:
            restored = dataset.restore(state)
            return restored, next(restored)

        def check() -> str:
            if not np.array_equal(once()[1], expected):
                raise BenchmarkError("the batch after a restore is not the one that would have followed")
            return "the batch that would have followed"

        return Work(once, check)

    return _case("state: restore + next", "restore", 1, load, [(f"after {n:,}", n) for n in rows])


def _pipelines(name: str, unit: str, make: Callable[[Path, int], Any], most: int, folder: Path, scale: float) -> Case:
    """Pipelines of ever more parts, each made, begun and read to its end."""
    counts = _tenths(most, scale)

    def load(count: int) -> Work:
        made = delivering(lambda: make(folder, count))
        return replace(made, check=made.check if count == counts[-1] else None, share=count / counts[-1])

    return _case(name, unit, counts[-1], load, [(f"{count:,} of them", count) for count in counts])


def _many_files(folder: Path, scale: float) -> Case:
    counts = _files(scale)

    def load(count: int) -> Work:
        dataset = _parsed([folder / f"part-{number:04}.tfrecord" for number in range(count)]).padded_batch(256)
        made = delivering(lambda: dataset)
        return replace(made, check=made.check if count == counts[-1] else None, share=count / counts[-1])

    points = [(f"{count:,} files of {CHUNK:,} records", count) for count in counts]
    return _case("files: TFRecord", "element", counts[-1] * CHUNK, load, points)


def _many_columns(folder: Path, scale: float) -> Case:
    """As many values in each: rows are fewer where columns are more. pyarrow's decoding alone is beside both."""
    counts = COLUMNS
    values = sizes(scale)[-1]

    def share(count: int) -> float:
        return values // count * count / values

    def load(count: int) -> Work:
        import distinput as di

        dataset = di.data.ParquetDataset(str(folder / f"{count}-columns.parquet")).batch(1024)
        made = delivering(lambda: dataset)
        return replace(made, check=made.check if count == counts[-1] else None, share=share(count))

    def decoding(count: int) -> Work:
        from pyarrow.parquet import ParquetFile

        def once() -> None:
            file = ParquetFile(folder / f"{count}-columns.parquet", pre_buffer=False, buffer_size=1 << 18)
            for group in range(file.num_row_groups):
                file.read_row_group(group)

        return Work(once, share=share(count))

    case = _case("columns: Parquet", "value", values, load, [(f"{count:,} columns", count) for count in counts])
    alone = [
        Contender(f"{count:,} columns, read_row_group", "limit", lambda count=count: decoding(count))  # type: ignore[misc]
        for count in counts[1:]
    ]
    return replace(case, contenders=[*case.contenders, *alone])
