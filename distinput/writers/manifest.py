# SPDX-License-Identifier: Apache-2.0
"""The manifest of a folder of written files, and the journal from which a writing goes on."""

import os
import re
from collections.abc import Iterable
from dataclasses import asdict, field, replace
from typing import Any

import numpy as np

from distinput.columns.column import Strings
from distinput.columns.state import State
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.files.folder import MANIFEST as MANIFEST
from distinput.files.folder import check_inside, damaged_manifest, join_path, open_inside, plain_name
from distinput.files.manifest import FileTable
from distinput.files.paths import as_path
from distinput.files.sink import Sink
from distinput.files.source import naming, open_binary, size_of
from distinput.formats import FORMATS, format_named
from distinput.kernels.checksums import crc32
from distinput.names.lazy import dataclass, library
from distinput.plan.fingerprint import Fingerprint, is_fingerprint
from distinput.url_secrets import printed_without_secrets
from distinput.values.spec_json import MalformedJson, check_word, items_of, json_value, member
from distinput.writers import WRITERS

json = library("json")  # for those who write

# ----------------------------------------------------------------------------
# The manifest of a folder of written files: what makes them a dataset, since without it there is none.
# ----------------------------------------------------------------------------


_VERSION = 1
_COMPRESSED = frozenset({"compression_type"})
OPTIONS_GIVEN: dict[str, frozenset[str]] = {
    "arrow": frozenset(),
    "csv": frozenset({"schema", "header", "delimiter", "null_values", "valid"}) | _COMPRESSED,
    "elements": frozenset({"layout"}),
    "jsonl": frozenset({"schema", "valid"}) | _COMPRESSED,
    "megatron": frozenset(),
    "npy": frozenset(),
    "parquet": frozenset(),
    "tar": frozenset({"when_empty"}) | _COMPRESSED,
    "text": _COMPRESSED,
    "tfrecord": _COMPRESSED,
}
"""The options that the writers of this library give, see `Writer.reading`. All others are the reader's own choice."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class WrittenFile:
    """One file of a written dataset.

    Args:
      name: in the folder.
      rows: elements in it.
      bytes: its size.
      crc32: the checksum of its bytes.
      beside: its second file, such as an index, of formats that have one; that file has no rows.
    """

    name: str
    rows: int
    bytes: int
    crc32: int
    beside: "WrittenFile | None" = None

    @staticmethod
    def of_json(value: Any) -> "WrittenFile":
        """From JSON.

        Raises:
          MalformedJson: it is none, or its name leads out of the folder.
        """
        made = _alone(value)
        return made if value.get("beside") is None else replace(made, beside=_alone(value["beside"]))


def _alone(value: Any) -> WrittenFile:
    """A file from JSON, without the one beside it."""
    rows, size, crc32 = [member(value, key, int) for key in ("rows", "bytes", "crc32")]
    for number in (rows, size, crc32):
        if not 0 <= number < 1 << 62:
            raise MalformedJson(f"{number!r:.60} is no count")
    return WrittenFile(plain_name(member(value, "name")), rows, size, crc32)


def with_beside(files: Iterable[WrittenFile]) -> list[WrittenFile]:
    """Files, each followed by the one beside it."""
    return [each for file in files for each in (file, file.beside) if each is not None]


def _as_json(made: Any) -> dict[str, Any]:
    """The fields of a dataclass, and of those in it; files that stand alone do not say so."""
    return asdict(
        made, dict_factory=lambda items: {key: value for key, value in items if (key, value) != ("beside", None)}
    )


@printed_without_secrets
@dataclass(frozen=True)
class WrittenFiles:
    """A complete dataset in a folder, as its manifest has it.

    Attributes:
      directory: the folder.
      format: the name of the format that reads the files.
      options: the options with which it reads them.
      files: in order.
      spec: of the elements, as JSON; None where it is not known.
      pipeline: the fingerprint of the pipeline that was written.
      run: a word for this writing, different each time.
      job: what the workers called the writing together; None: there was one writer.
      order: "files": the elements are in order, one file after the other; "turns": the files took them in turns;
        "shard_func": a function said which file an element goes to.
      pieces: how many of the files belong together, as one to `reader_func`; empty: each is one by itself.
      more: what the op that wrote it keeps.
      complete: False: these are the files of one worker, and others have not come to their end; there is no manifest yet.
    """

    directory: str
    format: str
    options: dict[str, Any]
    files: tuple[WrittenFile, ...]
    spec: Any = None
    pipeline: Any = None
    run: str = ""
    job: str | None = None
    order: str = "files"
    pieces: tuple[int, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)
    complete: bool = True

    @property
    def rows(self) -> int:
        """Elements in all files."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.bytes for file in with_beside(self.files))

    @property
    def paths(self) -> list[str]:
        """The files with the elements, in order."""
        return [join_path(self.directory, file.name) for file in self.files]

    def table(self) -> FileTable:
        """The files with their sizes and rows."""
        return FileTable(
            Strings.of([os.fsencode(path) for path in self.paths]),
            np.array([file.bytes for file in self.files], np.int64),
            np.array([file.rows for file in self.files], np.int64),
        )

    def check_sizes(self) -> None:
        """Refuse a dataset of which a file is missing, or has another size than when it was written.

        Raises:
          NotFoundError: a file is gone.
          DataLossError: a file has another size.
        """
        for file in with_beside(self.files):
            path = join_path(self.directory, file.name)
            found = size_of(path)
            if found != file.bytes:
                raise DataLossError(
                    f"{path}: has {found} bytes, and {MANIFEST} says {file.bytes}; it was changed after it was written, so "
                    "write the dataset again"
                )

    def check_format(self) -> None:
        """Refuse a dataset of which no reader can be made.

        Raises:
          DataLossError: its format does not take its options.
          InvalidArgumentError: there is no format of this name, or nobody has registered it yet.
        """
        path = join_path(self.directory, MANIFEST)
        try:
            FORMATS.find(self.format)
        except ValueError as error:
            raise InvalidArgumentError(f"{path}: {error}; register it, or name the format yourself") from None
        try:
            format_named(self.format, **self.options)
        except (TypeError, ValueError, RecursionError) as error:  # the last: options in one another, thousands deep
            raise damaged_manifest(path, f"its options are none of {self.format}: {error}") from error

    def save(self, *, durable: bool = True) -> None:
        """Write the manifest; it takes the place of an older one at once."""
        made = {"distinput_written": _VERSION, **_as_json(self), "rows": self.rows}
        del made["directory"], made["complete"]
        with Sink(join_path(self.directory, MANIFEST), durable=durable, own=True) as sink:
            sink.write(json.dumps(made, indent=1).encode())


