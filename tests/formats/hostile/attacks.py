# SPDX-License-Identifier: Apache-2.0
"""Files of somebody who means harm: not damaged at random, but made to run code, to fill the memory, or never to end.

Each attack makes files in a folder and says how they are read, and what may come of it. `attacked.py` carries them out.
"""

import bz2
import gzip
import io
import json
import os
import pickle
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyarrow import ipc

import distinput as di
from distinput.files.manifest import load_manifest
from tests.depth import cases
from tests.formats.hostile import strict
from tests.formats.hostile.samples import records

Read = Callable[[Path], Iterator[Any]]

CANARY = "code-was-run"


@dataclass(frozen=True)
class Attack:
    """What somebody has written, and what may come of it.

    Args:
      name: the format, and what is wrong.
      make: writes the files to a folder.
      read: the elements.
      error: a file that the error must name; with "?" there need not be one; None: it may be read.
      rows: how many elements come, before the error if there is one; None: any number.
      most_bytes: the most memory that it may take.
      long: true if it takes seconds, and others of its kind take less.
    """

    name: str
    make: Callable[[Path], object]
    read: Read
    error: str | None = "file"
    rows: int | None = 0
    most_bytes: int = 512 << 20
    long: bool = False


class Bomb:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> Any:
        return (os.system, (f"touch {CANARY}",))


def of(make: Callable[[str], Any], name: str = "file") -> Read:
    """The elements of a dataset that is made of the path of a file."""
    return lambda folder: iter(make(str(folder / name)))


def refusing_nulls(make: Callable[..., Any]) -> Callable[[str], Any]:
    """A reader to which a null is an error."""
    return lambda path: make(path, nulls="error")


def writes(content: bytes | Callable[[], bytes], name: str = "file") -> Callable[[Path], object]:
    """What writes a file."""
    return lambda folder: (folder / name).write_bytes(content if isinstance(content, bytes) else content())


