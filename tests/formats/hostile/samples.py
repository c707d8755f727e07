# SPDX-License-Identifier: Apache-2.0
"""Small files of every format: how they are read by distinput, and by a reader that takes nothing on trust."""

import base64
import gzip
import io
import json
import sqlite3
import struct
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyarrow import ipc

import distinput as di
from distinput.files.manifest import load_manifest
from distinput.files.sink import Sink
from tests.formats.hostile import strict
from tests.formats.hostile.damage import damaged

Rows = Iterator[Any]


def as_it_is(content: bytes) -> bytes:
    return content


@dataclass(frozen=True)
class Sample:
    """A file to damage.

    Args:
      name: the format, and what is special about the file.
      content: what is damaged.
      read: the elements that distinput gives, for the path of the file and a number that chooses between ways to read.
      rows: what is in the file, until there is an error; for its bytes as they were written. None: there is no other reader
        that takes nothing on trust, so what distinput does is looked at, and not what it gives.
      written: what is written for a damaged content, as where checksums are made right again, or it is compressed.
      beside: other files that stand beside it, by what their names have more.
      suffix: what the name of the damaged file has more than that of the one that is read.
      damage: how the content is damaged.
      ways: to read it; "all", in order, "shuffled", by the numbers of rows, "skipped", all but the first, "batch" of messages.
      names_file: whether errors must name the file.
      position: what errors say of the place in the file, as a pattern; "": the format has no places but the file as a whole.
      most_bytes: the most memory that reading a file of a few kilobytes may take.
    """

    name: str
    content: bytes
    read: Callable[[Path, str], Rows]
    rows: Callable[[bytes, "Sample"], Rows] | None
    written: Callable[[bytes], bytes] = as_it_is
    beside: Mapping[str, bytes] = field(default_factory=dict)
    suffix: str = ""
    damage: Callable[[bytes, Random], bytes] = damaged
    ways: tuple[str, ...] = ("all", "skipped")
    names_file: bool = True
    position: str = ""
    most_bytes: int = 256 << 20


PAGE_BYTES = 2 << 30
"""What pyarrow makes room for where the header of a Parquet page says so, in each column that is decoded at a time."""

COUNTED = ("all", "shuffled", "skipped")