_READ_APART = frozenset({"distinput_written", "rows", "files", "pieces"})
_OTHERS = frozenset(WrittenFiles.__dataclass_fields__) - _READ_APART - {"directory", "complete"}
"""Members of a manifest: those that are looked at one by one, and all others."""


def read_written(directory: str) -> WrittenFiles | None:
    """The dataset in a folder; None if there is none.

    Raises:
      DataLossError: its manifest is damaged.
      InvalidArgumentError: it was written by another version.
    """
    path = join_path(directory, MANIFEST)
    try:
        with naming(path), open_inside(directory, MANIFEST) as file:
            text = file.read()
    except (NotFoundError, NotADirectoryError, FileExistsError):  # the last: fsspec is asked for a file below a file
        return None
    try:
        found = json_value(text)
        version = member(found, "distinput_written")
        if version != _VERSION:
            raise InvalidArgumentError(
                f"{path}: a manifest of version {version}, this distinput reads {_VERSION}; write the dataset again"
            )
        rows = member(found, "rows")
        files = tuple([WrittenFile.of_json(each) for each in member(found, "files", list)])
        pieces = tuple(items_of(found.get("pieces", []), "'pieces'"))
        given = {key: value for key, value in found.items() if key not in _READ_APART}
        unknown = sorted(set(given) - _OTHERS)
        missing = sorted({"format", "options"} - set(given))
        if unknown or missing:
            raise MalformedJson(f"it has {f'no {missing[0]!r}' if missing else f'a member {unknown[0]!r}'}")
    except MalformedJson as error:
        raise damaged_manifest(path, str(error)) from error
    manifest = WrittenFiles(directory, files=files, pieces=pieces, **given)
    every = with_beside(files)
    fits = all(type(count) is int and count > 0 for count in pieces) and sum(pieces) == (len(files) if pieces else 0)
    fits &= isinstance(manifest.format, str) and isinstance(manifest.options, dict) and isinstance(manifest.more, dict)
    fits &= isinstance(manifest.run, str) and isinstance(manifest.order, str) and isinstance(manifest.job, str | None)
    fits &= manifest.pipeline is None or is_fingerprint(manifest.pipeline)
    if not fits or manifest.rows != rows or len({file.name for file in every}) != len(every):
        raise damaged_manifest(path, "its parts contradict each other")
    _check_options(path, manifest)
    check_inside(directory, [file.name for file in every])
    return manifest


