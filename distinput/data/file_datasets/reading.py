# SPDX-License-Identifier: Apache-2.0
"""Datasets of files: a reader of the named files, or several that take turns; made of a format, or of any."""

import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial, wraps
from types import new_class
from typing import Any, NamedTuple, TypeVar

import numpy as np

from distinput import ops
from distinput.columns.block import ColumnBlock
from distinput.columns.column import Strings
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.files.compression import codec_of_suffix
from distinput.files.folder import join_path, named_files
from distinput.files.mounts import Storage, stored
from distinput.files.paths import as_paths, local_path
from distinput.formats import FORMATS, format_named
from distinput.formats.format import Format
from distinput.formats.partitioned import partitioned
from distinput.formats.recognise import of_folder, recognise
from distinput.names.words import likely
from distinput.ops.concatenate import Concatenate
from distinput.ops.on_error import guarded
from distinput.ops.reader import FileNames, LaterFormat, Reader, handed_out, paths_of
from distinput.ops.slices import Slices, from_tensor_slices
from distinput.plan.check import integer
from distinput.plan.families import SameElements
from distinput.plan.node import Node, walk
from distinput.plan.options import SkipErrors
from distinput.values.nest import LEAF
from distinput.writers.manifest import read_written

# ----------------------------------------------------------------------------
# The compression of files for which none is stated: the one that the suffixes of their names stand for.
# ----------------------------------------------------------------------------


def decompressing(format: Format, paths: Iterable[str]) -> Format:
    """A format that reads compressed files as their names say; the same one if they are not, or if a compression is stated.

    Args:
      format: of the files; its compression is stated unless it is None.
      paths: the files.

    >>> from distinput.formats.tfrecord import TFRecords
    >>> decompressing(TFRecords(), ["a.tfrecord.gz", "b.tfrecord.gz"]).compression
    'GZIP'
    >>> decompressing(TFRecords(), ["a.tfrecord"]).compression, decompressing(TFRecords(""), ["a.gz"]).compression
    ('', '')
    """
    if getattr(format, "compression_type", "") is not None:
        return format
    found = set(map(codec_of_suffix, paths))
    if found <= {""}:
        return format
    return replace(format, compression_type=found.pop() if len(found) == 1 else "AUTO")  # type: ignore[type-var]


# ----------------------------------------------------------------------------
# The format of files that are named without it: as the manifest of a written folder has it, or their names, or their bytes.
# ----------------------------------------------------------------------------


def written_format(
    filenames: Any, options: Mapping[str, Any], storage_options: Mapping[str, Any] | None = None, filesystem: Any = None
) -> tuple[Any, str, dict[str, Any]]:
    """The names of the files, a folder that was written with a slash at its end; the name of their format, and its options.

    Args:
      filenames: names of files, or a folder.
      options: those that take the place of the ones in the manifest, or of what is recognised.
      storage_options: for the file systems that the URLs name.
      filesystem: that has the files.

    Raises:
      TypeError: the names are those of a dataset, which are known at iteration.
      NoMatchError: there is no such file.
      DataLossError: a manifest is damaged.
      InvalidArgumentError: nothing tells the format, or it is none that is known.
    """
    if not isinstance(filenames, str | bytes | os.PathLike | list | tuple):
        raise TypeError(
            "FileDataset: needs a format, since these names are known only at iteration; write FileDataset(names, 'parquet')"
        )
    names, _ = stored(as_paths(filenames), storage_options, filesystem)
    try:
        written = read_written(names[0]) if len(names) == 1 else None
    except FileExistsError:  # some file systems say so where a file is, and a folder was asked for
        written = None
    if written is not None:
        written.check_format()
        folder = filenames if local_path(names[0]) is not None else join_path(as_paths(filenames)[0], "")
        return folder, written.format, {**written.options, **options}
    found = recognise(named_files(names, of_folder))
    return filenames, found.format, {**found.options, **options}