def plain(value: Any) -> Any:
    """An element in Python's own types."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind in "mM":
            value = value.view(np.int64)
        return value.tolist()
    return value


def reader(make: Callable[[Path], Any]) -> Callable[[Path, str], Rows]:
    """The elements of a dataset, whose cardinality must be true."""

    def read(path: Path, way: str) -> Rows:
        dataset = make(path)
        count = int(dataset.cardinality())
        match way:
            case "shuffled":
                found = dataset.global_shuffle(seed=1)
            case "skipped":
                found = dataset.skip(1)
            case _:
                found = dataset
        seen = 0
        for element in found:
            seen += 1
            yield plain(element)
        if count >= 0 and way != "skipped" and seen != count:
            raise AssertionError(f"the cardinality is {count}, but there are {seen} elements")

    return read


# TFRecord


def records(*payloads: bytes) -> bytes:
    return b"".join(_record(payload) for payload in payloads)


def _record(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", strict.checksum(length)) + payload + struct.pack("<I", strict.checksum(payload))


def with_checksums(content: bytes) -> bytes:
    """Damaged records whose lengths have right checksums, as those of somebody who means harm have."""
    out, at = bytearray(content), 0
    while at + 12 <= len(out):
        out[at + 8 : at + 12] = struct.pack("<I", strict.checksum(bytes(out[at : at + 8])))
        (length,) = struct.unpack_from("<Q", out, at)
        if at + 16 + length > len(out):
            break
        out[at + 12 + length : at + 16 + length] = struct.pack(
            "<I", strict.checksum(bytes(out[at + 12 : at + 12 + length]))
        )
        at += 16 + length
    return bytes(out)


PAYLOADS = [b"", b"first", b"second " * 5, b"\0" * 40, b"a" * 100, b"last"]
RECORDS = records(*PAYLOADS)


def _tfrecord(compression: str = "", index: bool = False) -> Callable[[Path, str], Rows]:
    return reader(lambda path: di.data.TFRecordDataset(str(path), compression, index=index))


def _of_inflated(bits: int, rows: Callable[[bytes], Rows]) -> Callable[[bytes, Sample], Rows]:
    def read(content: bytes, sample: Sample) -> Rows:
        inflated, bad = strict.inflated(content, bits)
        if bad:  # what is whole before the damage
            with suppress(strict.DamagedError):
                yield from rows(inflated)
            raise strict.DamagedError("compression")
        yield from rows(inflated)

    return read


def _of(rows: Callable[[bytes], Rows]) -> Callable[[bytes, Sample], Rows]:
    return lambda content, sample: rows(content)


def _index(*payloads: bytes) -> bytes:
    file = io.BytesIO()
    np.save(file, np.cumsum([0, *(16 + len(payload) for payload in payloads)]))
    return file.getvalue()


def _index_lines(*payloads: bytes) -> bytes:
    ends = np.cumsum([0, *(16 + len(payload) for payload in payloads)]).tolist()
    return b"".join(b"%d %d\n" % (end, 16 + len(payload)) for end, payload in zip(ends, payloads, strict=False))


def _records_beside(content: bytes, sample: Sample) -> Rows:
    return strict.tfrecords(sample.beside[""])


# Examples

FEATURES = {
    "i": di.io.VarLenFeature("int64"),
    "f": di.io.VarLenFeature("float32"),
    "s": di.io.VarLenFeature("string"),
    "n": di.io.FixedLenFeature([2], "int64", [1, 2]),
    "t": di.io.FixedLenFeature([], "string", "none"),
    "r": di.io.FixedLenSequenceFeature([2], "float32", allow_missing=True),
}
EXAMPLES = [
    di.io.encode_example({"i": [1, 300, -1, 2**40], "f": [0.5, 1.5], "s": [b"ab", b"c"], "n": [7, 8], "t": b"text"}),
    di.io.encode_example({"i": [5], "f": [], "s": [], "n": [-7, 8], "t": b"", "r": [1.0, 2.0, 3.0, 4.0]}),
    di.io.encode_example({"x": [5], "i": list(range(100)), "s": [b"a" * 200]}),
]


def unpacked() -> bytes:
    """Numbers that are not packed, a feature twice, lists in pieces, unknown fields, all of which protobuf reads."""

    def part(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    integers = b"".join(b"\x08" + bytes([value]) for value in (1, 2, 3))
    floats = b"".join(b"\x0d" + struct.pack("<f", value) for value in (0.5, 2.5))
    entries = [
        part(1, b"i") + part(2, part(3, integers)),
        part(1, b"f") + part(2, part(2, floats)),
        part(1, b"s") + part(2, part(1, part(1, b"old"))),
        part(2, part(1, part(1, b"new"))) + part(1, b"s") + b"\x1d\0\0\0\0",
        part(1, b"n") + part(2, part(3, b"\x08\x01") + part(3, b"\x08\x02")),
    ]
    return part(1, b"".join(part(1, entry) for entry in entries)) + b"\x98\x01\x05"


def _parsed(path: Path, way: str) -> Rows:
    """A message, which is in no file for distinput; alone, or one of a batch."""
    message = path.read_bytes()
    if way == "batch":
        found = di.io.parse_example([EXAMPLES[0], message, EXAMPLES[1]], FEATURES)
        yield {name: plain(_row_of(value, 1, FEATURES[name])) for name, value in found.items()}
    else:
        yield {name: plain(value) for name, value in di.io.parse_single_example(message, FEATURES).items()}


def _row_of(value: Any, row: int, feature: Any) -> Any:
    if isinstance(feature, di.io.FixedLenSequenceFeature):
        return None  # filled up to the longest
    if isinstance(feature, di.io.VarLenFeature):
        return value.values[value.row_splits[row] : value.row_splits[row + 1]]
    return value[row]


def _features(content: bytes, sample: Sample) -> Rows:
    found = strict.example(content, [name.encode() for name in FEATURES])

    def values(name: str, kind: int, default: Any = None) -> Any:
        is_kind, is_values = found.get(name.encode(), (0, []))
        if is_kind not in (0, kind):
            raise strict.DamagedError("another kind")
        return default if is_kind == 0 else is_values

    row = {"i": values("i", 3, []), "f": values("f", 2, []), "s": values("s", 1, [])}
    row["n"], row["t"], sequence = values("n", 3, [1, 2]), values("t", 1, [b"none"]), values("r", 2, [])
    if len(row["n"]) != 2 or len(row["t"]) != 1 or len(sequence) % 2:
        raise strict.DamagedError("another number of values")
    row["t"] = row["t"][0]
    row["r"] = [sequence[at : at + 2] for at in range(0, len(sequence), 2)]
    yield row


# npy

HEADERS = [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 1099511627776), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4611686018427387904), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 0), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, -3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (12.0,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': 12, }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (4, 3), }",
    "{'descr': '<f8', 'fortran_order': True, 'shape': (4,), }",
    "{'descr': '<f8', 'fortran_order': 1, 'shape': (4, 3), }",
    "{'descr': '|O', 'fortran_order': False, 'shape': (4,), }",
    "{'descr': 'O', 'fortran_order': False, 'shape': (4,), }",
    "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (4,), }",
    "{'descr': [('a', '<i4'), ('b', '<i4')], 'fortran_order': False, 'shape': (4,), }",
    "{'descr': '<U1000000000', 'fortran_order': False, 'shape': (4,), }",
    "{'descr': '|S0', 'fortran_order': False, 'shape': (4611686018427387904,), }",
    "{'descr': '|V0', 'fortran_order': False, 'shape': (4,), }",
    "{'descr': '|V16', 'fortran_order': False, 'shape': (4,), }",
    "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (4,), }",
    "{'descr': '<m8', 'fortran_order': False, 'shape': (4,), }",
    "{'descr': '<M8[7s]', 'fortran_order': False, 'shape': (4,), }",
    "{'descr': '<f16', 'fortran_order': False, 'shape': (4,), }",
    "{'descr': '>i2', 'fortran_order': False, 'shape': (4, 3), }",
    "{'descr': '<c32', 'fortran_order': False, 'shape': (1,), }",
    "{'descr': ('<f8', (1000000000, 1000000000)), 'fortran_order': False, 'shape': (4,), }",
    "{'descr': ('<f8', (2,)), 'fortran_order': False, 'shape': (4,), }",
    "{'descr': " + "(" * 5000 + ")" * 5000 + ", 'fortran_order': False, 'shape': (4,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 150 + ")" * 150 + ", }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ",), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "-" * 9000 + "1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1+" * 4000 + "1,), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1," * 100 + "), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1}",
    "{'descr': '<f8', 'fortran_order': False}",
    "__import__('os').abort()",
    "{'descr': __import__('os').abort(), 'fortran_order': False, 'shape': (3,)}",
    "[" * 200 + "]" * 200,
    "\0" * 100,
    "",
]


def _headed(content: bytes, random: Random) -> bytes:
    """A file with one of the headers above, perhaps damaged, of any version and with a length that may be wrong."""
    header = random.choice(HEADERS).encode()
    if random.random() < 0.5:
        header = damaged(header, random)
    version = random.choice((1, 1, 1, 2, 2, 3, 0, 4, 255))
    size = random.choice((len(header), len(header), len(header), 0, 65535, 2**31 - 1))
    length = struct.pack("<H", size & 0xFFFF) if version == 1 else struct.pack("<I", size)
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + content[: random.choice((0, 8, 96, 97, 1000))]


def _array(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz() -> Iterator[Sample]:
    """Archives of arrays, of which NumPy is the other reader; it checks less, so only what distinput does is looked at."""
    read = reader(lambda path: di.data.NpzDataset(str(path)))
    arrays = {"x": np.arange(6.0), "y": np.arange(12, dtype=">i4").reshape(6, 2), "z": np.ones((2, 6), order="F").T}
    for name, save in {"npz": np.savez, "npz compressed": np.savez_compressed}.items():
        file = io.BytesIO()
        save(file, **arrays)
        yield Sample(name, file.getvalue(), read, None, ways=COUNTED)


# Arrow and Parquet

NUMBERS = {
    "i": pa.array(range(10), pa.int32()),
    "f": pa.array([x / 4 for x in range(10)]),
    "b": pa.array([x % 3 == 0 for x in range(10)]),
    "t": pa.array(range(10), pa.timestamp("us")),
    "s": pa.array([{"x": x, "y": b"%d" % x} for x in range(10)], pa.struct([("x", pa.int8()), ("y", pa.binary())])),
}
TEXTS = [b"some text that is not short", b"", b"x", b"another text that is not short", b"yz"] * 2
LISTS = [[], [1, 2], [3], [4, 5, 6], [7]] * 2
WORDS = [[b"first word"], [], [b"", b"second"], [b"x"], [b"third word"]] * 2
SPANS = {
    "text": pa.array(TEXTS, pa.binary()),
    "string": pa.array([text.decode() for text in TEXTS]),
    "large": pa.array(TEXTS, pa.large_binary()),
    "fixed": pa.array([b"abc", b"def"] * 5, pa.binary(3)),
    "lists": pa.array(LISTS, pa.list_(pa.int16())),
    "large lists": pa.array(LISTS, pa.large_list(pa.float32())),
    "words": pa.array(WORDS, pa.list_(pa.binary())),
    "pairs": pa.array([[x, x + 1] for x in range(10)], pa.list_(pa.int32(), 2)),
}
VIEWS = {
    "text": pa.array(TEXTS, pa.binary_view()),
    "string": pa.array([text.decode() for text in TEXTS], pa.string_view()),
    "lists": pa.array(LISTS, pa.list_view(pa.int16())),
    "large lists": pa.array(LISTS, pa.large_list_view(pa.int64())),
}
CODED = {
    "text": pa.array(TEXTS, pa.binary()).dictionary_encode(),
    "number": pa.array([1000 * (x % 3) for x in range(10)]).dictionary_encode(),
    "list": pa.DictionaryArray.from_arrays(pa.array([0, 1] * 5, pa.int8()), pa.array(["one", "two"])),
}
HOLES = {
    "i": pa.array([None if x % 4 == 1 else x for x in range(10)]),
    "text": pa.array([None if x % 4 == 2 else text for x, text in enumerate(TEXTS)], pa.binary()),
    "view": pa.array([None if x % 4 == 2 else text for x, text in enumerate(TEXTS)], pa.binary_view()),
    "coded": pa.array([None if x % 4 == 3 else text for x, text in enumerate(TEXTS)], pa.binary()).dictionary_encode(),
}
FILL = {"i": -1, "text": b"none", "view": b"none", "coded": b"none"}


def _arrow(columns: Mapping[str, Any], *, stream: bool, compression: str | None = None) -> bytes:
    table = pa.table(dict(columns))
    sink = pa.BufferOutputStream()
    options = ipc.IpcWriteOptions(compression=compression)
    with (ipc.new_stream if stream else ipc.new_file)(sink, table.schema, options=options) as writer:
        writer.write_table(table, 4)
    return sink.getvalue().to_pybytes()


def _deltas(*, stream: bool) -> bytes:
    """Dictionaries that grow from batch to batch."""
    sink = pa.BufferOutputStream()
    options = ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    entries = [b"one", b"two", b"three, which is longer", b"four"]
    schema = pa.schema({"text": pa.dictionary(pa.int8(), pa.binary())})
    with (ipc.new_stream if stream else ipc.new_file)(sink, schema, options=options) as writer:
        for size in (2, 3, 4):
            indices = pa.array([size - 1, 0, size - 2], pa.int8())
            array = pa.DictionaryArray.from_arrays(indices, pa.array(entries[:size], pa.binary()))
            writer.write_batch(pa.record_batch([array], schema=schema))
    return sink.getvalue().to_pybytes()


def _filled(rows: Callable[[bytes], Rows]) -> Callable[[bytes, Sample], Rows]:
    def read(content: bytes, sample: Sample) -> Rows:
        for row in rows(content):
            yield {name: FILL.get(name) if value is None else value for name, value in row.items()}

    return read


def _arrow_samples() -> Iterator[Sample]:
    kinds = {"numbers": NUMBERS, "spans": SPANS, "views": VIEWS, "dictionaries": CODED}
    read = reader(lambda path: di.data.ArrowDataset(str(path)))
    with_fill = reader(lambda path: di.data.ArrowDataset(str(path), nulls=FILL))
    for stream in (False, True):
        rows = strict.arrow
        where = "arrow stream" if stream else "arrow file"
        for kind, columns in kinds.items():
            yield Sample(f"{where} {kind}", _arrow(columns, stream=stream), read, _of(rows), ways=COUNTED)
        yield Sample(f"{where} deltas", _deltas(stream=stream), read, _of(rows), ways=COUNTED)
        yield Sample(f"{where} nulls", _arrow(HOLES, stream=stream), with_fill, _filled(rows), ways=COUNTED)
        for compression in ("lz4", "zstd"):
            content = _arrow({**SPANS, "more": pa.array([b"a" * 99] * 10)}, stream=stream, compression=compression)
            yield Sample(f"{where} {compression}", content, read, _of(rows), ways=COUNTED)


def _parquet(columns: Mapping[str, Any], **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table(dict(columns)), sink, row_group_size=6, **options)
    return sink.getvalue().to_pybytes()


def _parquet_samples() -> Iterator[Sample]:
    read = reader(lambda path: di.data.ParquetDataset(str(path)))
    with_fill = reader(
        lambda path: di.data.ParquetDataset(
            str(path), nulls={name: value for name, value in FILL.items() if name != "view"}
        )
    )
    most = 3 * PAGE_BYTES
    kinds: dict[str, tuple[Mapping[str, Any], dict[str, Any]]] = {
        "plain": ({**NUMBERS, **SPANS}, {"compression": "none", "use_dictionary": False, "store_schema": False}),
        "dictionary": ({"i": NUMBERS["i"], **SPANS}, {"compression": "snappy"}),
        "checksums": ({"i": NUMBERS["i"], **SPANS}, {"compression": "zstd", "write_page_checksum": True}),
        "delta": (
            {"i": NUMBERS["i"], "text": SPANS["text"], "string": SPANS["string"]},
            {
                "use_dictionary": False,
                "data_page_version": "2.0",
                "column_encoding": {
                    "i": "DELTA_BINARY_PACKED",
                    "text": "DELTA_BYTE_ARRAY",
                    "string": "DELTA_LENGTH_BYTE_ARRAY",
                },
            },
        ),
        "split": ({"f": NUMBERS["f"]}, {"use_dictionary": False, "column_encoding": {"f": "BYTE_STREAM_SPLIT"}}),
    }
    for kind, (columns, options) in kinds.items():
        yield Sample(
            f"parquet {kind}",
            _parquet(columns, **options),
            read,
            _of(strict.parquet),
            ways=COUNTED,
            most_bytes=most,
        )
    holes = {name: HOLES[name] for name in ("i", "text", "coded")}
    yield Sample("parquet nulls", _parquet(holes), with_fill, _filled(strict.parquet), ways=COUNTED, most_bytes=most)


# Manifests

FILES = {"name": ["a.txt", "b.txt", "c"], "size": [10, 0, 2**40], "rows": [3, -1, 7], "stamp": ["1-2", "", "5-6"]}


def _manifest(ending: str) -> Callable[[Path, str], Rows]:
    def read(path: Path, way: str) -> Rows:
        table = load_manifest(f"{path}{ending}")
        rows = [-1] * len(table) if table.rows is None else table.rows.tolist()
        stamps = [] if table.stamps is None else list(table.stamps.values())
        for row in zip(table.names.values(), table.sizes.tolist(), rows, stamps, strict=True):
            yield dict(zip(FILES, row, strict=True))

    return read


def _files(content: bytes, sample: Sample) -> Rows:
    found = json.loads(content)
    if found["distinput_manifest"] != 1:
        raise strict.DamagedError("another version")
    for row in zip(*[found[name] for name in FILES], strict=True):
        if [type(value) for value in row] != [str, int, int, str] or row[1] < 0:
            raise strict.DamagedError("no file")
        yield dict(zip(FILES, (row[0].encode(), *row[1:3], row[3].encode()), strict=True))


def _files_of_table(content: bytes, sample: Sample) -> Rows:
    for row in strict.parquet(content):
        if row["size"] < 0:
            raise strict.DamagedError("no file")
        yield {name: row[name] for name in FILES}


def _all() -> Iterator[Sample]:
    yield Sample("tfrecord", RECORDS, _tfrecord(), _of(strict.tfrecords))
    yield Sample("tfrecord with checksums", RECORDS, _tfrecord(), _of(strict.tfrecords), with_checksums)
    for compression, bits, pack in (("GZIP", 31, gzip.compress), ("ZLIB", 15, zlib.compress)):
        rows = _of_inflated(bits, strict.tfrecords)
        read = _tfrecord(compression)
        yield Sample(f"tfrecord {compression}", pack(RECORDS), read, rows)
        yield Sample(f"tfrecord in {compression}", RECORDS, read, rows, lambda c, pack=pack: pack(with_checksums(c)))
    index, other = _index(*PAYLOADS), records(*PAYLOADS[::-1])
    indexed = _tfrecord(index=True)
    beside, ways = {".index": index}, ("all", "shuffled")  # whoever begins at a record does not see damage before it
    yield Sample("indexed", RECORDS, indexed, _of(strict.tfrecords), beside=beside, ways=ways)
    yield Sample(
        "indexed with checksums", RECORDS, indexed, _of(strict.tfrecords), with_checksums, beside=beside, ways=ways
    )
    for name, content, data in (
        ("index", index, RECORDS),
        ("index of another", index, other),
        ("idx", _index_lines(*PAYLOADS), RECORDS),
    ):
        suffix = ".idx" if name == "idx" else ".index"
        yield Sample(name, content, indexed, _records_beside, beside={"": data}, suffix=suffix, ways=COUNTED)
    for number, message in enumerate([*EXAMPLES, unpacked()]):
        yield Sample(f"example {number}", message, _parsed, _features, ways=("all", "batch"), names_file=False)
    text = b"first\nsecond\r\n\n\0nul\0\r\r\n" + b"long" * 100 + b"\nlast"
    yield Sample("text", text, reader(lambda path: di.data.TextLineDataset(str(path))), _of(strict.lines))
    for compression, bits, pack in (("GZIP", 31, gzip.compress), ("ZLIB", 15, zlib.compress)):
        yield Sample(
            f"text {compression}",
            pack(text),
            reader(lambda path, c=compression: di.data.TextLineDataset(str(path), c)),
            _of_inflated(bits, strict.lines),
        )
        yield Sample(
            f"fixed {compression}",
            pack(bytes(range(60))),
            reader(lambda path, c=compression: di.data.FixedLengthRecordDataset(str(path), 5, compression_type=c)),
            _of_inflated(bits, lambda content: strict.packed(content, 5)),
        )
    yield Sample(
        "fixed",
        bytes(range(60)),
        reader(lambda path: di.data.FixedLengthRecordDataset(str(path), 5)),
        _of(lambda content: strict.packed(content, 5)),
    )
    read_npy = reader(lambda path: di.data.NpyDataset(str(path)))
    for name, array in {
        "floats": np.arange(12.0).reshape(4, 3),
        "big-endian": np.arange(12, dtype=">i4"),
        "times": np.arange(6).astype("<M8[s]"),
    }.items():
        yield Sample(f"npy {name}", _array(array), read_npy, _of(strict.npy), ways=COUNTED)
    yield from _npz()
    yield Sample("npy headers", bytes(range(250)) * 4, read_npy, _of(strict.npy), damage=_headed, ways=COUNTED)
    yield from _arrow_samples()
    yield from _parquet_samples()

    content = json.dumps({"distinput_manifest": 1, **FILES}).encode()
    yield Sample("manifest", content, _manifest(".json"), _files, suffix=".json", ways=("all",))
    table, read_table = _parquet(FILES), _manifest(".parquet")
    yield Sample(
        "manifest parquet",
        table,
        read_table,
        _files_of_table,
        suffix=".parquet",
        ways=("all",),
        most_bytes=3 * PAGE_BYTES,
    )


def _archive(**members: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name.replace("_", "."))
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()[: 1024 * len(members) + 1024]


def _unread() -> Iterator[Sample]:
    """Formats of which there is no other reader here that takes nothing on trust."""

    def named(name: str, **options: Any) -> Callable[[Path, str], Rows]:
        return reader(lambda path: di.data.FileDataset(str(path), name, **options))

    table = b'a,b,c\n1,2.5,"text, ""quoted"""\n2,-1e3,x\n\n3,,"two\r\nlines"\r\n4,0,last'
    lines = b'{"a": 1, "b": [1, 2], "c": {"d": "x"}}\n\n{"a": 2, "b": [], "c": {"d": "\\u00e9"}}\n'
    lines += b'{"b": [3], "c": {"d": ""}, "a": -3}'
    text = b"first\nsecond\r\n\n" + b"long" * 100 + b"\nlast"
    yield Sample("csv", table, named("csv", nulls={"b": 0.5}), None)
    yield Sample(
        "csv of lines",
        table.replace(b"\r\nlines", b" lines"),
        named("csv", newlines_in_values=False, nulls={"b": 0.5}),
        None,
    )
    yield Sample("jsonl", lines, named("jsonl"), None)
    yield Sample("csv GZIP", table, named("csv", compression_type="GZIP", nulls={"b": 0.5}), None, gzip.compress)
    yield Sample("jsonl GZIP", gzip.compress(lines), named("jsonl", compression_type="GZIP"), None)
    for codec in ("BZ2", "ZSTD", "LZ4", "SNAPPY"):
        yield Sample(f"text {codec}", _packed(text, codec), named("text", compression_type=codec), None)
    archive = _archive(a_txt=b"first", a_cls=b"1", b_txt=b"x" * 600, b_cls=b"2")
    samples = reader(lambda path: di.data.WebDataset(str(path), compression_type=""))
    yield Sample("tar", archive, samples, None, ways=("all",))
    arrays = io.BytesIO()
    np.savez_compressed(arrays, x=np.arange(20), y=np.ones((2, 3)))
    members = _archive(a_npz=arrays.getvalue(), a_npy=_array(np.arange(6.0)), a_json=b'{"a": [1, 2]}', a_txt=b"text")
    decoded = reader(lambda path: di.data.WebDataset(str(path), decode=True, compression_type=""))
    yield Sample("tar decoded", members, decoded, None, ways=("all",))


