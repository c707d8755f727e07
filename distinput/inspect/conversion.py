# SPDX-License-Identifier: Apache-2.0
"""Files of one format as files of another."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from distinput.arrow.arrow import changed_times
from distinput.data.dataset import Dataset
from distinput.data.writing import request_of, write
from distinput.errors import InputWarning, InvalidArgumentError
from distinput.formats.arrow_ipc import ArrowIpc
from distinput.formats.parquet import Parquet
from distinput.formats.table_batches import schema_of_table
from distinput.inspect.counts import count
from distinput.inspect.examples import declaration, features_of
from distinput.inspect.files import Files, open_files
from distinput.inspect.records import record_kind
from distinput.names.lazy import dataclass
from distinput.ops.identity import AssertCardinality
from distinput.values.leaves import lost
from distinput.values.nullable import Nullable
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.spec import TensorSpec
from distinput.writers.manifest import WrittenFiles

_WITH_ROWS = ("arrow", "jsonl", "parquet")
"""Formats that hold lists of structs."""

_WITH_NULLS = ("arrow", "csv", "jsonl", "parquet")
"""Formats that hold nulls."""

_OF_ONE_VALUE = ("megatron", "npy", "text")
"""Formats whose elements have no parts."""


def convert(
    filenames: Any,
    directory: str,
    to: str,
    format: str | None = None,
    *,
    shards: int | None = None,
    shard_rows: int | None = None,
    shard_bytes: int | None = None,
    overwrite: bool = False,
    records: str | None = None,
    scan: int | None = None,
    value: str | None = None,
    casts: Mapping[str, Any] | None = None,
    progress: Callable[[int], object] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    **writer_options: Any,
) -> WrittenFiles:
    r"""Write the records of files as files of another format, with a manifest, as `Dataset.write` does.

    If it is interrupted or killed, the same call continues after the last complete file.

    `tf.train.Example` messages become columns, one for each feature: all messages are decoded once before, to find out which
    there are, so nothing is left out. A feature that is absent somewhere, or differs in length, becomes lists, empty where it
    is absent. To TFRecord files columns are written as Examples. Other records become the column "value". Lists of structs are
    the same in Parquet, Arrow and JSON Lines files. Nulls of Parquet and Arrow files are nulls again in such files; for others,
    `options` says what stands in their place.

    Args:
      filenames: a path, pattern or directory, a list of them, or what `open_files` found.
      directory: where to write.
      to: the name of the format to write.
      format: the name of the format of the files; None: it is recognised.
      shards: so many files, each with a range of the records; if their number is not known, they are counted first.
      shard_rows: so many records a file.
      shard_bytes: about so many bytes a file; 256 MiB if nothing is said.
      overwrite: replace a dataset that is there, once this one is complete.
      records: what records of bytes are: "example", "sequence_example" or "bytes"; None: the first ones are looked at.
      scan: how many messages of the first file to decode, to find their features; what only later ones have is left out.
        None: all of all files.
      value: the column that becomes the record itself, for text, npy, megatron and TFRecord files of bytes; without it the
        only one there is, if the format is one of the first three.
      casts: dtypes of columns to change, such as `{"x": "float32"}`: numbers in text are float64, which no Example holds.
        Floats are rounded; a number that does not fit is an error.
      progress: is told how many records are written, again and again.
      storage_options: for the file systems that the URLs name.
      options: of the format that is read, such as `{"nulls": {"x": 0}}`.
      **writer_options: of the format that is written, such as `compression`.

    Raises:
      InvalidArgumentError: the format cannot hold the records; the message names the column and says what to do.
      FailedPreconditionError: the folder holds a dataset.
      DataLossError: a file is damaged. What was written stays hidden, to continue from.

    Warns:
      InputWarning: a column has times of day, which become durations, or times with a zone, which become those of UTC.

    >>> import pathlib
    >>> _ = pathlib.Path("a.csv").write_text("x,name\n1,Ada\n2,Alan\n")
    >>> convert("a.csv", "as_parquet", "parquet").rows
    2
    >>> [record.value for record in __import__("distinput").inspect.head("as_parquet")]
    [{'x': 1, 'name': b'Ada'}, {'x': 2, 'name': b'Alan'}]
    """
    files = open_files(filenames, format, storage_options=storage_options, **(options or {}))
    dataset = records_as_dataset(files, records, scan, _nulls_of(files, to))
    _tell_times(files)
    if casts:
        dataset = _cast(dataset, casts)
    dataset = _of_one_value(dataset, to, value)
    if to in _WITH_ROWS:
        dataset = dataset.as_rows()
    if (shards or 1) > 1 and dataset.node.count_elements() < 0:  # otherwise they would take turns
        dataset = Dataset(AssertCardinality(dataset.node, sum(each.records for each in count(files))))
    cut = {"shards": shards, "shard_bytes": shard_bytes, "shard_rows": shard_rows}
    try:
        request = request_of(directory, to, cut, {}, "part", overwrite, writer_options)
    except TypeError as error:
        raise InvalidArgumentError(str(error)) from None
    return write(dataset, replace(request, who="convert", progress=progress))


def _nulls_of(files: Files, to: str) -> dict[str, Any]:
    """Options with which all nulls of the files are told that the new files can hold, if none say what becomes of them."""
    made = getattr(files.format, "inner", files.format)  # of folders such as year=2024
    if to not in _WITH_NULLS or not isinstance(made, Parquet | ArrowIpc) or made.tells != "in place":
        return {}
    return {"valid": list(dict.fromkeys(path for each in files.paths for path in made.null_paths(each)))}


def _tell_times(files: Files) -> None:
    """Warn of columns whose times are others in the new files, as NumPy has no such times."""
    schemas = [schema_of_table(files.format, path) for path in files.paths]
    told = dict.fromkeys([each for schema in schemas if schema is not None for each in changed_times(schema)])
    if told:
        warnings.warn(
            f"convert: {', '.join(told)}; the new files do not tell: note it beside them, or cast these columns to text before",
            InputWarning,
            stacklevel=3,
        )


def records_as_dataset(
    files: Files, records: str | None = None, scan: int | None = None, options: Mapping[str, Any] | None = None
) -> Dataset[Any]:
    """The records of files as a dataset; those of messages with the features that they have.

    Args:
      files: the files.
      records: as for `convert`.
      scan: as for `convert`.
      options: of the format, beside those of the files.

    Raises:
      InvalidArgumentError: a feature has values of several kinds, or the records are SequenceExamples.
    """
    dataset = files.dataset(**(options or {}))
    kind = record_kind(files, files.paths[0], records)
    if kind == "sequence_example":
        raise InvalidArgumentError(
            f"{files.paths[0]}: its records are SequenceExamples, which are not rows of columns; keep them as bytes with "
            "records='bytes', or use parse_sequence_example"
        )
    if kind != "example":
        return dataset
    found, number = features_of(files, scan)
    mixed = [key for key, feature in found.items() if feature.dtype == "mixed"]
    if mixed:
        raise InvalidArgumentError(
            f"{files.paths[0]}: feature {mixed[0]!r} has values of several kinds, which no column holds; keep the messages as "
            "bytes with records='bytes'"
        )
    return dataset.parse_example({key: declaration(feature, number) for key, feature in found.items()})


@dataclass(frozen=True)
class _Part:
    """Takes a column; a class, so that two runs see the same function."""

    name: str

    def __call__(self, row: Any) -> Any:
        return row[self.name]


@dataclass(frozen=True)
class _Casts:
    """Changes the dtypes of columns; a class, so that two runs see the same function."""

    dtypes: tuple[tuple[str, str], ...]

    def __call__(self, rows: dict[str, Any]) -> dict[str, Any]:
        return {**rows, **{name: _as_dtype(name, rows[name], np.dtype(dtype)) for name, dtype in self.dtypes}}


def _as_dtype(name: str, column: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(column, Nullable):
        return Nullable(column, value=_as_dtype(name, column["value"], dtype))
    if isinstance(column, RaggedTensor):
        return column.with_flat_values(_as_dtype(name, column.flat_values, dtype))
    made = column.astype(dtype)
    changed = np.ravel(column)[np.ravel(made != column if dtype.kind in "iu" else lost(column, made))]
    if len(changed):
        value = changed[0]
        raise InvalidArgumentError(
            f"convert: column {name!r} has {value}, which is no {dtype}; cast it to another dtype"
        )
    return made


def _cast(dataset: Dataset[Any], casts: Mapping[str, Any]) -> Dataset[Any]:
    spec = dataset.node.spec
    if spec.structure.kind != "dict":
        raise InvalidArgumentError("convert: records have no columns to cast")
    columns = {str(name): spec.nest[name] for name in spec.structure.keys}
    for name, dtype in casts.items():
        if name not in columns:
            raise InvalidArgumentError(f"convert: there is no column {name!r}; the columns are {', '.join(columns)}")
        leaf = columns[name]["value"] if isinstance(columns[name], Nullable) else columns[name]
        if not isinstance(leaf, TensorSpec) or leaf.ragged_rank or leaf.dtype.kind not in "biuf":
            raise InvalidArgumentError(f"convert: only columns of numbers can be cast, and {name!r} is {leaf}")
        try:
            wanted = np.dtype(dtype).kind
        except TypeError:
            wanted = ""
        if wanted not in ("i", "u", "f") or dtype is None:
            raise InvalidArgumentError(f"convert: columns are cast to integers or floats, got {dtype!r} for {name!r}")
    return dataset.map_rows(_Casts(tuple((name, str(np.dtype(dtype))) for name, dtype in casts.items())))


def _of_one_value(dataset: Dataset[Any], to: str, value: str | None) -> Dataset[Any]:
    """The elements of a format without columns."""
    spec = dataset.node.spec
    structure = spec.structure
    if structure.is_leaf:
        if value not in (None, "value"):
            raise InvalidArgumentError(f"convert: there is no column {value!r}; records have no parts")
        return dataset
    names = [str(name) for name in structure.keys]
    if value is None:
        if to not in _OF_ONE_VALUE or structure.kind != "dict":
            return dataset
        if len(names) != 1:
            raise InvalidArgumentError(
                f"convert: a record of {to} is one value, and there are {len(names)} columns; name one with value= "
                f"(--value in the command line): {', '.join(names)}"
            )
        value = names[0]
    if value not in names:
        raise InvalidArgumentError(f"convert: there is no column {value!r}; the columns are {', '.join(names)}")
    return dataset.map_rows(_Part(value))
