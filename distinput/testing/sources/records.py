# SPDX-License-Identifier: Apache-2.0
"""Sources that read files of records: text, TFRecord, tar, records of fixed length, and lists of files."""

import io
import tarfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.fixed_length_record import FixedLengthRecordDataset
from distinput.data.file_datasets.text_line import TextLineDataset
from distinput.data.file_datasets.tf_record import TFRecordDataset
from distinput.data.file_datasets.web import WebDataset
from distinput.formats.tfrecord import TFRecordWriter
from distinput.ops.interleave import Interleave
from distinput.ops.reader import Reader
from distinput.ops.shuffle import Shuffle
from distinput.ops.slices import Slices
from distinput.testing.pipeline import DrawFrom, Ingredient
from distinput.testing.shuffles import checked_shuffle
from distinput.testing.sources.arrays import SALT
from distinput.testing.sources.written import FILES, by_file, draw_files, read_order, squeezed, written

__all__ = ["RECORDS", "digits", "fixed", "record_of", "tfrecords"]


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
    return {**found, "index": not found["compression"] and draw(st.booleans())}


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
    paths = fixed(a)
    return FixedLengthRecordDataset(
        paths, 3, a["header"], a["footer"], compression_type=a["compression"], num_parallel_reads=a["reads"]
    )


def _draw_fixed(draw: DrawFrom, _: Any) -> dict[str, Any]:
    return {**draw_files(draw, _), "header": draw(st.integers(0, 4)), "footer": draw(st.integers(0, 4))}


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


def _tar_model(_: None, a: dict[str, Any]) -> list[Any]:
    def sample(index: int) -> dict[str, Any]:
        whole = _sample(index)
        return {name: whole[name] for name in a["members"] or whole}

    return read_order(by_file(a, sample), a["reads"])


RECORDS: tuple[Ingredient, ...] = (
    Ingredient(
        "text", (Reader, Interleave), _build_text, lambda _, a: read_order(by_file(a, _line), a["reads"]), _draw_records
    ),
    Ingredient(
        "tfrecord",
        (Reader, Interleave),
        _build_tfrecord,
        lambda _, a: read_order(by_file(a, record_of), a["reads"]),
        _draw_records,
    ),
    Ingredient(
        "fixed_length",
        (Reader, Interleave),
        _build_fixed,
        lambda _, a: read_order(by_file(a, digits), a["reads"]),
        _draw_fixed,
    ),
    Ingredient("tar", (Reader, Interleave), _build_tar, _tar_model, _draw_tar),
    Ingredient(
        "list_files",
        (Slices, Shuffle),
        _build_listed,
        _listed_model,
        lambda draw, _: {"rows": draw(FILES), "shuffle": draw(st.booleans()), "seed": draw(SALT)},
        observed=True,
        settled=lambda a: not a["shuffle"],
    ),
)
"""Sources that read files of records."""
