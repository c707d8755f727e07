# SPDX-License-Identifier: Apache-2.0
"""How fast do rows of CSV and JSON Lines become exact batches of arrays?"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checksum import in_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "rows of text (5 floats, 4 integers, a string) to blocks, and to exact batches of 1024 rows"
NOTES = """
`pyarrow's reader` parses all rows with pyarrow's own threads, and is told the types, as our reader is. It gives tables of
any size: neither batches of 1024 rows nor bytes objects. tf.data has no parser of JSON: Python parses the lines, a batch of
them in each call, or one by one in a generator.
"""
BATCH = 1024
_GENERATED = 2000  # rows that a generator parses
FLOATS, INTEGERS, TEXT = "abcde", "ijkl", "t"


def prepare(folder: Path, scale: float) -> None:
    """The same rows as CSV and as JSON Lines."""
    random = np.random.default_rng(SEED)
    rows = scaled(400_000, scale, 2500)
    floats = random.standard_normal((rows, 5)).tolist()
    integers = random.integers(0, 10**6, (rows, 4)).tolist()
    texts = [f"{value:x}" for value in random.integers(0, 2**60, rows)]
    names = [*FLOATS, *INTEGERS, TEXT]
    with open(folder / "rows.csv", "w") as table, open(folder / "rows.jsonl", "w") as lines:
        table.write(",".join(names) + "\n")
        for a, b, text in zip(floats, integers, texts, strict=True):
            table.write(",".join([*map(repr, a), *map(str, b), text]) + "\n")
            lines.write(json.dumps(dict(zip(names, [*a, *b, text], strict=True))) + "\n")


def cases(folder: Path, scale: float) -> list[Case]:
    """CSV and JSON Lines; dicts of numbers and bytes objects, and tuples."""
    files = {"csv": folder / "rows.csv", "jsonl": folder / "rows.jsonl"}
    both = [made for kind, path in files.items() for made in (_blocks(kind, path, scale), _case(kind, path, scale))]
    return [*both, _tuples(files["csv"], scale), _made_batches(files["csv"], scale)]


def _schema() -> Any:
    import pyarrow as pa

    fields = [(name, pa.float64()) for name in FLOATS] + [(name, pa.int64()) for name in INTEGERS]
    return pa.schema([*fields, (TEXT, pa.binary())])


def _blocks(kind: str, path: Path, scale: float) -> Case:
    """Blocks of columns, which hold what pyarrow's tables hold."""

    def ours() -> Work:
        import distinput as di

        rows = di.data.FileDataset(str(path), kind, schema=_schema())

        def once() -> None:
            with rows.iter_blocks() as blocks:
                for _ in blocks:
                    pass

        return Work(once, lambda: in_order(rows.batch(1 << 30)))

    def pyarrow() -> Work:
        def arrays() -> dict[str, Any]:
            table = _table(kind, path).combine_chunks()
            return {name: table[name].to_numpy() for name in table.column_names}

        return Work(lambda: _table(kind, path), lambda: in_order([arrays()]))

    return Case(
        f"{kind}, blocks",
        {"row": scaled(400_000, scale, 2500), "byte": path.stat().st_size},
        [
            Contender("distinput", "ours", ours),
            Contender("pyarrow's reader", "peer", pyarrow, reach=0.9),
        ],
    )


