# SPDX-License-Identifier: Apache-2.0
"""Folders that LitData wrote, beside what its own reader gives of them, and folders that are made here byte by byte."""

import base64
import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from distinput.formats.litdata import LitData
from distinput.testing import check_format
from tests.depth import cases
from tests.formats.reading import records

ANSWERS = json.loads(Path(__file__).with_name("litdata_answers.json").read_text())


def item(told: Any) -> Any:
    """An item of the answers, as `to_list` gives ours."""
    match told:
        case {"dict": inner}:
            return {key: item(value) for key, value in inner.items()}
        case {"tuple": inner}:
            return tuple([item(value) for value in inner])
        case {"bytes": text}:
            return bytes.fromhex(text)
        case _:
            return np.frombuffer(bytes.fromhex(told["data"]), told["dtype"]).reshape(told["shape"]).tolist()


def written(folder: Path, name: str) -> str:
    """A folder as LitData wrote it."""
    folder.mkdir(exist_ok=True)
    for file, content in ANSWERS[name]["files"].items():
        (folder / file).write_bytes(base64.b64decode(content))
    return str(folder)


def lists(value: Any) -> Any:
    """An item with lists in the place of arrays and of tuples, since a list is an array or a tuple."""
    if isinstance(value, dict):
        return {key: lists(inner) for key, inner in value.items()}
    return [lists(inner) for inner in value] if isinstance(value, list | tuple | np.ndarray) else value


@pytest.mark.parametrize("name", ANSWERS)
def test_the_items_are_those_that_litdata_gives(tmp_path: Path, name: str) -> None:
    made = di.data.LitDataDataset(written(tmp_path, name), block_size=4 if name == "tokens" else None)
    want = lists([item(told) for told in ANSWERS[name]["items"]])
    assert lists(made.to_list()) == want
    assert len(made) == len(want)
    assert lists([made.skip(row).take(1).to_list()[0] for row in range(len(made))]) == want
    order = made.enumerate().global_shuffle(seed=1).map(lambda row, _: row)
    assert sorted(order.to_list()) == list(range(len(want)))


def test_dtypes_are_those_of_the_arrays(tmp_path: Path) -> None:
    spec = di.data.LitDataDataset(written(tmp_path, "values")).element_spec
    dtypes = {name: each.dtype.name for name, each in spec.items() if name not in ("text", "bytes", "deep")}
    assert dtypes == {
        "int": "int64", "float": "float64", "bool": "bool", "flat": "int16", "array": "float32", "tensor": "int64"
    }  # fmt: skip
    assert spec["deep"]["image"].dtype == np.uint8


def test_tokens_without_blocks_are_what_was_written(tmp_path: Path) -> None:
    made = di.data.LitDataDataset(written(tmp_path, "tokens"))
    assert made.to_list() == [list(range(i, 3 * i + 2)) for i in range(6)]


def test_a_chunk_that_the_reader_of_litdata_has_decompressed(tmp_path: Path) -> None:
    made = di.data.LitDataDataset(written(tmp_path, "whole"))
    want = made.to_list()
    for path in tmp_path.glob("*.zstd.bin"):
        content = pa.CompressedInputStream(pa.BufferReader(path.read_bytes()), "zstd").read()
        path.with_name(path.name.replace(".zstd", "")).write_bytes(content)
        path.unlink()
    assert di.data.LitDataDataset(str(tmp_path)).to_list() == want


# ----------------------------------------------------------------------------
# Folders made here.
# ----------------------------------------------------------------------------


def chunk_of(items: Sequence[Sequence[bytes]]) -> bytes:
    packed = [b"".join(struct.pack("<I", len(value)) for value in values) + b"".join(values) for values in items]
    ends = np.cumsum([4 * (len(items) + 2), *map(len, packed)]).tolist()
    return struct.pack(f"<{len(ends) + 1}I", len(items), *ends) + b"".join(packed)


def spec_of(*keys: str) -> str:
    leaf = {"type": None, "context": None, "children_spec": []}
    tree = {"type": "builtins.dict", "context": json.dumps(keys), "children_spec": [leaf] * len(keys)}
    return json.dumps([1, tree])


