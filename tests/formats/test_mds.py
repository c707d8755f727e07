# SPDX-License-Identifier: Apache-2.0
"""Folders of MDS that are made here byte by byte."""

import bz2
import gzip
import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import DataLossError, DistinputError, InvalidArgumentError, NotFoundError, UnimplementedError
from distinput.formats import mds
from distinput.formats.mds import Mds
from distinput.testing import check_format
from distinput.values.spec_json import json_value
from tests.formats.reading import records

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zstd": lambda data: bytes(pa.compress(data, "zstd", asbytes=True)),
    "br": lambda data: bytes(pa.compress(data, "brotli", asbytes=True)),
    "snappy": lambda data: bytes(pa.compress(data, "snappy", asbytes=True)),
}

Columns = dict[str, tuple[str, int | None]]


def shard_of(rows: Sequence[Sequence[bytes]], sizes: Sequence[int | None]) -> bytes:
    config = b'{"format": "mds"}'
    samples = [
        b"".join(struct.pack("<I", len(value)) for value, size in zip(row, sizes, strict=True) if size is None)
        + b"".join(row)
        for row in rows
    ]
    ends = np.cumsum([8 + 4 * len(rows) + len(config), *map(len, samples)]).tolist()
    return struct.pack(f"<{len(ends) + 1}I", len(rows), *ends) + config + b"".join(samples)


def write(
    folder: Path, columns: Columns, shards: Sequence[Sequence[Sequence[bytes]]], packer: str | None = None
) -> str:
    """A folder of shards of rows of encoded values, by the rules of the layout and nothing of distinput."""
    folder.mkdir(exist_ok=True)
    told = []
    for number, rows in enumerate(shards):
        content, name = shard_of(rows, [size for _, size in columns.values()]), f"shard.{number:05}.mds"
        entry: dict[str, Any] = {
            "column_encodings": [encoding for encoding, _ in columns.values()],
            "column_names": list(columns),
            "column_sizes": [size for _, size in columns.values()],
            "compression": packer and f"{packer}:3",
            "format": "mds",
            "hashes": [],
            "raw_data": {"basename": name, "bytes": len(content), "hashes": {}},
            "samples": len(rows),
            "size_limit": 1 << 26,
            "version": 2,
            "zip_data": None,
        }
        if packer:
            content, name = PACKERS[packer](content), f"{name}.{packer}"
            entry["zip_data"] = {"basename": name, "bytes": len(content), "hashes": {}}
        (folder / name).write_bytes(content)
        told.append(entry)
    (folder / "index.json").write_text(json.dumps({"shards": told, "version": 2}))
    return str(folder)


TOKENS: Columns = {"text": ("str", None), "n": ("int", 8)}
ROWS = [[[f"{i}é".encode(), struct.pack("<q", i)] for i in part] for part in (range(40), range(40, 41), range(41, 60))]
WANT = [[{"text": row[0], "n": struct.unpack("<q", row[1])[0]} for row in part] for part in ROWS]
FLAT = [row for part in WANT for row in part]


def files(folder: Path, most: int | None = None) -> list[str]:
    write(folder, TOKENS, [part[:most] for part in ROWS])
    return sorted(str(path) for path in folder.iterdir() if ".mds" in path.name)


def test_all_laws_of_formats() -> None:
    assert {"positions", "seek", "fetch", "parts", "damage"} <= set(
        check_format(Mds(), lambda folder: files(folder, 9), [part[:9] for part in WANT])
    )


@pytest.mark.parametrize("packer", PACKERS)
def test_compressed_shards(tmp_path: Path, packer: str) -> None:
    made = di.data.MdsDataset(write(tmp_path / "a", TOKENS, ROWS, packer))
    assert made.to_list() == FLAT
    assert made[45]["n"] == 45
    index = tmp_path / "a" / "index.json"
    told = json.loads(index.read_text())
    size = told["shards"][0]["raw_data"]["bytes"]
    for change in (-1, 1, 2**31):
        told["shards"][0]["raw_data"]["bytes"] = size + change
        index.write_text(json.dumps(told))
        with pytest.raises(DataLossError, match=r"shard\.00000\.mds"):
            di.data.MdsDataset(str(tmp_path / "a")).to_list()


