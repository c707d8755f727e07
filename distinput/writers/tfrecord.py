# SPDX-License-Identifier: Apache-2.0
"""TFRecord files: records of bytes, or dicts as `tf.train.Example` messages."""

from typing import ClassVar

import numpy as np

from distinput.columns.block import Block
from distinput.columns.column import Strings
from distinput.errors import InvalidArgumentError
from distinput.files.sink import Sink
from distinput.formats.example_encoding import encode_examples
from distinput.formats.tfrecord import framed
from distinput.values.leaves import STRING
from distinput.values.spec import Spec, TensorSpec
from distinput.writers.writer import CompressedWriter, ShardFile, refuse_nulls

_EXACT = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool", "float16", "float32")
"""Numbers that the int64 and float32 lists of an Example hold exactly."""


class TFRecordsWriter(CompressedWriter):
    """Records of TFRecord files: elements that are bytes as they are, dicts as `tf.train.Example` messages.

    In an Example an array is the list of its values: its shape is for the reader to say (`parse_example`).

    Args:
      compression: of the whole file: None, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4" or "SNAPPY".

    Raises:
      InvalidArgumentError: the compression is unknown.
    """

    name: ClassVar[str] = "tfrecord"
    suffix: ClassVar[str] = ".tfrecord"

    def check(self, spec: Spec) -> None:
        refuse_nulls("tfrecord", spec.structure)
        if spec.structure.is_leaf and spec.leaves[0] == TensorSpec((), STRING):
            return
        if spec.structure.kind != "dict" or not all(child.is_leaf for child in spec.structure.children):
            raise InvalidArgumentError(
                f"write: a TFRecord is bytes, or a dict of features (a tf.train.Example), got elements like {spec.nest}; map "
                'them to one of these, or write format="elements"'
            )
        for key, leaf in zip(spec.structure.keys, spec.leaves, strict=True):
            if not isinstance(leaf, TensorSpec) or leaf.ragged_rank:
                raise InvalidArgumentError(
                    f"write: feature {key!r} is not an array, and an Example holds lists of values; got {leaf}"
                )
            if not isinstance(key, str):
                raise InvalidArgumentError(f"write: names of the features of an Example are text, got {key!r}")
            if leaf.dtype != STRING and leaf.dtype.newbyteorder("=") not in map(np.dtype, _EXACT):
                raise InvalidArgumentError(
                    f"write: feature {key!r} is {leaf.dtype}, and an Example holds int64, float32 and bytes; cast it with map, "
                    'or with convert --cast, or write format="parquet"'
                )

    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        return _File(sink, spec.structure.is_leaf)


class _File(ShardFile):
    def __init__(self, sink: Sink, raw: bool) -> None:
        self._sink, self._raw = sink, raw

    def write(self, block: Block) -> None:
        records = block.materialize().columns[0] if self._raw else encode_examples(block)
        strings = records if isinstance(records, Strings) else Strings.of(list(records.values()))
        self._sink.write(framed(*strings.side_by_side(view=True)))