def write(folder: Path, chunks: Sequence[bytes], formats: Sequence[str], **config: Any) -> str:
    folder.mkdir(exist_ok=True)
    told = []
    for number, content in enumerate(chunks):
        (folder / f"chunk-0-{number}.bin").write_bytes(content)
        told.append(
            {"chunk_bytes": len(content), "chunk_size": int.from_bytes(content[:4], "little"), "dim": None}
            | {"filename": f"chunk-0-{number}.bin"}
        )
    keys = [f"v{number}" for number in range(len(formats))]
    stated = {"compression": None, "data_format": list(formats), "data_spec": spec_of(*keys), "encryption": None}
    (folder / "index.json").write_text(json.dumps({"chunks": told, "config": {**stated, **config}}))
    return str(folder)


ROWS = [[[f"{i}é".encode(), struct.pack("<q", i)] for i in part] for part in (range(40), range(40, 41), range(41, 60))]
WANT = [[{"v0": row[0], "v1": struct.unpack("<q", row[1])[0]} for row in part] for part in ROWS]
FLAT = [row for part in WANT for row in part]
FORMATS = ("str", "int")


def made_here(folder: Path, **config: Any) -> str:
    return write(folder, list(map(chunk_of, ROWS)), FORMATS, **config)


def files(folder: Path, most: int | None = None) -> list[str]:
    write(folder, [chunk_of(part[:most]) for part in ROWS], FORMATS)
    return sorted(map(str, folder.glob("*.bin")))


def test_all_laws_of_formats() -> None:
    assert {"positions", "seek", "fetch", "parts", "damage"} <= set(
        check_format(LitData(), lambda folder: files(folder, 9), [part[:9] for part in WANT])
    )


def test_random_access_shards_and_states(tmp_path: Path) -> None:
    made = di.data.LitDataDataset(made_here(tmp_path))
    assert made[41] == FLAT[41]
    assert made.skip(30).take(15).to_list() == FLAT[30:45]
    assert [made.shard(3, i).to_list() for i in range(3)] == [FLAT[i::3] for i in range(3)]
    want = made.global_shuffle(seed=3).to_list()
    shuffled = made.global_shuffle(seed=3)
    iterator = iter(shuffled)
    begun = [int(next(iterator)["v1"]) for _ in range(20)]
    after = iter(shuffled)
    after.load_state_dict(iterator.state_dict())
    assert begun + [row["v1"] for row in after] == [row["v1"] for row in want]


def changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """A folder whose index was changed."""
    made_here(folder)
    index = json.loads((folder / "index.json").read_text())
    change(index)
    (folder / "index.json").write_text(json.dumps(index))
    return str(folder)


def _set(*path: Any) -> Callable[[dict[str, Any]], None]:
    *keys, last, value = path

    def change(index: Any) -> None:
        for key in keys:
            index = index[key]
        index[last] = value

    return change


