# SPDX-License-Identifier: Apache-2.0
"""Sources of random pipelines: numbers, arrays, generators and small files."""

import atexit
import gzip
import hashlib
import json
import shutil
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.core.column import Dense, Ragged, Strings
from distinput.core.nest import structure_of
from distinput.core.spec import TensorSpec
from distinput.data.dataset import Dataset
from distinput.data.experimental import auto_shard_dataset, read_manifest, rebatch_for_worker, write_manifest
from distinput.data.makers import (
    ArrowDataset,
    FixedLengthRecordDataset,
    NpyDataset,
    ParquetDataset,
    TextLineDataset,
    TFRecordDataset,
)
from distinput.formats.arrow_ipc import write_arrow
from distinput.formats.parquet import write_parquet
from distinput.formats.tfrecord import TFRecordWriter
from distinput.ops.files import Files
from distinput.ops.fragments import FragmentNumbers, FragmentReader
from distinput.ops.generator import Generator
from distinput.ops.interleave import Interleave
from distinput.ops.own_rows import OwnPieces, OwnRows, RowReader, ShuffledRows
from distinput.ops.range import Range
from distinput.ops.reader import Reader
from distinput.ops.shuffle import Shuffle
from distinput.ops.slices import Slices
from distinput.plan.options import AutoShardPolicy, Options
from distinput.testing.functions import Point, Record
from distinput.testing.pipeline import Draw, Ingredient
from distinput.testing.shuffles import checked_shuffle

__all__ = ["KINDS", "SOURCES", "interleaved"]


def words(n: int, salt: int) -> Any:
    """Text of different lengths, empty among it."""
    made = np.empty(n, object)
    made[:] = [b"x" * ((i + salt) % 4) + (b"%d" % i if i % 5 else b"") for i in range(n)]
    return made


KINDS: dict[str, Callable[[int, int], Any]] = {
    "bool": lambda n, salt: (np.arange(n) + salt) % 3 == 0,
    "deep": lambda n, salt: {"x": ({"y": np.arange(n) * 2 + salt},), "z": (words(n, salt),)},
    "dict": lambda n, salt: {
        "b": np.arange(2 * n, dtype=np.float32).reshape(n, 2) + salt,
        "a": np.arange(n, dtype=np.int32),
    },
    "float": lambda n, salt: np.arange(n, dtype=np.float32) / 2 + salt,
    "int": lambda n, salt: np.arange(n) * 3 + salt,
    "int32": lambda n, salt: (np.arange(n, dtype=np.int32) + salt) % 7,
    "narrow": lambda n, salt: np.zeros((n, 0), np.int64) + salt,
    "pair": lambda n, salt: (np.arange(n) + salt, words(n, salt)),
    "point": lambda n, salt: Point(
        np.arange(n) + salt, (words(n, salt), np.arange(3 * n, dtype=np.int32).reshape(n, 3))
    ),
    "record": lambda n, salt: Record(np.arange(n) + salt, words(n, salt)),
    "single": lambda n, salt: (np.arange(n) + salt,),
    "str": words,
    "texts": lambda n, salt: words(2 * n, salt).reshape(n, 2),
    "wide": lambda n, salt: np.arange(4 * n).reshape(n, 4) + salt,
}
"""Arrays with a first axis of n, as nests of several kinds."""


def rows_of(arrays: Any) -> list[Any]:
    """The elements that slicing arrays gives."""
    structure = structure_of(arrays)
    leaves = structure.flatten(arrays)
    return [structure.build([leaf[i] for leaf in leaves]) for i in range(len(leaves[0]))]


_COUNT = st.sampled_from([5, 8, 12, 3, 1, 2, 20, 0])
_SALT = st.integers(0, 9)


def _draw_kind(draw: Draw, _: Any) -> dict[str, Any]:
    return {"kind": draw(st.sampled_from(sorted(KINDS))), "n": draw(_COUNT), "salt": draw(_SALT)}


def _kind(arguments: dict[str, Any]) -> Any:
    return KINDS[arguments["kind"]](arguments["n"], arguments["salt"])


# --- numbers and arrays