def _megatron() -> Iterator[Sample]:
    """Tokens and their index, each of which is damaged beside the other as it was written."""
    sizes, tokens = (3, 0, 2, 1), struct.pack("<6H", 1, 2, 3, 65535, 0, 7)
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(sizes), 4) + struct.pack("<4i", *sizes)
    index += struct.pack("<4q", 0, 6, 6, 10) + struct.pack("<4q", 0, 1, 3, 4)
    modes = index + struct.pack("<4b", 0, 1, 0, -1)
    read = reader(lambda path: di.data.MegatronDataset(str(path)))
    whole = reader(lambda path: di.data.MegatronDataset(str(path), documents=True))
    paired = reader(
        lambda path: di.data.MegatronDataset(str(path), multimodal=True).map(lambda row, mode: {"x": row, "m": mode})
    )
    yield Sample("megatron tokens", tokens, read, None, beside={".idx": index}, ways=COUNTED)
    yield Sample("megatron index", index, read, None, beside={"": tokens}, suffix=".idx", ways=COUNTED)
    yield Sample("megatron documents", index, whole, None, beside={"": tokens}, suffix=".idx", ways=COUNTED)
    yield Sample("megatron modes", modes, paired, None, beside={"": tokens}, suffix=".idx", ways=COUNTED)