def npy_of(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def pickled() -> Iterator[Attack]:
    """Pickles where a careless reader looks for them."""
    objects = np.array([Bomb(), 1], object)
    fields = np.zeros(2, [("a", "O"), ("b", "i4")])
    fields["a"] = Bomb()
    npy = of(di.data.NpyDataset)
    yield Attack("npy of objects", writes(lambda: npy_of(objects)), npy)
    yield Attack("npy with a field of objects", writes(lambda: npy_of(fields)), npy)
    yield Attack("npy that is a pickle", writes(lambda: pickle.dumps(Bomb())), npy)
    data = records(b"one", b"two")

    def index(folder: Path) -> None:
        (folder / "file").write_bytes(data)
        (folder / "file.index").write_bytes(npy_of(objects))

    yield Attack("index of objects", index, of(lambda path: di.data.TFRecordDataset(path, index=True)))
    for name, write, read in (
        ("arrow", _arrow, di.data.ArrowDataset),
        ("parquet", _parquet, di.data.ParquetDataset),
    ):
        meta = {
            b"ARROW:extension:name": b"arrow.py_extension_type",
            b"ARROW:extension:metadata": pickle.dumps(Bomb()),
        }
        table = pa.table([pa.array([1, 2])], pa.schema([pa.field("x", pa.int64(), metadata=meta)]))
        yield Attack(f"{name} with a pickled type", writes(lambda w=write, t=table: w(t)), of(read), None, None)
        pandas = table.replace_schema_metadata({b"pandas": pickle.dumps(Bomb())})
        yield Attack(f"{name} with pickled metadata", writes(lambda w=write, t=pandas: w(t)), of(read), None, None)


def _arrow(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _parquet(table: Any, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


EXPANDED = cases(300 << 20, 1 << 30)
"""Bytes that a bomb expands to: more than the 256 MiB that one record of a small file may."""


def _expanded(pack: Any, line: bytes) -> bytes:
    piece = line * ((1 << 20) // len(line))
    made = [pack.compress(piece) for _ in range(EXPANDED // len(piece))]
    return b"".join([*made, pack.flush()])


def _gzip(line: bytes) -> bytes:
    return _expanded(zlib.compressobj(1, zlib.DEFLATED, 31), line)


def _by_arrow(codec: str, line: bytes) -> bytes:
    sink = io.BytesIO()
    with pa.CompressedOutputStream(pa.PythonFile(sink), codec) as stream:
        piece = line * ((1 << 20) // len(line))
        for _ in range(EXPANDED // len(piece)):
            stream.write(piece)
        stream.flush()
        return sink.getvalue()


def bombs() -> Iterator[Attack]:
    """Small files that expand to very much: one record of it, or very many."""
    packs: dict[str, Callable[[bytes], bytes]] = {
        "GZIP": _gzip,
        "BZ2": lambda text: _expanded(bz2.BZ2Compressor(1), text),
        "ZSTD": lambda text: _by_arrow("zstd", text),
        "LZ4": lambda text: _by_arrow("lz4", text),
    }
    most = 1 << 30
    for name, pack in packs.items():
        read = of(lambda path, c=name: di.data.TextLineDataset(path, c))
        yield Attack(
            f"text with one very long line, {name}",
            writes(lambda p=pack: p(b"x")),
            read,
            most_bytes=most,
            long=name != "ZSTD",
        )
    few = of(lambda path: di.data.TextLineDataset(path, "GZIP").batch(1 << 16).take(8))
    yield Attack("text of very many line ends", writes(lambda: _gzip(b"\n")), few, None, 8, most, long=True)

    def claims(folder: Path) -> None:
        """A very long record of zeros, whose length has the right checksum."""
        pack = zlib.compressobj(1, zlib.DEFLATED, 31)
        head = _header(EXPANDED)
        body = [pack.compress(head), *[pack.compress(bytes(1 << 20)) for _ in range(EXPANDED >> 20)]]
        (folder / "file").write_bytes(b"".join([*body, pack.flush()]))

    gz = of(lambda path: di.data.TFRecordDataset(path, "GZIP"))
    yield Attack("tfrecord with one very long record, GZIP", claims, gz, most_bytes=most, long=True)
    for size in (1 << 40, 2**63, 2**64 - 1):
        content = records(b"first") + _header(size) + b"data"
        yield Attack(f"tfrecord with a record of {size} bytes", writes(content), of(di.data.TFRecordDataset), rows=1)
        yield Attack(f"tfrecord with a record of {size} bytes, GZIP", writes(gzip.compress(content)), gz, rows=1)


def _header(size: int) -> bytes:
    length = struct.pack("<Q", size)
    return length + struct.pack("<I", strict.checksum(length))


def deep() -> Iterator[Attack]:
    """Nests that are deeper than a stack."""

    def manifest(folder: Path) -> Iterator[Any]:
        return iter(load_manifest(str(folder / "file.json")).names.values())

    for name, text in {
        "lists": "[" * 100_000 + "]" * 100_000,
        "objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
        "a list that does not end": "[" * 100_000,
        "a long number": '{"distinput_manifest": ' + "9" * 100_000 + "}",
        "a surrogate": json.dumps({"distinput_manifest": 1, "name": ["\ud800"], "size": [1]}),
        "text that is no text": b'{"distinput_manifest": 1, "name": ["\xff\xfe"], "size": [1]}'.decode("latin-1"),
    }.items():
        written = text.encode("latin-1", "replace")
        yield Attack(f"manifest of {name}", writes(written, "file.json"), manifest, "file.json")
    for depth in (20, 60):
        kind: Any = pa.int8()
        for _ in range(depth):
            kind = pa.list_(kind)
        table = pa.table([pa.array([None], kind)], pa.schema([pa.field("x", kind)]))
        yield Attack(
            f"arrow of lists in lists, {depth}",
            writes(lambda t=table: _arrow(t)),
            of(refusing_nulls(di.data.ArrowDataset)),
        )
        if depth:
            read = of(refusing_nulls(di.data.ParquetDataset))
            yield Attack(f"parquet of lists in lists, {depth}", writes(lambda t=table: _parquet(t)), read)
    wide = pa.table({f"c{i}": pa.array([1], pa.int8()) for i in range(3000)})
    yield Attack("arrow of 3000 columns", writes(lambda: _arrow(wide)), of(di.data.ArrowDataset), None, 1)
    yield Attack("parquet of 3000 columns", writes(lambda: _parquet(wide)), of(di.data.ParquetDataset), None, 1)


def changing() -> Iterator[Attack]:
    """Files that are not like the first one."""

    def two(first: bytes, second: bytes) -> Callable[[Path], object]:
        return lambda folder: [(folder / name).write_bytes(c) for name, c in (("a", first), ("file", second))]

    def both(make: Callable[[list[str]], Any]) -> Read:
        return lambda folder: iter(make([str(folder / "a"), str(folder / "file")]))

    x = pa.table({"x": [1, 2]})
    others = {
        "another type": pa.table({"x": ["a", "b"]}),
        "another width": pa.table({"x": pa.array([1, 2], pa.int32())}),
        "another name": pa.table({"y": [1, 2]}),
        "one column more": pa.table({"x": [1, 2], "y": [1, 2]}),
        "no columns": pa.table({"x": [1, 2]}).select([]),
        "the same name twice": pa.table([[1, 2], [3, 4]], ["x", "x"]),
    }
    for what, table in others.items():
        arrow, parquet = two(_arrow(x), _arrow(table)), two(_parquet(x), _parquet(table))
        yield Attack(f"arrow with {what}", arrow, both(di.data.ArrowDataset), rows=2)
        yield Attack(f"parquet with {what}", parquet, both(di.data.ParquetDataset), rows=2)
    for what, array in {"shape": np.ones((2, 3)), "dtype": np.ones(2, np.float32), "rank": np.float64(3)}.items():
        npy = two(npy_of(np.ones(2)), npy_of(array))
        yield Attack(f"npy with another {what}", npy, both(di.data.NpyDataset), rows=2)
    yield Attack("a folder in the place of a file", lambda f: (f / "file").mkdir(), of(di.data.TextLineDataset))


def moving() -> Iterator[Attack]:
    """Files that shrink, grow, go or are replaced after the first element was read."""
    many = b"".join(b"line %06d\n" % i for i in range(200_000))  # more than is read at once
    table = pa.table({"x": np.arange(200_000)})
    kinds: dict[str, tuple[Callable[[], bytes], Callable[[str], Any]]] = {
        "text": (lambda: many, di.data.TextLineDataset),
        "tfrecord": (lambda: records(*[b"r%06d" % i for i in range(2000)]) * 100, di.data.TFRecordDataset),
        "fixed": (lambda: many, lambda path: di.data.FixedLengthRecordDataset(path, 12)),
        "npy": (lambda: npy_of(np.arange(1 << 20)), di.data.NpyDataset),
        "arrow": (lambda: _chunked(table), di.data.ArrowDataset),
        "arrow lz4": (lambda: _chunked(table, "lz4"), di.data.ArrowDataset),
        "parquet": (lambda: _parquet(table, row_group_size=10_000), di.data.ParquetDataset),
        "csv": (lambda: b"a\n" + b"123456789012345\n" * 100_000, lambda path: di.data.FileDataset(path, "csv")),
        "jsonl": (lambda: (b'{"a": 1}' + b" " * 400 + b"\n") * 5_000, lambda path: di.data.FileDataset(path, "jsonl")),
        "tar": (lambda: tar_of(*[member_of(f"{i}.txt", b"x" * 5000) for i in range(600)]), _samples),
    }
    for name, (content, make) in kinds.items():
        for what, change in CHANGES.items():

            def read(folder: Path, make: Any = make, change: Any = change) -> Iterator[Any]:
                path = folder / "file"
                elements = iter(make(str(path)).batch(500))
                yield next(elements)
                change(path)
                yield from elements

            yield Attack(f"{name} that {what}", writes(content), read, "file?", None)


def _samples(path: str) -> Any:
    return di.data.WebDataset(path)


def _chunked(table: Any, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, table.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, 10_000)
    return sink.getvalue().to_pybytes()


def _replaced(path: Path) -> None:
    (path.parent / "other").write_bytes(b"another one")
    (path.parent / "other").rename(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "shrinks to half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "shrinks to nothing": lambda path: os.truncate(path, 0),
    "grows": lambda path: os.truncate(path, path.stat().st_size + 4096),
    "is deleted": lambda path: path.unlink(),
    "is replaced": _replaced,
}
"""What happens to a file while it is read: no harm is done, and if there is an error it names the file."""


def member_of(name: str, content: bytes = b"x", **more: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in more.items():
        setattr(info, key, value)
    return info, content


def tar_of(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def _with_size(content: bytes, size: bytes, at: int = 0) -> bytes:
    """The archive with another size in the header at this byte, and the right checksum."""
    header = bytearray(content[at : at + 512])
    header[124:136] = size.ljust(12, b"\0")[:12]
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return content[:at] + bytes(header) + content[at + 512 :]


def archives() -> Iterator[Attack]:
    """Archives whose names lead elsewhere, whose sizes are wrong, and members that would run code if they were loaded."""
    read = of(di.data.WebDataset)
    good = [member_of("0.txt", b"first"), member_of("0.cls", b"1")]
    for name in ("../../evil.txt", "/tmp/evil.txt", "a/../../evil.txt", "..\\evil.txt/../x.txt"):
        yield Attack(f"tar with the name {name}", writes(tar_of(*good, member_of(name))), read)
    for what, kind in {"symbolic link": tarfile.SYMTYPE, "link": tarfile.LNKTYPE, "device": tarfile.CHRTYPE}.items():
        other = member_of("1.txt", b"", type=kind, linkname="/etc/passwd")
        yield Attack(f"tar with a {what}", writes(tar_of(*good, other)), read, None, 1)
    pickles = [
        member_of("0.pkl", pickle.dumps(Bomb())),
        member_of("0.pyd", pickle.dumps(Bomb())),
        member_of("0.npy", npy_of(_bombs())),
    ]
    yield Attack("tar with pickles", writes(lambda: tar_of(*pickles)), read, None, 1)
    for size in (
        b"77777777777",
        b"-0000000001",
        b"\x80" + b"\xff" * 11,
        b"\xff" * 12,
        b"\x80\0\0\0\x7f" + b"\xff" * 7,
        b"99999",
    ):
        whole = tar_of(*good, form=tarfile.USTAR_FORMAT)
        yield Attack(f"tar with the size {size!r}", writes(_with_size(whole, size, 1024)), read)
        yield Attack(f"tar with the first size {size!r}", writes(_with_size(whole, size)), read)
    for key, value in {
        "size": "9" * 30,
        "size ": "-1",
        "path": "../" * 3000 + "x.txt",
        "GNU.sparse.major": "1",
    }.items():
        info, content = member_of("1.txt")
        info.pax_headers = {key.strip(): value}
        yield Attack(
            f"tar with {key.strip()} {value:.8} in its PAX header",
            writes(tar_of(*good, (info, content))),
            read,
            "file?",
            None,
        )
    long = member_of("1.txt", b"x" * 600, type=tarfile.XHDTYPE)
    yield Attack(
        "tar with a PAX header of another form", writes(tar_of(*good, long, member_of("1.txt"))), read, "file?", None
    )
    many = b"".join(tar_of(*good)[:2048] for _ in range(3))
    yield Attack("tar without an end", writes(many), read, "file?", None)
    packed = of(lambda path: di.data.WebDataset(path, compression_type="GZIP"))

    def expanded(folder: Path) -> None:
        pack = zlib.compressobj(1, zlib.DEFLATED, 31)
        head = tar_of(member_of("0.txt", b""), form=tarfile.USTAR_FORMAT)[:512]
        body = [
            pack.compress(_with_size(head, b"%011o" % EXPANDED)),
            *[pack.compress(bytes(1 << 20)) for _ in range(EXPANDED >> 20)],
        ]
        (folder / "file").write_bytes(b"".join([*body, pack.flush()]))

    yield Attack("tar with one very long member, GZIP", expanded, packed, most_bytes=1 << 30, long=True)


def _bombs() -> Any:
    return np.array([Bomb(), 1], object)


def tables() -> Iterator[Attack]:
    """Text of tables that does not end, nests deeply, or is no text."""

    def csv(**options: Any) -> Read:
        return of(lambda path: di.data.FileDataset(path, "csv", **options))

    def jsonl(**options: Any) -> Read:
        return of(lambda path: di.data.FileDataset(path, "jsonl", **options))

    unclosed = lambda: b'a,b\n1,2\n"' + b"x,\n" * (EXPANDED // 3)  # noqa: E731
    yield Attack("csv with a quote that is not closed", writes(unclosed), csv(), long=True, most_bytes=1280 << 20)
    texts = {
        "another number of values": b"a,b\n1,2\n1,2,3\n",
        "a NUL": b"a,b\n1,\0\n",
        "a number out of range": b"a,b\n1,2\n99999999999999999999,2\n",
        "text in the place of a number": b"a,b\n1,2\nx,2\n",
        "two columns of one name": b"a,a\n1,2\n",
        "a name that is no UTF-8": b"\xff,b\n1,2\n",
    }
    for what, content in texts.items():
        yield Attack(f"csv with {what}", writes(content), csv(), "file?", None)
    wide = b",".join(b"c%d" % i for i in range(20_000)) + b"\n" + b",".join([b"1"] * 20_000) + b"\n"
    yield Attack("csv of 20,000 columns", writes(wide), csv(), None, 1, long=True)
    lines = {
        "deep lists": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "deep objects": b'{"a": ' * 100_000 + b"1" + b"}" * 100_000,
        "deep lists that do not end": b'{"a": ' + b"[" * 100_000,
        "a long number": b'{"a": ' + b"9" * 100_000 + b"}",
        "an exponent": b'{"a": 1e999999999}',
        "no UTF-8": b'{"a": "\xff\xfe"}',
        "half of a pair": b'{"a": "\\ud800"}',
        "a key twice": b'{"a": 1, "a": "x"}',
        "a NUL": b'{"a": 1}\0',
        "text": b'{"a": "x"}',
        "another key": b'{"b": 1}',
        "a list": b"[1, 2]",
    }
    for what, line in lines.items():
        yield Attack(f"jsonl with {what}", writes(b'{"a": 1}\n' + line + b"\n"), jsonl(), "file?", None)
        yield Attack(f"jsonl with {what} first", writes(line + b'\n{"a": 1}\n'), jsonl(), "file?", None)
    long = lambda: b'{"a": "' + b"x" * EXPANDED  # noqa: E731
    yield Attack("jsonl with a line that does not end", writes(long), jsonl(), most_bytes=1280 << 20, long=True)
    for name in ("csv", "jsonl"):
        packed = of(lambda path, n=name: di.data.FileDataset(path, n, compression_type="GZIP"))
        yield Attack(
            f"{name} with one very long record, GZIP",
            writes(lambda: _gzip(b"x")),
            packed,
            most_bytes=1 << 30,
            long=True,
        )
    for name, first, second in (("csv", b"a\n1\n", b"a\nx\n"), ("jsonl", b'{"a": 1}\n', b'{"a": [1]}\n')):
        both = of(lambda path, n=name: di.data.FileDataset([path.replace("file", "a"), path], n))

        def two(folder: Path, first: bytes = first, second: bytes = second) -> None:
            (folder / "a").write_bytes(first)
            (folder / "file").write_bytes(second)

        yield Attack(f"{name} with another type in the second file", two, both, rows=1)
