# SPDX-License-Identifier: Apache-2.0
"""The file formats (floor 3): the table of their names. A module is loaded when it is first named, such as `formats.text`."""

from collections.abc import Callable, Iterable
from dataclasses import Field, fields, is_dataclass
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.files.paths import as_paths
from distinput.formats.format import Format
from distinput.names.lazy import Registry, lazy
from distinput.names.words import meant
from distinput.run.threads import cores, mapped

if not TYPE_CHECKING:  # which would take every name for one that is there
    __getattr__, __dir__, __all__ = lazy(__name__, own=("FORMATS", "format_named", "register_format", "write_index"))

OpenFormat = Callable[..., Format]
"""A `Format` class, or a function that makes a format from its options."""

FORMATS: Registry[OpenFormat] = Registry(
    "format",
    {
        "array_record": "distinput.formats.array_record:ArrayRecords",
        "arrow": "distinput.formats.arrow_ipc:ArrowIpc",
        "audio": "distinput.formats.media:Audio",
        "csv": "distinput.formats.csv:Csv",
        "csv_tuples": "distinput.formats.csv_tuples:CsvTuples",
        "elements": "distinput.formats.elements:Elements",
        "fixed_length": "distinput.formats.fixed_length:FixedLengthRecords",
        "indexed_csv": "distinput.formats.indexed_text_table:IndexedCsv",
        "indexed_jsonl": "distinput.formats.indexed_text_table:IndexedJsonLines",
        "indexed_tar": "distinput.formats.tar:IndexedTarSamples",
        "indexed_text": "distinput.formats.text:IndexedTextLines",
        "indexed_tfrecord": "distinput.formats.tfrecord:IndexedTFRecords",
        "jsonl": "distinput.formats.jsonl:JsonLines",
        "litdata": "distinput.formats.litdata:LitData",
        "mds": "distinput.formats.mds:Mds",
        "megatron": "distinput.formats.megatron:Megatron",
        "npy": "distinput.formats.npy:Npy",
        "npz": "distinput.formats.npy:Npz",
        "parquet": "distinput.formats.parquet:Parquet",
        "tar": "distinput.formats.tar:TarSamples",
        "text": "distinput.formats.text:TextLines",
        "tfrecord": "distinput.formats.tfrecord:TFRecords",
        "video": "distinput.formats.media:Video",
    },
)
"""The formats by name; `register_format` adds one."""


def register_format(name: str, format: Any = None) -> Any:
    """Register a format under a name, for `distinput.data.FileDataset`.

    Args:
      name: lower-case letters, digits and underscores.
      format: a subclass of `Format`, or its location as `package.module:attribute`, imported on first use. Without it,
        `register_format(name)` is a decorator for the class.

    Returns:
      `format`, or the decorator.

    Raises:
      ValueError: the name or the location is malformed, or another format has the name; the message says which.
      TypeError: `format` is neither callable nor a location.

    >>> import pathlib
    >>> import distinput as di
    >>> from distinput.formats.fixed_length import FixedLengthRecords
    >>> register_format("pairs_of_bytes", lambda: FixedLengthRecords(2))
    <function <lambda> at ...>
    >>> _ = pathlib.Path("a.bin").write_bytes(b"aabb")
    >>> di.data.FileDataset("a.bin", "pairs_of_bytes").to_list()
    [b'aa', b'bb']
    """
    if format is None:

        def decorator(made: OpenFormat) -> OpenFormat:
            FORMATS.register(name, made)
            return made

        return decorator
    FORMATS.register(name, format)
    return format


_INDEXED = "indexed_"
"""What the names of formats whose files have an index begin with."""


def format_named(name: str, index: bool | str = False, **options: Any) -> Format:
    """The format of a name.

    Args:
      name: of a format of `FORMATS`.
      index: true to count records and reach them by their numbers: the cardinality is known, `skip`, a shard and a restart go
        to their place, `global_shuffle` works, and policies DATA and BALANCED read nothing of other workers. An index is built
        when it is first needed, by reading the file once, and kept beside the file, under a hidden name; a path is a folder to
        keep it in. `distinput.io.write_index` builds it ahead.
      **options: those of the format.

    Raises:
      ValueError: an unknown format, or one without index.
      TypeError: unknown options, or the name is not that of a format.

    >>> format_named("text").name, format_named("text", "indices").index_folder
    ('text', 'indices')
    """
    if index and f"{_INDEXED}{name}" not in FORMATS:
        FORMATS.find(name)
        known = [known.removeprefix(_INDEXED) for known in FORMATS if known.startswith(_INDEXED)]
        raise ValueError(f"{name}: files of this format have no index; there is one for {', '.join(known)}")
    if index:
        options["index_folder"] = None if index is True else str(index)
    found: Any = FORMATS.find(_INDEXED + name if index else name)
    make = getattr(found, "of_options", found)  # what was registered may be a function
    try:
        made = make(**options)
    except TypeError:
        _refuse_unknown(name, options, signature(make), signature(found))
        raise
    return _checked(name, made)


def _refuse_unknown(name: str, options: Iterable[str], made_by: Signature, of_class: Signature) -> None:
    """Name the first option that a format does not have, unless it may have any."""
    known = dict(of_class.parameters)
    known |= {option: each for option, each in made_by.parameters.items() if each.kind is not each.VAR_KEYWORD}
    unknown = next((option for option in options if option not in known), None)
    if unknown is not None and all(each.kind is not each.VAR_KEYWORD for each in known.values()):
        raise TypeError(f"{name}: unexpected option {unknown!r}, {meant(unknown, known, 'it has')}") from None


def _checked(name: str, format: Any) -> Format:
    """What was made, if it is a format whose switches are True or False."""
    if not isinstance(format, Format):
        raise TypeError(f"{name!r} is registered as a format, but makes {format!r}, which is not a Format")
    options_of_format: tuple[Field[Any], ...] = fields(format) if is_dataclass(format) else ()
    for option in options_of_format:
        if option.type is bool and not isinstance(value := getattr(format, option.name), bool | int | np.bool_ | None):
            raise TypeError(f"{name}: {option.name} must be True or False, got {value!r}")
    return format


def write_index(filenames: Any, format: str, *, folder: str | None = None, **options: Any) -> int:
    r"""Write the indices of files in advance. An existing index is kept if it still fits its file.

    Reading with `index=True` (or `index=folder`) does the same for each file when its records are first counted. Do it ahead
    where many workers read the same files, since each of them would read all files to count them. Files are read in parallel.

    Args:
      filenames: a path or a list of paths, local or of any fsspec URL.
      format: the name of their format, such as "text".
      folder: where to keep the indices; None: beside each file, under a hidden name.
      **options: the options with which the files will be read; others may mean other records.

    Returns:
      The number of records in all files.

    Raises:
      ValueError: an unknown format, or one without index.
      NotFoundError: a file is not there.
      DataLossError: a file is damaged.
      OSError: an index cannot be written.

    >>> import pathlib
    >>> import distinput as di
    >>> _ = pathlib.Path("a.txt").write_text("one\ntwo\n")
    >>> di.io.write_index("a.txt", "text")
    2
    >>> len(di.data.TextLineDataset("a.txt", index=True))
    2
    """
    made = format_named(format, True if folder is None else folder, **options)
    return sum(rows or 0 for rows in mapped(made.rows, as_paths(filenames), cores(), "distinput-index"))
