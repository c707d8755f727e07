# SPDX-License-Identifier: Apache-2.0
"""Sources that read rows from text: CSV and JSON Lines."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.file import FileDataset
from distinput.ops.interleave import Interleave
from distinput.ops.reader import Reader
from distinput.testing.pipeline import DrawFrom, Ingredient
from distinput.testing.sources.written import COMPRESSION, FILES, READS, by_file, read_order, squeezed, written

__all__ = ["TEXT_ROWS"]

_TEXTS = (b"plain", b'a "quoted", text', b"two\nlines", b"", b'"')
_SCHEMA = {"id": "int64", "half": "float32", "text": "string"}


def _row(index: int) -> dict[str, Any]:
    return {"id": np.int64(index), "half": np.float32(index / 2), "text": _TEXTS[index % len(_TEXTS)]}


def _model(_: None, a: dict[str, Any]) -> list[Any]:
    names = a["columns"] or list(_SCHEMA)

    def row(index: int) -> dict[str, Any]:
        whole = _row(index)
        return {name: whole[name] for name in names}

    return read_order(by_file(a, row), a["reads"])


def _draw(draw: DrawFrom, _: Any) -> dict[str, Any]:
    return {
        "rows": draw(FILES),
        "reads": draw(READS),
        "compression": draw(COMPRESSION),
        "columns": draw(st.sampled_from([None, None, ["text"], ["half", "id"]])),
    }


def _read(a: dict[str, Any], format: str, write: Any) -> Dataset:
    def squeeze(path: Path, rows: list[int]) -> None:
        path.write_bytes(squeezed(write(rows), a["compression"]))

    return FileDataset(
        written({"rows": a["rows"], "compression": a["compression"], "format": format}, squeeze),
        format,
        a["reads"],
        schema=_SCHEMA,
        columns=a["columns"],
        compression_type=a["compression"],
    )


def _csv(rows: list[int]) -> bytes:
    """Lines that end with or without a return, empty ones among them, and values in quotes where they must be."""
    lines = [b"id,half,text\n"]
    for index in rows:
        text = _row(index)["text"]
        if b'"' in text or b"\n" in text:
            text = b'"' + text.replace(b'"', b'""') + b'"'
        lines.append(b"%d,%r,%s" % (index, index / 2, text) + (b"\r\n" if index % 2 else b"\n"))
        if index % 4 == 3:
            lines.append(b"\n")
    return b"".join(lines)


def _jsonl(rows: list[int]) -> bytes:
    """Objects whose keys come in any order, and blank lines."""
    lines = []
    for index in rows:
        row = _row(index)
        made = {"text": row["text"].decode(), "id": index, "half": index / 2}
        lines.append(json.dumps(made, sort_keys=index % 2 == 0) + ("\n\n" if index % 4 == 3 else "\n"))
    return "".join(lines).encode()


TEXT_ROWS: tuple[Ingredient, ...] = (
    Ingredient("csv", (Reader, Interleave), lambda _, a: _read(a, "csv", _csv), _model, _draw),
    Ingredient("jsonl", (Reader, Interleave), lambda _, a: _read(a, "jsonl", _jsonl), _model, _draw),
)
"""Sources that read rows from text."""