@pytest.mark.parametrize("packer", [None, *PACKERS])
def test_a_folder_is_known_by_the_names_of_its_shards(packer: str | None, tmp_path: Path) -> None:
    folder = write(tmp_path / "a", TOKENS, ROWS, packer)
    want = di.data.MdsDataset(folder).to_list()
    assert di.data.FileDataset(folder).to_list() == di.data.FileDataset(folder, "mds").to_list() == want
    shard = str(next(path for path in Path(folder).iterdir() if ".mds" in path.name))
    with pytest.raises(DistinputError) as caught:
        di.data.JsonLinesDataset(shard, compression_type="").to_list()
    assert any("is a shard of MDS, by its name: MdsDataset reads it" in note for note in caught.value.__notes__)


def test_random_access_shards_and_states(tmp_path: Path) -> None:
    made = di.data.MdsDataset(write(tmp_path / "a", TOKENS, ROWS))
    assert list(made.element_spec) == ["text", "n"]
    assert len(made) == 60
    assert made[41] == FLAT[41]
    assert made.skip(30).take(15).to_list() == FLAT[30:45]
    assert [made.shard(3, i).to_list() for i in range(3)] == [FLAT[i::3] for i in range(3)]
    want = made.global_shuffle(seed=3).to_list()
    shuffled = di.data.MdsDataset(str(tmp_path / "a")).global_shuffle(seed=3)
    assert sorted(row["n"] for row in want) == list(range(60))
    iterator = iter(shuffled)
    begun = [next(iterator)["n"] for _ in range(20)]
    after = iter(shuffled)
    after.load_state_dict(iterator.state_dict())
    assert begun + [row["n"] for row in after] == [row["n"] for row in want]


def test_columns_of_every_encoding_are_read(tmp_path: Path) -> None:
    columns: Columns = {
        "any": ("ndarray", None),
        "dtype": ("ndarray:int16", None),
        "fixed": ("ndarray:int16:2,3", 12),
        "image": ("pil", None),
        "jpeg": ("jpeg:90", None),
        "json": ("json", None),
        "half": ("float16", 2),
        "byte": ("uint8", 1),
    }
    six = np.arange(6, dtype="<i2")
    row = [
        bytes([34, 2 << 2 | 1]) + struct.pack("<2H2f", 1, 2, 0.5, 1.5),
        bytes([1 << 2, 6]) + six.tobytes(),
        six.tobytes(),
        struct.pack("<3I", 1, 2, 3) + b"RGB" + bytes(range(6)),
        b"\xff\xd8",
        b'{"a": 1}',
        np.float16(0.5).tobytes(),
        b"\7",
    ]
    other = [bytes([34, 1 << 2, 1]) + struct.pack("<f", 2), bytes([2 << 2, 1, 2]) + six[:2].tobytes(), *row[2:]]
    made = di.data.MdsDataset(write(tmp_path / "a", columns, [[row, other]]))
    first, second = made.to_list()
    assert first == {
        "any": [[0.5, 1.5]],
        "dtype": [0, 1, 2, 3, 4, 5],
        "fixed": [[0, 1, 2], [3, 4, 5]],
        "image": [[[0, 1, 2]], [[3, 4, 5]]],
        "jpeg": b"\xff\xd8",
        "json": b'{"a": 1}',
        "half": 0.5,
        "byte": 7,
    }
    assert second["any"] == [2.0]
    assert second["dtype"] == [[0, 1]]
    assert made.element_spec["any"] == di.TensorSpec(None, np.float32)
    assert made.element_spec["fixed"] == di.TensorSpec([2, 3], np.int16)