def _check_options(path: str, made: WrittenFiles) -> None:
    """Refuse options that no writer gives: a file does not decide which checks are made of it.

    What the writer of a program's own format gives is its own business.
    """
    if made.format not in OPTIONS_GIVEN and made.format in WRITERS:
        return
    for option in sorted(set(made.options) - OPTIONS_GIVEN.get(made.format, frozenset())):
        raise damaged_manifest(
            path,
            f"it gives the format {made.format!r} the option {option!r}, which no writer gives; name the format and its "
            "options yourself: FileDataset(files, format, ...)",
        )


def checksum_of(path: str) -> int:
    """The CRC-32 of a file."""
    found = 0
    with naming(path), open_binary(path) as source:
        while data := source.read(_CHUNK):
            found = crc32(np.frombuffer(data, np.uint8), found)
    return found


def verify_files(directory: "str | bytes | os.PathLike[Any]") -> WrittenFiles:
    """Read all files of a written dataset and compare them with the checksums in its manifest.

    Args:
      directory: the folder, local or a URL.

    Returns:
      What the manifest says.

    Raises:
      NotFoundError: there is no manifest, or a file is missing.
      DataLossError: a file is not as it was written; the message names it.

    >>> import distinput as di
    >>> _ = di.data.Dataset.range(3).write("numbers", "parquet")
    >>> di.io.verify_files("numbers").rows
    3
    """
    directory = as_path(directory)
    manifest = read_written(directory)
    if manifest is None:
        raise NotFoundError(f"{join_path(directory, MANIFEST)}; there is no complete dataset in this folder")
    manifest.check_sizes()
    for file in with_beside(manifest.files):
        path = join_path(manifest.directory, file.name)
        found = checksum_of(path)
        if found != file.crc32:
            raise DataLossError(
                f"{path}: its checksum is {found:#010x}, and {MANIFEST} says {file.crc32:#010x}; it was changed after it was "
                "written, so write the dataset again"
            )
    return manifest


# ----------------------------------------------------------------------------
# The journal of a writing: which files are complete, and where the pipeline stood then.
# ----------------------------------------------------------------------------


_RUN = re.compile(r"\w+", re.ASCII)
"""Words of writings, of which names of files are made."""
_JOURNAL_VERSION = 2
_LISTS, _JOURNAL_OTHERS = ("numbers", "pieces", "replaces"), ("state", "pipeline", "reached", "done", "order")


@dataclass(frozen=True)
class Journal:
    """What a writer records after each file.

    Args:
      key: what was asked for, apart from the pipeline; another request does not go on from here.
      run: the word of the writing.
      files: complete ones, in order.
      state: of the pipeline, after the last of these files.
      pipeline: its fingerprint.
      reached: a word of the code that its functions reach.
      done: whether these are all files.
      order: as in `WrittenFiles`.
      numbers: where a function says which file an element goes to, the number of the file that each of `files` is a piece of.
      pieces: as in `WrittenFiles`.
      replaces: names of the files of the dataset that is replaced.
    """

    key: list[Any]
    run: str
    files: tuple[WrittenFile, ...] = ()
    state: State | None = None
    pipeline: Fingerprint = field(default_factory=list)
    reached: str = ""
    done: bool = False
    order: str = "files"
    numbers: tuple[int, ...] = ()
    pieces: tuple[int, ...] = ()
    replaces: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Elements in the files."""
        return sum(file.rows for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        made = {"version": _JOURNAL_VERSION, **_as_json(self)}
        return {**made, "check": check_word(made)}

    @staticmethod
    def of_json(found: Any) -> "Journal | None":
        """From JSON; None if it is damaged, or of another version: then there is nothing to continue from."""
        if not isinstance(found, dict) or found.get("version") != _JOURNAL_VERSION:
            return None
        try:
            if member(found, "check") != check_word({name: value for name, value in found.items() if name != "check"}):
                return None
            key, run = member(found, "key", list), member(found, "run", str)
            files = tuple([WrittenFile.of_json(file) for file in items_of(member(found, "files"), "files")])
            numbers, pieces, replaces = [tuple(items_of(found.get(name, []), name)) for name in _LISTS]
            given = {name: value for name, value in found.items() if name in _JOURNAL_OTHERS}
            made = Journal(key, run, files, numbers=numbers, pieces=pieces, replaces=replaces, **given)
            fits = is_fingerprint(made.pipeline) and isinstance(made.done, bool) and bool(_RUN.fullmatch(run))
            fits &= all(type(number) is int and number >= 0 for number in (*numbers, *pieces))
            known = {"version", "check", "key", "run", "files", *_LISTS, *_JOURNAL_OTHERS}
            return made if fits and known.issuperset(found) and all(map(plain_name, replaces)) else None
        except (MalformedJson, RecursionError):
            return None