_FILES = 16
"""Files read at a time with AUTOTUNE, the same on every machine."""


def reading(
    filenames: Any,
    file_format: Format,
    num_parallel_reads: int | None = None,
    name: str | None = None,
    *,
    on_error: str | SkipErrors | None = None,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    partitioning: Any = "hive",
    text: str = "bytes",
    nested: str = "columns",
    decimals: str = "text",
    buffer_size: int | None = None,
) -> Node:
    """A reader of the named files, or several readers that take turns; without what cannot be read, if `on_error` says so.

    These are the arguments, and their documentation, of all datasets of files.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      file_format: of the files.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.
      text: "bytes"; or "str": `as_text` behind the reader.
      nested: "columns": a list of structs is a dict of lists; "rows": `as_rows` behind the reader makes lists of dicts of them.
      decimals: "text" of their digits; "decimal" objects or "float64": `as_decimal` behind the reader.
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
    """
    del buffer_size
    if num_parallel_reads is not None:
        integer(file_format.name, "num_parallel_reads", num_parallel_reads)
    names = _named(filenames, storage_options, filesystem, file_format.of_folder)
    table = names.table if isinstance(names, FileNames) else None
    paths = _known(names)
    if paths is not None:
        file_format = decompressing(file_format, paths)
        chosen = any(step.thins for step in walk(names))  # of others the folders may name other columns
        if not chosen and (file_format.has_columns or partitioning != "hive"):
            file_format = partitioned(file_format, paths, partitioning)
    if type(file_format).held is not Format.held:
        later: Any = LaterFormat(file_format, partial(paths_of, names))
        file_format = later  # the name by which saved states know what `reader` reads from outside
    if num_parallel_reads is None:
        made: Node = Reader(names, file_format, table, on_error=on_error, name=name)
        made = made if made.raises else guarded(made, on_error)
        return handed_out(made, text=text, nested=nested, decimals=decimals)

    def reader(path: bytes) -> Node:
        return Reader(_names(path), file_format, table)

    reader.__qualname__ = "_reading.<locals>.reader"  # the name by which saved states know it
    reader.on_error = on_error  # type: ignore[attr-defined]  # for options that are set later
    reader.reads_one = True  # type: ignore[attr-defined]  # each file as the others
    cycle = _FILES if num_parallel_reads < 1 else num_parallel_reads
    turns: Node = ops.interleave.Interleave(names, reader, cycle, 1, num_parallel_reads, name=name)
    turns = guarded(turns, on_error)
    return handed_out(turns, text=text, nested=nested, decimals=decimals)


def _named(
    filenames: Any,
    storage_options: Mapping[str, Any] | None,
    filesystem: Any,
    chosen: Callable[[list[str]], list[str]] = list,
) -> Node:
    if isinstance(filenames, Dataset):
        if storage_options is not None or filesystem is not None:
            raise InvalidArgumentError(
                "storage_options and filesystem need names of files, but filenames is a dataset, whose names are known only at "
                "iteration; give them to list_files, or call distinput.io.mount"
            )
        return filenames.node
    names, storage = as_paths(filenames), None
    if storage_options is not None or filesystem is not None:
        names, storage = stored(names, storage_options, filesystem)
    return _slices(named_files(names, chosen), storage)


def _known(names: Node) -> list[str] | None:
    """The paths in the lists that names are taken from, in whatever order; None if some are made only as they are read."""
    steps = list(walk(names))
    if not all(isinstance(step, Slices | SameElements | Concatenate) for step in steps):
        return None  # they may be of any number
    return [path for step in steps if isinstance(step, Slices) for path in paths_of(step)]


def _names(filenames: Any) -> Node:
    # Saved states of datasets with num_parallel_reads tell what this does: with another body they could not be restored.
    if isinstance(filenames, Dataset):
        return filenames.node
    return from_tensor_slices(np.array([os.fsencode(path) for path in as_paths(filenames)], dtype=object))


