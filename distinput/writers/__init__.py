# SPDX-License-Identifier: Apache-2.0
"""The writers of file formats (floor 3), one module each, and what makes a folder of written files complete or invisible."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from distinput.names.lazy import Registry

if TYPE_CHECKING:
    from distinput.writers.writer import Writer

__all__ = ["WRITERS"]

OpenWriter: TypeAlias = "Callable[..., Writer]"
"""A `Writer` class, or a function that makes a writer from its options."""

WRITERS: "Registry[OpenWriter]" = Registry(
    "writer",
    {
        "arrow": "distinput.writers.arrow:ArrowWriter",
        "csv": "distinput.writers.csv:CsvWriter",
        "elements": "distinput.writers.elements:ElementsWriter",
        "jsonl": "distinput.writers.jsonl:JsonlWriter",
        "megatron": "distinput.writers.tokens:MegatronWriter",
        "npy": "distinput.writers.npy:NpyWriter",
        "parquet": "distinput.writers.parquet:ParquetWriter",
        "tar": "distinput.writers.tar:TarWriter",
        "text": "distinput.writers.text:TextWriter",
        "tfrecord": "distinput.writers.tfrecord:TFRecordsWriter",
    },
)
"""The writers by the name of the format that reads what they write."""