def _mds() -> Iterator[Sample]:
    """A shard of MDS and its index, each of which is damaged beside the other as it was written."""
    samples = [
        struct.pack("<II", 2, 7) + b"ab" + bytes([17, 1 << 2, 2]) + struct.pack("<2h", 5, -5),
        struct.pack("<II", 0, 5) + bytes([17, 1 << 2, 1]) + struct.pack("<h", 513),
    ]
    samples = [sample + struct.pack("<q", 9 - number) for number, sample in enumerate(samples)]
    ends = np.cumsum([16, *map(len, samples)]).tolist()
    shard = struct.pack("<4I", 2, *ends) + b"".join(samples)
    told = {
        "column_names": ["a", "b", "n"],
        "column_encodings": ["str", "ndarray", "int"],
        "column_sizes": [None, None, 8],
        "compression": None,
        "format": "mds",
        "hashes": [],
        "raw_data": {"basename": "s.mds", "bytes": len(shard), "hashes": {}},
        "samples": 2,
        "size_limit": 1 << 26,
        "version": 2,
        "zip_data": None,
    }
    index = json.dumps({"shards": [told], "version": 2}).encode()

    def folder(path: Path, name: str, other: str, content: bytes) -> str:
        made = path.with_name(path.name + ".folder")
        made.mkdir(exist_ok=True)
        (made / name).write_bytes(path.read_bytes())
        (made / other).write_bytes(content)
        return f"{made}/s.mds"

    shards = reader(lambda path: di.data.MdsDataset(folder(path, "s.mds", "index.json", index)))
    indices = reader(lambda path: di.data.MdsDataset(folder(path, "index.json", "s.mds", shard)))
    yield Sample("mds shard", shard, shards, None, ways=COUNTED)
    yield Sample("mds index", index, indices, None, ways=COUNTED)