@pytest.mark.parametrize(
    "value, message",
    [
        (b"", "stands for no dtype"),
        (b"\3", "stands for no dtype"),
        (b"\x08", "ends before its shape"),
        (b"\x08\x07\1", "ends within its shape"),
        (b"\x08\0", "none of size 0"),
        (b"\x08\x04\0", "none of size 0"),
        (b"\x08\x07" + b"\xff" * 8, "has 0 bytes of values"),
    ],
)
def test_damaged_arrays(tmp_path: Path, value: bytes, message: str) -> None:
    good = b"\x08\x04\x01\x05"
    folder = write(tmp_path / "a", {"x": ("ndarray", None)}, [[[good], [value]]])
    with pytest.raises(DataLossError, match=f"sample 1, column 'x': .*{message}"):
        di.data.MdsDataset(folder).to_list()


@pytest.mark.parametrize(
    "key, value, error, message",
    [
        ("format", "json", UnimplementedError, "the format 'json'"),
        ("version", 1, UnimplementedError, "is of version 1"),
        ("column_encodings", ["pkl", "int"], UnimplementedError, "unpickling runs code"),
        ("column_encodings", ["what", "int"], UnimplementedError, "'what', which is not known"),
        ("column_encodings", ["ndarray:int16:-1", "int"], DataLossError, "names no shape"),
        ("column_encodings", ["ndarray:O", "int"], DataLossError, "names no dtype"),
        ("column_sizes", [None, 4], DataLossError, "its size is 4, but its encoding has 8"),
        ("column_names", ["n", "n"], DataLossError, "each name another"),
        ("samples", -1, DataLossError, "-1 samples"),
        ("samples", 39, DataLossError, "begins with"),
        ("samples", 2**31, DataLossError, "their offsets alone take"),
        ("raw_data", {"basename": "shard.00000.mds", "bytes": 5}, DataLossError, "says 5"),
        ("raw_data", {"basename": "../a", "bytes": 5}, DataLossError, "is not the name of a file"),
        ("raw_data", {"basename": "gone.mds", "bytes": 5}, NotFoundError, r"names the shard gone\.mds"),
    ],
)
def test_forged_indices(tmp_path: Path, key: str, value: Any, error: type[Exception], message: str) -> None:
    folder = write(tmp_path / "a", TOKENS, ROWS)
    index = tmp_path / "a" / "index.json"
    told = json.loads(index.read_text())
    told["shards"][0][key] = value
    index.write_text(json.dumps(told))
    with pytest.raises(error, match=message) as caught:
        di.data.MdsDataset(folder).to_list()
    assert "index.json" in str(caught.value)


@pytest.mark.parametrize(
    "at, value, message",
    [
        (0, 41, "begins with"),
        (4, 3, "must go up from byte 168"),
        (8, 2**32 - 1, "ends before it begins"),
        (4 * 41, 0, "ends before it begins"),
        (4 * 42 + 17, 2**32 - 1, "sample 0 has"),
    ],
)
def test_forged_shards(tmp_path: Path, at: int, value: int, message: str) -> None:
    path = Path(files(tmp_path)[0])
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, at, value)
    path.write_bytes(content)
    with pytest.raises(DataLossError, match=message):
        records(Mds(), path)


def test_missing_files(tmp_path: Path) -> None:
    paths = files(tmp_path)
    (tmp_path / "other.mds").write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match="names no such shard"):
        records(Mds(), tmp_path / "other.mds")
    Path(paths[1]).unlink()
    with pytest.raises(NotFoundError, match=r"names the shard shard\.00001\.mds"):
        di.data.MdsDataset(str(tmp_path)).to_list()
    (tmp_path / "index.json").unlink()
    with pytest.raises(NotFoundError, match=r"index\.json"):
        records(Mds(), paths[0])


def test_an_index_is_read_once_for_all_of_its_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, reads = write(tmp_path / "mds", TOKENS, ROWS), []
    monkeypatch.setattr(mds, "json_value", lambda content: reads.append(content) or json_value(content))
    assert len(di.data.MdsDataset(folder).to_list()) == 60
    assert len(reads) == 1