@pytest.mark.parametrize(
    "change, error, says",
    [
        (
            _set("config", "encryption", {"algorithm": "fernet"}),
            UnimplementedError,
            "encrypted, and keys cannot be given",
        ),
        (
            _set("config", "item_loader", "ParquetLoader"),
            UnimplementedError,
            "ParquetDataset\\(folder\\) reads its files",
        ),
        (
            _set("config", "item_loader", "TemporalArrayLoader"),
            UnimplementedError,
            "known are PyTreeLoader, TokensLoader",
        ),
        (_set("config", "compression", "lz4"), UnimplementedError, "compressed with 'lz4'; known is zstd"),
        (_set("config", "data_format", 0, "pickle"), UnimplementedError, "value 0 of items is pickled"),
        (_set("config", "data_format", 0, "json"), UnimplementedError, "list or dict beside values that are none"),
        (_set("config", "data_format", 0, "cloud"), UnimplementedError, "has the encoding 'cloud', which is not known"),
        (_set("config", "data_format", 0, "no_header_tensor:10"), UnimplementedError, "bfloat16"),
        (_set("config", "data_format", 0, "no_header_numpy:14"), UnimplementedError, "dtype number 14"),
        (_set("config", "data_format", 0, 5), DataLossError, "data_format must be of texts"),
        (_set("config", "data_format", ["str"]), DataLossError, "data_spec has more values than data_format"),
        (_set("config", "data_format", ["str", "int", "int"]), DataLossError, "data_spec has fewer values"),
        (_set("config", "data_spec", None), UnimplementedError, "does not say of what form its items are"),
        (_set("config", "data_spec", spec_of("a", "a")), DataLossError, "a dict has a key twice"),
        (_set("config", "data_spec", "[2, {}]"), DataLossError, "no tree of version 1"),
        (
            _set("config", "data_spec", spec_of("a").replace("builtins.dict", "os.system")),
            UnimplementedError,
            "'os.system'",
        ),
        (
            _set("chunks", 0, "filename", "../secret"),
            DataLossError,
            "'\\.\\.' is not the name of a file in this folder",
        ),
        (_set("chunks", 0, "filename", "/etc/passwd"), DataLossError, "is not the name of a file in this folder"),
        (_set("chunks", 0, "filename", "a/chunk-0-0.bin"), DataLossError, "is in another folder"),
        (_set("chunks", 0, "filename", "chunk-0-1.bin"), DataLossError, "a chunk is named twice"),
        (_set("chunks", 0, "filename", "chunk-9-9.bin"), NotFoundError, "chunk-9-9.bin, which is not in the folder"),
        (_set("chunks", 0, "chunk_size", 1 << 40), DataLossError, "items, and a chunk has no fewer than 0"),
        (_set("chunks", 0, "chunk_size", -1), DataLossError, "-1 items"),
        (_set("chunks", 0, "chunk_size", (1 << 32) - 1), DataLossError, "their offsets alone take"),
        (_set("chunks", 0, "chunk_size", 39), DataLossError, r"begins with \[40\] items"),
        (_set("chunks", 0, "chunk_bytes", 10), DataLossError, "but .* says 10; it was cut short"),
        (_set("chunks", 0, "dim", "x"), DataLossError, "tokens, and a chunk has"),
        (_set("chunks", {}), DataLossError, "not an index of LitData"),
    ],
)
def test_forged_indices(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        di.data.LitDataDataset(changed(tmp_path, change)).to_list()


def test_a_tree_that_is_too_deep(tmp_path: Path) -> None:
    tree: Any = {"type": None, "context": None, "children_spec": []}
    for _ in range(40):
        tree = {"type": "builtins.list", "context": "null", "children_spec": [tree]}
    with pytest.raises(DataLossError, match="deeper than 32"):
        di.data.LitDataDataset(changed(tmp_path, _set("config", "data_spec", json.dumps([1, tree])))).to_list()


@pytest.mark.parametrize(
    "formats, values, says",
    [
        (["int"], [b"abc"], "item 0, value 0: has 3 bytes, which are no int64"),
        (["no_header_numpy:3"], [b"abc"], "has 3 bytes, which are no int64"),
        (["numpy"], [struct.pack("<3I", 3, 1, 9) + b"12345678"], r"has 8 bytes of values, which is no int64 \[9\]"),
        (["numpy"], [struct.pack("<2I", 3, 1 << 31)], "ends within its shape"),
        (["tensor"], [b"ab"], "ends within its shape"),
        (
            ["tensor"],
            [struct.pack(">4I", 17, 2, 1 << 31, 0)],
            "without values, whose rows would take memory nevertheless",
        ),
        (["pil"], [b"ab"], "ends within the size of its image"),
    ],
)
def test_damaged_values(tmp_path: Path, formats: list[str], values: list[bytes], says: str) -> None:
    with pytest.raises(DataLossError, match=says):
        di.data.LitDataDataset(write(tmp_path, [chunk_of([values])], formats)).to_list()


def test_arrays_of_several_dtypes_are_refused(tmp_path: Path) -> None:
    arrays = [
        struct.pack("<3I", number, 1, 1) + bytes(np.dtype(dtype).itemsize) for number, dtype in ((3, "i8"), (0, "i1"))
    ]
    with pytest.raises(UnimplementedError, match="item 1, value 0: is an array of int8, and the first one of int64"):
        di.data.LitDataDataset(write(tmp_path, [chunk_of([[each] for each in arrays])], ["numpy"])).to_list()


def test_offsets_that_fall_and_sizes_that_do_not_fit(tmp_path: Path) -> None:
    content = bytearray(chunk_of(ROWS[1]))
    content[4:8] = struct.pack("<I", 1 << 30)
    with pytest.raises(DataLossError, match="the offsets of samples must go up"):
        di.data.LitDataDataset(write(tmp_path, [bytes(content)], FORMATS)).to_list()
    content = bytearray(chunk_of(ROWS[1]))
    content[12:16] = struct.pack("<I", 1 << 30)
    with pytest.raises(DataLossError, match="but its columns take"):
        di.data.LitDataDataset(write(tmp_path, [bytes(content)], FORMATS)).to_list()


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    folder = made_here(tmp_path)
    with pytest.raises(InvalidArgumentError, match="block_size is for chunks that TokensLoader wrote"):
        di.data.LitDataDataset(folder, block_size=4).to_list()
    with pytest.raises(InvalidArgumentError, match="block_size must be greater than zero, got 0"):
        di.data.LitDataDataset(folder, block_size=0)
    (tmp_path / "other.bin").write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match="names no such chunk; name the folder"):
        di.data.LitDataDataset(str(tmp_path / "other.bin")).to_list()