def _case(kind: str, path: Path, scale: float) -> Case:
    def ours() -> Work:
        import distinput as di

        rows = di.data.FileDataset(str(path), kind, schema=_schema()).batch(BATCH)
        return delivering(lambda: rows)

    def pyarrow() -> Work:
        return Work(lambda: _table(kind, path))

    def tensorflow() -> Work:
        import tensorflow as tf

        names = [*FLOATS, *INTEGERS, TEXT]
        if kind == "csv":
            types = [tf.float64] * 5 + [tf.int64] * 4 + [tf.string]
            rows = tf.data.experimental.CsvDataset(str(path), types, header=True).batch(BATCH)
            rows = rows.map(lambda *columns: dict(zip(names, columns, strict=True))).prefetch(tf.data.AUTOTUNE)
            return delivering(lambda: rows)

        def parsed(lines: Any) -> list[Any]:
            rows = [json.loads(line) for line in lines]
            return [np.array([row[name] for row in rows], kind) for name, kind in kinds.items()]

        kinds = dict.fromkeys(FLOATS, np.float64) | dict.fromkeys(INTEGERS, np.int64) | {TEXT: np.bytes_}
        types = [tf.string if kind is np.bytes_ else tf.as_dtype(kind) for kind in kinds.values()]

        def columns(lines: Any) -> dict[str, Any]:
            return dict(zip(names, tf.numpy_function(parsed, [lines], types, stateful=False), strict=True))

        made = tf.data.TextLineDataset(str(path)).batch(BATCH).map(columns, num_parallel_calls=tf.data.AUTOTUNE)
        return delivering(lambda: made.prefetch(tf.data.AUTOTUNE))

    def generator() -> Work:
        import tensorflow as tf

        rows = scaled(400_000, scale, 2500)
        some = min(rows, _GENERATED)

        def parsed() -> Iterator[Any]:
            with path.open() as file:
                for line in itertools.islice(file, some):
                    yield json.loads(line)

        kinds = {name: tf.TensorSpec([], tf.float64) for name in FLOATS}
        kinds |= {name: tf.TensorSpec([], tf.int64) for name in INTEGERS} | {TEXT: tf.TensorSpec([], tf.string)}
        made = tf.data.Dataset.from_generator(parsed, output_signature=kinds).batch(BATCH).prefetch(tf.data.AUTOTUNE)
        # For each row it calls Python several times, so it reads some of them, which cannot be checked.
        return Work(delivering(lambda: made).once, share=some / rows)

    def hugging_face() -> Work:
        import datasets

        name = "csv" if kind == "csv" else "json"
        stream = datasets.load_dataset(name, data_files=str(path), split="train", streaming=True).with_format("numpy")
        # Its arrays have float32 for float64 and str for bytes, so they cannot be compared.
        return Work(delivering(lambda: stream.iter(BATCH)).once)

    peers = [Contender("tf.data", "peer", tensorflow, ("tensorflow",), 10.0)]
    if kind == "jsonl":
        peers.append(Contender("tf.data, generator", "peer", generator, ("tensorflow",), 10.0))
    return Case(
        kind,
        {"row": scaled(400_000, scale, 2500), "byte": path.stat().st_size},
        [
            Contender("distinput", "ours", ours),
            Contender("pyarrow's reader", "peer", pyarrow),
            *peers,
            Contender("datasets, numpy", "peer", hugging_face, ("datasets",), 10.0),
        ],
    )


def _made_batches(path: Path, scale: float) -> Case:
    """What one call makes of a file: types are inferred, batches named and prefetched."""
    options: dict[str, Any] = {"num_epochs": 1, "shuffle": False}

    def ours() -> Work:
        import distinput as di

        return delivering(lambda: di.data.experimental.make_csv_dataset(str(path), BATCH, **options))

    def tensorflow() -> Work:
        import tensorflow as tf

        return delivering(lambda: tf.data.experimental.make_csv_dataset(str(path), BATCH, **options))

    return Case(
        "make_csv_dataset",
        {"row": scaled(400_000, scale, 2500), "byte": path.stat().st_size},
        [
            Contender("distinput", "ours", ours),
            Contender("pyarrow's reader", "peer", lambda: Work(lambda: _table("csv", path))),
            Contender("tf.data", "peer", tensorflow, ("tensorflow",), 10.0),
        ],
    )


def _tuples(path: Path, scale: float) -> Case:
    """`CsvDataset` with a type for each field, whose elements are tuples."""

    def ours() -> Work:
        import distinput as di

        types = [di.float64] * 5 + [di.int64] * 4 + [di.string]
        return delivering(lambda: di.data.CsvDataset(str(path), types, header=True).batch(BATCH))

    def tensorflow() -> Work:
        import tensorflow as tf

        types = [tf.float64] * 5 + [tf.int64] * 4 + [tf.string]
        rows = tf.data.experimental.CsvDataset(str(path), types, header=True).batch(BATCH)
        return delivering(lambda: rows.prefetch(tf.data.AUTOTUNE))

    return Case(
        "csv, tuples",
        {"row": scaled(400_000, scale, 2500), "byte": path.stat().st_size},
        [
            Contender("distinput", "ours", ours),
            Contender("pyarrow's reader", "peer", lambda: Work(lambda: _table("csv", path)), reach=0.9),
            Contender("tf.data", "peer", tensorflow, ("tensorflow",), 10.0),
        ],
    )


def _table(kind: str, path: Path) -> Any:
    if kind == "csv":
        from pyarrow import csv

        return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=_schema(), check_utf8=False))
    from pyarrow import json as arrow_json

    return arrow_json.read_json(path, parse_options=arrow_json.ParseOptions(explicit_schema=_schema()))
