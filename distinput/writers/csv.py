# SPDX-License-Identifier: Apache-2.0
"""CSV files, with a line of names at the beginning of each."""

from typing import Any, ClassVar

from distinput.arrow.record_batches import nulls_of, record_batch
from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.files.compression import Compression, as_compression
from distinput.files.sink import Sink
from distinput.names.lazy import dataclass, library
from distinput.plan.check import normalized
from distinput.values.leaves import STRING
from distinput.values.nest import Structure, component
from distinput.values.nullable import is_nullable
from distinput.values.spec import Spec, TensorSpec
from distinput.writers.arrow import TableFile, check_table, refuse_none, target
from distinput.writers.writer import ShardFile, Writer, refuse_nulls, whole_file_codec

pa = library("pyarrow")
csv = library("pyarrow.csv")
types = library("pyarrow.types")


@dataclass(frozen=True)
class CsvWriter(Writer):
    """Rows of CSV files: numbers, times and UTF-8 text; quotes where they are needed.

    NaN is written as "nan", and NaT and what is missing as nothing; as two quotes where a line has nothing else, since
    readers pass over empty lines. Text that is empty is written as two quotes, so that it is told from nothing.

    Args:
      header: write the names of the columns as the first line of each file.
      delimiter: between the columns, one character.
      compression: of the whole file: None, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4" or "SNAPPY".

    Raises:
      InvalidArgumentError: the compression is unknown, or the delimiter is not one character.
    """

    name: ClassVar[str] = "csv"
    suffix: ClassVar[str] = ".csv"
    header: bool = True
    delimiter: str = ","
    compression_type: str | None = None

    def __init__(self, header: bool = True, delimiter: str = ",", compression: str | None = None) -> None:
        if not isinstance(delimiter, str) or len(delimiter.encode()) != 1 or delimiter in '"\r\n':
            raise InvalidArgumentError(
                f"write: delimiter must be one ASCII character, no quote or line end, got {delimiter!r}"
            )
        normalized(self, "header", bool(header))
        normalized(self, "delimiter", delimiter)
        normalized(self, "compression_type", whole_file_codec(compression))

    @property
    def compression(self) -> Compression:
        return as_compression(self.compression_type)

    def reading(self, spec: Spec) -> dict[str, Any]:
        names, leaves = column_names(spec.structure), iter(spec.tensors("write"))
        dtypes = [
            [next(leaves).dtype for _ in range(child.num_leaves)][-1]  # that of the value, not of its mark
            for child in ([spec.structure] if names == ["value"] else spec.structure.children)
        ]
        kinds = {name: "object" if dtype == STRING else dtype.str for name, dtype in zip(names, dtypes, strict=True)}
        schema = self._schema(spec)
        nulls = nulls_of(schema)
        return {
            "schema": {name: kinds[name] for name in schema.names},
            "header": self.header,
            "delimiter": self.delimiter,
            "compression_type": self.compression_type,
            **({"valid": nulls, "null_values": [""]} if nulls else {}),
        }

    def check(self, spec: Spec) -> None:
        refuse_none(spec.structure)
        column_names(spec.structure)
        for leaf, path in zip(spec.leaves, spec.structure.paths, strict=True):
            if not isinstance(leaf, TensorSpec) or leaf.shape != () or leaf.dtype.kind == "c":
                raise InvalidArgumentError(
                    f'write: a cell of CSV is a number, a time or text, and {component(path)} is {leaf}; write format="jsonl" '
                    'or "parquet", or map it to several columns'
                )
        schema = self._schema(spec)
        if len(schema) == 1 and nulls_of(schema) and spec.tensors("write")[-1].dtype == STRING:
            raise InvalidArgumentError(
                f"write: column {schema.names[0]!r} of text has nulls, and CSV tells a missing text from an empty one only "
                'beside another column; write format="jsonl" or "parquet"'
            )

    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        schema = self._schema(spec)
        options = csv.WriteOptions(include_header=self.header, delimiter=self.delimiter, quoting_style="needed")
        if len(schema) > 1 or not (_is_time(schema.field(0).type) or nulls_of(schema)):
            return TableFile(csv.CSVWriter(target(sink), schema, write_options=options), schema)
        text = pa.schema([(schema.names[0], pa.string())])
        return _LoneCells(csv.CSVWriter(target(sink), text, write_options=options), schema)

    def _schema(self, spec: Spec) -> Any:
        return check_table(spec, text=any(leaf.dtype == STRING for leaf in spec.tensors("write")))


def column_names(structure: Structure) -> list[str]:
    """The columns of elements that are flat dicts, namedtuples, tuples or single values; a `Nullable` is one.

    Raises:
      InvalidArgumentError: they are nested deeper.
    """

    def is_one(at: Structure) -> bool:
        return at.is_leaf or (is_nullable(at) and at.children[1].is_leaf)

    if is_one(structure):
        return ["value"]
    for path, child in structure.members:
        if not is_one(child):
            refuse_nulls("csv", structure)
            raise InvalidArgumentError(
                f"write: csv takes elements of one level, and {component(f'[{path!r}]')} has more below it; map them to a "
                "flat dict"
            )
    return [str(key) for key in structure.keys] or [str(place) for place in range(len(structure.children))]


class _LoneCells(TableFile):
    """Rows of one cell that may be missing, as text: such a row would be an empty line."""

    def write(self, block: Block) -> None:
        cells = record_batch(block, self._schema).column(0)
        shown = cells.cast("int64") if types.is_duration(cells.type) else cells
        text = shown.cast("string").fill_null("")
        self._writer.write_batch(pa.RecordBatch.from_arrays([text], self._schema.names))


def _is_time(kind: Any) -> bool:
    return bool(types.is_timestamp(kind) or types.is_date(kind) or types.is_duration(kind))