def _slices(names: list[str], storage: Storage | None = None) -> Node:
    texts = Strings.of_array(np.array([os.fsencode(name) for name in names], dtype=object))
    return Slices(ColumnBlock(LEAF, [texts], len(names)), f"{len(names)} rows of string", storage=storage)


# ----------------------------------------------------------------------------
# Datasets of one format each: their arguments are the options of the format, and what all of them take.
# ----------------------------------------------------------------------------


class Constructor(NamedTuple):
    """How a dataset is made of a format.

    Args:
      format: the name of the format.
      base: `Dataset`, with the type of the records.
      order: the names of the arguments in their order; what is behind a "*" is given by name.
    """

    format: str
    base: Any
    order: str


def file_dataset(name: str, constructor: Constructor) -> type[Dataset[Any]]:
    """The class of a dataset of files of one format; its options, and its documentation, are those of the format.

    The options of a format are those of `of_options` where it names them, and otherwise its fields.

    Args:
      name: of the class.
      constructor: how it is made.
    """
    format: Any = FORMATS.find(constructor.format)
    parameters = inspect.signature(reading).parameters
    of_format = [inspect.signature(each).parameters for each in (format, format.of_options, format_named)]
    known = {**of_format[0], **of_format[1], **of_format[2], **parameters}
    by_position, _, by_name = constructor.order.partition("*")
    signature = inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY),
            *[known[each].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for each in by_position.split()],
            *[known[each].replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in by_name.split()],
        ],
        return_annotation=None,
    )

    def begin(self: Any, /, *args: Any, **kwargs: Any) -> None:
        given = _given(name, signature, (self, *args), kwargs)
        options = {each: value for each, value in given.items() if each not in parameters}
        rest = {each: value for each, value in given.items() if each in parameters}
        Dataset.__init__(self, reading(file_format=format_named(constructor.format, **options), **rest))

    begin.__signature__ = signature  # type: ignore[attr-defined]
    begin.__name__, begin.__qualname__ = "__init__", f"{name}.__init__"
    # Each file as others of its suffix, unless its folders name columns.
    begin.reads_one = not getattr(format, "has_columns", True)  # type: ignore[attr-defined]
    body = {
        "__init__": begin,
        "__doc__": _documentation(inspect.getdoc(format) or "", list(signature.parameters)[1:]),
        "__module__": "distinput.data.file_datasets",
    }
    return new_class(name, (constructor.base,), exec_body=lambda members: members.update(body))


