# SPDX-License-Identifier: Apache-2.0
"""Sources in files of records, and files that several readers share."""

import atexit
import gzip
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
import uuid
from collections.abc import Callable
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.data.experimental import auto_shard_dataset, read_manifest, rebatch_for_worker, write_manifest
from distinput.data.file_datasets import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from distinput.data.file_datasets.samples import WebDataset
from distinput.files.compression import as_compression, encoder_of
from distinput.formats.tfrecord import TFRecordWriter
from distinput.testing.elements import checked_shuffle, interleaved
from distinput.testing.pipeline import EITHER, DrawFrom, Ingredient, drawing, with_policy
from distinput.testing.sources.memory import SALT

# ----------------------------------------------------------------------------
# Small files, written once for each process, and the order in which their records are read.
# ----------------------------------------------------------------------------


@cache
def _folder() -> Path:
    made = tempfile.mkdtemp(prefix="distinput-testing-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def new_folder() -> str:
    """The path of a folder that does not exist yet, and that goes away with the process."""
    return str(_folder() / uuid.uuid4().hex)


def written(arguments: dict[str, Any], write: Callable[[Path, list[int]], None]) -> list[str]:
    """Paths of the files that arguments describe: `rows` in each; written once for each process."""
    word = hashlib.blake2s(json.dumps(arguments, sort_keys=True).encode(), digest_size=8).hexdigest()
    folder = _folder() / word
    paths = [folder / f"part-{index}" for index in range(len(arguments["rows"]))]
    if not folder.exists():
        folder.mkdir()
        for path, rows in zip(paths, by_file(arguments, int), strict=True):
            write(path, rows)
    return [str(path) for path in paths]


FILES = st.lists(st.sampled_from([3, 1, 5, 0, 2, 6]), min_size=1, max_size=4)
READS = st.sampled_from([None, None, 1, 2, 3])
COMPRESSION = st.sampled_from(["", "", "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4", "SNAPPY", "AUTO"])


def read_order(lists: list[list[Any]], reads: int | None) -> list[Any]:
    """The records of several files in the order in which a dataset gives them."""
    return [row for rows in lists for row in rows] if reads is None else interleaved(lists, reads, 1)


def in_order(record: Callable[[int], Any]) -> Callable[..., list[Any]]:
    """A model: the records of several files, of which a function makes each of its number."""
    return lambda _, a: read_order(by_file(a, record), a["reads"])


def by_file(a: dict[str, Any], record: Callable[[int], Any]) -> list[list[Any]]:
    """The records of each file."""
    numbers = count()
    return [[record(i) for i in islice(numbers, rows)] for rows in a["rows"]]


def rows_with(row: Callable[[int], dict[str, Any]], names: str = "columns") -> Callable[..., list[Any]]:
    """A model: the rows of several files, with those of their columns that an argument names; None: all."""

    def chosen(index: int, columns: list[str] | None) -> dict[str, Any]:
        whole = row(index)
        return {name: whole[name] for name in columns or whole}

    return lambda _, a: read_order(by_file(a, lambda index: chosen(index, a[names])), a["reads"])


def squeezed(data: bytes, compression: str) -> bytes:
    """Bytes as a file with this compression holds them."""
    if compression in ("", "AUTO"):  # these files have suffixes of no codec
        return data
    if compression == "GZIP":
        return gzip.compress(data)
    encoder = encoder_of(as_compression(compression))
    return encoder.encode(data) + encoder.finish()


draw_files = drawing(rows=FILES, reads=READS, compression=COMPRESSION)
"""Arguments of a source that reads small files."""


# ----------------------------------------------------------------------------
# Sources that read files of records: text, TFRecord, tar, records of fixed length, and lists of files.
# ----------------------------------------------------------------------------


def _line(index: int) -> bytes:
    return b"" if index % 6 == 5 else b"line %d" % index


def _text_files(a: dict[str, Any]) -> list[str]:
    def write(path: Path, rows: list[int]) -> None:
        ends = [b"\r\n" if i % 2 else b"\n" for i in rows]
        if ends and _line(rows[-1]) and rows[-1] % 3 == 0:
            ends[-1] = b""
        data = b"".join(_line(i) + end for i, end in zip(rows, ends, strict=True))
        path.write_bytes(squeezed(data, a["compression"]))

    return written(a, write)


def _build_text(_: None, a: dict[str, Any]) -> Dataset:
    paths = _text_files({"rows": a["rows"], "compression": a["compression"], "format": "text"})
    return TextLineDataset(paths, a["compression"], num_parallel_reads=a["reads"], index=a.get("index", False))


def record_of(index: int) -> bytes:
    """Record number `index` of TFRecord files."""
    return b"record" * (index % 3) + b"%d" % index


def tfrecords(a: dict[str, Any]) -> list[str]:
    """Paths of TFRecord files."""

    def write(path: Path, rows: list[int]) -> None:
        with TFRecordWriter(str(path), a["compression"], index=indexed) as writer:
            for index in rows:
                writer.write(record_of(index))

    indexed = a.get("index", False)
    return written({"rows": a["rows"], "compression": a["compression"], "format": "tfrecord", "index": indexed}, write)


def _draw_records(draw: DrawFrom, _: Any) -> dict[str, Any]:
    found = draw_files(draw, _)
    return {**found, "index": not found["compression"] and draw(EITHER)}


def _build_tfrecord(_: None, a: dict[str, Any]) -> Dataset:
    return TFRecordDataset(tfrecords(a), a["compression"], num_parallel_reads=a["reads"], index=a.get("index", False))


def digits(index: int) -> bytes:
    """Record number `index` of files of records of fixed length."""
    return b"%03d" % index


def fixed(a: dict[str, Any]) -> list[str]:
    """Paths of files of records of fixed length."""

    def write(path: Path, rows: list[int]) -> None:
        data = b"HEAD"[: a["header"]] + b"".join(map(digits, rows)) + b"FOOT"[: a["footer"]]
        path.write_bytes(squeezed(data, a["compression"]))

    return written({key: a[key] for key in ("rows", "header", "footer", "compression")}, write)


def _build_fixed(_: None, a: dict[str, Any]) -> Dataset:
    return FixedLengthRecordDataset(
        fixed(a), 3, a["header"], a["footer"], compression_type=a["compression"], num_parallel_reads=a["reads"]
    )


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


def _sample(index: int) -> dict[str, Any]:
    return {"__key__": b"k/%d" % index, "cls": b"%d" % index, "long.txt": b"text" * (index % 4 * 200)}


def _build_tar(_: None, a: dict[str, Any]) -> Dataset:
    def write(path: Path, rows: list[int]) -> None:
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for sample in map(_sample, rows):
                for name in sorted(set(sample) - {"__key__"}):
                    header = tarfile.TarInfo(f"{sample['__key__'].decode()}.{name}")
                    header.size, header.mtime = len(sample[name]), 0.5  # parts of a second have a header of their own
                    archive.addfile(header, io.BytesIO(sample[name]))
        path.write_bytes(squeezed(content.getvalue(), a["compression"]))

    paths = written({"rows": a["rows"], "compression": a["compression"], "format": "tar"}, write)
    return WebDataset(paths, a["members"], compression_type=a["compression"], num_parallel_reads=a["reads"])


def _draw_tar(draw: DrawFrom, _: Any) -> dict[str, Any]:
    # An archive without samples does not tell its members, so the first one has some, or they are stated.
    found = draw_files(draw, _)
    members = draw(st.sampled_from([None, ["cls"], ["long.txt", "__key__"]]))
    rows = [max(1, found["rows"][0]), *found["rows"][1:]] if members is None else found["rows"]
    return {**found, "rows": rows, "members": members}


RECORDS: tuple[Ingredient, ...] = (
    Ingredient("text", _build_text, in_order(_line), _draw_records),
    Ingredient("tfrecord", _build_tfrecord, in_order(record_of), _draw_records),
    Ingredient(
        "fixed_length",
        _build_fixed,
        in_order(digits),
        drawing(rows=FILES, reads=READS, compression=COMPRESSION, header=st.integers(0, 4), footer=st.integers(0, 4)),
    ),
    Ingredient("tar", _build_tar, rows_with(_sample, "members"), _draw_tar),
    Ingredient(
        "list_files",
        _build_listed,
        _listed_model,
        drawing(rows=FILES, shuffle=EITHER, seed=SALT),
        settled=lambda a: not a["shuffle"],
    ),
)
"""Sources that read files of records."""


# ----------------------------------------------------------------------------
# Files as workers read them: through a manifest, or a part of them each.
# ----------------------------------------------------------------------------


def _build_manifest(_: None, a: dict[str, Any]) -> Dataset:
    names = tfrecords(a)
    path = str(Path(names[0]).parent / "manifest.json")
    if not Path(path).exists():
        write_manifest(path, names)
    return TFRecordDataset(read_manifest(path), a["compression"], num_parallel_reads=a["reads"])


def _draw_part(draw: DrawFrom, _: Any) -> dict[str, Any]:
    workers = draw(st.integers(2, 3))
    rest = drawing(
        rows=FILES,
        worker=st.integers(0, workers - 1),
        mixed=EITHER,
        format=st.sampled_from(["fixed", "indexed", "tfrecord"]),
    )
    return {"workers": workers, **rest(draw, _)}


def _names(paths: list[str], a: dict[str, Any]) -> Any:
    return Dataset.from_tensor_slices(paths).global_shuffle(seed=3) if a["mixed"] else paths


def _fixed_or_records(a: dict[str, Any]) -> Dataset:
    if a["format"] == "fixed":
        paths = fixed({"rows": a["rows"], "header": 0, "footer": 0, "compression": ""})
        return FixedLengthRecordDataset(_names(paths, a), 3)
    indexed = a["format"] == "indexed"
    paths = tfrecords({"rows": a["rows"], "compression": "", "index": indexed})
    return TFRecordDataset(_names(paths, a), index=indexed)


def _build_part(_: None, a: dict[str, Any]) -> Dataset:
    whole = _fixed_or_records(a).with_options(with_policy("BALANCED"))
    return auto_shard_dataset(whole, a["workers"], a["worker"], a["workers"])


def _build_own(_: None, a: dict[str, Any]) -> Dataset:
    whole = _fixed_or_records({**a, "format": "fixed"}).shuffle(4, seed=5, reshuffle_each_iteration=False).batch(2)
    cut = rebatch_for_worker(whole.with_options(with_policy("DATA")), a["workers"], 1, a["worker"])
    return auto_shard_dataset(cut, a["workers"], a["worker"], a["workers"])


def _some_of(a: dict[str, Any], seen: list[Any]) -> list[Any]:
    """No worker reads an element twice; that all workers together read all is a law of its own."""
    record = digits if a["format"] == "fixed" else record_of
    all_rows = {record(i) for i in range(sum(a["rows"]))}
    if len(set(seen)) != len(seen) or not all_rows.issuperset(seen):
        raise AssertionError(f"part of files: {seen!r} is not a part of {all_rows!r}")
    return seen


PARTS: tuple[Ingredient, ...] = (
    Ingredient("manifest", _build_manifest, in_order(record_of), draw_files),
    Ingredient(
        "part",
        _build_part,
        lambda _, a, seen: _some_of(a, seen),
        _draw_part,
        settled=lambda a: not a["mixed"],
    ),
    Ingredient(
        "own",
        _build_own,
        lambda _, a, seen: [*_some_of({**a, "format": "fixed"}, [row for piece in seen for row in piece]), seen][-1],
        _draw_part,
        settled=lambda a: not a["mixed"],
    ),
)
"""Files as workers read them."""
