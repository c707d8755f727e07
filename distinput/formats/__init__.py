# SPDX-License-Identifier: Apache-2.0
"""The file formats (floor 3), one module each, imported when it is first accessed, such as `formats.text`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from distinput.names.lazy import lazy
from distinput.names.registry import Registry

if TYPE_CHECKING:
    from distinput.formats.format import Format
else:
    __getattr__, __dir__, __all__ = lazy(__name__, own=("FORMATS", "register_format"))

OpenFormat: TypeAlias = "Callable[..., Format]"
"""A `Format` class, or a function that makes a format from its options."""

FORMATS: "Registry[OpenFormat]" = Registry(
    "format",
    {
        "array_record": "distinput.formats.array_record:ArrayRecords",
        "arrow": "distinput.formats.arrow_ipc:ArrowIpc",
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
        "npy": "distinput.formats.npy:Npy",
        "npz": "distinput.formats.npy:Npz",
        "parquet": "distinput.formats.parquet:Parquet",
        "tar": "distinput.formats.tar:TarSamples",
        "text": "distinput.formats.text:TextLines",
        "tfrecord": "distinput.formats.tfrecord:TFRecords",
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