def test_nulls_in_the_table_of_a_chunk(tmp_path: Path) -> None:
    def with_table(rows: list[dict[str, Any]], claimed: int) -> str:
        sink = pa.BufferOutputStream()
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        ipc = sink.getvalue().to_pybytes()
        head = struct.pack(f"<{len(rows) + 2}I", len(rows), *[4 * (len(rows) + 2)] * (len(rows) + 1))
        return write(tmp_path, [head + ipc + struct.pack("<I", claimed or len(ipc)) + b"LDARW01\0"], FORMATS)

    rows = [{"t": "a", "n": 1}, {"t": None, "n": None}]
    with pytest.raises(InvalidArgumentError, match=r"'t' has nulls in its table.* string; say what to put [^;]*$"):
        di.data.LitDataDataset(with_table(rows, 0)).to_list()
    with pytest.raises(InvalidArgumentError, match=r'must be "error" or a dict of values by column, got None$'):
        LitData(nulls=None)
    filled = di.data.LitDataDataset(with_table(rows, 0), nulls={"t": "-", "n": 0})
    assert filled.to_list() == [{"t": b"a", "n": 1}, {"t": b"-", "n": 0}]
    with pytest.raises(InvalidArgumentError, match="nulls: has no column 'x'"):
        di.data.LitDataDataset(with_table(rows, 0), nulls={"x": 0}).to_list()
    with pytest.raises(DataLossError, match="rows of 0 columns"):
        di.data.LitDataDataset(with_table([{}, {}], 0)).to_list()
    with pytest.raises(DataLossError, match="its table would have 4000000000 bytes"):
        di.data.LitDataDataset(with_table(rows, 4_000_000_000)).to_list()


@pytest.mark.parametrize("name", ["whole", "frames", "samples"])
def test_compressed_chunks_that_say_something_else(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path, name)
    path = min(tmp_path.glob("*.bin"))
    content = path.read_bytes()
    for place in range(0, len(content), cases(3, 1)):  # no byte of a frame's table or of zstd leads out of the file
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            di.data.LitDataDataset(folder).to_list()
        except (DataLossError, UnimplementedError):
            continue


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, "whole")
    path = min(tmp_path.glob("*.bin"))
    path.write_bytes(pa.compress(bytes(1 << 24), "zstd", asbytes=True))
    with pytest.raises(DataLossError, match="holds more than 107 bytes, not compressed, and should hold 107"):
        di.data.LitDataDataset(folder).to_list()


def test_one_file_alone(tmp_path: Path) -> None:
    paths = files(tmp_path)
    assert records(LitData(), paths[1]) == WANT[1]


@pytest.mark.needs("litdata")
def test_the_answers_are_those_of_the_package(tmp_path: Path) -> None:
    from litdata import StreamingDataset

    read = StreamingDataset(written(tmp_path, "text"))
    assert [read[place]["text"].encode() for place in range(len(read))] == [
        row["text"] for row in di.data.LitDataDataset(str(tmp_path)).to_list()
    ]