def _draw_range(draw: Draw, _: Any) -> dict[str, Any]:
    step = draw(st.sampled_from([1, 1, 2, -1, 3]))
    start = draw(st.integers(-3, 9))
    dtype = draw(st.sampled_from(["int64", "int64", "int32", "float32"]))
    return {
        "start": start,
        "stop": start + step * draw(st.sampled_from([7, 4, 12, 25, 1, 2, 0, -1])),
        "step": step,
        "dtype": dtype,
    }


def _range_model(_: None, a: dict[str, Any]) -> list[Any]:
    return [np.dtype(a["dtype"]).type(i) for i in range(a["start"], a["stop"], a["step"])]


def _build_range(_: None, a: dict[str, Any]) -> Dataset:
    return Dataset.range(a["start"], a["stop"], a["step"], output_type=np.dtype(a["dtype"]))


# --- a generator


_GENERATED = ("dict", "int", "pair", "ragged", "str", "uneven", "wide")


def generated(kind: str, n: int, salt: int) -> list[Any]:
    """Elements for a generator, some of which differ in shape."""
    if kind == "ragged":
        return [{"id": np.int64(i), "values": np.arange((i + salt) % 4) + i} for i in range(n)]
    if kind == "uneven":
        return [np.full((i % 3, (i + salt) % 2), i, np.int32) for i in range(n)]
    return rows_of(KINDS[kind](n, salt))


def signature(kind: str) -> Any:
    """The signature of a generated kind."""
    if kind == "ragged":
        return {"id": TensorSpec((), np.int64), "values": TensorSpec((None,), np.int64)}
    if kind == "uneven":
        return TensorSpec((None, None), np.int32)
    arrays = KINDS[kind](1, 0)
    structure = structure_of(arrays)
    return structure.build([TensorSpec(leaf.shape[1:], leaf.dtype) for leaf in structure.flatten(arrays)])


def _draw_generator(draw: Draw, _: Any) -> dict[str, Any]:
    return {"kind": draw(st.sampled_from(_GENERATED)), "n": draw(_COUNT), "salt": draw(_SALT)}


def _build_generator(_: None, a: dict[str, Any]) -> Dataset:
    def elements() -> Any:
        yield from generated(a["kind"], a["n"], a["salt"])

    return Dataset.from_generator(elements, output_signature=signature(a["kind"]))


# --- files