def _litdata() -> Iterator[Sample]:
    """Chunks of LitData and their index, each of which is damaged beside the other as it was written."""
    answers = json.loads((Path(__file__).parents[1] / "litdata_answers.json").read_text())

    def folder(path: Path, name: str, files: dict[str, bytes], chunk: str) -> str:
        made = path.with_name(path.name + ".folder")
        made.mkdir(exist_ok=True)
        for other, content in files.items():
            (made / other).write_bytes(path.read_bytes() if other == name else content)
        return f"{made}/{chunk}"

    for kind in ("values", "text", "frames", "samples", "whole"):
        files = {name: base64.b64decode(content) for name, content in answers[kind]["files"].items()}
        chunk = max(name for name in files if name.endswith(".bin"))
        damaged = [chunk, "index.json"] if kind == "values" else [chunk]
        for name in damaged:

            def read(path: Path, name: str = name, files: dict[str, bytes] = files, chunk: str = chunk) -> Any:
                return di.data.LitDataDataset(folder(path, name, files, chunk))

            yield Sample(
                f"litdata {'index' if name == 'index.json' else kind}", files[name], reader(read), None, ways=COUNTED
            )


BLOCK = 1 << 16
"""Bytes of a block of ArrayRecord: records, and then zeros."""


def _array_records() -> Iterator[Sample]:
    """What is damaged are the bytes that are written; the zeros behind those of each block come again, up to a cut."""
    if find_spec("array_record") is None:
        return
    from array_record.python.array_record_module import ArrayRecordWriter

    with tempfile.TemporaryDirectory() as folder:
        writer = ArrayRecordWriter(f"{folder}/file", "group_size:2")
        for payload in PAYLOADS:
            writer.write(payload)
        writer.close()
        whole = Path(folder, "file").read_bytes()
    records, index = (whole[at : at + BLOCK].rstrip(b"\0") + bytes(8) for at in (0, BLOCK))
    assert len(whole) == 2 * BLOCK

    def written(content: bytes) -> bytes:
        if len(content) < len(records):
            return content
        end = content[len(records) :]
        made = content[: len(records)].ljust(BLOCK, b"\0") + end
        return made.ljust(2 * BLOCK, b"\0") if len(end) >= len(index) else made

    read = reader(lambda path: di.data.ArrayRecordDataset(str(path)))
    yield Sample("array_record", records + index, read, None, written, ways=COUNTED)


