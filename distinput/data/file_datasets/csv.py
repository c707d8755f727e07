# SPDX-License-Identifier: Apache-2.0
"""`CsvDataset`: rows of CSV files, as dicts or as TensorFlow's tuples."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.data.file_datasets.reading import constructor_of, reading
from distinput.errors import InvalidArgumentError
from distinput.formats import FORMATS, format_named
from distinput.plan.options import SkipErrors
from distinput.values.leaves import lost


class CsvDataset(Dataset[Any]):
    r"""The rows of CSV files: dicts from column name to value, or tuples by the rules of TensorFlow.

    Without `record_defaults` a row is a dict. The types of its columns are stated by `schema`, or inferred from the beginning
    of the first file as int64, uint64, float64, bool or text; then they hold for all files, and a value that does not fit, or
    that an inferred type would change, is an error with file, line and column. Values in quotes may contain newlines.

    With `record_defaults` a row is a tuple, as that of `tf.data.experimental.CsvDataset`: an empty field becomes its default,
    and is an error where a dtype stands in the place of a default.

    Args:
      filenames: a path, a list of paths, or a dataset of paths; any URL.
      record_defaults: a default or a dtype (float32, float64, int32, int64, string) for each field that is read.
      compression_type: "" for none, "GZIP" or another codec; None and "AUTO" go by the suffix of each name.
      buffer_size: accepted as TensorFlow's; read sizes are chosen by the reader.
      header: whether the first record of each file is a header; True for dicts and False for tuples when None.
      field_delim: the character between fields.
      use_quote_delim: whether double quotes may stand around a field.
      na_value: text that stands for an empty field, beside those that `null_values` names.
      select_cols: for tuples: the numbers of the fields to read, in order, or their names in the header; all when None.
      exclude_cols: for tuples: the numbers of the fields not to read, or their names.
      schema: for dicts: types by column name, of which a dict may leave some out, or a pyarrow Schema.
      columns: for dicts: names of the columns to read; all when None.
      column_names: for dicts: names of all columns in the order of the files, where the header has none or others.
      nulls: for dicts: what to put in the place of missing values, by column; "error": one is an error. None: numbers and truth
        values are dicts of `value` and `valid` in columns of inferred types in which the first megabyte has missing ones.
      null_values: for dicts: what missing values look like; as pyarrow has it when None.
      newlines_in_values: for dicts: False if no value has a newline in it; then parts of a file are found without reading
        what is before them.
      num_parallel_reads: files read at a time, whose rows take turns; one after the other when None.
      name: a label.
      index: true to count records and reach them by their numbers, from an index that is built by reading each file once and
        kept beside it; a path is a folder to keep it in. See `TFRecordDataset`.
      on_error: "raise", "skip" or `SkipErrors(...)`, for what cannot be read.
      partitioning: "hive": folders such as `year=2024` are columns, int64 or text; a dict of types by column states theirs;
        None leaves them out.
      storage_options: for the file systems that the URLs name, such as credentials.
      filesystem: of fsspec or of PyArrow, or a store of obstore, that has the files.
      valid: for dicts: a list of columns in which values may be missing, text too, whose values are dicts of `value` and
        `valid`.
      text: "bytes"; or "str": `as_text` behind the reader.
      decimals: for dicts: of columns that `schema` says to be decimals, "text" of their digits; "decimal" objects or "float64":
        `as_decimal` behind the reader.

    Raises:
      InvalidArgumentError: an option has an invalid value; at iteration, a record does not fit.
      NotFoundError: a file is not there.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.csv").write_text("age,name\n30,Ada\n41,\"Alan, A.\"\n")
    >>> di.data.CsvDataset("a.csv").to_list()
    [{'age': 30, 'name': b'Ada'}, {'age': 41, 'name': b'Alan, A.'}]
    >>> di.data.CsvDataset("a.csv", [di.float32, "nobody"], header=True).to_list()
    [(30.0, b'Ada'), (41.0, b'Alan, A.')]

    Source: tuples have the meaning of `tf.data.experimental.CsvDataset`.
    """

    @constructor_of
    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any] | None = None,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool | None = None,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int | str] | None = None,
        exclude_cols: Sequence[int | str] | None = None,
        *,
        schema: Any = None,
        columns: Sequence[str] | None = None,
        column_names: Sequence[str] | None = None,
        nulls: Any = None,
        null_values: Sequence[str] | None = None,
        newlines_in_values: bool = True,
        num_parallel_reads: int | None = None,
        name: str | None = None,
        index: bool | str = False,
        on_error: str | SkipErrors | None = None,
        storage_options: Mapping[str, Any] | None = None,
        filesystem: Any = None,
        partitioning: Any = "hive",
        valid: Sequence[str] | None = None,
        text: str = "bytes",
        decimals: str = "text",
    ) -> None:
        of_dicts = {
            "valid": valid,
            "schema": schema,
            "columns": columns,
            "column_names": column_names,
            "null_values": null_values,
            "index": index or None,
        }
        of_tuples = {"select_cols": _as_columns(select_cols), "exclude_cols": _as_columns(exclude_cols)}
        others, kind, cure = of_dicts, "dicts", "leave record_defaults out"
        if record_defaults is None:
            others, kind, cure = of_tuples, "tuples", "name columns with columns=, or pass record_defaults"
        for option, value in others.items():
            if value is not None:
                raise InvalidArgumentError(f"CsvDataset: {option} is for {kind}; {cure}")
        if record_defaults is None:
            if na_value and not isinstance(null_values, str | bytes):  # which the format refuses
                null_values = [*([""] if null_values is None else null_values), na_value]
            reader = format_named(
                "csv",
                index,
                schema=schema,
                columns=columns,
                column_names=column_names,
                header=header is None or header,
                delimiter=field_delim,
                quote_char='"' if use_quote_delim else None,
                newlines_in_values=newlines_in_values,
                null_values=null_values,
                nulls=nulls,
                valid=valid,
                compression_type=compression_type,
            )
        else:
            types, defaults = as_defaults(record_defaults)
            reader = FORMATS.find("csv_tuples")(
                types,
                defaults,
                of_tuples["select_cols"],
                of_tuples["exclude_cols"],
                bool(header),
                field_delim,
                use_quote_delim,
                na_value,
                compression_type,
            )
        super().__init__(
            reading(
                filenames,
                reader,
                num_parallel_reads,
                name,
                on_error=on_error,
                storage_options=storage_options,
                filesystem=filesystem,
                partitioning=partitioning,
                text=text,
                decimals=decimals,
            )
        )


def _as_columns(given: Sequence[int | str] | None) -> Sequence[int | str] | None:
    """Numbers or names of fields; None if there are none."""
    if given is None:
        return None
    return [each.item() if isinstance(each, np.generic) else each for each in given] or None


def as_defaults(record_defaults: Sequence[Any]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """The types of fields, and what an empty one becomes; None for one that must not be empty.

    Raises:
      InvalidArgumentError: one is neither a dtype nor a single value.
    """
    types, defaults = [], []
    for number, given in enumerate(record_defaults):
        kind, default = _as_default(number, given)
        types.append(kind)
        defaults.append(default)
    return tuple(types), tuple(defaults)


def _as_default(number: int, given: Any) -> tuple[str, Any]:
    if isinstance(given, np.dtype | type) or hasattr(given, "as_numpy_dtype"):
        return np.dtype(getattr(given, "as_numpy_dtype", given)).name, None
    value = np.asarray(given)
    if value.dtype.kind in "if" and not isinstance(given, np.ndarray | np.generic):
        # As TensorFlow takes Python's numbers.
        with np.errstate(over="ignore"):
            small = value.astype(np.float32 if value.dtype.kind == "f" else np.int32)
        if lost(value, small).any():
            raise InvalidArgumentError(
                f"CsvDataset: the default of field {number} is too large for float32, which floats of Python become as in "
                f"TensorFlow, got {given!r:.80}; give np.float64 of it"
            )
        value = small if small.dtype.kind == "f" or (small == value).all() else value.astype(np.int64)
    if value.ndim > 1 or value.size > 1:
        raise InvalidArgumentError(
            f"CsvDataset: record_defaults must have a dtype or a single value for each field, field {number} has {given!r}"
        )
    text = value.dtype.kind in "OSU"
    if not value.size:
        return "object" if text else value.dtype.name, None
    found = value.reshape(-1)[0]
    if not text:
        return value.dtype.name, found.item()
    if not isinstance(found, bytes | str):
        raise InvalidArgumentError(f"CsvDataset: a default must be a number or text, field {number} has {given!r:.80}")
    return "object", found.encode() if isinstance(found, str) else found