@cache
def _folder() -> Path:
    made = tempfile.mkdtemp(prefix="distinput-testing-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def written(arguments: dict[str, Any], write: Callable[[Path, list[int]], None]) -> list[str]:
    """Paths of the files that arguments describe: `rows` in each; written once for each process."""
    word = hashlib.blake2s(json.dumps(arguments, sort_keys=True).encode(), digest_size=8).hexdigest()
    folder = _folder() / word
    paths = [folder / f"part-{index}" for index in range(len(arguments["rows"]))]
    if not folder.exists():
        folder.mkdir()
        before = 0
        for path, rows in zip(paths, arguments["rows"], strict=True):
            write(path, list(range(before, before + rows)))
            before += rows
    return [str(path) for path in paths]


_FILES = st.lists(st.sampled_from([3, 1, 5, 0, 2, 6]), min_size=1, max_size=4)
_READS = st.sampled_from([None, None, 1, 2, 3])
_COMPRESSION = st.sampled_from(["", "GZIP", "ZLIB"])


def interleaved(lists: list[list[Any]], cycle: int, block: int) -> list[Any]:
    """Elements of several lists, `cycle` of which are open and take turns of `block` elements."""
    waiting = iter(lists)
    slots: list[list[Any] | None] = [None] * cycle
    given: list[Any] = []
    more, turn = True, 0
    while more or any(slot is not None for slot in slots):
        if slots[turn] is None and more:
            following = next(waiting, None)
            more = following is not None
            slots[turn] = None if following is None else list(following)
        slot = slots[turn]
        if slot is not None:
            for _ in range(block):
                if not slot:
                    slots[turn] = None
                    break
                given.append(slot.pop(0))
        turn = (turn + 1) % cycle
    return given


def _read_order(lists: list[list[Any]], reads: int | None) -> list[Any]:
    return [row for rows in lists for row in rows] if reads is None else interleaved(lists, reads, 1)


def _by_file(a: dict[str, Any], record: Callable[[int], Any]) -> list[list[Any]]:
    lists, before = [], 0
    for rows in a["rows"]:
        lists.append([record(i) for i in range(before, before + rows)])
        before += rows
    return lists


def _squeezed(data: bytes, compression: str) -> bytes:
    if compression == "GZIP":
        return gzip.compress(data)
    return zlib.compress(data) if compression == "ZLIB" else data


def _line(index: int) -> bytes:
    return b"" if index % 6 == 5 else b"line %d" % index


def _text_files(a: dict[str, Any]) -> list[str]:
    def write(path: Path, rows: list[int]) -> None:
        ends = [b"\r\n" if i % 2 else b"\n" for i in rows]
        if ends and _line(rows[-1]) and rows[-1] % 3 == 0:
            ends[-1] = b""
        data = b"".join(_line(i) + end for i, end in zip(rows, ends, strict=True))
        path.write_bytes(_squeezed(data, a["compression"]))

    return written(a, write)


def _draw_files(draw: Draw, _: Any) -> dict[str, Any]:
    return {"rows": draw(_FILES), "reads": draw(_READS), "compression": draw(_COMPRESSION)}


def _build_text(_: None, a: dict[str, Any]) -> Dataset:
    return TextLineDataset(_text_files({**a, "format": "text"}), a["compression"], num_parallel_reads=a["reads"])


def _record(index: int) -> bytes:
    return b"record" * (index % 3) + b"%d" % index


def _tfrecords(a: dict[str, Any]) -> list[str]:
    def write(path: Path, rows: list[int]) -> None:
        with TFRecordWriter(str(path), a["compression"], index=indexed) as writer:
            for index in rows:
                writer.write(_record(index))

    indexed = a.get("index", False)
    return written({"rows": a["rows"], "compression": a["compression"], "format": "tfrecord", "index": indexed}, write)


def _draw_records(draw: Draw, _: Any) -> dict[str, Any]:
    found = _draw_files(draw, _)
    return {**found, "index": not found["compression"] and draw(st.booleans())}


def _build_tfrecord(_: None, a: dict[str, Any]) -> Dataset:
    return TFRecordDataset(_tfrecords(a), a["compression"], num_parallel_reads=a["reads"], index=a.get("index", False))


def _digits(index: int) -> bytes:
    return b"%03d" % index


def _fixed(a: dict[str, Any]) -> list[str]:
    def write(path: Path, rows: list[int]) -> None:
        data = b"HEAD"[: a["header"]] + b"".join(map(_digits, rows)) + b"FOOT"[: a["footer"]]
        path.write_bytes(_squeezed(data, a["compression"]))

    return written({key: a[key] for key in ("rows", "header", "footer", "compression")}, write)


def _build_fixed(_: None, a: dict[str, Any]) -> Dataset:
    paths = _fixed(a)
    return FixedLengthRecordDataset(
        paths, 3, a["header"], a["footer"], compression_type=a["compression"], num_parallel_reads=a["reads"]
    )


def _draw_fixed(draw: Draw, _: Any) -> dict[str, Any]:
    return {**_draw_files(draw, _), "header": draw(st.integers(0, 4)), "footer": draw(st.integers(0, 4))}


def _table_row(index: int) -> dict[str, Any]:
    return {
        "id": np.int64(index),
        "name": b"n%d" % index,
        "values": np.arange(index % 3, dtype=np.float64) + index,
    }


def _draw_table(draw: Draw, _: Any) -> dict[str, Any]:
    # Of files without a row nobody can tell how long the lists are, so the first one has a row.
    columns = draw(st.sampled_from([None, ["id"], ["name", "id"], ["values"]]))
    rows = [draw(st.integers(1, 6)), *draw(st.lists(st.integers(0, 6), max_size=2))]
    return {"rows": rows, "reads": draw(_READS), "columns": columns, "group": draw(st.integers(1, 4))}


def _table(rows: list[int]) -> dict[str, Any]:
    made = [_table_row(i) for i in rows]
    return {
        "id": np.array([row["id"] for row in made], np.int64),
        "name": Strings.of([row["name"] for row in made]),
        "values": _lists([row["values"] for row in made]),
    }


def _build_parquet(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        write_parquet(str(path), _table(rows), row_group_size=a["group"])

    return ParquetDataset(written({**a, "format": "parquet"}, write), a["columns"], num_parallel_reads=a["reads"])


def _draw_arrow(draw: Draw, _: Any) -> dict[str, Any]:
    return {
        **_draw_table(draw, _),
        "compression": draw(st.sampled_from([None, None, "lz4"])),
        "stream": draw(st.booleans()),
    }


def _build_arrow(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        write_arrow(str(path), _table(rows), a["group"], a["compression"], stream=a["stream"])

    return ArrowDataset(written({**a, "format": "arrow"}, write), a["columns"], num_parallel_reads=a["reads"])


def _npy_rows(rows: list[int], shape: list[int], dtype: str) -> Any:
    cells = int(np.prod(shape))
    return (np.array(rows, np.int64)[:, None] * 3 + np.arange(cells)).astype(dtype).reshape(len(rows), *shape)


def _draw_npy(draw: Draw, _: Any) -> dict[str, Any]:
    return {
        "rows": draw(_FILES),
        "reads": draw(_READS),
        "shape": draw(st.sampled_from([[], [2], [2, 3], [0], [0, 100], [100]])),
        "dtype": draw(st.sampled_from(["int64", "uint8", ">f4", "bool"])),
    }


def _build_npy(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        with open(path, "wb") as file:  # numpy would put .npy behind the name
            np.save(file, _npy_rows(rows, a["shape"], a["dtype"]))

    return NpyDataset(written({**a, "format": "npy"}, write), num_parallel_reads=a["reads"])


def _npy_model(_: None, a: dict[str, Any]) -> list[Any]:
    native = np.dtype(a["dtype"]).newbyteorder("=")
    return _read_order(_by_file(a, lambda i: _npy_rows([i], a["shape"], a["dtype"]).astype(native)[0]), a["reads"])


def _lists(rows: list[Any]) -> Ragged:
    sizes = np.array([len(row) for row in rows], np.int64)
    return Ragged(Dense(np.concatenate([np.empty(0), *rows])), np.cumsum(sizes) - sizes, sizes)


def _table_model(_: None, a: dict[str, Any]) -> list[Any]:
    names = a["columns"] or ["id", "name", "values"]

    def row(index: int) -> dict[str, Any]:
        whole = _table_row(index)
        return {name: whole[name] for name in names}

    return _read_order(_by_file(a, row), a["reads"])


def _listed(a: dict[str, Any]) -> list[str]:
    def write(path: Path, rows: list[int]) -> None:
        path.write_bytes(b"x" * len(rows))

    return written({"rows": a["rows"], "format": "listed"}, write)


def _build_listed(_: None, a: dict[str, Any]) -> Dataset:
    folder = str(Path(_listed(a)[0]).parent / "part-*")
    return Dataset.list_files(folder, shuffle=a["shuffle"], seed=a["seed"])


def _listed_model(_: None, a: dict[str, Any], seen: list[Any]) -> list[Any]:
    names = [path.encode() for path in _listed(a)]
    return checked_shuffle(names, seen, len(names)) if a["shuffle"] else names


# --- files, as auto-sharding reads them


def _build_manifest(_: None, a: dict[str, Any]) -> Dataset:
    names = _tfrecords(a)
    path = str(Path(names[0]).parent / "manifest.json")
    if not Path(path).exists():
        write_manifest(path, names)
    return TFRecordDataset(read_manifest(path), a["compression"], num_parallel_reads=a["reads"])


def _with_policy(dataset: Dataset, policy: AutoShardPolicy) -> Dataset:
    options = Options()
    options.experimental_distribute.auto_shard_policy = policy
    return dataset.with_options(options)


def _draw_part(draw: Draw, _: Any) -> dict[str, Any]:
    workers = draw(st.integers(2, 3))
    return {
        "rows": draw(_FILES),
        "workers": workers,
        "worker": draw(st.integers(0, workers - 1)),
        "mixed": draw(st.booleans()),
        "format": draw(st.sampled_from(["fixed", "indexed", "tfrecord"])),
    }


def _names(paths: list[str], a: dict[str, Any]) -> Any:
    return Dataset.from_tensor_slices(paths).global_shuffle(seed=3) if a["mixed"] else paths


def _fixed_or_records(a: dict[str, Any]) -> Dataset:
    if a["format"] in ("indexed", "tfrecord"):
        indexed = a["format"] == "indexed"
        paths = _tfrecords({"rows": a["rows"], "compression": "", "index": indexed})
        return TFRecordDataset(_names(paths, a), index=indexed)
    return FixedLengthRecordDataset(
        _names(_fixed({"rows": a["rows"], "header": 0, "footer": 0, "compression": ""}), a), 3
    )


def _build_part(_: None, a: dict[str, Any]) -> Dataset:
    whole = _with_policy(_fixed_or_records(a), AutoShardPolicy.BALANCED)
    return auto_shard_dataset(whole, a["workers"], a["worker"], a["workers"])


def _build_own(_: None, a: dict[str, Any]) -> Dataset:
    whole = _fixed_or_records({**a, "format": "fixed"}).shuffle(4, seed=5, reshuffle_each_iteration=False).batch(2)
    cut = rebatch_for_worker(_with_policy(whole, AutoShardPolicy.DATA), a["workers"], 1, a["worker"])
    return auto_shard_dataset(cut, a["workers"], a["worker"], a["workers"])


def _some_of(a: dict[str, Any], seen: list[Any]) -> list[Any]:
    """What one worker reads is no element twice; that all workers together read all is a law of its own."""
    record = _digits if a["format"] == "fixed" else _record
    all_rows = {record(i) for i in range(sum(a["rows"]))}
    if len(set(seen)) != len(seen) or not all_rows.issuperset(seen):
        raise AssertionError(f"part of files: {seen!r} is not a part of {all_rows!r}")
    return seen


SOURCES: tuple[Ingredient, ...] = (
    Ingredient("range", (Range,), _build_range, _range_model, _draw_range),
    Ingredient(
        "slices",
        (Slices,),
        lambda _, a: Dataset.from_tensor_slices(_kind(a)),
        lambda _, a: rows_of(_kind(a)),
        _draw_kind,
    ),
    Ingredient("tensors", (Slices,), lambda _, a: Dataset.from_tensors(_kind(a)), lambda _, a: [_kind(a)], _draw_kind),
    Ingredient(
        "generator",
        (Generator,),
        _build_generator,
        lambda _, a: generated(a["kind"], a["n"], a["salt"]),
        _draw_generator,
    ),
    Ingredient(
        "text", (Reader, Interleave), _build_text, lambda _, a: _read_order(_by_file(a, _line), a["reads"]), _draw_files
    ),
    Ingredient(
        "tfrecord",
        (Reader, Interleave),
        _build_tfrecord,
        lambda _, a: _read_order(_by_file(a, _record), a["reads"]),
        _draw_records,
    ),
    Ingredient(
        "fixed_length",
        (Reader, Interleave),
        _build_fixed,
        lambda _, a: _read_order(_by_file(a, _digits), a["reads"]),
        _draw_fixed,
    ),
    Ingredient("parquet", (Reader, Interleave), _build_parquet, _table_model, _draw_table),
    Ingredient("arrow", (Reader, Interleave), _build_arrow, _table_model, _draw_arrow),
    Ingredient("npy", (Reader, Interleave), _build_npy, _npy_model, _draw_npy),
    Ingredient(
        "list_files",
        (Slices, Shuffle),
        _build_listed,
        _listed_model,
        lambda draw, _: {"rows": draw(_FILES), "shuffle": draw(st.booleans()), "seed": draw(_SALT)},
        observed=True,
        settled=lambda a: not a["shuffle"],
    ),
    Ingredient(
        "manifest",
        (Files, Reader),
        _build_manifest,
        lambda _, a: _read_order(_by_file(a, _record), a["reads"]),
        _draw_files,
    ),
    Ingredient(
        "part",
        (FragmentNumbers, FragmentReader),
        _build_part,
        lambda _, a, seen: _some_of(a, seen),
        _draw_part,
        observed=True,
        settled=lambda a: not a["mixed"],
    ),
    Ingredient(
        "own",
        (OwnPieces, OwnRows, RowReader, ShuffledRows),
        _build_own,
        lambda _, a, seen: [*_some_of({**a, "format": "fixed"}, [row for piece in seen for row in piece]), seen][-1],
        _draw_part,
        observed=True,
        settled=lambda a: not a["mixed"],
    ),
)
"""Where random pipelines begin."""