def _databases() -> Iterator[Sample]:
    """A file of SQLite, which the database reads: what it says is in the error, and whether it names the file is its own."""
    with tempfile.TemporaryDirectory() as folder:
        with closing(sqlite3.connect(f"{folder}/file")) as connection:
            connection.execute("PRAGMA page_size = 512")
            connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL, s TEXT, b BLOB)")
            rows = [(i, i / 2, f"text {i}" * (i % 4), bytes(range(i))) for i in range(30)]
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
            connection.commit()
        content = Path(folder, "file").read_bytes()
    types = {"id": "int64", "x": "float64", "s": "string", "b": "binary"}
    for name, options in {"in order": {"order_by": "id"}, "stated": {"schema": types}}.items():

        def read(path: Path, options: Any = options) -> Any:
            def connect() -> Any:
                return sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)

            return di.data.Dataset.from_sql("SELECT * FROM t", connect, **options)

        yield Sample(f"sql {name}", content, reader(read), None, names_file=False)


def _packed(text: bytes, codec: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        with Sink(f"{folder}/file", codec) as sink:
            sink.write(text)
        return Path(folder, "file").read_bytes()


POSITIONS = {
    "tfrecord": r"at \d+ \(record \d+\)|at or before byte \d+",
    "indexed": r"record \d+|but its index .* is of a file of \d+ bytes",
    "index": r"record \d+|its header at byte 0|is of a file of \d+ bytes",
    "idx": r"record \d+|line \d+|is of a file of \d+ bytes",
    "text ": r"at or before byte \d+",
    "fixed": r"at or before byte \d+|Excess trailing bytes: .* \d+ bytes are left over",
    "arrow file": r"record batch \d+|its footer|at byte \d+|the name of a column",
    "arrow stream": r"record batch \d+|byte \d+|the schema at its beginning",
    "array_record": r"its index cannot be read|at byte \d+",
    "megatron": r"sequence \d+|begins with|has \d+ bytes|byte 17: |is of version|the documents do not go|has no modes",
    "mds": r"sample \d+|has \d+ bytes|begins with|offsets|not an index|is of version|names|column|samples",
    "litdata": r"item \d+|sample \d+|has \d+|begin|offsets|an index|items|zstd|holds|value \d+|frames|table|column|says|names",
    "sql": r"the query failed|row \d+",
    "parquet": r"row group \d+|its footer|the footer says",
    "npy": r"its header at byte 0|has \d+ bytes, but an array|row \d+",
    "npz": r"its list of members|array '.*'|two arrays '.*'",
    "manifest parquet": "",
    "manifest": r"line \d+ column \d+|file \d+|position \d+|it has no '.*'|its columns|must be integers",
    "csv": r"line \d+: |several columns have the same name|no record shows the types|at or before byte \d+",
    "jsonl": r"line \d+: |no record shows the types|at or before byte \d+",
    "tar": r"at byte \d+|sample '.*': member '.*': |at or before byte \d+",
}
"""What errors say of the place, by the beginning of a sample's name."""


def _placed(sample: Sample) -> Sample:
    found = [pattern for name, pattern in POSITIONS.items() if sample.name.startswith(name)]
    return replace(sample, position=found[0]) if found else sample


SAMPLES = [
    _placed(sample)
    for sample in (*_all(), *_unread(), *_array_records(), *_databases(), *_megatron(), *_mds(), *_litdata())
]
