# SPDX-License-Identifier: Apache-2.0
"""Which format files have: by their names or, where names say nothing, by the first bytes of the first file."""

import re
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

from distinput.errors import DistinputError, InvalidArgumentError
from distinput.files.compression import CODECS, Compression, codec_of_bytes, compression_of, without_query
from distinput.files.folder import without_notes
from distinput.files.source import EMPTY, FileStream, refuse_pipe, size_of
from distinput.formats import FORMATS
from distinput.formats.format import Format
from distinput.kernels.checksums import masked_crc32c_of_bytes
from distinput.names.lazy import dataclass, library
from distinput.values.buffers import Bytes

json = library("json")  # for a file whose name says nothing

SUFFIXES: dict[str, tuple[str, ...]] = {
    "audio": (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".aac", ".aiff", ".wma"),
    "array_record": (".array_record", ".arrayrecord", ".riegeli"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
    "csv": (".csv", ".tsv", ".tab"),
    "jsonl": (".jsonl", ".jsonlines", ".ndjson"),
    "mds": (".mds", ".mds.br"),
    "npy": (".npy",),
    "npz": (".npz",),
    "parquet": (".parquet", ".parq", ".pq"),
    "tar": (".tar", ".tgz", ".tbz2"),
    "text": (".txt", ".text", ".log"),
    "tfrecord": (".tfrecord", ".tfrecords", ".tfrec", ".tfrecs", ".tfr"),
    "video": (".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ts", ".3gp"),
}
"""What names of files of a format end in; a suffix of a compression, and `-00001-of-00008`, may follow."""

_SIGNATURES: tuple[tuple[str, int, bytes], ...] = (
    ("parquet", 0, b"PAR1"),
    ("arrow", 0, b"ARROW1"),
    ("arrow", 0, b"\xff\xff\xff\xff"),
    ("npy", 0, b"\x93NUMPY"),
    ("npz", 0, b"PK\x03\x04"),
    ("tar", 257, b"ustar"),
    ("array_record", 0, bytes.fromhex("83af70d10d884a3f")),
)
"""Format, offset and bytes that are there in each of its files."""

_IMAGES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a")
"""The first bytes of files that are single records, and no format here."""

_LINES = ("csv", "jsonl", "text")
"""Formats of lines, whose first bytes may be those of each other."""

READERS: dict[str, tuple[str, str]] = {
    "array_record": ("an ArrayRecord file", "ArrayRecordDataset"),
    "arrow": ("an Arrow file", "ArrowDataset"),
    "audio": ("audio", "AudioDataset"),
    "csv": ("a CSV file", "CsvDataset"),
    "jsonl": ("a file of JSON Lines", "JsonLinesDataset"),
    "mds": ("a shard of MDS", "MdsDataset"),
    "npy": ("a .npy file", "NpyDataset"),
    "npz": ("a .npz archive", "NpzDataset"),
    "parquet": ("a Parquet file", "ParquetDataset"),
    "tar": ("a tar archive", "WebDataset"),
    "text": ("text", "TextLineDataset"),
    "tfrecord": ("a TFRecord file", "TFRecordDataset"),
    "video": ("video", "VideoDataset"),
}
"""What files of a format are called, and the dataset that reads them."""

_SHARD = re.compile(r"-\d+-of-\d+$")
_LOOKED_AT = 4096


@dataclass(frozen=True)
class Recognised:
    """What files are.

    Args:
      format: the name of their format.
      how: what told it.
      options: that the format needs for them.
    """

    format: str
    how: str
    options: Mapping[str, Any]

    @property
    def compression(self) -> str:
        """How the files are compressed as a whole; "" if they are not."""
        return str(self.options.get("compression_type") or "")


def of_folder(paths: list[str], format: str | None = None) -> list[str]:
    """The files of a folder that are meant, where others lie beside them.

    Args:
      paths: of all files in it.
      format: the name of their format; None: the only one that their names tell, where audio and video, which tables lie
        beside, count if there is no table, and text, which notes have too, if there is nothing else.
    """
    if format is None:
        told = {found[0] for path in without_notes(paths) if (found := _format_of_name(path)) is not None}
        formats = told - {"text", "audio", "video"} or told - {"text"} or told
        if len(formats) != 1:
            return without_notes(paths)
        format = formats.pop()
    made: Any = FORMATS.find(format)
    return made.of_folder(paths) if hasattr(made, "of_folder") else without_notes(paths)


def recognise(paths: Sequence[str], format: str | None = None) -> Recognised:
    r"""The format of files, all of which must have the same.

    The suffixes of names decide, before that of a compression and before `-00001-of-00008`. If the name of the first file says
    nothing, its first bytes do, which must agree with the names of the others: the signature of the format, else UTF-8 text,
    which is lines of text, or JSON Lines if the first of them is an object or the name ends in `.json`. Compression is told by
    suffixes or else by the first bytes of the first file.

    Args:
      paths: of the files; only the first one is opened.
      format: the name of the format, if it is known; then only the compression is looked for.

    Raises:
      InvalidArgumentError: names are those of different formats, or nothing tells the format.
      NotFoundError: the first file is not there.
      ValueError: there is no format of this name.

    >>> import pathlib
    >>> _ = pathlib.Path("a.data").write_bytes(b"one\ntwo\n")
    >>> recognise(["a.data"])
    Recognised(format='text', how='its first bytes are UTF-8 text', options={})
    >>> _ = pathlib.Path("a.tsv").write_bytes(b"x\ty\n1\t2\n")
    >>> recognise(["a.tsv"]).options
    {'delimiter': '\t'}
    """
    if not paths:
        raise InvalidArgumentError("no file was named, so its format cannot be found; name at least one")
    named = None
    if format is not None:
        FORMATS.find(format)
        how = "it was given"
    else:
        named = _named(paths)
        format, how = named[:2] if named is not None and named[2] == paths[0] else ("", "")
    codec, known = ("", True) if format == "mds" else _codec(paths)  # its index says how shards are compressed
    begin = EMPTY if codec and format else _begin(paths[0], "")
    if not known and not codec:
        codec, found = _codec_of_bytes(paths[0], begin)
        if codec and found:
            begin = found[1]
            format, how = (format, how) if format else (found[0], f"its first bytes, behind {codec}, {found[2]}")
    if not format:
        format, how = _of_bytes(paths[0], _begin(paths[0], codec) if codec else begin, codec)
    if named is not None and format != named[0]:
        if format not in _LINES or named[0] not in _LINES:
            raise InvalidArgumentError(
                f"{paths[0]} is {format}, as {how}, and {named[2]} is {named[0]} by its name; name files of one format at a "
                "time"
            )
        format, how = named[:2]
    options: dict[str, Any] = {}
    if format == "csv" and _stem(paths[0]).endswith((".tsv", ".tab")):
        options["delimiter"] = "\t"
    if codec:
        if not _takes_compression(format):
            raise InvalidArgumentError(
                f"{paths[0]}: is compressed as a whole ({codec}), in which files of format {format} are not read; decompress it"
            )
        options["compression_type"] = codec
    return Recognised(format, how, options)


def tell_format(error: Exception, format: Format, path: str = "") -> None:
    r"""Say with an error of a format what the file is, where it is one of another format.

    Args:
      error: its message begins with the path.
      format: as which the file was read.
      path: the file, if the message does not begin with it.

    >>> import pathlib
    >>> from distinput.formats.parquet import Parquet
    >>> _ = pathlib.Path("a.csv").write_text("x,y\n1,2\n")
    >>> error = InvalidArgumentError("a.csv: not a Parquet file")
    >>> tell_format(error, Parquet())
    >>> error.__notes__
    ['a.csv is a CSV file, by its name: CsvDataset reads it']
    """
    said = str(error).partition(": ")[0]
    with suppress(DistinputError, OSError, ValueError):
        file = said if _is_there(said) or not path else path
        refuse_pipe(file)  # which nobody may write to any more
        note = other_format(file, format)
        if note and note not in getattr(error, "__notes__", ()):
            error.add_note(note)


def other_format(path: str, format: Format) -> str:
    """What a file is, and what reads it, if it is not of a format; "" if nothing tells.

    Args:
      path: the file; its first bytes are read.
      format: as which it was read.

    Raises:
      OSError: it cannot be read.
    """
    reader = {"csv_tuples": "csv"}.get(format.name, format.name.removeprefix("indexed_"))
    begin = _begin(path, "")
    codec, inside = _codec_of_bytes(path, begin)
    data = (inside[1] if inside else _begin(path, codec) if codec else begin).tobytes()
    if data.startswith(_IMAGES):
        return f"{path} is an image: ImageFolderDataset reads folders of images, WebDataset archives of them"
    named, kind = _format_of_name(path), _signature(data) or _text(data)
    how = "by its first bytes"
    if named is not None and (kind is None or (kind[0] == "text" and named[0] in _LINES)):
        kind, how = named, "by its name"
    if kind is None or (kind[0] == "text" and reader in _LINES):
        return ""
    if kind[0] == reader:
        stated: Any = getattr(format, "compression", codec)
        takes = codec and compression_of(stated, path) != codec and _takes_compression(reader)
        return f'{path} is compressed ({codec}): give compression_type="{codec}"' if takes else ""
    what, dataset = READERS[kind[0]]
    return f"{path} is {what}, {how}: {dataset} reads it"


def _is_there(path: str) -> bool:
    try:
        size_of(path)
    except (DistinputError, OSError, ValueError):
        return False
    return True


def _stem(path: str) -> str:
    """The name of a file without what may stand behind the suffix of its format."""
    name = without_query(path).lower().rpartition("/")[2]
    for suffix in (suffix for codec in CODECS.values() for suffix in codec.suffixes):
        if name.endswith(suffix) and suffix not in SUFFIXES["tar"]:
            name = name.removesuffix(suffix)
            break
    return _SHARD.sub("", name)


def _format_of_name(path: str) -> tuple[str, str] | None:
    stem = _stem(path)
    for format, suffixes in SUFFIXES.items():
        for suffix in suffixes:
            if stem.endswith(suffix):
                return format, f"its name has the suffix {suffix}"
    return None


def _named(paths: Sequence[str]) -> tuple[str, str, str] | None:
    """The format by the names of files, what tells it, and the first file whose name does; None: no name says anything."""
    first = None
    for path in paths:
        found = _format_of_name(path)
        if found is not None and first is None:
            first = *found, path
        elif found is not None and first is not None and found[0] != first[0]:
            raise InvalidArgumentError(
                f"{first[2]} is {first[0]} by its name, and {path} is {found[0]}; name files of one format at a time"
            )
    return first


def _codec(paths: Sequence[str]) -> tuple[str, bool]:
    """The compression by the names of files, and whether they say anything."""
    found = {compression_of("AUTO", path) for path in paths}
    return (found.pop(), False) if len(found) == 1 else ("AUTO", True)


def _begin(path: str, codec: str) -> Bytes:
    compression: Compression = codec or ""  # type: ignore[assignment]  # one of the names
    with FileStream(path, compression) as source:
        return source.more(EMPTY, _LOOKED_AT)[0]


def _codec_of_bytes(path: str, begin: Bytes) -> tuple[str, tuple[str, Bytes, str] | None]:
    """The compression that the first bytes show, and the format, bytes and reason of what is behind it."""
    data = begin.tobytes()
    codec = codec_of_bytes(data)
    if codec:
        inside = _begin(path, codec)
        known = _signature(inside.tobytes()) or _text(inside.tobytes())
        return codec, None if known is None else (known[0], inside, known[1])
    if data[:1] == b"\x78" and len(data) > 1 and (data[0] * 256 + data[1]) % 31 == 0:  # text may begin like this too
        try:
            inside = _begin(path, "ZLIB")
        except (DistinputError, OSError):
            return "", None
        known = _signature(inside.tobytes())
        if known is not None:
            return "ZLIB", (known[0], inside, known[1])
    return "", None


def _of_bytes(path: str, begin: Bytes, codec: str) -> tuple[str, str]:
    data = begin.tobytes()
    behind = f", behind {codec}," if codec else ""
    found = _signature(data) or _text(data)
    if found is not None and found[0] == "text" and _stem(path).endswith(".json"):
        return "jsonl", "its name has the suffix .json"  # whose error says what to do with objects over several lines
    if found is not None:
        return found[0], f"its first bytes{behind} {found[1]}"
    if data.startswith(_IMAGES):
        raise InvalidArgumentError(
            f"{path}: is an image; ImageFolderDataset reads folders of images, WebDataset archives of them"
        )
    known = ", ".join(name for name in FORMATS if not name.startswith("indexed_"))
    what = "is empty" if not data else f"begins with {data[:8]!r}"
    raise InvalidArgumentError(f"{path}: {what}, and neither this nor its name tells its format; say it: {known}")


def _signature(data: bytes) -> tuple[str, str] | None:
    for format, place, mark in _SIGNATURES:
        if data[place : place + len(mark)] == mark:
            return format, f"are those of {format}"
    if len(data) >= 12 and masked_crc32c_of_bytes(data[:8]) == struct.unpack_from("<I", data, 8)[0]:
        return "tfrecord", "are a length and its checksum"
    return None


def _text(data: bytes) -> tuple[str, str] | None:
    """Lines of text, or JSON Lines."""
    if not data or b"\0" in data:
        return None
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if len(data) < _LOOKED_AT or error.start < len(data) - 3:  # the last character may be cut
            return None
    line, end, _ = data.partition(b"\n")
    if line.startswith(b"{") and _is_object(line, whole=bool(end) or len(data) < _LOOKED_AT):
        return "jsonl", "are a JSON object"
    return "text", "are UTF-8 text"


def _is_object(line: bytes, whole: bool) -> bool:
    if not whole:  # a long first line; what it begins with has to do
        return re.match(rb'\{\s*"', line) is not None
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _takes_compression(format: str) -> bool:
    made: Any = FORMATS.find(format)
    return is_dataclass(made) and any(one.name == "compression_type" for one in fields(made))