def _given(name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, those that were left out too.

    Raises:
      TypeError: one is unknown, missing, given twice, or one too many.
    """
    known = list(signature.parameters)[1:]
    _check_known(name, known, kwargs)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    bound.apply_defaults()
    return {each: bound.arguments[each] for each in known}


Begin = TypeVar("Begin", bound=Callable[..., None])


def _check_known(name: str, known: Collection[str], given: Iterable[str]) -> None:
    """Refuse an argument that is not known, and say which one was meant.

    Raises:
      TypeError: there is one.
    """
    for each in given:
        if each not in known:
            raise TypeError(f"{name}: unexpected argument {each!r}, {likely(each, known)}")


def constructor_of(begin: Begin) -> Begin:
    """An `__init__` that says of an unknown argument which one was meant."""
    known = list(inspect.signature(begin).parameters)

    @wraps(begin)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> None:
        _check_known(type(self).__name__, known[1:], kwargs)
        begin(self, *args, **kwargs)

    return checked  # type: ignore[return-value]


_ARGUMENT = re.compile(r"^  (\w+): (.*(?:\n    .*)*)", re.MULTILINE)
"""An argument in the documentation, and what is said of it."""


def _documentation(text: str, names: list[str]) -> str:
    """The documentation of a format, with all arguments of its dataset in their order."""
    head, _, rest = text.partition("\nArgs:\n")
    arguments, mark, tail = rest.partition("\n\n")
    if not rest:
        head, mark, tail = text.partition("\n\nRaises:")
        mark, tail = "\n\n", f"Raises:{tail}"
        head += "\n"
    texts = [inspect.getdoc(format_named), inspect.getdoc(reading), arguments]
    told = dict(_ARGUMENT.findall("\n".join(map(str, texts))))
    shown = "\n".join(f"  {each}: {told[each]}" for each in names)
    indented = f"{head}\nArgs:\n{shown}{mark}{tail}".replace("\n", "\n    ")
    return re.sub(r" +$", "", indented, flags=re.MULTILINE) + "\n    "


# ----------------------------------------------------------------------------
# Files of any format.
# ----------------------------------------------------------------------------


class FileDataset(Dataset[Any]):
    r"""The records of files of any format: one of this library, or one that was registered.

    Args:
      filenames: a path, pattern or directory, a list of them, or a dataset of paths; any URL of fsspec or obstore.
      format: the name of a format ("arrow", "csv", "fixed_length", "jsonl", "npy", "parquet", "text", "tfrecord", or one
        that `distinput.extend.register_format` made known), or a `distinput.extend.Format` itself.
      num_parallel_reads: files read at a time, whose records take turns; one after the other when None.
      name: a label.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read: a damaged record, or the rest of the file if no
        record is found behind it. None: as `Options.on_error` says, or "raise".
      index: true to read the files by an index, which is built when it is first needed; see `TFRecordDataset`.
      **options: the options of the format, such as `compression_type="GZIP"` for text; none for a `Format`.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.
      storage_options: for the file systems that the URLs name, such as credentials; see `distinput.io.mount`.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files; "obstore": the store that URLs name.
      text: "bytes"; or "str": `as_text` behind the reader.
      nested: "columns": a list of structs is a dict of lists; "rows": `as_rows` behind the reader makes lists of dicts of them.
      decimals: "text" of their digits; "decimal" objects or "float64": `as_decimal` behind the reader.

    Without a format, a folder that `Dataset.write` has written is read as its manifest says. The format of other files, and
    their compression, is told by the suffix of their names, or else by the first bytes of the first file: see
    `distinput.inspect.recognise`.

    Raises:
      InvalidArgumentError: without a format, nothing tells it, or the files have several.
      ValueError: an unknown format, or one without index.
      TypeError: `format` is neither a name nor a `Format`; options were given with a `Format`; unknown options.
      NotFoundError: a file is not there.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.bin").write_bytes(b"aabb")
    >>> di.data.FileDataset("a.bin", "fixed_length", record_bytes=2).to_list()
    [b'aa', b'bb']
    >>> _ = pathlib.Path("a.csv").write_text("x,y\n1,2\n")
    >>> di.data.FileDataset("a.csv").to_list()
    [{'x': 1, 'y': 2}]
    """

    def __init__(
        self,
        filenames: Any,
        format: str | Format | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        *,
        index: bool | str = False,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        partitioning: Any = "hive",
        text: str = "bytes",
        nested: str = "columns",
        decimals: str = "text",
        **options: Any,
    ) -> None:
        if format is None:
            filenames, format, options = written_format(filenames, options, storage_options, filesystem)
        super().__init__(
            reading(
                filenames,
                _format(format, index, options),
                num_parallel_reads,
                name,
                on_error=on_error,
                storage_options=storage_options,
                filesystem=filesystem,
                partitioning=partitioning,
                text=text,
                nested=nested,
                decimals=decimals,
            )
        )


def _format(format: str | Format, index: bool | str, options: dict[str, Any]) -> Format:
    if isinstance(format, Format):
        given = [*options, *(["index"] if index else [])]
        if given:
            raise TypeError(f"FileDataset: {format.name} was given with its options, got {', '.join(given)} beside it")
        return format
    if not isinstance(format, str):
        raise TypeError(f"FileDataset: format must be a name or a Format, got {format!r}")
    return format_named(format, index, **options)
