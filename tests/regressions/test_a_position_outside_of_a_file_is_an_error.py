# SPDX-License-Identifier: Apache-2.0
"""Positions that lie before the beginning of a file, or behind its end, are errors for every format."""

from pathlib import Path

import pytest

import distinput as di
from distinput.formats.arrow_ipc import ArrowIpc
from distinput.formats.fixed_length import FixedLengthRecords
from distinput.formats.format import Format
from distinput.formats.megatron import Megatron
from distinput.formats.npy import Npy
from distinput.formats.parquet import Parquet
from distinput.formats.text import TextLines
from distinput.formats.tfrecord import IndexedTFRecords, TFRecords
from tests.formats.hostile.samples import SAMPLES

FORMATS: dict[str, Format] = {
    "tfrecord": TFRecords(),
    "tfrecord GZIP": TFRecords("GZIP"),
    "indexed": IndexedTFRecords(),
    "text": TextLines(),
    "text GZIP": TextLines("GZIP"),
    "fixed": FixedLengthRecords(5),
    "fixed ZLIB": FixedLengthRecords(5, compression_type="ZLIB"),
    "megatron tokens": Megatron(),
    "npy floats": Npy(),
    "arrow file spans": ArrowIpc(),
    "arrow stream spans": ArrowIpc(),
    "arrow file lz4": ArrowIpc(),
    "arrow stream zstd": ArrowIpc(),
    "parquet plain": Parquet(),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_position_outside(tmp_path: Path, name: str) -> None:
    (sample,) = [sample for sample in SAMPLES if sample.name == name]
    path = tmp_path / "file"
    for more, content in {"": sample.content, **sample.beside}.items():
        (tmp_path / f"file{more}").write_bytes(content)
    start = FORMATS[name].start()
    for place in (-1, -(2**63), 10**9, 2**62, 2**63, 2**70):
        position = dict.fromkeys(start, place)
        with pytest.raises((di.errors.StateError, di.errors.DataLossError), match=r"file: "):
            list(FORMATS[name].read(str(path), position))
